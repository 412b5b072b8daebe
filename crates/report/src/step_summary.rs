//! `step-summary.md`: the result in brief, for GitHub to show on the page of a workflow run (`GITHUB_STEP_SUMMARY`).
//!
//! It has the verdict in one line, its evidence in one table, and doubts with their remedies. The rest is folded away.
//! Nothing from outside is markup in it.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::{Calibration, Comparison, GateResult, LoadUnit, Trial};

use crate::check::{Check, Outcome};
use crate::facts::{self, client_cost};
use crate::folder::{Results, SearchView};
use crate::loads::{self, Load};
use crate::markdown::{
    Page, Table, check, client_costs, code, escape, evidence, ranking, search, ws,
};
use crate::words::{self, capital, count, maybe, ms, ms_digits, number, range, us};

/// The step summary of a result folder.
#[must_use]
pub fn of(results: &Results) -> String {
    let mut page = Page::default();
    if let Some(found) = &results.ranking {
        page.heading(3, &escape(&words::ranking::headline(found)));
        page.table(&ranking::table(found));
        page.list(&ranking::left_out(found));
    }
    if let Some(comparison) = &results.comparison {
        comparison_section(&mut page, comparison);
    }
    for view in results.searches() {
        search_section(&mut page, &view);
    }
    let others: Vec<_> = results.other_trials().collect();
    if others.len() > 1 && others.iter().any(|stored| stored.trial.ws.is_some()) {
        page.heading(3, "Trials side by side");
        ws::side_by_side(&mut page, &others);
    }
    for stored in others {
        trial_section(&mut page, &stored.trial);
    }
    if let Some(check) = &results.check {
        check_section(&mut page, check);
    }
    if let Some(calibration) = &results.calibration {
        calibration_section(&mut page, calibration);
    }
    if let Some(calibration) = &results.ws_calibration {
        page.heading(3, &escape(&client_cost::claim(calibration)));
        client_costs(&mut page, calibration);
    }
    page.text
}

/// The load line by one SLO.
fn search_section(page: &mut Page, view: &SearchView<'_>) {
    let bracket = view.bracket;
    let headline = words::headline(bracket, &view.trials);
    page.heading(3, &escape(&headline.claim));
    let mut told = Vec::new();
    if !headline.bounds.is_empty() {
        told.push(format!("{}.", escape(&capital(&headline.bounds))));
    }
    if let Some(bottleneck) = &bracket.bottleneck {
        let bottleneck = escape(bottleneck.trim_end_matches('.'));
        told.push(format!("Bottleneck: {bottleneck}."));
    }
    if !told.is_empty() {
        page.paragraph(&told.join(" "));
    }
    page.table(&bracket_table(view));
    let trials = view.of_search();
    page.list(&evidence::caveats(&trials));
    let title = match trials.len() {
        1 => "Evidence: 1 trial".to_owned(),
        many => format!("Evidence: {many} trials"),
    };
    page.folded(&title, |page| {
        page.paragraph(&format!(
            "Workload `{}`, profile `{}`, SLO `{}`, seed {}. {}",
            code(&bracket.workload),
            code(&bracket.profile),
            code(&bracket.slo),
            bracket.seed,
            escape(&capital(&bracket.conclusion))
        ));
        page.table(&loads_table(&loads::of_bracket(bracket), bracket.load_unit));
        if !bracket.evidence.is_empty() {
            page.table(&search::load_evidence_table(bracket));
        }
    });
}

fn bracket_table(view: &SearchView<'_>) -> Table {
    let bracket = view.bracket;
    let load = |load: Option<u32>| {
        load.map_or_else(|| words::UNKNOWN.to_owned(), |load| count(load.into()))
    };
    let mut table = Table::new(&[
        "SLO",
        ">load line",
        ">first fail",
        ">edge",
        ">per vCPU",
        &format!(">{} at the load line", words::cpu_cost(bracket.load_unit)),
    ]);
    let mut points = bracket.cost_curve.iter();
    let at_line = points.find(|point| Some(point.sessions) == bracket.confirmed);
    let cost = at_line.map(|point| point.cpu_us_per_session_second);
    let at_least = if bracket.lower_bound_only {
        "at least "
    } else {
        ""
    };
    table.row([
        format!("`{}`", code(&bracket.slo)),
        format!("{at_least}{}", load(bracket.confirmed)),
        load(bracket.first_fail),
        bracket
            .edge
            .as_ref()
            .map_or_else(|| words::UNKNOWN.to_owned(), facts::edge),
        maybe(bracket.sessions_per_vcpu, number),
        maybe(cost, us),
    ]);
    table
}

fn loads_table(loads: &[Load], unit: LoadUnit) -> Table {
    let mut table = Table::new(&[
        &format!(">{}", unit.name()),
        "verdict",
        ">newest p95",
        ">oldest p95",
        &format!(">{}", words::cpu_cost(unit)),
        "what spoke against it",
    ]);
    for load in loads {
        let against: Vec<_> = load.what_failed().iter().map(|name| escape(name)).collect();
        table.row([
            count(u64::from(load.sessions)),
            load.verdicts(),
            range(load.range(|t| t.newest_p95_ms), ms),
            range(load.range(|t| t.oldest_p95_ms), ms),
            range(load.range(|t| t.cpu_us_per_session_second), us),
            against.join(", "),
        ]);
    }
    table
}

/// One trial.
fn trial_section(page: &mut Page, trial: &Trial) {
    let verdict = trial.verdict.word();
    page.heading(3, &format!("{verdict}: {}", escape(&words::outcome(trial))));
    if let Some(bottleneck) = &trial.bottleneck {
        let bottleneck = escape(bottleneck.trim_end_matches('.'));
        page.paragraph(&format!("Bottleneck: {bottleneck}."));
    }
    page.table(&gates_table(&trial.gates));
    for further in &trial.further_slos {
        let verdict = further.verdict.word();
        page.paragraph(&format!("By the SLO `{}`: {verdict}.", code(&further.slo)));
        page.table(&gates_table(&further.gates));
    }
    let against: Vec<_> = trial
        .caveats
        .iter()
        .map(caveat)
        .chain(evidence::disagreeing(trial))
        .chain(words::ledger_gap(trial))
        .collect();
    page.list(&against);
    page.folded("Evidence", |page| trial_evidence(page, trial));
}

fn trial_evidence(page: &mut Page, trial: &Trial) {
    let columns = [
        "latency in ms",
        ">p50",
        ">p95",
        ">p99",
        ">max",
        ">unanswered",
    ];
    let mut table = Table::new(&columns);
    for (name, quantiles) in words::latency_rows(&trial.latency) {
        table.row([
            name.to_owned(),
            maybe(quantiles.p50_ms, ms_digits),
            maybe(quantiles.p95_ms, ms_digits),
            maybe(quantiles.p99_ms, ms_digits),
            maybe(quantiles.max_ms, ms_digits),
            count(quantiles.censored),
        ]);
    }
    page.table(&table);
    let ledger = &trial.ledger;
    let mut told = vec![
        format!(
            "{} {} due, {} answered, {} errored, {} lost.",
            count(ledger.frames_due),
            words::frames(trial),
            count(ledger.frames_answered),
            count(ledger.frames_errored),
            count(ledger.frames_lost)
        ),
        format!(
            "Client: send lag p99.9 {}, {} of its busiest core.",
            maybe(trial.client.send_lag.p999_us, us),
            words::percent(trial.client.cpu_share)
        ),
    ];
    if let Some(resources) = &trial.target_resources {
        told.push(format!(
            "Target: {} of {}, {} of {}, RSS peak {}.",
            maybe(resources.cpu_us_per_session_second, us),
            words::cpu_cost(trial.load_unit),
            words::percent(resources.cpu_share),
            words::given(trial.vcpu),
            words::whole_bytes(resources.rss_peak_bytes)
        ));
    }
    told.extend(ws_told(trial));
    for row in facts::drift_of(trial) {
        let facts::DriftRow {
            name,
            slope,
            interval,
            reading,
        } = row;
        told.push(format!("Drift of {name}: {reading}, {slope} ({interval})."));
    }
    for (reason, times) in &ledger.reasons {
        told.push(format!("{} × {}", count(*times), escape(reason)));
    }
    page.list(&told);
}

/// How far the load of workload `ws` came.
fn ws_told(trial: &Trial) -> Vec<String> {
    let Some(record) = &trial.ws else {
        return Vec::new();
    };
    let mut told = vec![
        format!("{}.", capital(&escape(&facts::ws::conditions(record)))),
        format!("{}.", escape(&facts::ws::delivered_in_a_line(record))),
    ];
    let outcomes = facts::ws::outcomes_in_a_line(record);
    if !outcomes.is_empty() {
        told.push(format!("{} {}.", facts::ws::OUTCOMES, escape(&outcomes)));
    }
    told.extend(facts::ws::decode(record));
    let closed = facts::ws::closed_loop_in_a_line(record);
    told.extend(closed.map(|closed| format!("A closed loop says: {closed}.")));
    told
}

fn gates_table(gates: &[GateResult]) -> Table {
    let mut table = Table::new(&["gate", ">observed", ">at most", "held"]);
    for gate in gates {
        let held = if gate.pass { "yes" } else { "**no**" };
        let name = format!("`{}`", code(&gate.name));
        table.row([&name, &words::observed(gate), &number(gate.threshold), held]);
    }
    table
}

fn caveat(caveat: &Caveat) -> String {
    let blocking = if caveat.blocking { " (blocking)" } else { "" };
    format!(
        "**{}**{blocking}: {}",
        escape(&caveat.id),
        escape(&caveat.text)
    )
}

fn check_section(page: &mut Page, report: &Check) {
    page.heading(3, &format!("Conformance of {}", escape(&report.target)));
    page.paragraph(&format!("**{}**", check::verdict(report)));
    let any = |outcome| report.cases.iter().any(|case| case.outcome() == outcome);
    if any(Outcome::Failed) || any(Outcome::Disturbed) {
        let shown = [Outcome::Failed, Outcome::Disturbed];
        page.table(&check::table(report, &shown));
    }
    if any(Outcome::Skipped) || any(Outcome::Passed) {
        page.folded("Cases that passed or did not run", |page| {
            page.table(&check::table(report, &[Outcome::Skipped, Outcome::Passed]));
        });
    }
}

fn comparison_section(page: &mut Page, comparison: &Comparison) {
    let (a, b) = (escape(&comparison.a.name), escape(&comparison.b.name));
    let conclusion = comparison.conclusion.word();
    page.heading(3, &format!("{conclusion}: {b} (B) against {a} (A)"));
    page.paragraph(&escape(&capital(&comparison.explanation)));
    let mut table = Table::new(&["B / A", ">ratio (interval)", "better is"]);
    let cost = words::comparison::cost(comparison);
    for (name, ratio, better) in [
        (cost.as_str(), comparison.cost_ratio, "below 1"),
        ("load line", comparison.load_line_ratio, "above 1"),
    ] {
        let ratio = ratio.as_ref().map(facts::ratio);
        let ratio = ratio.unwrap_or_else(|| words::UNKNOWN.to_owned());
        table.row([name, &ratio, better]);
    }
    page.table(&table);
    if let Some(carried) = &comparison.carried {
        page.paragraph(&format!(
            "{}.",
            words::comparison::carried(carried, comparison.load_unit)
        ));
    }
    let confidence = words::percent(comparison.confidence);
    page.paragraph(&format!(
        "The intervals hold together with {confidence} confidence; {} pairs of trials.",
        comparison.pairs.len()
    ));
    let notes = comparison.notes.iter().map(|note| escape(note));
    page.list(&notes.collect::<Vec<_>>());
}

fn calibration_section(page: &mut Page, calibration: &Calibration) {
    page.heading(
        3,
        &format!(
            "This machine's client can drive {} on time",
            words::sessions(calibration.max_sessions)
        ),
    );
    page.paragraph(&format!(
        "{} of CPU per frame, {} times a bare send loop; send lag p99 {}.",
        us(calibration.engine_us_per_frame),
        number(calibration.ratio),
        us(calibration.send_lag_p99_us)
    ));
}
