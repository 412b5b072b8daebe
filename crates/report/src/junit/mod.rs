//! `junit.xml`: the result as a test report, which every build server can show.
//!
//! How Plimsoll's results map to such a report: a gate that does not hold is a *failure*. A measurement that cannot be
//! believed is an *error*, never a failure, because it shows nothing about the target. What was not judged is
//! *skipped*.

mod comparison;
mod document;
mod ranking;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::{
    Bracket, Calibration, ClientCost, ClientCosts, FleetCalibration, FleetWork, GateResult,
    InferenceCalibration, LoadUnit, Trial, Verdict,
};
use plimsoll_document::Tellers;

use crate::check::{self, Check};
use crate::facts;
use crate::folder::{Results, SearchView, StoredTrial};
use crate::words::{self, plain};
use document::{Case, CaseResult, Reason, Suite};

/// The test report of a result folder.
#[must_use]
pub fn of(results: &Results) -> String {
    let tellers = results.tellers;
    let mut suites = Vec::new();
    suites.extend(results.ranking.as_ref().map(ranking::suite));
    suites.extend(results.comparison.as_ref().map(comparison::suite));
    suites.extend(results.searches().iter().map(search));
    for stored in results.other_trials() {
        suites.push(trial(stored, tellers));
        let further = stored.trial.further_slos.iter();
        suites.extend(further.map(|further| trial(&stored.judged_by(&further.slo), tellers)));
    }
    suites.extend(results.check.as_ref().map(conformance));
    suites.extend(results.calibration.as_ref().map(calibration));
    let costs = results.client_costs.iter();
    suites.extend(costs.flat_map(|it| it.costs.iter().map(|cost| client_cost(it, cost))));
    let fleet = results.fleet.iter();
    suites.extend(fleet.flat_map(|it| it.works.iter().map(|work| of_fleet(it, work))));
    suites.extend(results.inference.as_ref().map(inference));
    document::write(&suites)
}

/// The position of a case. Dots separate its parts, so dots in a name from outside are replaced.
fn class(verb: &str, name: &str) -> String {
    format!("plimsoll.{verb}.{}", name.replace('.', "_"))
}

/// What a case demanded, and what was seen instead.
fn unmet(kind: &str, case: &check::Case) -> Reason {
    let mut lines = vec![
        format!("expected: {}", case.expected),
        format!("seen:     {}", case.seen),
    ];
    lines.extend(case.disturbed.iter().map(|why| format!("disturbed: {why}")));
    let seen = case.seen_in_words();
    Reason {
        lines,
        ..Reason::new(kind, format!("expected {}, seen {seen}", case.expected))
    }
}

/// A case that did not pass, though the target conforms.
fn apart(case: &check::Case) -> String {
    let word = if case.level.is_must() {
        "deviation"
    } else {
        "should"
    };
    let seen = case.seen_in_words();
    format!(
        "{word}, not passed: expected {}, seen {seen}",
        case.expected
    )
}

/// A conformance check, with one case for each of its cases.
fn conformance(check: &Check) -> Suite {
    let case = |case: &check::Case| Case {
        class: class("check", &check.target),
        name: format!("{}: {}", case.id, case.title),
        outcome: match (case.outcome(), &case.skipped) {
            (check::CaseOutcome::Skipped, Some(why)) => CaseResult::Skipped(why.clone()),
            (check::CaseOutcome::Passed, _) => CaseResult::Passed,
            (check::CaseOutcome::Disturbed, _) if case.decides() => {
                CaseResult::Error(unmet("disturbed", case))
            }
            // The check passes, so its test report does; a skipped test shows its message.
            (
                check::CaseOutcome::NotMet
                | check::CaseOutcome::Deviates
                | check::CaseOutcome::Disturbed,
                _,
            ) => CaseResult::Skipped(apart(case)),
            _ => CaseResult::Failed(unmet("conformance", case)),
        },
    };
    Suite {
        name: format!("check {}", check.target),
        cases: check.cases.iter().map(case).collect(),
        ..Suite::default()
    }
}

/// One trial: a case for each gate, and one for each reason why it is invalid.
fn trial(stored: &StoredTrial, tellers: Tellers) -> Suite {
    let trial = &stored.trial;
    let class = class("run", &trial.target.name);
    let invalid = trial.verdict == Verdict::Invalid;
    let gate = |gate: &GateResult| Case {
        class: class.clone(),
        name: gate.name.clone(),
        outcome: if invalid {
            let seen = words::observed(gate);
            CaseResult::Skipped(format!("not judged, the trial is invalid; observed {seen}"))
        } else if gate.pass {
            CaseResult::Passed
        } else {
            CaseResult::Failed(Reason::new("gate", words::against(gate)))
        },
    };
    let mut cases: Vec<_> = trial.gates.iter().map(gate).collect();
    cases.extend(trial.blocking_caveats().map(|caveat| Case {
        class: class.clone(),
        name: format!("caveat: {}", caveat.id),
        outcome: CaseResult::Error(Reason::new(&caveat.id, &caveat.text)),
    }));
    let mut output = vec![words::outcome(trial, tellers)];
    output.extend(trial.bottleneck.iter().map(|b| format!("bottleneck: {b}")));
    output.extend(caveat_lines(trial.caveats.iter()));
    output.extend(words::ledger_gap(trial, tellers));
    let at = words::load_of(trial, tellers);
    Suite {
        name: format!("run {} at {at}, SLO {}", trial.target.name, trial.slo),
        started_at: trial.started_at.clone(),
        properties: properties(trial, tellers),
        cases,
        output,
    }
}

fn properties(trial: &Trial, tellers: Tellers) -> Vec<(&'static str, String)> {
    let latency = &trial.latency;
    let confirm = latency.confirm.as_ref();
    let cost = trial.target_resources.as_ref();
    let numbers = [
        ("newest_p95_ms", latency.newest.from_schedule.p95_ms),
        ("oldest_p95_ms", latency.oldest.from_schedule.p95_ms),
        (
            "confirm_p95_ms",
            confirm.and_then(|both| both.from_schedule.p95_ms),
        ),
        (
            "cpu_us_per_session_second",
            cost.and_then(|c| c.cpu_us_per_session_second),
        ),
        ("send_lag_p999_us", trial.client.send_lag.p999_us),
        ("vcpu", trial.vcpu),
    ];
    let mut properties = vec![
        ("verdict", trial.verdict.word().to_owned()),
        ("sessions", trial.sessions.to_string()),
        ("workload", trial.workload.clone()),
        ("profile", trial.profile.clone()),
        ("slo", trial.slo.clone()),
        ("seed", trial.seed.to_string()),
    ];
    properties.extend(load_unit(trial.load_unit));
    properties.extend(tellers.of(&trial.workload).properties(trial));
    properties.extend(known(numbers));
    properties
}

/// The unit of the loads, where it is not sessions.
fn load_unit(unit: LoadUnit) -> Option<(&'static str, String)> {
    (!unit.is_sessions()).then(|| ("load_unit", unit.name()))
}

/// Plain decimal numbers, for tools.
fn known<const N: usize>(
    numbers: [(&'static str, Option<f64>); N],
) -> impl Iterator<Item = (&'static str, String)> {
    let finite = |(name, value): (&'static str, Option<f64>)| {
        let value = value.filter(|value| value.is_finite())?;
        Some((name, value.to_string()))
    };
    numbers.into_iter().filter_map(finite)
}

fn caveat_lines<'a>(caveats: impl Iterator<Item = &'a Caveat>) -> Vec<String> {
    caveats
        .map(|caveat| {
            let blocking = if caveat.blocking { " (blocking)" } else { "" };
            format!("caveat {}{blocking}: {}", caveat.id, caveat.text)
        })
        .collect()
}

/// A search: one case, which passes when there is a load line.
fn search(view: &SearchView<'_>) -> Suite {
    let bracket = view.bracket;
    let headline = words::headline(bracket, &view.trials);
    let trials = view.of_search();
    let mut output = vec![headline.claim.clone()];
    output.extend(Some(headline.bounds.clone()).filter(|bounds| !bounds.is_empty()));
    output.push(bracket.conclusion.clone());
    let beyond = bracket.escalation.iter();
    output.extend(beyond.map(|beyond| beyond.conclusion.clone()));
    let mut caveats: Vec<&Caveat> = trials.iter().flat_map(|s| &s.trial.caveats).collect();
    caveats.sort_by(|a, b| (&a.id, &a.text).cmp(&(&b.id, &b.text)));
    // One text of each caveat is enough.
    caveats.dedup_by(|a, b| a.id == b.id);
    output.extend(caveat_lines(caveats.iter().copied()));
    let reason = |kind: &str| Reason {
        lines: output.clone(),
        ..Reason::new(
            kind,
            match headline.bounds.as_str() {
                "" => headline.claim.clone(),
                bounds => format!("{} ({bounds})", headline.claim),
            },
        )
    };
    let outcome = match (bracket.confirmed, bracket.first_fail) {
        _ if bracket.interrupted => CaseResult::Error(reason("interrupted")),
        (Some(_), _) => CaseResult::Passed,
        (None, Some(_)) => CaseResult::Failed(reason("no-load-line")),
        (None, None) => CaseResult::Error(reason("invalid")),
    };
    Suite {
        name: format!("find {}, SLO {}", bracket.target.name, bracket.slo),
        started_at: bracket.started_at.clone(),
        properties: bracket_properties(bracket),
        cases: vec![Case {
            class: class("find", &bracket.target.name),
            name: format!("load line, SLO {}", bracket.slo),
            outcome,
        }],
        output,
    }
}

fn bracket_properties(bracket: &Bracket) -> Vec<(&'static str, String)> {
    let edge = bracket.edge.as_ref();
    let borderline = bracket.borderline.iter().map(u32::to_string);
    let borderline: Vec<_> = borderline.collect();
    let mut properties = vec![
        ("workload", bracket.workload.clone()),
        ("profile", bracket.profile.clone()),
        ("slo", bracket.slo.clone()),
        ("lower_bound_only", bracket.lower_bound_only.to_string()),
        ("borderline", borderline.join(" ")),
        ("trials", bracket.trials.len().to_string()),
        ("seed", bracket.seed.to_string()),
    ];
    properties.extend(load_unit(bracket.load_unit));
    properties.extend(known([
        ("confirmed", bracket.confirmed.map(f64::from)),
        ("first_fail", bracket.first_fail.map(f64::from)),
        ("edge", edge.map(|edge| edge.value)),
        ("edge_low", edge.map(|edge| edge.low)),
        ("edge_high", edge.and_then(|edge| edge.high)),
        ("edge_confidence", edge.map(|edge| edge.confidence)),
        ("sessions_per_vcpu", bracket.sessions_per_vcpu),
        ("vcpu", bracket.vcpu),
    ]));
    if let Some(beyond) = &bracket.escalation {
        let (knee, collapse) = (beyond.knee, beyond.collapse);
        properties.extend(known([
            ("knee", knee.map(|knee| knee.load.into())),
            ("knee_goodput_per_s", knee.map(|knee| knee.goodput_per_s)),
            ("collapse", collapse.map(|collapse| collapse.load.into())),
            ("no_collapse_up_to", beyond.no_collapse_up_to.map(f64::from)),
        ]));
    }
    properties.extend(
        bracket
            .failing_gate
            .clone()
            .map(|gate| ("failing_gate", gate)),
    );
    properties.extend(bracket.bottleneck.clone().map(|b| ("bottleneck", b)));
    properties
}

/// A calibration has nothing to pass, only numbers.
fn calibration(calibration: &Calibration) -> Suite {
    Suite {
        name: "calibrate".to_owned(),
        started_at: calibration.started_at.clone(),
        properties: known([
            ("max_sessions", Some(calibration.max_sessions.into())),
            ("bare_us_per_frame", Some(calibration.bare_us_per_frame)),
            ("engine_us_per_frame", Some(calibration.engine_us_per_frame)),
            ("ratio", Some(calibration.ratio)),
        ])
        .chain([("engine_backend", plain(&calibration.engine_backend))])
        .collect(),
        ..Suite::default()
    }
}

/// The same for a kind of work of a fleet.
fn of_fleet(calibration: &FleetCalibration, work: &FleetWork) -> Suite {
    Suite {
        name: format!("calibrate agents: {}", plain(&work.work)),
        started_at: calibration.started_at.clone(),
        properties: known([
            ("agents", Some(work.of().into())),
            ("on_time_load", work.on_time_load.map(f64::from)),
            ("even_load", Some(work.even_load.into())),
            ("load_sum", Some(work.load_sum.into())),
        ])
        .chain([("claim", facts::fleet::claim(calibration))])
        .collect(),
        ..Suite::default()
    }
}

/// The same for an inference server: what it holds, and the latency there.
fn inference(calibration: &InferenceCalibration) -> Suite {
    let held = calibration.highest_held();
    let p99_ms = held.and_then(|load| load.from_schedule.p99_ms);
    let server = held.and_then(|load| load.server);
    Suite {
        name: format!("calibrate inference: {}", plain(&calibration.url)),
        started_at: calibration.started_at.clone(),
        properties: known([
            ("sessions", calibration.sessions.map(f64::from)),
            ("p99_ms", p99_ms),
            ("p99_limit_ms", Some(calibration.p99_limit_ms)),
            ("cpu_us_per_batch", server.map(|it| it.cpu_us_per_batch)),
        ])
        .chain([("claim", facts::inference::claim(calibration))])
        .collect(),
        ..Suite::default()
    }
}

/// The same for one kind of a workload's work.
fn client_cost(costs: &ClientCosts, cost: &ClientCost) -> Suite {
    Suite {
        name: format!(
            "calibrate {}: {}",
            plain(&costs.workload),
            facts::client_cost::what(cost)
        ),
        started_at: costs.started_at.clone(),
        properties: known([
            ("load", Some(cost.load.into())),
            ("bare_cpu_us", Some(cost.bare_cpu_us.median)),
            ("engine_cpu_us", Some(cost.engine_cpu_us.median)),
            ("ratio", Some(cost.ratio.median)),
            ("on_time_load", cost.on_time_load.map(f64::from)),
        ])
        .chain([("engine_backend", plain(&costs.engine_backend))])
        .collect(),
        ..Suite::default()
    }
}
