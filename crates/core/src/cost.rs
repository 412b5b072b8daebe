//! What a session costs the target, by load. If the load is a rate, read "message" or "connection" for
//! "session-second": the cost is CPU time per message or per connection.

use std::collections::BTreeMap;

use crate::record::{CostPoint, Verdict};
use crate::stats::Mean;

/// The cost in one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialCost {
    /// Its load.
    pub sessions: u32,
    /// Its verdict.
    pub verdict: Verdict,
    /// CPU time charged to the target, µs per session-second.
    pub cpu_us: Option<f64>,
    /// Busy time of the target's cores, in the same unit.
    pub core_us: Option<f64>,
    /// Memory per session, in bytes.
    pub rss_bytes: Option<f64>,
}

#[derive(Default)]
struct Costs {
    cpu_us: Vec<f64>,
    core_us: Vec<f64>,
    rss_bytes: Vec<f64>,
}

/// The cost curve of some trials. Invalid trials are left out, because their cost was not the target's alone.
#[must_use]
pub fn cost_curve(trials: impl IntoIterator<Item = TrialCost>) -> Vec<CostPoint> {
    let mut loads: BTreeMap<u32, Costs> = BTreeMap::new();
    for trial in trials {
        if let (Verdict::Pass | Verdict::Fail, Some(cpu_us)) = (trial.verdict, trial.cpu_us) {
            let costs = loads.entry(trial.sessions).or_default();
            costs.cpu_us.push(cpu_us);
            costs.core_us.extend(trial.core_us);
            costs.rss_bytes.extend(trial.rss_bytes);
        }
    }
    let mean = |values: &[f64]| Mean::of(values).map(|mean| mean.value);
    loads
        .into_iter()
        .filter_map(|(sessions, costs)| {
            let cpu = &costs.cpu_us;
            Some(CostPoint {
                sessions,
                cpu_us_per_session_second: mean(cpu)?,
                core_us_per_session_second: mean(&costs.core_us),
                low: cpu.iter().copied().reduce(f64::min)?,
                high: cpu.iter().copied().reduce(f64::max)?,
                trials: u32::try_from(cpu.len()).ok()?,
                rss_bytes_per_session: mean(&costs.rss_bytes),
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
        let trials = [
            (200, Verdict::Fail, Some(900.0), Some(10.0)),
            (100, Verdict::Pass, Some(1000.0), None),
            (100, Verdict::Invalid, Some(9e9), Some(9e9)),
            (100, Verdict::Pass, Some(1200.0), Some(40.0)),
            (300, Verdict::Pass, None, Some(5.0)),
            (400, Verdict::Invalid, Some(1.0), Some(5.0)),
        ];
        let curve = cost_curve(
            trials.map(|(sessions, verdict, cpu_us, rss_bytes)| TrialCost {
                sessions,
                verdict,
                cpu_us,
                core_us: cpu_us.map(|us| us * 1.5),
                rss_bytes,
            }),
        );
        let expected = [
            CostPoint {
                sessions: 100,
                cpu_us_per_session_second: 1100.0,
                core_us_per_session_second: Some(1650.0),
                low: 1000.0,
                high: 1200.0,
                trials: 2,
                rss_bytes_per_session: Some(40.0),
            },
            CostPoint {
                sessions: 200,
                cpu_us_per_session_second: 900.0,
                core_us_per_session_second: Some(1350.0),
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
            let curve = cost_curve(trials.iter().map(|(load, cpu)| TrialCost {
                sessions: *load,
                verdict: Verdict::Pass,
                cpu_us: Some(*cpu),
                core_us: None,
                rss_bytes: None,
            }));
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
