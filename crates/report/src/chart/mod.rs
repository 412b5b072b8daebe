//! The chart: latency against sessions, gates, marks by verdict, and the load line.
//!
//! Colours are of the palette of Okabe and Ito, which colour-blind readers can tell apart; marks differ in shape as well.

mod draw;
mod font;
mod png;
mod scale;
mod svg;

use plimsoll_core::record::{Trial, TrialSummary};

use crate::folder::Results;
use crate::loads::{self, Load};
use crate::words::{self, count, number, plain};

pub use png::png;

/// Width and height of the chart in px.
pub const SIZE_PX: (u32, u32) = (800, 500);

/// Which of the two latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Newest,
    Oldest,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Newest, Self::Oldest];

    fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }

    fn p50(self, trial: &TrialSummary) -> Option<f64> {
        match self {
            Self::Newest => trial.newest_p50_ms,
            Self::Oldest => trial.oldest_p50_ms,
        }
    }

    fn p95(self, trial: &TrialSummary) -> Option<f64> {
        match self {
            Self::Newest => trial.newest_p95_ms,
            Self::Oldest => trial.oldest_p95_ms,
        }
    }
}

/// A gate on one of the latencies that are drawn.
#[derive(Debug, Clone, PartialEq)]
struct GateLine {
    side: Side,
    /// Whether it is on the 95th percentile; the other that is drawn is the median.
    on_p95: bool,
    threshold_ms: f64,
    label: String,
}

/// Everything that is drawn.
#[derive(Debug, Clone)]
struct Chart {
    title: String,
    /// At most two lines under the title.
    subtitles: Vec<String>,
    loads: Vec<Load>,
    gates: Vec<GateLine>,
    /// The load line and its label.
    load_line: Option<(u32, String)>,
}

/// The chart of a result folder as SVG. `None` when the folder has nothing for one chart: no trial, or trials of several targets without a search.
#[must_use]
pub fn svg(results: &Results) -> Option<String> {
    chart_of(results).map(|chart| draw::svg(&chart))
}

fn chart_of(results: &Results) -> Option<Chart> {
    let loads = loads::of(results);
    let trials: Vec<&Trial> = match &results.bracket {
        Some(bracket) => words::of_search(bracket, &results.trials)
            .map(|s| &s.trial)
            .collect(),
        None => results.trials.iter().map(|stored| &stored.trial).collect(),
    };
    let first = trials.first()?;
    let one_target = trials
        .iter()
        .all(|trial| trial.target.name == first.target.name);
    if !one_target {
        return None;
    }
    let mut subtitles = Vec::new();
    let title = title_and_bounds(results, &trials, &mut subtitles);
    subtitles.push(format!(
        "workload {}, profile {}, SLO {}{}",
        plain(&first.workload),
        plain(&first.profile),
        plain(&first.slo),
        not_drawn(&loads)
    ));
    let load_line = results.bracket.as_ref().and_then(|bracket| {
        let at_least = if bracket.lower_bound_only {
            "at least "
        } else {
            ""
        };
        let load = bracket.confirmed?;
        Some((
            load,
            format!("load line: {at_least}{}", count(u64::from(load))),
        ))
    });
    Some(Chart {
        title,
        subtitles,
        gates: gate_lines(first),
        loads,
        load_line,
    })
}

/// The finding. A long name is cut until the whole title fits: the number is what the reader is here for.
fn title_and_bounds(results: &Results, trials: &[&Trial], subtitles: &mut Vec<String>) -> String {
    let name = trials
        .first()
        .map_or("", |trial| trial.target.name.as_str());
    let titled = |name: &str| match &results.bracket {
        Some(bracket) => {
            let mut bracket = bracket.clone();
            name.clone_into(&mut bracket.target.name);
            words::headline(&bracket, &results.trials).claim
        }
        None => title_without_search(name, trials),
    };
    if let Some(bracket) = &results.bracket {
        let bounds = words::headline(bracket, &results.trials).bounds;
        if !bounds.is_empty() {
            subtitles.push(bounds);
        }
    }
    let name = plain(name);
    let room = draw::title_room_px() - draw::title_width_px(&titled(""));
    titled(&font::fit(&name, draw::TITLE_SIZE_PX, true, room))
}

fn title_without_search(name: &str, trials: &[&Trial]) -> String {
    match trials {
        [trial] => format!(
            "{name} at {}{}: {}",
            words::sessions(trial.sessions),
            words::on_vcpu(trial.vcpu),
            trial.verdict.word()
        ),
        trials => format!("{name}: {} trials", trials.len()),
    }
}

/// Says how many trials have no place in the chart, because nothing was answered in them.
fn not_drawn(loads: &[Load]) -> String {
    let trials = loads.iter().flat_map(|load| &load.trials);
    let silent = trials.filter(|trial| Side::BOTH.iter().all(|side| side.p95(trial).is_none()));
    match silent.count() {
        0 => String::new(),
        1 => "; 1 trial without answers is not drawn".to_owned(),
        many => format!("; {many} trials without answers are not drawn"),
    }
}

/// The gates on latencies that are drawn.
fn gate_lines(trial: &Trial) -> Vec<GateLine> {
    let mut lines = Vec::new();
    for gate in &trial.gates {
        for side in Side::BOTH {
            for percentile in ["p50", "p95"] {
                if gate.name == format!("{}_{percentile}_ms", side.name()) {
                    lines.push(GateLine {
                        side,
                        on_p95: percentile == "p95",
                        threshold_ms: gate.threshold,
                        label: format!("{} {percentile} ≤ {}", side.name(), number(gate.threshold)),
                    });
                }
            }
        }
    }
    lines
}
