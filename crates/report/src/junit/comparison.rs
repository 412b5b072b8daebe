//! A comparison as a suite: one case for the cost, one for the load line, and, if there are pairs, one for which target
//! carries their load.

use plimsoll_core::record::{Comparison, Conclusion};
use plimsoll_core::stats::Ratio;

use super::document::{Case, CaseResult, Reason, Suite};
use super::{class, known, load_unit};
use crate::facts;
use crate::words::comparison as say;

/// What a ratio says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaning {
    Better,
    Worse,
    Neither,
}

impl Leaning {
    /// The interval excludes 1, on the worse side or on the better side.
    fn of(ratio: Ratio, greater_is_worse: bool) -> Self {
        let (greater, less) = (ratio.low > 1.0, ratio.high < 1.0);
        match (greater, less) {
            (true, _) if greater_is_worse => Self::Worse,
            (_, true) if !greater_is_worse => Self::Worse,
            (false, false) => Self::Neither,
            _ => Self::Better,
        }
    }

    fn of_conclusion(shows: Conclusion) -> Self {
        match shows {
            Conclusion::Better => Self::Better,
            Conclusion::Worse => Self::Worse,
            Conclusion::NoDifferenceShown => Self::Neither,
        }
    }
}

pub(super) fn suite(comparison: &Comparison) -> Suite {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let cost = comparison.cost_ratio.map(|ratio| Leaning::of(ratio, true));
    let line = comparison
        .load_line_ratio
        .map(|ratio| Leaning::of(ratio, false));
    let carrying = comparison
        .carried
        .map(|carried| Leaning::of_conclusion(carried.shows));
    // As for the exit code: without a ratio, pairs that do not show who carries the load are no answer.
    let nothing =
        cost.is_none() && line.is_none() && carrying.is_none_or(|shows| shows == Leaning::Neither);
    let worse = [cost, line, carrying].contains(&Some(Leaning::Worse));
    // If no value alone shows it, the conclusion still stands: every case with a value fails.
    let fails = |leaning: Leaning| {
        comparison.conclusion == Conclusion::Worse && (leaning == Leaning::Worse || !worse)
    };
    let case = |name: &str, leaning: Option<Leaning>, text: String| Case {
        class: class("compare", &format!("{a} against {b}")),
        name: name.to_owned(),
        outcome: match leaning {
            _ if comparison.interrupted => {
                CaseResult::Error(reason("interrupted", "it was interrupted", comparison))
            }
            _ if nothing => {
                CaseResult::Error(reason("invalid", "nothing could be compared", comparison))
            }
            None => CaseResult::Skipped("no value".to_owned()),
            Some(leaning) if fails(leaning) => {
                CaseResult::Failed(reason("worse", &text, comparison))
            }
            Some(_) => CaseResult::Passed,
        },
    };
    let ratio = |what: &str, ratio: Option<Ratio>| {
        let ratio = ratio.as_ref().map(facts::ratio).unwrap_or_default();
        format!("{what}, b / a: {ratio}")
    };
    let mut cases = vec![
        case(
            "cost",
            cost,
            ratio(&say::cost(comparison), comparison.cost_ratio),
        ),
        case(
            "load line",
            line,
            ratio("load line", comparison.load_line_ratio),
        ),
    ];
    let carried = comparison.carried.as_ref();
    let in_words = carried.map(|carried| say::carried(carried, comparison.load_unit));
    cases.extend(in_words.map(|text| case("carrying", carrying, text)));
    Suite {
        name: format!("compare {a} {b}"),
        started_at: comparison.started_at.clone(),
        properties: properties(comparison),
        cases,
        output: vec![
            comparison.conclusion.word().to_owned(),
            comparison.explanation.clone(),
        ],
    }
}

fn reason(kind: &str, message: &str, comparison: &Comparison) -> Reason {
    Reason {
        lines: vec![comparison.explanation.clone()],
        ..Reason::new(kind, message)
    }
}

fn properties(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let (cost, line) = (comparison.cost_ratio, comparison.load_line_ratio);
    let mut properties = vec![
        ("a", comparison.a.name.clone()),
        ("b", comparison.b.name.clone()),
        ("conclusion", comparison.conclusion.word().to_owned()),
        ("pairs", comparison.pairs.len().to_string()),
        ("seed", comparison.seed.to_string()),
    ];
    properties.extend(load_unit(comparison.load_unit));
    properties.extend(known([
        ("cost_ratio", cost.map(|ratio| ratio.value)),
        ("cost_ratio_low", cost.map(|ratio| ratio.low)),
        ("cost_ratio_high", cost.map(|ratio| ratio.high)),
        ("load_line_ratio", line.map(|ratio| ratio.value)),
        ("load_line_ratio_low", line.map(|ratio| ratio.low)),
        ("load_line_ratio_high", line.map(|ratio| ratio.high)),
        ("confidence", Some(comparison.confidence)),
    ]));
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cost_is_worse_and_more_load_is_better() {
        let ratio = |low: f64, high: f64| Ratio {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        assert_eq!(Leaning::of(ratio(1.01, 1.09), true), Leaning::Worse);
        assert_eq!(Leaning::of(ratio(1.01, 1.09), false), Leaning::Better);
        assert_eq!(Leaning::of(ratio(0.91, 0.99), true), Leaning::Better);
        assert_eq!(Leaning::of(ratio(0.91, 0.99), false), Leaning::Worse);
        assert_eq!(Leaning::of(ratio(0.97, 1.02), true), Leaning::Neither);
        assert_eq!(Leaning::of(ratio(0.97, 1.02), false), Leaning::Neither);
    }
}
