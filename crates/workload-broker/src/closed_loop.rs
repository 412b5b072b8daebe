//! What a closed loop shows: tests `drain` and `burst`.

use plimsoll_core::profile::{NS_PER_S, Window};

use crate::backlog::{Backlog, Flow};
use crate::record::ClosedLoop;
use crate::schedule::Closed;

/// What happened to the messages of a trial, all connections together.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) published: &'a Flow,
    pub(crate) confirmed: &'a Flow,
    pub(crate) delivered: &'a Flow,
    pub(crate) backlog: &'a Backlog,
    /// When the last message was confirmed.
    pub(crate) confirmed_ns: Option<u64>,
    /// When the last one arrived.
    pub(crate) delivered_ns: Option<u64>,
}

impl Seen<'_> {
    /// What that shows.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds and messages of a trial, far below 2^53"
    )]
    pub(crate) fn shows(&self, closed: Closed, window: Window) -> ClosedLoop {
        let is_drain = matches!(closed, Closed::Preload(_));
        let from_ns = if is_drain {
            window.start_ns
        } else {
            window.end_ns
        };
        let took_ns = self.delivered_ns.and_then(|last| last.checked_sub(from_ns));
        let drain_s = took_ns.map(|ns| ns as f64 / NS_PER_S as f64);
        let drained_s = drain_s.filter(|seconds| is_drain && *seconds > 0.0);
        let all_in_time = self.confirmed_ns.is_none_or(|last| last <= window.start_ns);
        let preloaded = if all_in_time {
            self.confirmed.messages()
        } else {
            self.confirmed.messages_before(window.start_ns)
        };
        ClosedLoop {
            published_peak_per_s: self.published.peak_per_s(),
            confirmed_peak_per_s: self.confirmed.peak_per_s(),
            delivered_peak_per_s: self.delivered.peak_per_s(),
            backlog_at_window_end: self.backlog.at(window.end_ns),
            drain_s,
            drained_per_s: drained_s.map(|seconds| self.delivered.messages() as f64 / seconds),
            preloaded: is_drain.then_some(preloaded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window {
        start_ns: 2 * NS_PER_S,
        end_ns: 5 * NS_PER_S,
        grace_end_ns: 9 * NS_PER_S,
    };

    fn flow(of: &[(f64, u32)]) -> Flow {
        let mut flow = Flow::default();
        for (at_s, messages) in of {
            let at = std::time::Duration::from_secs_f64(*at_s).as_nanos();
            flow.count_several(u64::try_from(at).unwrap(), *messages);
        }
        flow
    }

    fn shows(closed: Closed, flows: [&Flow; 3], lasts: [Option<u64>; 2]) -> ClosedLoop {
        let [published, confirmed, delivered] = flows;
        let seen = Seen {
            published,
            confirmed,
            delivered,
            backlog: &Backlog::of(published, delivered),
            confirmed_ns: lasts[0],
            delivered_ns: lasts[1],
        };
        seen.shows(closed, WINDOW)
    }

    #[test]
    fn a_burst_has_peaks_and_a_backlog_that_is_drained() {
        // The second from 2.5 s on has the most.
        let published = flow(&[(2.0, 10), (2.55, 500), (3.45, 400), (4.5, 90)]);
        let confirmed = flow(&[(3.0, 600), (4.9, 400)]);
        let delivered = flow(&[(3.0, 300), (4.0, 300), (5.5, 400)]);
        let shown = shows(
            Closed::Flood,
            [&published, &confirmed, &delivered],
            [Some(4_900_000_000), Some(5_500_000_000)],
        );
        let expected = ClosedLoop {
            published_peak_per_s: 900,
            confirmed_peak_per_s: 600,
            delivered_peak_per_s: 400,
            backlog_at_window_end: 400,
            drain_s: Some(0.5),
            drained_per_s: None,
            preloaded: None,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_drain_counts_from_the_beginning_of_the_window() {
        let all = flow(&[(1.0, 1_000)]);
        let delivered = flow(&[(2.1, 600), (2.4, 400)]);
        let lasts = |confirmed_ns| [Some(confirmed_ns), Some(2_500_000_000)];
        let of = |confirmed: &Flow, confirmed_ns| {
            shows(
                Closed::Preload(1_000),
                [&all, confirmed, &delivered],
                lasts(confirmed_ns),
            )
        };
        let shown = of(&all, 1_990_000_000);
        assert_eq!(
            (shown.drain_s, shown.drained_per_s),
            (Some(0.5), Some(2_000.0))
        );
        assert_eq!(
            (shown.preloaded, shown.backlog_at_window_end),
            (Some(1_000), 0)
        );
        // Some were confirmed when the readers were there already.
        let late = flow(&[(1.0, 700), (2.0, 300)]);
        assert_eq!(of(&late, 2_010_000_000).preloaded, Some(700));
    }

    #[test]
    fn without_arrivals_nothing_was_drained() {
        let none = Flow::default();
        let shown = shows(Closed::Preload(7), [&none; 3], [None; 2]);
        assert_eq!((shown.drain_s, shown.preloaded), (None, Some(0)));
    }
}
