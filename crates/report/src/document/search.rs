//! A search: the load line, whether you can believe it, and all its evidence.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{
    Bracket, GateResult, LoadClass, LoadUnit, Trial, TrialSummary, Verdict,
};

use super::{
    Answer, Block, Blocks, Column, Detail, Document, Fact, Figure, Section, Span, Table, Tellers,
    Text, Tone, belief, escalation, goals, side_by_side, trial,
};
use crate::choice;
use crate::escalation::Escalated;
use crate::folder::{SearchView, StoredTrial};
use crate::loads::{self, Load};
use crate::words::{self, bytes, count, maybe, ms, number, percent, range, us};
use crate::{facts, render};

/// The load line by one SLO. Only the first search of a folder has what does not depend on the SLO.
pub(crate) fn document(view: &SearchView<'_>, number: usize, tellers: Tellers) -> Document {
    let bracket = view.bracket;
    let trials = view.of_search();
    let is_first = number == 0;
    let exemplar = exemplar(&trials);
    let loads = loads_table(&loads::of_bracket(bracket), bracket.load_unit);
    let mut evidence = Blocks::default();
    if is_first {
        evidence.full(trial::percentiles());
        evidence.full(trial::timelines(trials.iter().copied()));
        if let Some(escalated) = Escalated::of_search(view) {
            evidence.push(escalation::of_search(&escalated));
        }
        if !bracket.cost_curve.is_empty() {
            evidence.full(cost(bracket));
        }
        let around = choice::around_edge(view);
        if !around.is_empty() {
            evidence.full(trial::ledgers(&around, tellers));
        }
    }
    evidence.full(Section::new(
        "evidence",
        "Evidence",
        rests_on(bracket, &trials, exemplar, loads.clone(), tellers),
    ));
    evidence.brief(in_brief(bracket, trials.len(), loads));
    if let Some(exemplar) = exemplar {
        if is_first {
            evidence.full(trial::environment(exemplar));
        }
        evidence.full(trial::repeat(
            exemplar,
            ("find", None, bracket.seed),
            tellers,
        ));
        let measured_at = format!("Measured at {}.", bracket.started_at);
        evidence.full(Block::Note(measured_at.into()));
    }
    Document {
        id: format!("search-{}", number + 1),
        entry: if view.one_of_several {
            format!("Load line by {}", bracket.slo)
        } else {
            "Load line".to_owned()
        },
        answer: answer(view, &trials, is_first, tellers),
        evidence,
    }
}

fn answer(
    view: &SearchView<'_>,
    trials: &[&StoredTrial],
    is_first: bool,
    tellers: Tellers,
) -> Answer {
    let bracket = view.bracket;
    let headline = words::headline(bracket, &view.trials);
    let mut blocks = Blocks::default();
    blocks.push(terms(bracket, view.one_of_several));
    blocks.push(belief::of_search(bracket, trials, tellers));
    blocks.push(goals::of_one(bracket.goals.as_ref()));
    let of = words::target(&bracket.target);
    Answer {
        title: if is_first && !view.one_of_several {
            format!("Load line of {of}")
        } else {
            format!("Load line of {of} by the SLO {}", bracket.slo)
        },
        verdict: Some(verdict(bracket)),
        claim: headline.claim,
        bounds: headline.bounds,
        blocks,
        figure: Some(Figure {
            stem: render::chart_name(bracket, is_first),
            hook: "chart-latency",
            alt: format!("Latency against {}", bracket.load_unit.name()),
            caption: "Latency from the schedule against the load, with the gates as dashed lines. Each mark is a trial.".to_owned(),
        }),
    }
}

/// The outcome of the search in a word or two, and whether that is an answer.
fn verdict(bracket: &Bracket) -> (String, Tone) {
    let (word, tone) = match (bracket.confirmed, bracket.first_fail) {
        (Some(_), _) if bracket.lower_bound_only => ("lower bound only", Tone::Open),
        (Some(_), _) => ("load line found", Tone::Good),
        (None, Some(_)) => (words::without_a_line(bracket), Tone::Bad),
        (None, None) => (words::without_a_line(bracket), Tone::Open),
    };
    (word.to_owned(), tone)
}

fn terms(bracket: &Bracket, several_slos: bool) -> Vec<Fact> {
    let at_least = if bracket.lower_bound_only {
        "at least "
    } else {
        ""
    };
    let unit = bracket.load_unit;
    let mut terms = Vec::new();
    let mut term = |name: &str, value: Option<String>, hook| {
        terms.extend(value.map(|value| Fact::new(name, value).hooked(hook)));
    };
    let line = bracket
        .confirmed
        .map(|load| format!("{at_least}{}", words::load(load, unit)));
    term("load line", line, "load-line");
    term("edge", bracket.edge.as_ref().map(facts::edge), "edge");
    let density = bracket
        .sessions_per_vcpu
        .map(|density| format!("{at_least}{} {}", number(density), unit.name()));
    term("per vCPU", density, "per-vcpu");
    // The load line is the first of three numbers, none of which stands for another.
    if let Some(beyond) = &bracket.escalation {
        let knee = beyond.knee.as_ref().map(|knee| words::knee(knee, unit));
        term("knee", knee, "knee");
        term("collapse", words::collapse(beyond, unit), "collapse");
    }
    term("broke first", bracket.failing_gate.clone(), "broke-first");
    let loads = bracket.borderline.iter();
    let borderline: Vec<String> = loads.map(|load| count((*load).into())).collect();
    let borderline = (!borderline.is_empty()).then(|| borderline.join(", "));
    term("borderline", borderline, "");
    term("bottleneck", bracket.bottleneck.clone(), "bottleneck");
    let baseline = bracket.baseline.as_ref();
    let baseline = baseline.map(|known| words::baseline(known, unit));
    term("compared with", baseline, "");
    term("by the SLO", several_slos.then(|| bracket.slo.clone()), "");
    let end = Some(bracket.conclusion.clone()).filter(|end| !end.is_empty());
    term("why it ended", end, "");
    let beyond = bracket.escalation.as_ref();
    let beyond = beyond.map(|beyond| beyond.conclusion.clone());
    term("beyond the load line", beyond, "");
    terms
}

fn cost(bracket: &Bracket) -> Section {
    let unit = bracket.load_unit;
    let mut blocks = Blocks::default();
    let cost = words::cpu_cost(unit);
    blocks.push(Figure {
        stem: render::COST.to_owned(),
        hook: "chart-cost",
        alt: format!("{cost} against {}", unit.name()),
        caption: format!(
            "CPU time of the target {}. What {} costs at the load line need not be what it costs when the target has little to do.",
            words::per_second_and_one(unit),
            words::what_costs(unit)
        ),
    });
    let caption = format!(
        "What {} costs: mean over the valid trials of a load, the least and the greatest",
        words::what_costs(unit)
    );
    let [load, cost, rss] =
        [unit.name(), cost, words::rss_per_one(unit)].map(|name| format!(">{name}"));
    let columns = [
        &load,
        &cost,
        ">least",
        ">greatest",
        ">of its cores",
        &rss,
        ">trials",
    ];
    let rows = bracket.cost_curve.iter().map(|point| {
        [
            count(point.sessions.into()),
            us(point.cpu_us_per_session_second),
            us(point.low),
            us(point.high),
            maybe(point.core_us_per_session_second, us),
            maybe(point.rss_bytes_per_session, bytes),
            count(point.trials.into()),
        ]
    });
    blocks.push(Table::new(caption, columns).with_rows(rows));
    Section::new("cost", "Cost", blocks)
}

/// What the answer rests on.
fn rests_on(
    bracket: &Bracket,
    trials: &[&StoredTrial],
    exemplar: Option<&Trial>,
    loads: Table,
    tellers: Tellers,
) -> Blocks {
    let mut blocks = Blocks::default();
    let conditions = conditions(bracket);
    blocks.paragraph(
        conditions.then_plain(
            "; latencies from the schedule; a range where the trials of a load differ.",
        ),
    );
    if let Some(trial) = exemplar {
        blocks.paragraph(gates(&trial.gates));
    }
    if !bracket.evidence.is_empty() {
        blocks.push(verdicts(bracket));
    }
    blocks.push(loads);
    side_by_side(&mut blocks, trials.iter().copied(), tellers);
    blocks
}

/// The same where there is little room.
fn in_brief(bracket: &Bracket, trials: usize, loads: Table) -> Block {
    let mut blocks = Blocks::default();
    blocks.paragraph(conditions(bracket).then_plain(format!(", seed {}.", bracket.seed)));
    blocks.push(loads);
    blocks.note(
        "target, client: share of the CPU that each was given; send lag: the client's own, p99.9",
    );
    let trials = words::counted(trials as u64, "trial");
    Block::Folded(format!("Evidence: {trials}"), blocks)
}

fn conditions(bracket: &Bracket) -> Text {
    Text::from("Workload ")
        .then(Span::Code(bracket.workload.clone()))
        .then_plain(", profile ")
        .then(Span::Code(bracket.profile.clone()))
        .then_plain(", SLO ")
        .then(Span::Code(bracket.slo.clone()))
}

/// Every gate with its threshold.
fn gates(gates: &[GateResult]) -> Text {
    let mut text = Text::from("A trial passes when every gate holds");
    for (index, gate) in gates.iter().enumerate() {
        text = text
            .then_plain(if index == 0 { ": " } else { ", " })
            .then(Span::Code(gate.name.clone()))
            .then_plain(format!(" ≤ {}", number(gate.threshold)));
    }
    text.then_plain(".")
}

/// How often each load passed and failed, and the class that the search gives it.
fn verdicts(bracket: &Bracket) -> Table {
    let head = format!(">{}", bracket.load_unit.name());
    let columns = [
        head.as_str(),
        ">passed",
        ">failed",
        ">short passed",
        ">short failed",
        ">invalid",
        "the load is",
    ];
    let caption =
        "Trials at each load, and what the search makes of them, neighbouring loads considered";
    let rows = bracket.evidence.iter().map(|load| {
        let trials = facts::evidence_counts(load);
        let class = load.class.word().to_owned();
        std::iter::once(count(load.sessions.into()))
            .chain(trials)
            .chain([class])
    });
    Table::new(caption, columns).with_rows(rows)
}

/// One row per load.
pub(super) fn loads_table(loads: &[Load], unit: LoadUnit) -> Table {
    let full = |name: &str| Column::new(name).only(Detail::Full);
    let tail = loads::tail(loads).name();
    let both = loads::answers_cover_several(loads);
    let with_confirm = loads::frames_are_confirmed(loads);
    let mut columns = vec![
        Column::new(&format!(">{}", unit.name())),
        Column::new("verdict"),
        full(">newest p50"),
        Column::new(&format!(">newest {tail}")),
    ];
    if both {
        columns.push(full(">oldest p50"));
        columns.push(Column::new(&format!(">oldest {tail}")));
    }
    if with_confirm {
        columns.push(full(">confirm p50"));
        columns.push(Column::new(&format!(">confirm {tail}")));
    }
    columns.extend([
        Column::new(&format!(">{}", words::cpu_cost(unit))).short(words::cpu_cost_in_brief(unit)),
        Column::new(">target CPU").short("target"),
        Column::new(">client CPU").short("client"),
        Column::new(">send lag p99.9").short("send lag"),
        Column::new("what spoke against it").short("against it"),
    ]);
    let row = |load: &Load| -> Vec<Text> {
        let mut cells = vec![
            count(load.sessions.into()).into(),
            Text::toned(load.verdicts(), agreed(load)),
            range(load.range(|t| t.newest_p50_ms), ms).into(),
            range(load.range(TrialSummary::newest_tail_ms), ms).into(),
        ];
        if both {
            cells.push(range(load.range(|t| t.oldest_p50_ms), ms).into());
            cells.push(range(load.range(TrialSummary::oldest_tail_ms), ms).into());
        }
        if with_confirm {
            cells.push(range(load.range(|t| t.confirm_p50_ms), ms).into());
            cells.push(range(load.range(TrialSummary::confirm_tail_ms), ms).into());
        }
        cells.extend([
            range(load.range(|t| t.cpu_us_per_session_second), us).into(),
            range(load.range(|t| t.target_cpu_share), percent).into(),
            range(load.range(|t| Some(t.client_cpu_share)), percent).into(),
            range(load.range(|t| t.send_lag_p999_us), us).into(),
            load.what_failed().join(", ").into(),
        ]);
        cells
    };
    let table = Table {
        caption: "What was measured at each load".to_owned(),
        columns,
        ..Table::default()
    };
    table.with_rows(loads.iter().map(row))
}

/// What the trials of a load agree on.
fn agreed(load: &Load) -> Tone {
    let settled = match load.class {
        Some(class) => matches!(class, LoadClass::Passing | LoadClass::Failing),
        None => !load.borderline,
    };
    let all = |verdict| load.trials.iter().all(|trial| trial.verdict == verdict);
    if settled && all(Verdict::Pass) {
        Tone::Good
    } else if settled && all(Verdict::Fail) {
        Tone::Bad
    } else {
        Tone::Open
    }
}

/// The trial that shows the conditions of a search: one that ran the whole profile, if there is one.
fn exemplar<'a>(trials: &[&'a StoredTrial]) -> Option<&'a Trial> {
    let whole = trials.iter().find(|s| s.trial.length == Length::Full);
    whole.or(trials.first()).map(|stored| &stored.trial)
}
