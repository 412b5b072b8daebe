//! A ranking in words, so that every renderer says the same.

use plimsoll_core::ranking::{FrameworkCost, places};
use plimsoll_core::record::{CostAccount, CostAtLoad, RankedTarget, Ranking, Tail};
use plimsoll_core::stats::Ratio;

use super::{UNKNOWN, bytes, count, maybe, ms, number, plain, us};
use crate::facts;

/// What was measured, in one line.
#[must_use]
pub fn headline(ranking: &Ranking) -> String {
    let targets = super::counted(ranking.rows.len() as u64, "target");
    let interrupted = if ranking.interrupted {
        " (interrupted: this is the state at that point)"
    } else {
        ""
    };
    format!(
        "{targets} on {} vCPU each, workload {}, profile {}{interrupted}",
        number(ranking.vcpu),
        plain(&ranking.workload),
        plain(&ranking.profile)
    )
}

/// The percentile that stands for the tail in this ranking: all targets are judged by one SLO.
#[must_use]
pub fn tail(ranking: &Ranking) -> Tail {
    Tail::of_trials(ranking.rows.iter().flat_map(|row| &row.bracket.trials))
}

/// One target's row, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `1`, or `1–2` where the interval of its edge overlaps with a neighbour's.
    pub place: String,
    /// The target's name.
    pub name: String,
    /// The target's tier.
    pub tier: String,
    /// The target's language.
    pub language: String,
    /// The load line, with `at least` where it is a lower bound.
    pub load_line: String,
    /// The edge with its interval.
    pub edge: String,
    /// The load line per vCPU.
    pub per_vcpu: String,
    /// The cost at the common load: the mean, and the range over the trials.
    pub cost: String,
    /// The tail of the newest frame's latency at the common load.
    pub latency: String,
    /// Memory per session at the common load.
    pub memory: String,
    /// Lines of code.
    pub lines_of_code: String,
    /// The versions of its tools and libraries.
    pub versions: String,
    /// The gate that failed first.
    pub first_broke: String,
}

/// The rows in the ranking's order.
#[must_use]
pub fn rows(ranking: &Ranking) -> Vec<Row> {
    let places = places(&ranking.rows);
    let tail = tail(ranking);
    let of = |(row, (from, to)): (&RankedTarget, (usize, usize))| {
        let bracket = &row.bracket;
        let at_least = if bracket.lower_bound_only {
            "at least "
        } else {
            ""
        };
        let cost = row.at_common_load.as_ref();
        let versions = bracket.target.versions.iter();
        let versions: Vec<_> = versions
            .map(|(name, version)| plain(&format!("{name} {version}")))
            .collect();
        Row {
            place: match (bracket.confirmed, from == to) {
                (None, _) => UNKNOWN.to_owned(),
                (Some(_), true) => from.to_string(),
                (Some(_), false) => format!("{from}–{to}"),
            },
            name: super::target(&bracket.target),
            tier: plain(&bracket.target.tier),
            language: plain(&row.language),
            load_line: bracket.confirmed.map_or_else(
                || UNKNOWN.to_owned(),
                |load| format!("{at_least}{}", count(load.into())),
            ),
            edge: bracket
                .edge
                .as_ref()
                .map_or_else(|| UNKNOWN.to_owned(), facts::edge),
            per_vcpu: maybe(bracket.sessions_per_vcpu, |value| {
                format!("{at_least}{}", number(value.round()))
            }),
            cost: cost.map_or_else(|| UNKNOWN.to_owned(), cost_of),
            latency: maybe(
                cost.and_then(|cost| tail.of_two(cost.newest_p95_ms, cost.newest_p99_ms)),
                ms,
            ),
            memory: maybe(cost.and_then(|cost| cost.rss_bytes_per_session), bytes),
            lines_of_code: lines_of_code(row),
            versions: if versions.is_empty() {
                UNKNOWN.to_owned()
            } else {
                versions.join(", ")
            },
            first_broke: bracket
                .failing_gate
                .as_deref()
                .map_or_else(|| UNKNOWN.to_owned(), plain),
        }
    };
    ranking.rows.iter().zip(places).map(of).collect()
}

fn lines_of_code(row: &RankedTarget) -> String {
    row.lines_of_code.map_or_else(|| UNKNOWN.to_owned(), count)
}

/// What one framework costs, in the columns of [`framework_heads`].
#[must_use]
pub fn framework_cost(cost: &FrameworkCost<'_>) -> [String; 5] {
    let edge = cost.edge().map(|of| facts::ratio(&of));
    let trials = |row: &RankedTarget| row.at_common_load.as_ref().map_or(0, |at| at.trials.len());
    // One trial of each has no spread.
    let spread = trials(cost.framework) + trials(cost.tuned) > 2;
    let multiple = |of: Ratio| match spread {
        true => facts::ratio(&of),
        false => super::comparison::ratio(of.value),
    };
    let cpu = cost.cpu().map(|(account, of)| match account {
        CostAccount::Core => format!("{}, its cores", multiple(of)),
        CostAccount::Charged => multiple(of),
    });
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    [
        super::target(&cost.framework.bracket.target),
        super::target(&cost.tuned.bracket.target),
        known(edge),
        known(cpu),
        format!(
            "{} and {}",
            lines_of_code(cost.framework),
            lines_of_code(cost.tuned)
        ),
    ]
}

/// The heads of the columns of [`framework_cost`].
#[must_use]
pub fn framework_heads(ranking: &Ranking) -> [String; 5] {
    [
        "framework".to_owned(),
        "tuned".to_owned(),
        ">its edge, as a share of the tuned one's".to_owned(),
        format!(">its {}, as a multiple", cost_head(ranking)),
        ">lines of code".to_owned(),
    ]
}

/// `310 µs (302–318)`, and how many trials did not count.
fn cost_of(cost: &CostAtLoad) -> String {
    let digits = |value: f64| number(value.round());
    let mut text = us(cost.cpu_us_per_session_second);
    if cost.trials.len() > 1 {
        text.push_str(&format!(" ({}–{})", digits(cost.low), digits(cost.high)));
    }
    if let Some(core_us) = cost.core_us_per_session_second {
        text.push_str(&format!(", {} of its cores", us(core_us)));
    }
    if cost.left_out > 0 {
        text.push_str(&format!(", {} left out", cost.left_out));
    }
    text
}

/// The head of the cost column: `CPU per session-second at 300`.
#[must_use]
pub fn cost_head(ranking: &Ranking) -> String {
    at_common_load(super::cpu_cost(ranking.load_unit), ranking)
}

/// The head of the latency column: `newest p99 at 300`.
#[must_use]
pub fn latency_head(ranking: &Ranking) -> String {
    at_common_load(format!("newest {}", tail(ranking).name()), ranking)
}

/// The head of a column of what was measured at the common load.
pub(crate) fn at_common_load(what: String, ranking: &Ranking) -> String {
    match ranking.common_load {
        Some(load) => format!("{what} at {load}"),
        None => what,
    }
}

/// The head of the memory column.
#[must_use]
pub fn memory_head(ranking: &Ranking) -> String {
    format!("memory per {}", super::holder(ranking.load_unit))
}

/// What the columns mean, in sentences.
#[must_use]
pub fn legend(ranking: &Ranking) -> Vec<String> {
    let mut told = vec![
        "Load line: the highest load classified as passing every gate. Edge: the load at which half of the trials pass, with its interval; targets whose intervals overlap share their places. Targets of tier `framework` come first and have places of their own.".to_owned(),
    ];
    let unit = ranking.load_unit;
    told.push(match ranking.common_load {
        Some(load) => format!(
            "{} and memory per {}: at {} for every target that carries them, mean of the passing trials of {} rounds with one trial of each target in drawn order; in brackets the least and the greatest.",
            super::cpu_cost(unit),
            super::holder(unit),
            super::load(load, unit),
            ranking.rounds
        ),
        None => "There was no load that every target carries, so no cost is compared.".to_owned(),
    });
    told.push("Lines of code: of the target's own source, neither blank nor comment, tests left out. Tiers: `framework` as its community would ship it, by the framework's public interface, `idiomatic` as a good engineer of that language would ship it, `tuned` around the framework where that costs, `engine` with everything allowed, `infrastructure` a finished program that is only configured; compare within a tier.".to_owned());
    told
}
