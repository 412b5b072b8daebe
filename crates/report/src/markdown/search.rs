//! The section of a search: the load line, whether it can be believed, the evidence load by load, the cost curve, how to repeat it.

use plimsoll_core::record::{Bracket, CostPoint, LoadEvidence};

use super::{Page, Table, code, escape, evidence};
use crate::folder::SearchView;
use crate::words::{self, bytes, count, maybe, number, us};
use crate::{facts, loads, render};

/// The load line by one SLO. What does not depend on the SLO is told only once, with the `first`.
pub(super) fn section(page: &mut Page, view: &SearchView<'_>, first: bool) {
    let bracket = view.bracket;
    headline(page, view, first);
    evidence::belief_section(page, bracket, &view.of_search());
    page.heading(2, "Evidence");
    page.paragraph(&format!(
        "Workload `{}`, profile `{}`, SLO `{}`; latencies from the schedule; a range where the trials of a load differ.",
        code(&bracket.workload),
        code(&bracket.profile),
        code(&bracket.slo)
    ));
    let trials = view.of_search();
    let exemplar = evidence::exemplar(&trials);
    if let Some(trial) = exemplar {
        evidence::gates(page, trial);
    }
    load_evidence(page, &bracket.evidence);
    evidence::table(page, &loads::of_bracket(bracket));
    if !trials.is_empty() {
        let chart = render::chart_name(bracket, first);
        page.paragraph(&format!("![Latency against sessions]({chart}.svg)"));
    }
    if first {
        cost_curve(page, &bracket.cost_curve);
        if let Some(trial) = exemplar {
            page.heading(2, "Environment");
            evidence::environment(page, trial);
        }
    }
    if let Some(trial) = exemplar {
        page.heading(2, "How to repeat");
        evidence::repeat(page, trial, "find", None, bracket.seed);
    }
    page.paragraph(&format!("Measured at {}.", escape(&bracket.started_at)));
}

fn headline(page: &mut Page, view: &SearchView<'_>, first: bool) {
    let bracket = view.bracket;
    let headline = words::headline(bracket, &view.trials);
    let of = escape(&bracket.target.name);
    let title = if first && !view.one_of_several {
        format!("Load line of {of}")
    } else {
        format!("Load line of {of} by the SLO {}", escape(&bracket.slo))
    };
    page.heading(1, &title);
    let bounds = match headline.bounds.as_str() {
        "" => String::new(),
        bounds => format!(" ({})", escape(bounds)),
    };
    page.paragraph(&format!("**{}**{bounds}.", escape(&headline.claim)));
    let mut told = Vec::new();
    if let Some(density) = bracket.sessions_per_vcpu {
        told.push(format!("{} sessions per vCPU.", number(density)));
    }
    if let Some(edge) = &bracket.edge {
        told.push(format!(
            "Edge, the load at which half of the trials pass: {}.",
            facts::edge(edge)
        ));
    }
    if !bracket.borderline.is_empty() {
        told.push(format!(
            "Borderline, sometimes passing and sometimes failing: {}.",
            borderline(bracket)
        ));
    }
    if let Some(bottleneck) = &bracket.bottleneck {
        told.push(format!(
            "Bottleneck: {}.",
            escape(bottleneck.trim_end_matches('.'))
        ));
    }
    let end = escape(bracket.conclusion.trim_end_matches('.'));
    told.push(format!("Why the search ended: {end}."));
    page.paragraph(&told.join(" "));
}

fn borderline(bracket: &Bracket) -> String {
    let loads = bracket.borderline.iter();
    let loads: Vec<_> = loads.map(|load| count(u64::from(*load))).collect();
    loads.join(", ")
}

/// How often each load passed and failed, and what the search makes of that.
pub(crate) fn load_evidence_table(evidence: &[LoadEvidence]) -> Table {
    let mut table = Table::new(&[
        ">sessions",
        ">passed",
        ">failed",
        ">short passed",
        ">short failed",
        ">invalid",
        "the load is",
    ]);
    for load in evidence {
        let mut cells = vec![count(load.sessions.into())];
        cells.extend(facts::evidence_counts(load));
        cells.push(load.class.word().to_owned());
        table.row(cells);
    }
    table
}

fn load_evidence(page: &mut Page, evidence: &[LoadEvidence]) {
    if !evidence.is_empty() {
        page.paragraph(
            "Trials at each load, and what the search makes of them, neighbouring loads considered:",
        );
        page.table(&load_evidence_table(evidence));
    }
}

fn cost_curve(page: &mut Page, points: &[CostPoint]) {
    if points.is_empty() {
        return;
    }
    page.heading(2, "Cost over the load");
    let mut table = Table::new(&[
        ">sessions",
        ">CPU per session-second",
        ">least",
        ">greatest",
        ">RSS per session",
        ">trials",
    ]);
    for point in points {
        table.row([
            count(point.sessions.into()),
            us(point.cpu_us_per_session_second),
            us(point.low),
            us(point.high),
            maybe(point.rss_bytes_per_session, bytes),
            count(point.trials.into()),
        ]);
    }
    page.table(&table);
    page.paragraph("Means over the valid trials of a load; what a session costs at the load line need not be what it costs when the target has little to do.");
    page.paragraph(&format!(
        "![CPU per session-second against sessions]({})",
        render::COST_SVG
    ));
}
