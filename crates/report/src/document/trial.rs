//! One trial: its verdict, whether you can believe it, and everything that was measured.

use std::collections::BTreeMap;

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Agent, GateResult, Trial, Verdict};

use super::{
    Answer, Block, Blocks, Document, Fact, Figure, List, Section, Table, Tellers, Text, Tone,
    account, belief, goals,
};
use crate::facts::repeat::Repeat;
use crate::facts::trial::{LATENCY_COLUMNS, latency_cells};
use crate::folder::StoredTrial;
use crate::words::{self, count, number};
use crate::{facts, render};

/// The caption of the percentile plot.
const PERCENTILES: &str = "Latency of the newest frame by percentile; each further nine takes the same room. Solid from the schedule, dashed from the write: where they part, the client was late or the target made it wait. A bar is a gate: the curve of a trial that passes goes below it.";

/// What the folder's charts show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charts {
    /// The trials of the document.
    OfThese,
    /// Other trials, or these among others.
    OfOthers,
}

pub(crate) fn document(stored: &StoredTrial, charts: Charts, tellers: Tellers) -> Document {
    let trial = &stored.trial;
    let mut evidence = Blocks::default();
    if charts == Charts::OfThese {
        evidence.full(percentiles());
    }
    if let Some(own) = tellers.trial(trial) {
        evidence.full(own);
    }
    evidence.full(timelines([stored]));
    evidence.full(ledgers(&[stored], tellers));
    evidence.full(latency_section(trial));
    evidence.full(drift(trial));
    evidence.full(client(trial));
    evidence.full(target(trial));
    if let Some(companions) = tellers.of(&trial.workload).companions(trial) {
        evidence.full(companions);
    }
    evidence.full(environment(trial));
    evidence.full(repeat(
        trial,
        ("run", Some(trial.sessions), trial.seed),
        tellers,
    ));
    evidence.full(Block::Note(
        Text::from(format!(
            "Measured at {}; every second in ",
            trial.started_at
        ))
        .joined(Text::code(format!("{}.csv", stored.stem)))
        .then_plain(", histograms in ")
        .joined(Text::code(format!("{}.hlog", stored.stem)))
        .then_plain("."),
    ));
    evidence.brief(in_brief(trial, tellers));
    Document {
        id: stored.stem.clone(),
        entry: if charts == Charts::OfThese {
            "Trial".to_owned()
        } else {
            stored.stem.clone()
        },
        answer: answer(trial, charts, tellers),
        evidence,
    }
}

fn answer(trial: &Trial, charts: Charts, tellers: Tellers) -> Answer {
    let tone = match trial.verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Fail => Tone::Bad,
        Verdict::Invalid => Tone::Open,
    };
    let word = trial.verdict.word();
    let load = words::load_of(trial, tellers);
    Answer {
        title: format!("{} at {load}: {word}", words::target(&trial.target)),
        verdict: Some((word.to_owned(), tone)),
        claim: words::outcome(trial, tellers),
        bounds: String::new(),
        blocks: answer_blocks(trial, tellers),
        figure: (charts == Charts::OfThese).then(|| Figure {
            stem: render::CHART.to_owned(),
            hook: "chart-latency",
            alt: "Latency at this load".to_owned(),
            caption: "Latency from the schedule at this load, with the gates as dashed lines."
                .to_owned(),
        }),
    }
}

fn answer_blocks(trial: &Trial, tellers: Tellers) -> Blocks {
    let mut blocks = Blocks::default();
    if trial.interrupted {
        blocks.paragraph("The trial was interrupted: these are the measurements up to that point.");
    }
    let measured = number(trial.phases.measured_s);
    if trial.length == Length::Short {
        let told = format!(
            "A short trial of a search: measured for {measured} s, not for the whole profile."
        );
        blocks.full(Block::Paragraph(told.into()));
    }
    let conditions = format!(
        "{}, {}profile {}, measured for {measured} s, seed {}",
        trial.workload,
        words::length(trial.length),
        trial.profile,
        trial.seed
    );
    blocks.brief(vec![Fact::new("conditions", conditions)]);
    let bottleneck = trial.bottleneck.iter();
    let bottleneck =
        bottleneck.map(|told| Fact::new("bottleneck", told.as_str()).hooked("bottleneck"));
    blocks.push(bottleneck.collect::<Vec<_>>());
    blocks.push(belief::of_trial(trial, tellers));
    blocks.push(gates(
        format!("Gates of the SLO {}", trial.slo),
        &trial.gates,
    ));
    for further in &trial.further_slos {
        let caption = format!(
            "Gates of the SLO {}: {}",
            further.slo,
            further.verdict.word()
        );
        blocks.push(gates(caption, &further.gates));
    }
    blocks.push(goals::of_one(trial.goals.as_ref()));
    blocks
}

fn gates(caption: String, gates: &[GateResult]) -> Table {
    let rows = gates.iter().map(|gate| {
        [
            Text::code(&gate.name),
            words::observed(gate).into(),
            number(gate.threshold).into(),
            Text::yes_or_no(gate.pass),
        ]
    });
    Table::new(caption, ["gate", ">observed", ">at most", "held"]).with_rows(rows)
}

pub(super) fn percentile_plot() -> Figure {
    Figure {
        stem: render::PERCENTILES.to_owned(),
        hook: "chart-percentiles",
        alt: "Latency by percentile".to_owned(),
        caption: PERCENTILES.to_owned(),
    }
}

pub(super) fn percentiles() -> Section {
    Section::of("percentiles", "Percentiles", percentile_plot())
}

/// These trials second by second.
pub(super) fn timelines<'a>(trials: impl IntoIterator<Item = &'a StoredTrial>) -> Section {
    let stems = trials.into_iter().map(|stored| stored.stem.clone());
    let timelines = Block::Timelines(stems.collect());
    Section::of("timeline", "Second by second", timelines)
}

/// Latencies and accounts in lines.
fn in_brief(trial: &Trial, tellers: Tellers) -> Block {
    let mut blocks = Blocks::default();
    blocks.push(latency(trial));
    blocks.push(account::of_trial(trial, tellers));
    Block::Folded("Evidence".to_owned(), blocks)
}

/// How latency and memory changed over the window, where this is known.
fn drift(trial: &Trial) -> Section {
    let columns = ["what", ">change", ">interval", "reading"];
    let mut table = Table::new("Change per hour", columns);
    for row in facts::drift_of(trial) {
        table.row([row.name.as_str(), &row.slope, &row.interval, row.reading]);
    }
    let mut blocks = Blocks::default();
    if !table.rows.is_empty() {
        blocks.push(table);
    }
    Section::new("drift", "Drift over the window", blocks)
}

/// What happened to every frame, with one column per trial, and why sessions broke.
pub(super) fn ledgers(trials: &[&StoredTrial], tellers: Tellers) -> Section {
    let name = |stored: &&StoredTrial| {
        let trial = &stored.trial;
        let load = count(trial.sessions.into());
        format!(">{} at {load} ({})", stored.stem, trial.verdict.word())
    };
    let columns = std::iter::once("what".to_owned()).chain(trials.iter().map(name));
    let ledgers: Vec<_> = trials
        .iter()
        .map(|stored| facts::trial::ledger(&stored.trial, tellers))
        .collect();
    let first = ledgers.first().map(Vec::as_slice).unwrap_or_default();
    let rows = first.iter().enumerate().map(|(index, (what, _))| {
        let values = ledgers.iter().filter_map(move |ledger| ledger.get(index));
        std::iter::once(what.clone()).chain(values.map(|(_, value)| count(*value)))
    });
    let mut blocks = Blocks::default();
    let caption = "Every frame due is answered, errored or lost";
    blocks.push(Table::new(caption, columns).with_rows(rows));
    for stored in trials {
        let title = format!(
            "{}: why sessions failed or died, and what the protocol faults were:",
            stored.stem
        );
        reasons(&mut blocks, &title, &stored.trial.ledger.reasons);
    }
    Section::new("ledger", "Ledger", blocks)
}

/// The most reasons of a ledger that are listed, and the most characters of each. A target can say anything, any number
/// of times.
const REASONS_MAX: usize = 40;
const REASON_CHARS_MAX: usize = 300;

/// What happened, how often and why.
fn reasons(blocks: &mut Blocks, title: &str, reasons: &BTreeMap<String, u64>) {
    if reasons.is_empty() {
        return;
    }
    let listed = reasons.iter().take(REASONS_MAX);
    let mut items: Vec<String> = listed
        .map(|(reason, times)| {
            let reason = words::plain(reason);
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            format!("{} × {reason}", count(*times))
        })
        .collect();
    let left_out = reasons.len().saturating_sub(REASONS_MAX) as u64;
    if left_out > 0 {
        items.push(format!(
            "and {} more, in the trial's record",
            count(left_out)
        ));
    }
    blocks.paragraph(title);
    blocks.push(List::of(items));
}

fn latency(trial: &Trial) -> Table {
    let caption = match trial.latency.confirm {
        Some(_) => {
            "Latency of the newest and of the oldest frame of an answer, and of the confirmation"
        }
        None => "Latency of the newest and of the oldest frame of an answer",
    };
    let rows = words::latency_rows(&trial.latency).into_iter();
    let rows = rows.map(|(name, quantiles)| latency_cells(name, quantiles));
    Table::new(caption, LATENCY_COLUMNS).with_rows(rows)
}

fn latency_section(trial: &Trial) -> Section {
    let mut blocks = Blocks::default();
    blocks.push(latency(trial));
    blocks.note("Gates look at the latency from the schedule. An unanswered frame counts with the time we waited, a lower bound.");
    if trial.latency.confirm.is_some() {
        blocks.note("The target answers a frame twice: it confirms the frame to its sender, and delivers it. Delivery is the answer. The rows of the confirmation count unconfirmed frames as unanswered.");
    }
    Section::new("latency", "Latency", blocks)
}

fn client(trial: &Trial) -> Section {
    let mut blocks = Blocks::default();
    let rows = facts::trial::client(&trial.client);
    let caption = "What the load client used, and how late it was";
    blocks.push(Table::of_facts(caption, rows));
    blocks.note("Send lag is the client's own lateness; send wait is the time that due frames waited for the target: for room in a full socket, or for an answer that the protocol demands first.");
    let title = "Faults of the client's own machine:";
    reasons(&mut blocks, title, &trial.client.faults);
    if !trial.client.agents.is_empty() {
        blocks.push(agents(&trial.client.agents));
        blocks.note("Each agent reads its own clock, so no latency goes from clock to clock; the clock error only says by how much its sessions may have begun too early or too late.");
    }
    Section::new("client", "Client", blocks)
}

/// The agents that drove the load, each with its share.
fn agents(agents: &[Agent]) -> Table {
    let columns = [
        "agent",
        ">sessions",
        ">cores",
        ">busiest thread",
        ">CPU per frame",
        ">send lag p99.9",
        ">waited for a core",
        ">clock error",
        "lost",
    ];
    let rows = agents.iter().map(|agent| {
        let lag_ms = agent.send_lag.p999_us.map(|us| us / 1e3);
        [
            agent.name(),
            count(agent.sessions),
            agent.cpus.to_string(),
            words::percent(agent.cpu_share),
            words::maybe(agent.cpu_us_per_frame, words::us),
            words::maybe(lag_ms, words::ms),
            words::maybe(agent.run_queue_wait_share, words::percent),
            words::ms(agent.clock_error_us / 1e3),
            agent.lost.clone().unwrap_or_else(|| "no".to_owned()),
        ]
    });
    Table::new("The agents that drove the load", columns).with_rows(rows)
}

fn target(trial: &Trial) -> Section {
    let mut blocks = Blocks::default();
    match &trial.target_resources {
        Some(resources) => {
            let source = &resources.source;
            let caption = match &trial.environment.observer {
                Some(observer) => format!(
                    "What the target used, by {source}, as the observer on {} saw it (clock error at most {})",
                    observer.host,
                    words::ms(observer.clock_error_us / 1e3),
                ),
                None => format!("What the target used, by {source}"),
            };
            let rows = facts::trial::target(trial, resources);
            blocks.push(Table::of_facts(&caption, rows));
        }
        None => blocks.paragraph("Not measured."),
    }
    Section::new("target", "Resources of the target", blocks)
}

/// The machine, the placement, the versions.
pub(super) fn environment(trial: &Trial) -> Section {
    let caption = "The machine, the placement, the versions";
    let table = Table::of_facts(caption, facts::trial::environment(trial));
    Section::of("environment", "Environment", table)
}

/// The command that repeats the measurement (its verb, its load and its seed), and what it needs besides.
pub(super) fn repeat(trial: &Trial, of: (&str, Option<u32>, u64), tellers: Tellers) -> Section {
    let repeat = Repeat::of(trial, of, tellers);
    let mut blocks = Blocks::default();
    blocks.push(Block::Command(repeat.command));
    if let Some(changed) = repeat.changed_profile {
        blocks.paragraph(changed);
    }
    if !repeat.own_gates.is_empty() {
        let gates = repeat.own_gates.iter();
        let gates: Vec<String> = gates
            .map(|(name, most)| format!("{name} = {most}"))
            .collect();
        let with = Text::with_code("with `--slo` and a file that has under `[gates]`: ");
        let gates = Text::codes(gates.iter().map(String::as_str));
        blocks.paragraph(with.joined(gates).then_plain("."));
    }
    Section::new("repeat", "How to repeat", blocks).unlisted()
}
