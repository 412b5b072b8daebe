//! What a thread costs itself: its CPU time, for each second and for the measured window.

use plimsoll_core::profile::Window;

use crate::clock::thread_cpu_ns;

/// CPU time and frames between the window's ends, as this thread saw them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowCost {
    pub(crate) cpu_ns: u64,
    pub(crate) frames: u64,
    wall_ns: u64,
}

impl WindowCost {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a trial are far below 2^53"
    )]
    pub(crate) fn busy_share(&self) -> f64 {
        if self.wall_ns == 0 {
            0.0
        } else {
            self.cpu_ns as f64 / self.wall_ns as f64
        }
    }
}

/// Measures the thread's own CPU time, for each second and for the measured window.
pub(crate) struct Meter {
    window: Window,
    opened: Option<Mark>,
    closed: Option<Mark>,
    second: Mark,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    at_ns: u64,
    cpu_ns: u64,
    frames: u64,
}

impl Meter {
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            opened: None,
            closed: None,
            second: Mark::now(0, 0),
        }
    }

    pub(crate) fn update(&mut self, now_ns: u64, frames: u64) {
        if self.opened.is_none() && now_ns >= self.window.start_ns {
            self.opened = Some(Mark::now(now_ns, frames));
        }
        if self.closed.is_none() && now_ns >= self.window.end_ns {
            self.closed = Some(Mark::now(now_ns, frames));
        }
    }

    /// The trial is over, perhaps before the window was.
    pub(crate) fn close(&mut self, now_ns: u64, frames: u64) {
        self.closed.get_or_insert_with(|| Mark::now(now_ns, frames));
    }

    pub(crate) fn next_edge_ns(&self) -> u64 {
        if self.opened.is_none() {
            self.window.start_ns
        } else if self.closed.is_none() {
            self.window.end_ns
        } else {
            u64::MAX
        }
    }

    pub(crate) fn second_share(&mut self, now_ns: u64) -> f64 {
        let mark = Mark::now(now_ns, 0);
        let share = WindowCost {
            cpu_ns: mark.cpu_ns - self.second.cpu_ns,
            frames: 0,
            wall_ns: now_ns - self.second.at_ns,
        }
        .busy_share();
        self.second = mark;
        share
    }

    pub(crate) fn cost(&self) -> WindowCost {
        match (self.opened, self.closed) {
            (Some(opened), Some(closed)) => WindowCost {
                cpu_ns: closed.cpu_ns - opened.cpu_ns,
                frames: closed.frames - opened.frames,
                wall_ns: closed.at_ns - opened.at_ns,
            },
            _ => WindowCost::default(),
        }
    }
}

impl Mark {
    fn now(at_ns: u64, frames: u64) -> Self {
        Self {
            at_ns,
            cpu_ns: thread_cpu_ns(),
            frames,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        start_ns: 100,
        end_ns: 200,
        grace_end_ns: 300,
    };

    #[test]
    fn only_the_window_counts() {
        let mut meter = Meter::new(WINDOW);
        assert_eq!(meter.next_edge_ns(), 100);
        meter.update(50, 5);
        meter.update(101, 10);
        assert_eq!(meter.next_edge_ns(), 200);
        meter.update(150, 20);
        meter.update(202, 30);
        meter.update(250, 99);
        assert_eq!(meter.cost().frames, 20);
        assert_eq!(meter.next_edge_ns(), u64::MAX);
    }

    #[test]
    fn a_trial_cut_short_counts_until_its_end() {
        let mut meter = Meter::new(WINDOW);
        meter.update(100, 1);
        meter.close(150, 7);
        assert_eq!(meter.cost().frames, 6);
        let mut before = Meter::new(WINDOW);
        before.close(50, 3);
        assert_eq!(before.cost().frames, 0);
    }
}
