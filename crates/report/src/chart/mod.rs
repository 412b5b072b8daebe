//! The charts. Each is SVG, written when the result is rendered: no library and no script draws them. So they work
//! offline, print, weigh a few kilobytes, and can be tested as text. The page has the same charts inline.
//!
//! - latency against sessions with gates, marks by verdict and the load line (`draw`), and the cost of a session over
//!   the load (`cost`);
//! - latency, goodput and failures over the load (`escalation`);
//! - latency by percentile (`percentiles`), and a trial second by second (`timeline`);
//! - several targets: their load lines (`ranking`), and their latencies and costs over the load (`overlay`);
//! - two targets: the ratios of a comparison (`ratios`);
//! - the load line as a badge (`badge`).
//!
//! Colours are from the Okabe–Ito palette, which colour-blind readers can tell apart. Marks also differ in shape.

mod badge;
mod cost;
mod draw;
mod escalation;
mod font;
mod frame;
mod overlay;
mod percentiles;
mod png;
mod ranking;
mod ratios;
mod scale;
mod svg;
pub(crate) mod timeline;

use plimsoll_core::record::{Bracket, LoadUnit, Tail, Trial, TrialSummary};
use plimsoll_document::Tellers;

use crate::escalation::Escalated;
use crate::facts;
use crate::folder::{SearchView, StoredTrial};
use crate::loads::{self, Load};
use crate::words::{self, count, number, percent, plain};
use frame::Band;

pub use badge::svg as badge_svg;
pub use overlay::svg as overlay_svg;
pub(crate) use percentiles::Curve;
pub(crate) use percentiles::svg as percentiles_svg;
pub use png::png;
pub use ranking::svg as svg_of_ranking;
pub use ratios::svg as ratios_svg;

/// Width and height of a chart in px.
pub const SIZE_PX: (u32, u32) = (800, 500);

/// Which of the two latencies: of the newest or of the oldest frame.
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

    fn tail(self, trial: &TrialSummary) -> Option<f64> {
        match self {
            Self::Newest => trial.newest_tail_ms(),
            Self::Oldest => trial.oldest_tail_ms(),
        }
    }
}

/// A gate on one of the drawn latencies.
#[derive(Debug, Clone, PartialEq)]
struct GateLine {
    side: Side,
    /// Whether it is on the tail. Otherwise it is on the median, the only other percentile drawn.
    on_tail: bool,
    threshold_ms: f64,
    label: String,
}

/// Everything the chart draws.
#[derive(Debug, Clone)]
struct Chart {
    title: String,
    /// At most two lines under the title.
    subtitles: Vec<String>,
    loads: Vec<Load>,
    /// The percentile drawn beside the median.
    tail: Tail,
    /// The latencies drawn: one where each frame has an answer of its own.
    sides: &'static [Side],
    /// What the loads count.
    unit: LoadUnit,
    gates: Vec<GateLine>,
    /// The load line and its label.
    load_line: Option<(u32, String)>,
    /// Where the edge lies.
    edge: Option<Band>,
}

/// The chart of a search as SVG, as one SLO judges it. `None` when the search has no trial.
#[must_use]
pub fn svg_of_search(view: &SearchView<'_>) -> Option<String> {
    let bracket = view.bracket;
    let trials = view.of_search();
    let mut chart = Chart::of(loads::of_bracket(bracket), &trials)?;
    let headline = words::headline(bracket, &view.trials);
    let edge = bracket.edge.as_ref();
    let edge = edge.map(|edge| format!("edge {}", facts::edge(edge)));
    // The edge comes first: it is shorter, and text that does not fit is cut at the end.
    let bounds = Some(headline.bounds).filter(|bounds| !bounds.is_empty());
    let found: Vec<_> = edge.into_iter().chain(bounds).collect();
    if !found.is_empty() {
        chart.subtitles.insert(0, found.join("; "));
    }
    chart.title = fitting_title(&bracket.target.name, |name| {
        let mut bracket = bracket.clone();
        name.clone_into(&mut bracket.target.name);
        words::headline(&bracket, &view.trials).claim
    });
    chart.load_line = load_line(bracket);
    chart.edge = edge_band(bracket);
    Some(draw::svg(&chart))
}

/// The chart of trials without a search, as SVG. `None` when there are no trials, or when they have several targets or
/// differ in more than their loads.
#[must_use]
pub fn svg_of_trials(trials: &[&StoredTrial], tellers: Tellers) -> Option<String> {
    let mut chart = Chart::of(loads::of_trials(trials), trials)?;
    let name = &trials.first()?.trial.target.name;
    if trials
        .iter()
        .any(|stored| stored.trial.target.name != *name)
        || !loads::differ_by_load_only(trials)
    {
        return None;
    }
    chart.title = fitting_title(name, |name| match trials {
        [only] => format!(
            "{name} at {}{}: {}",
            words::load_of(&only.trial, tellers),
            words::on_vcpu(only.trial.vcpu),
            only.trial.verdict.word()
        ),
        trials => format!("{name}: {} trials", trials.len()),
    });
    Some(draw::svg(&chart))
}

impl Chart {
    /// The chart of these trials, with neither a title nor a load line.
    fn of(loads: Vec<Load>, trials: &[&StoredTrial]) -> Option<Self> {
        let first = &trials.first()?.trial;
        let tail = loads::tail(&loads);
        let sides = match loads::answers_cover_several(&loads) {
            true => &Side::BOTH[..],
            false => &[Side::Newest],
        };
        let conditions = format!(
            "workload {}, profile {}, SLO {}{}",
            plain(&first.workload),
            plain(&first.profile),
            plain(&first.slo),
            not_drawn(&loads)
        );
        Some(Self {
            title: String::new(),
            subtitles: vec![conditions],
            gates: gate_lines(first, tail, sides),
            tail,
            sides,
            unit: first.load_unit,
            loads,
            load_line: None,
            edge: None,
        })
    }
}

/// The title, which is the chart's main statement. A long name is cut until the whole title fits, because the reader
/// looks for the number.
fn fitting_title(name: &str, titled: impl Fn(&str) -> String) -> String {
    let room = frame::title_room_px() - frame::title_width_px(&titled(""));
    titled(&font::fit(&plain(name), frame::TITLE_SIZE_PX, true, room))
}

/// The cost curve of a search as SVG. `None` where the target's CPU time is unknown.
#[must_use]
pub fn cost_svg(bracket: &Bracket) -> Option<String> {
    let chart = cost::CostChart {
        points: &bracket.cost_curve,
        load_line: load_line(bracket),
        edge: edge_band(bracket),
    };
    (!chart.points.is_empty()).then(|| cost::svg(&chart, bracket))
}

/// The chart of an escalation as SVG. `None` where there are fewer than two loads.
pub(crate) fn escalation_svg(escalated: &Escalated) -> Option<String> {
    escalation::svg(escalated)
}

/// The load line and its label.
fn load_line(bracket: &Bracket) -> Option<(u32, String)> {
    let at_least = if bracket.lower_bound_only {
        "at least "
    } else {
        ""
    };
    let load = bracket.confirmed?;
    let label = format!("load line: {at_least}{}", count(u64::from(load)));
    Some((load, label))
}

/// The interval of the edge.
fn edge_band(bracket: &Bracket) -> Option<Band> {
    bracket.edge.as_ref().map(|edge| Band {
        low: edge.low,
        high: edge.high,
        label: format!("edge, {} interval", percent(edge.confidence)),
    })
}

/// Says how many trials the chart leaves out because they had no answers.
fn not_drawn(loads: &[Load]) -> String {
    let trials = loads.iter().flat_map(|load| &load.trials);
    let silent = trials.filter(|trial| Side::BOTH.iter().all(|side| side.tail(trial).is_none()));
    match silent.count() {
        0 => String::new(),
        1 => "; 1 trial without answers is not drawn".to_owned(),
        many => format!("; {many} trials without answers are not drawn"),
    }
}

/// The gates on the drawn latencies.
fn gate_lines(trial: &Trial, tail: Tail, sides: &[Side]) -> Vec<GateLine> {
    let mut lines = Vec::new();
    for gate in &trial.gates {
        for side in sides {
            for (percentile, on_tail) in [("p50", false), (tail.name(), true)] {
                if gate.name == format!("{}_{percentile}_ms", side.name()) {
                    lines.push(GateLine {
                        side: *side,
                        on_tail,
                        threshold_ms: gate.threshold,
                        label: format!("{} {percentile} ≤ {}", side.name(), number(gate.threshold)),
                    });
                }
            }
        }
    }
    lines
}
