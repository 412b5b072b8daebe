//! What a session costs the target, load by load. Where the load is a rate, read "message" or "connection" for "session-second": the cost is CPU time by load.

use std::collections::BTreeMap;

use crate::record::{CostPoint, Verdict};
use crate::stats::Mean;

/// The cost curve of some trials, each given as its load, its verdict, and what it showed of CPU time (µs per session-second) and memory (bytes per session).
/// Invalid trials are left out: what they cost was not the target's alone.
#[must_use]
pub fn cost_curve(
    trials: impl IntoIterator<Item = (u32, Verdict, Option<f64>, Option<f64>)>,
) -> Vec<CostPoint> {
    let mut loads: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (sessions, verdict, cpu_us, rss_bytes) in trials {
        if let (Verdict::Pass | Verdict::Fail, Some(cpu_us)) = (verdict, cpu_us) {
            let (cpu, rss) = loads.entry(sessions).or_default();
            cpu.push(cpu_us);
            rss.extend(rss_bytes);
        }
    }
    loads
        .into_iter()
        .filter_map(|(sessions, (cpu, rss))| {
            Some(CostPoint {
                sessions,
                cpu_us_per_session_second: Mean::of(&cpu)?.value,
                low: cpu.iter().copied().reduce(f64::min)?,
                high: cpu.iter().copied().reduce(f64::max)?,
                trials: u32::try_from(cpu.len()).ok()?,
                rss_bytes_per_session: Mean::of(&rss).map(|mean| mean.value),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loads_are_ascending_and_each_is_its_valid_trials() {
        let curve = cost_curve([
            (200, Verdict::Fail, Some(900.0), Some(10.0)),
            (100, Verdict::Pass, Some(1000.0), None),
            (100, Verdict::Invalid, Some(9e9), Some(9e9)),
            (100, Verdict::Pass, Some(1200.0), Some(40.0)),
            (300, Verdict::Pass, None, Some(5.0)),
            (400, Verdict::Invalid, Some(1.0), Some(5.0)),
        ]);
        let expected = [
            CostPoint {
                sessions: 100,
                cpu_us_per_session_second: 1100.0,
                low: 1000.0,
                high: 1200.0,
                trials: 2,
                rss_bytes_per_session: Some(40.0),
            },
            CostPoint {
                sessions: 200,
                cpu_us_per_session_second: 900.0,
                low: 900.0,
                high: 900.0,
                trials: 1,
                rss_bytes_per_session: Some(10.0),
            },
        ];
        assert_eq!(curve, expected);
    }

    #[test]
    fn no_trials_make_no_curve() {
        assert_eq!(cost_curve([]), []);
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_its_ends(trials in proptest::collection::vec((1u32..5, 0.0f64..1e6), 0..20)) {
            let curve = cost_curve(trials.iter().map(|(load, cpu)| (*load, Verdict::Pass, Some(*cpu), None)));
            let counted: u32 = curve.iter().map(|point| point.trials).sum();
            prop_assert_eq!(counted as usize, trials.len());
            prop_assert!(curve.windows(2).all(|pair| pair[0].sessions < pair[1].sessions));
            for point in curve {
                let mean = point.cpu_us_per_session_second;
                let rounding = 1e-9 * point.high;
                prop_assert!(point.low <= mean + rounding && mean <= point.high + rounding);
            }
        }
    }
}
