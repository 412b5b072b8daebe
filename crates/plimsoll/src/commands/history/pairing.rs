//! Which result is compared with which baseline. Pure: the caller passes in the existing results.

use std::path::PathBuf;
use std::time::SystemTime;

use plimsoll_report::history::{Entry, Kind, ResultConditions};
use plimsoll_report::words::{self, plain};

/// A search or a single trial of one target, and its location.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    /// The path shown to the user, and read from.
    pub(super) path: PathBuf,
    /// The same path without symbolic links, which tells folders apart.
    pub(super) real: PathBuf,
    /// When it began; `None` if that cannot be read.
    pub(super) began: Option<SystemTime>,
    pub(super) entry: Entry,
}

/// What the results are compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Baseline {
    /// The previous result.
    Last,
    /// The highest earlier load line; of single trials, the lowest cost of one that passed.
    Best,
    /// Named results: that of one target, or one for each target of a ranking.
    These(Vec<Held>),
}

/// A comparison to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairing {
    pub(super) target: String,
    pub(super) baseline: Option<Held>,
    pub(super) result: Option<Held>,
    /// Why there is nothing to compare, if so.
    pub(super) missing: Option<String>,
}

impl Pairing {
    fn of(baseline: &Held, result: &Held) -> Self {
        Self {
            target: result.entry.target(),
            baseline: Some(baseline.clone()),
            result: Some(result.clone()),
            missing: None,
        }
    }
}

/// Pairs the results with their baselines.
///
/// `given` holds the results that the user named; without it, the newest of each target is used. `there` holds all
/// results to choose from, newest first.
pub(super) fn pair(baseline: &Baseline, given: Option<&[Held]>, there: &[Held]) -> Vec<Pairing> {
    match baseline {
        Baseline::These(baselines) => match (baselines.as_slice(), given) {
            // The user named both, so the target may have been renamed in between.
            ([baseline], Some([result])) => vec![Pairing::of(baseline, result)],
            _ => baselines
                .iter()
                .map(|baseline| against(baseline, given, there))
                .collect(),
        },
        Baseline::Last | Baseline::Best => {
            let newest = newest_of_each_target(there);
            let results = given.map_or(newest, <[Held]>::to_vec);
            let best = *baseline == Baseline::Best;
            results
                .iter()
                .map(|result| earlier(result, best, there))
                .collect()
        }
    }
}

/// Finds the result to compare with this baseline.
fn against(baseline: &Held, given: Option<&[Held]>, there: &[Held]) -> Pairing {
    let of_target = |held: &&Held| held.entry.targets == baseline.entry.targets;
    let result = match given {
        Some(given) => given.iter().find(of_target),
        None => there
            .iter()
            .filter(of_target)
            .find(|held| held.entry.kind == baseline.entry.kind && is_earlier(baseline, held)),
    };
    if let Some(result) = result {
        return Pairing::of(baseline, result);
    }
    let target = baseline.entry.target();
    let missing = match given {
        Some(_) => format!("the result has nothing of {}", plain(&target)),
        None => format!(
            "no {} of {} is newer than {}; measure it again",
            what(&baseline.entry),
            plain(&target),
            baseline.path.display()
        ),
    };
    Pairing {
        target,
        baseline: Some(baseline.clone()),
        result: None,
        missing: Some(missing),
    }
}

/// The newest result of each target: a search if it has any, else a single trial.
fn newest_of_each_target(there: &[Held]) -> Vec<Held> {
    let mut newest: Vec<Held> = Vec::new();
    for kind in [Kind::Find, Kind::Run] {
        for held in there.iter().filter(|held| held.entry.kind == kind) {
            let known = |other: &Held| other.entry.targets == held.entry.targets;
            if !newest.iter().any(known) {
                newest.push(held.clone());
            }
        }
    }
    newest.sort_by_key(|held| held.entry.target());
    newest
}

/// Pairs a result with the last or the best one before it under the same conditions. An interrupted result is not a
/// baseline.
fn earlier(result: &Held, best: bool, there: &[Held]) -> Pairing {
    let mut before = there.iter().filter(|held| {
        is_earlier(held, result) && is_like(&held.entry, &result.entry) && !held.entry.interrupted
    });
    let baseline = if best {
        // Among equals the newest, which comes first.
        before.fold(None::<&Held>, |best, held| match best {
            Some(best) if !is_better(&held.entry, &best.entry) => Some(best),
            _ if is_baseline(&held.entry) => Some(held),
            _ => best,
        })
    } else {
        before.next()
    };
    match baseline {
        Some(baseline) => Pairing::of(baseline, result),
        None => Pairing {
            target: result.entry.target(),
            baseline: None,
            result: Some(result.clone()),
            missing: Some(format!(
                "no {} of {} before {} was made under the same conditions ({})",
                what(&result.entry),
                plain(&result.entry.target()),
                result.path.display(),
                ResultConditions::of(&result.entry).words()
            )),
        },
    }
}

/// Whether one began before the other, and they are different folders.
fn is_earlier(one: &Held, other: &Held) -> bool {
    let times = one.began.zip(other.began);
    one.real != other.real && times.is_some_and(|(one, other)| one <= other)
}

fn is_like(one: &Entry, other: &Entry) -> bool {
    one.kind == other.kind
        && one.targets == other.targets
        && one.sessions == other.sessions
        && ResultConditions::of(one) == ResultConditions::of(other)
}

/// Whether the entry can be the best at all.
fn is_baseline(entry: &Entry) -> bool {
    match entry.kind {
        Kind::Run => entry.verdict.as_deref() == Some("pass") && entry.cost.is_some(),
        _ => entry.load_line.is_some(),
    }
}

fn is_better(one: &Entry, other: &Entry) -> bool {
    if !is_baseline(one) {
        return false;
    }
    let cost = |entry: &Entry| entry.cost.as_ref().map(|c| c.cpu_us_per_session_second);
    match one.kind {
        Kind::Run => cost(one) < cost(other),
        _ => one.load_line > other.load_line,
    }
}

fn what(entry: &Entry) -> String {
    match (entry.kind, entry.sessions) {
        (Kind::Run, Some(load)) => {
            format!("trial at {}", words::load(load, entry.load_unit))
        }
        _ => "search".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn held(target: &str, day: u64, load_line: Option<u32>) -> Held {
        let folder = format!("{target}-{day}");
        let entry = serde_json::from_value(serde_json::json!({
            "folder": folder, "kind": "find", "targets": [target], "workload": "stt", "profile": "quick", "slo": "stt",
            "vcpu": 1.0, "started_at": "", "verdict": null, "claim": "", "sessions": null, "load_line": load_line,
            "edge": null, "lower_bound_only": false, "interrupted": false, "cost": null, "cpu_model": "cpu",
            "cores": "4", "trials": 9,
        }));
        Held {
            path: PathBuf::from("results").join(&folder),
            real: PathBuf::from("/results").join(&folder),
            began: Some(UNIX_EPOCH + Duration::from_secs(day * 86_400)),
            entry: entry.expect("an entry"),
        }
    }

    fn at_vcpu(mut held: Held, vcpu: f64) -> Held {
        held.entry.vcpu = Some(vcpu);
        held
    }

    /// Newest first, as the history lists them.
    fn there() -> Vec<Held> {
        vec![
            held("a", 9, Some(900)),
            held("b", 8, Some(700)),
            at_vcpu(held("a", 7, Some(2_000)), 2.0),
            held("a", 6, Some(950)),
            held("a", 5, Some(1_000)),
            held("a", 4, Some(1_000)),
            held("a", 3, None),
        ]
    }

    fn paired(pairings: &[Pairing]) -> Vec<(String, String)> {
        let name = |held: &Option<Held>| {
            held.as_ref()
                .map_or_else(|| "-".to_owned(), |held| held.entry.folder.clone())
        };
        pairings
            .iter()
            .map(|pairing| (name(&pairing.result), name(&pairing.baseline)))
            .collect()
    }

    fn expect(pairings: &[Pairing], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(result, baseline)| ((*result).to_owned(), (*baseline).to_owned()))
            .collect();
        assert_eq!(paired(pairings), expected);
    }

    #[test]
    fn the_last_is_the_one_before_under_the_same_conditions() {
        let pairings = pair(&Baseline::Last, None, &there());
        expect(&pairings, &[("a-9", "a-6"), ("b-8", "-")]);
        let missing = pairings[1].missing.as_deref().unwrap_or_default();
        assert!(missing.contains("no search of b"), "{missing}");
        assert!(missing.contains("1 vCPU"), "{missing}");
    }

    #[test]
    fn the_best_has_the_highest_load_line_and_of_equals_is_the_newest() {
        expect(
            &pair(&Baseline::Best, None, &there()),
            &[("a-9", "a-5"), ("b-8", "-")],
        );
        let given = [held("a", 4, Some(1_000))];
        // The only earlier one has no load line.
        expect(
            &pair(&Baseline::Best, Some(&given), &there()),
            &[("a-4", "-")],
        );
        let mut interrupted = there();
        interrupted[4].entry.interrupted = true;
        expect(
            &pair(&Baseline::Best, None, &interrupted[..6]),
            &[("a-9", "a-4"), ("b-8", "-")],
        );
    }

    #[test]
    fn a_named_baseline_is_held_against_the_newest_of_its_target() {
        let these = |held: Held| Baseline::These(vec![held]);
        let old = held("a", 4, Some(1_000));
        expect(&pair(&these(old), None, &there()), &[("a-9", "a-4")]);
        // The conditions do not matter here: the comparison reports that they differ.
        let other = at_vcpu(held("a", 4, Some(1_000)), 4.0);
        expect(&pair(&these(other), None, &there()), &[("a-9", "a-4")]);
        let newest = held("a", 9, Some(900));
        let pairings = pair(&these(newest), None, &there());
        expect(&pairings, &[("-", "a-9")]);
        let missing = pairings[0].missing.as_deref().unwrap_or_default();
        assert!(missing.contains("newer than results/a-9"), "{missing}");
    }

    #[test]
    fn each_target_of_a_ranking_is_held_against_its_own() {
        let ranking = Baseline::These(vec![held("a", 1, Some(1)), held("b", 1, Some(1))]);
        expect(
            &pair(&ranking, None, &there()),
            &[("a-9", "a-1"), ("b-8", "b-1")],
        );
        let given = [held("b", 6, Some(1))];
        let pairings = pair(&ranking, Some(&given), &there());
        expect(&pairings, &[("-", "a-1"), ("b-6", "b-1")]);
    }

    #[test]
    fn two_named_folders_are_compared_whatever_their_targets_are_called() {
        let given = [held("renamed", 2, Some(1))];
        let baseline = Baseline::These(vec![held("a", 9, Some(1))]);
        expect(
            &pair(&baseline, Some(&given), &there()),
            &[("renamed-2", "a-9")],
        );
    }

    #[test]
    fn a_single_trial_is_held_against_one_at_the_same_load() {
        let run = |day, sessions, verdict: &str, cost: f64| {
            let mut held = held("c", day, None);
            held.entry.kind = Kind::Run;
            held.entry.sessions = Some(sessions);
            held.entry.verdict = Some(verdict.to_owned());
            held.entry.cost = serde_json::from_value(serde_json::json!({
                "sessions": sessions, "cpu_us_per_session_second": cost, "low": cost, "high": cost, "trials": 1,
                "rss_bytes_per_session": null,
            }))
            .ok();
            held
        };
        let there = [
            run(9, 500, "pass", 300.0),
            run(8, 400, "pass", 100.0),
            run(7, 500, "fail", 90.0),
            run(6, 500, "pass", 280.0),
            run(5, 500, "pass", 290.0),
        ];
        expect(&pair(&Baseline::Last, None, &there), &[("c-9", "c-7")]);
        expect(&pair(&Baseline::Best, None, &there), &[("c-9", "c-6")]);
    }
}
