//! Chooses the most informative trials: those around the edge, one for each load.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Bracket, Verdict};

use crate::folder::{SearchView, StoredTrial};
use crate::loads;

/// The most loads shown side by side. More curves could not be told apart.
pub(crate) const LOADS_MAX: usize = 5;

/// One trial for each of the loads around the edge, ascending: the load line and the first fail, then the loads nearest
/// to the edge.
pub(crate) fn around_edge<'a>(view: &'a SearchView<'_>) -> Vec<&'a StoredTrial> {
    let bracket = view.bracket;
    let mut chosen = one_of_each_load(&view.of_search());
    let must = |sessions: u32| [bracket.confirmed, bracket.first_fail].contains(&Some(sessions));
    let far = |sessions: u32| match centre(bracket) {
        Some(centre) => (f64::from(sessions) - centre).abs(),
        // Without a known edge, the highest loads tell the most.
        None => -f64::from(sessions),
    };
    chosen.sort_by(|a, b| {
        let key = |stored: &StoredTrial| {
            let sessions = stored.trial.sessions;
            (!must(sessions), far(sessions))
        };
        let ((a_may, a_far), (b_may, b_far)) = (key(a), key(b));
        a_may.cmp(&b_may).then(a_far.total_cmp(&b_far))
    });
    chosen.truncate(LOADS_MAX);
    chosen.sort_by_key(|stored| stored.trial.sessions);
    chosen
}

/// One trial for each of the highest loads of trials without a search, ascending. Empty where the trials have several
/// targets or differ in more than their loads, because their curves do not belong together.
pub(crate) fn of_trials<'a>(trials: &[&'a StoredTrial]) -> Vec<&'a StoredTrial> {
    let names = trials.iter().map(|stored| &stored.trial.target.name);
    if names
        .zip(trials.iter().skip(1))
        .any(|(name, next)| *name != next.trial.target.name)
        || !loads::differ_by_load_only(trials)
    {
        return Vec::new();
    }
    let mut chosen = one_of_each_load(trials);
    chosen.drain(..chosen.len().saturating_sub(LOADS_MAX));
    chosen
}

/// The trial whose seconds are drawn: that at the load line, or the last trial where there is none.
pub(crate) fn most_telling<'a>(
    bracket: Option<&Bracket>,
    trials: &[&'a StoredTrial],
) -> Option<&'a StoredTrial> {
    let line = bracket.and_then(|bracket| bracket.confirmed);
    let of_line = one_of_each_load(trials)
        .into_iter()
        .find(|stored| Some(stored.trial.sessions) == line);
    of_line.or(trials.last().copied())
}

/// Where the edge lies, as far as this is known.
fn centre(bracket: &Bracket) -> Option<f64> {
    let of_edge = bracket.edge.map(|edge| edge.value);
    let between = match (bracket.confirmed, bracket.first_fail) {
        (Some(pass), Some(fail)) => Some(f64::midpoint(pass.into(), fail.into())),
        (one, other) => one.or(other).map(f64::from),
    };
    of_edge.or(between)
}

/// For each load the trial that represents it, ascending by load. Valid trials come before invalid ones, full trials
/// before short ones. Of the remaining trials it is the one with the median newest p95.
fn one_of_each_load<'a>(trials: &[&'a StoredTrial]) -> Vec<&'a StoredTrial> {
    let mut loads: Vec<u32> = trials.iter().map(|stored| stored.trial.sessions).collect();
    loads.sort_unstable();
    loads.dedup();
    let rank = |stored: &StoredTrial| {
        let trial = &stored.trial;
        (
            trial.verdict == Verdict::Invalid,
            trial.length != Length::Full,
        )
    };
    let p95 = |stored: &StoredTrial| {
        let newest = &stored.trial.latency.newest.from_schedule;
        newest.p95_ms.unwrap_or(f64::INFINITY)
    };
    let of_load = |load: u32| {
        let at_load = || {
            trials
                .iter()
                .copied()
                .filter(move |stored| stored.trial.sessions == load)
        };
        let best = at_load().map(rank).min()?;
        let mut equals: Vec<_> = at_load().filter(|stored| rank(stored) == best).collect();
        equals.sort_by(|a, b| p95(a).total_cmp(&p95(b)));
        equals.get((equals.len() - 1) / 2).copied()
    };
    loads.into_iter().filter_map(of_load).collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::{Edge, Trial};

    use super::*;

    /// A trial with as little as a record can have.
    fn stored(number: usize, sessions: u32, verdict: Verdict, p95_ms: f64) -> StoredTrial {
        let profile = plimsoll_core::profile::Profile::quick();
        let mut trial: Trial = serde_json::from_value(serde_json::json!({
            "schema_version": 1, "verdict": verdict, "gates": [], "caveats": [], "workload": "stt", "profile": "quick",
            "phases": profile, "slo": "stt", "sessions": sessions,
            "target": plimsoll_core::record::Target::default(), "vcpu": null,
            "environment": plimsoll_core::record::Environment::default(), "seed": 1,
            "started_at": "2026-01-02T03:04:05Z", "interrupted": false,
            "ledger": plimsoll_core::ledger::Ledger::default(),
            "latency": plimsoll_core::latency::Latency::default(),
            "client": plimsoll_core::record::Client::default(), "target_resources": null, "inference": null
        }))
        .unwrap();
        trial.latency.newest.from_schedule.p95_ms = Some(p95_ms);
        StoredTrial {
            stem: format!("trial-{number:03}"),
            trial,
        }
    }

    fn stems(trials: &[&StoredTrial]) -> Vec<String> {
        trials.iter().map(|stored| stored.stem.clone()).collect()
    }

    #[test]
    fn a_load_is_stood_for_by_its_middle_valid_full_trial() {
        let (pass, invalid) = (Verdict::Pass, Verdict::Invalid);
        let mut trials = [
            stored(1, 100, pass, 300.0),
            stored(2, 100, pass, 100.0),
            stored(3, 100, pass, 200.0),
            stored(4, 100, invalid, 210.0),
            stored(5, 100, pass, 190.0),
            stored(6, 200, invalid, 900.0),
        ];
        trials[4].trial.length = Length::Short;
        let all: Vec<_> = trials.iter().collect();
        assert_eq!(stems(&one_of_each_load(&all)), ["trial-003", "trial-006"]);
        assert_eq!(stems(&of_trials(&all)), ["trial-003", "trial-006"]);
        trials[5].trial.target.name = "another".to_owned();
        assert!(of_trials(&trials.iter().collect::<Vec<_>>()).is_empty());
    }

    #[test]
    fn the_loads_next_to_the_edge_are_chosen_and_line_and_fail_always() {
        let loads = [100, 400, 500, 800, 820, 840, 860, 2_000];
        let trials: Vec<StoredTrial> = (1..)
            .zip(loads)
            .map(|(number, load)| stored(number, load, Verdict::Pass, 100.0))
            .collect();
        let summary = |stored: &StoredTrial| {
            let file = format!("{}.json", stored.stem);
            plimsoll_core::record::TrialSummary::of(&stored.trial, &file)
        };
        let mut bracket: Bracket = serde_json::from_value(serde_json::json!({
            "schema_version": 1, "target": plimsoll_core::record::Target::default(), "workload": "stt", "profile": "quick",
            "slo": "stt", "vcpu": null, "confirmed": 500, "borderline": [], "first_fail": 2_000, "failing_gate": null,
            "bottleneck": null, "sessions_per_vcpu": null, "lower_bound_only": false, "interrupted": false,
            "conclusion": "", "seed": 1, "started_at": "2026-01-02T03:04:05Z", "trials": []
        }))
        .unwrap();
        bracket.trials = trials.iter().map(summary).collect();
        bracket.edge = Some(Edge {
            value: 830.0,
            low: 800.0,
            high: Some(860.0),
            confidence: 0.95,
        });
        let view = SearchView {
            bracket: &bracket,
            trials: trials.clone(),
            one_of_several: false,
        };
        let chosen = around_edge(&view);
        let loads: Vec<u32> = chosen.iter().map(|stored| stored.trial.sessions).collect();
        assert_eq!(loads, [500, 800, 820, 840, 2_000]);
        let all = view.of_search();
        assert_eq!(
            most_telling(Some(&bracket), &all).unwrap().trial.sessions,
            500
        );
        assert_eq!(most_telling(None, &all).unwrap().trial.sessions, 2_000);
        assert!(most_telling(None, &[]).is_none());
    }
}
