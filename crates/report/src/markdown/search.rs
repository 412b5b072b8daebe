//! The section of a search: the load line, whether you can believe it, the evidence load by load, the cost curve, how
//! to repeat it.

use plimsoll_core::record::Bracket;

use super::{Page, Table, code, escape, evidence, ws};
use crate::folder::SearchView;
use crate::words::{self, bytes, count, maybe, number, us};
use crate::{facts, loads, render};

/// The load line by one SLO. Only the `first` section has what does not depend on the SLO.
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
    load_evidence(page, bracket);
    evidence::table(page, &loads::of_bracket(bracket), bracket.load_unit);
    ws::side_by_side(page, &trials);
    if !trials.is_empty() {
        let chart = render::chart_name(bracket, first);
        let unit = bracket.load_unit.name();
        page.paragraph(&format!("![Latency against {unit}]({chart}.svg)"));
    }
    if first {
        cost_curve(page, bracket);
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
        let unit = bracket.load_unit.name();
        told.push(format!("{} {unit} per vCPU.", number(density)));
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

/// How often each load passed and failed, and the class that the search gives it.
pub(crate) fn load_evidence_table(bracket: &Bracket) -> Table {
    let mut table = Table::new(&[
        &format!(">{}", bracket.load_unit.name()),
        ">passed",
        ">failed",
        ">short passed",
        ">short failed",
        ">invalid",
        "the load is",
    ]);
    for load in &bracket.evidence {
        let mut cells = vec![count(load.sessions.into())];
        cells.extend(facts::evidence_counts(load));
        cells.push(load.class.word().to_owned());
        table.row(cells);
    }
    table
}

fn load_evidence(page: &mut Page, bracket: &Bracket) {
    if !bracket.evidence.is_empty() {
        page.paragraph(
            "Trials at each load, and what the search makes of them, neighbouring loads considered:",
        );
        page.table(&load_evidence_table(bracket));
    }
}

fn cost_curve(page: &mut Page, bracket: &Bracket) {
    let (points, unit) = (&bracket.cost_curve, bracket.load_unit);
    if points.is_empty() {
        return;
    }
    let cost = words::cpu_cost(unit);
    page.heading(2, "Cost over the load");
    let mut table = Table::new(&[
        &format!(">{}", unit.name()),
        &format!(">{cost}"),
        ">least",
        ">greatest",
        ">of its cores",
        &format!(">{}", words::rss_per_one(unit)),
        ">trials",
    ]);
    for point in points {
        table.row([
            count(point.sessions.into()),
            us(point.cpu_us_per_session_second),
            us(point.low),
            us(point.high),
            maybe(point.core_us_per_session_second, us),
            maybe(point.rss_bytes_per_session, bytes),
            count(point.trials.into()),
        ]);
    }
    page.table(&table);
    page.paragraph(&format!(
        "Means over the valid trials of a load; what {} costs at the load line need not be what it costs when the target has little to do.",
        words::what_costs(unit)
    ));
    page.paragraph(&format!(
        "![{cost} against {}]({})",
        unit.name(),
        render::COST_SVG
    ));
}
