//! What a thread costs and how long it is kept waiting: its CPU time, for each second and for the measured window, and
//! its wait for a core.

use plimsoll_core::profile::Window;

use crate::clock::{thread_cpu_ns, thread_wait_ns};

/// CPU time and frames between the two ends of the window, as this thread saw them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WindowCost {
    pub(crate) cpu_ns: u64,
    pub(crate) frames: u64,
    wall_ns: u64,
    /// Time that the thread was ready and waited for a core, in ns.
    wait_ns: Option<u64>,
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

    /// `None` where the kernel does not report the wait, or if there was no window.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a trial are far below 2^53"
    )]
    pub(crate) fn wait_share(&self) -> Option<f64> {
        (self.wall_ns > 0).then_some(self.wait_ns? as f64 / self.wall_ns as f64)
    }
}

/// Measures the thread's own CPU time, for each second and for the measured window.
pub(crate) struct Meter {
    window: Window,
    began: Edge,
    opened: Option<Edge>,
    closed: Option<Edge>,
    second: Mark,
}

/// One end of the window.
#[derive(Debug, Clone, Copy)]
struct Edge {
    mark: Mark,
    wait_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    at_ns: u64,
    cpu_ns: u64,
    frames: u64,
}

impl Meter {
    /// Begins now, `now_ns` after the trial did, on the thread that it is about.
    pub(crate) fn new(window: Window, now_ns: u64) -> Self {
        Self {
            window,
            began: Edge::now(now_ns, 0),
            opened: None,
            closed: None,
            second: Mark::now(0, 0),
        }
    }

    pub(crate) fn update(&mut self, now_ns: u64, frames: u64) {
        if self.opened.is_none() && now_ns >= self.window.start_ns {
            self.opened = Some(Edge::now(now_ns, frames));
        }
        if self.closed.is_none() && now_ns >= self.window.end_ns {
            self.closed = Some(Edge::now(now_ns, frames));
        }
    }

    /// Ends the window with the trial, which may be over before the window was.
    pub(crate) fn close(&mut self, now_ns: u64, frames: u64) {
        self.closed.get_or_insert_with(|| Edge::now(now_ns, frames));
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
            wall_ns: now_ns - self.second.at_ns,
            ..WindowCost::default()
        }
        .busy_share();
        self.second = mark;
        share
    }

    pub(crate) fn cost(&self) -> WindowCost {
        match (self.opened, self.closed) {
            (Some(opened), Some(closed)) => closed.since(&opened),
            _ => WindowCost::default(),
        }
    }

    /// The same for the time before the window, in which sessions open.
    pub(crate) fn opening_cost(&self) -> WindowCost {
        self.opened
            .map_or_else(WindowCost::default, |opened| opened.since(&self.began))
    }
}

impl Edge {
    fn now(at_ns: u64, frames: u64) -> Self {
        Self {
            mark: Mark::now(at_ns, frames),
            wait_ns: thread_wait_ns(),
        }
    }

    fn since(&self, earlier: &Self) -> WindowCost {
        let waits = self.wait_ns.zip(earlier.wait_ns);
        WindowCost {
            cpu_ns: self.mark.cpu_ns - earlier.mark.cpu_ns,
            frames: self.mark.frames - earlier.mark.frames,
            wall_ns: self.mark.at_ns.saturating_sub(earlier.mark.at_ns),
            wait_ns: waits.map(|(now, then)| now.saturating_sub(then)),
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
        let mut meter = Meter::new(WINDOW, 20);
        assert_eq!(meter.next_edge_ns(), 100);
        meter.update(50, 5);
        meter.update(101, 10);
        assert_eq!(meter.next_edge_ns(), 200);
        meter.update(150, 20);
        meter.update(202, 30);
        meter.update(250, 99);
        assert_eq!(meter.cost().frames, 20);
        let opening = meter.opening_cost();
        assert_eq!((opening.frames, opening.wall_ns), (10, 81));
        assert_eq!(meter.next_edge_ns(), u64::MAX);
    }

    #[test]
    fn the_wait_is_a_share_of_the_window() {
        let waited = |wait_ns| WindowCost {
            wall_ns: 200,
            wait_ns,
            ..WindowCost::default()
        };
        assert_eq!(waited(Some(50)).wait_share(), Some(0.25));
        assert_eq!(waited(None).wait_share(), None);
        assert_eq!(WindowCost::default().wait_share(), None);
    }

    #[test]
    fn a_trial_cut_short_counts_until_its_end() {
        let mut meter = Meter::new(WINDOW, 20);
        meter.update(100, 1);
        meter.close(150, 7);
        assert_eq!(meter.cost().frames, 6);
        let mut before = Meter::new(WINDOW, 20);
        before.close(50, 3);
        assert_eq!(before.cost().frames, 0);
        assert_eq!(before.opening_cost().wait_share(), None);
    }
}
