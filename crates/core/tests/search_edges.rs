//! The search, where every trial is decided by a known edge.

use plimsoll_core::profile::Profile;
use plimsoll_core::search::{Search, SearchResult, Settings, Step, TrialVerdict};

/// A search as `find --workload http` makes it, of a server that carries at most `edge` requests per second.
fn searched(edge: u32, seed: u64) -> SearchResult {
    let settings = Settings {
        start: 1_000,
        min: 1,
        short_min: 1,
        max: 4_000_000,
        relative_width: 0.05,
        confidence: 0.95,
        repeats: 3,
        max_trials: 60,
        seed,
        short_share: Profile::quick().short_share(),
    };
    let mut search = Search::new(settings).expect("the settings make sense");
    loop {
        match search.next() {
            Step::Done(result) => return result,
            Step::Trial { load, length, .. } => {
                let verdict = if load <= edge {
                    TrialVerdict::Pass
                } else {
                    TrialVerdict::Fail
                };
                search.record(load, length, verdict);
            }
        }
    }
}

/// Fault of the report: each load was twice the one before, and a server that failed at the first of them got a "0",
/// although it held half of that load. So a server that holds 50,000 is measured, whatever fails at 100,000.
#[test]
fn two_hundred_edges_are_inside_their_intervals_and_none_is_0() {
    // From 20 to 1,000,000 requests per second, at equal steps of the logarithm. None is on a grid of powers of two.
    for number in 0..200_u32 {
        let edge = (20.0 * 50_000_f64.powf(f64::from(number) / 199.0)) as u32;
        let found = searched(edge, number.into());
        let confirmed = found.confirmed.unwrap_or(0);
        let interval = found.edge.expect("an edge");
        let (low, high) = (interval.low, interval.high.expect("some load failed"));
        assert!(confirmed > 0 && confirmed <= edge, "{edge}: {found:?}");
        // The server carries `edge` and not one more: its edge is anywhere between the two.
        let inside = low <= f64::from(edge) + 1.0 && f64::from(edge) <= high;
        assert!(inside, "{edge}: {low} to {high}");
        assert!(high / low < 1.2, "{edge}: {low} to {high}");
    }
}
