//! What the ratios come to.

use crate::record::Conclusion;
use crate::stats::Ratio;

/// What the ratios come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// In a word.
    pub conclusion: Conclusion,
    /// In a sentence, with the numbers.
    pub explanation: String,
}

/// What one ratio shows by itself.
fn shown(ratio: Ratio, less_is_better: bool) -> Conclusion {
    match (ratio.high < 1.0, ratio.low > 1.0) {
        (true, _) if less_is_better => Conclusion::Better,
        (true, _) => Conclusion::Worse,
        (_, true) if less_is_better => Conclusion::Worse,
        (_, true) => Conclusion::Better,
        _ => Conclusion::NoDifferenceShown,
    }
}

/// What the two ratios `b / a` come to. A difference is shown by an interval that does not contain 1; the intervals must hold
/// together with the confidence asked for ([`super::confidence_of_each`]).
///
/// | cost shows | load line shows | conclusion |
/// |---|---|---|
/// | nothing | nothing | no difference shown |
/// | the one | the same, or nothing | that one |
/// | nothing | the one | that one |
/// | the one | the other | what the **load line** shows: it is the answer that Plimsoll is asked for; what a session costs is one of the things that it comes from |
#[must_use]
pub fn conclude(a: &str, b: &str, cost: Option<Ratio>, load_line: Option<Ratio>) -> Judgement {
    let none = Conclusion::NoDifferenceShown;
    let by_cost = cost.map_or(none, |ratio| shown(ratio, true));
    let by_load_line = load_line.map_or(none, |ratio| shown(ratio, false));
    let contradict = by_cost != none && by_load_line != none && by_cost != by_load_line;
    let conclusion = if by_load_line == none {
        by_cost
    } else {
        by_load_line
    };
    // A target may be compared with itself.
    let (a, b) = if a == b { ("A", "B") } else { (a, b) };
    let numbers = |ratio: Ratio| format!("({:.3} to {:.3})", ratio.low, ratio.high);
    let mut found = Vec::new();
    if let Some(ratio) = cost {
        found.push(format!(
            "{b} costs {:.3} times the CPU of {a} {}",
            ratio.value,
            numbers(ratio)
        ));
    }
    if let Some(ratio) = load_line {
        found.push(format!(
            "{b} carries {:.3} times the load of {a} {}",
            ratio.value,
            numbers(ratio)
        ));
    }
    let explanation = match found.is_empty() {
        true => format!("neither the costs nor the load lines of {a} and {b} could be compared"),
        false if contradict => format!(
            "{}; the two point in different directions, and the load line decides: {}",
            found.join(", and "),
            conclusion.word()
        ),
        false => format!("{}: {}", found.join(", and "), conclusion.word()),
    };
    Judgement {
        conclusion,
        explanation,
    }
}
