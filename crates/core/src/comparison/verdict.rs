//! The conclusion from all findings.

use crate::record::{Carried, Conclusion, CostAccount, LoadUnit};
use crate::stats::Ratio;

/// What was found, each finding with its share of the confidence ([`super::confidence_of_each`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Findings {
    /// Ratio of CPU time per session-second, `b / a`.
    pub cost: Option<Ratio>,
    /// The account of CPU time that `cost` uses.
    pub account: CostAccount,
    /// Ratio of the load lines, `b / a`.
    pub load_line: Option<Ratio>,
    /// Which side carries the load of the pairs.
    pub carried: Option<Carried>,
    /// What that load counts.
    pub load_unit: LoadUnit,
}

/// The conclusion from the findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The conclusion in a word.
    pub conclusion: Conclusion,
    /// The explanation in a sentence, with the numbers.
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

/// Draws the conclusion from the findings. A ratio shows a difference if its interval does not contain 1. Carrying
/// shows one if the sign test does ([`super::carried`]). Together they must hold with the requested confidence
/// ([`super::confidence_of_each`]).
///
/// | carrying shows | load line shows | cost shows | conclusion |
/// |---|---|---|---|
/// | nothing | nothing | nothing | no difference shown |
/// | X or nothing | X or nothing | X or nothing | X |
/// | X | anything | anything | what **carrying** shows: at the same load, side by side, one side carried it and the other did not |
/// | nothing | X | the opposite of X | what the **load line** shows: it is the answer that Plimsoll is asked for, and the cost of a session is one of its causes |
#[must_use]
pub fn conclude(a: &str, b: &str, findings: &Findings) -> Judgement {
    let none = Conclusion::NoDifferenceShown;
    let by_cost = findings.cost.map_or(none, |ratio| shown(ratio, true));
    let by_load_line = findings.load_line.map_or(none, |ratio| shown(ratio, false));
    let by_carrying = findings.carried.map_or(none, |carried| carried.shows);
    // In order of precedence.
    let spoken: Vec<(&str, Conclusion)> = [
        ("who carries the load", by_carrying),
        ("the load line", by_load_line),
        ("the cost", by_cost),
    ]
    .into_iter()
    .filter(|(_, shows)| *shows != none)
    .collect();
    let conclusion = spoken.first().map_or(none, |(_, shows)| *shows);
    let contradict = spoken.iter().any(|(_, shows)| *shows != conclusion);
    // A target may be compared with itself.
    let (a, b) = if a == b { ("A", "B") } else { (a, b) };
    let found = found(a, b, findings);
    let word = conclusion.word();
    let explanation = match spoken.first() {
        _ if found.is_empty() => {
            format!("neither the costs nor the load lines of {a} and {b} could be compared")
        }
        Some((decides, _)) if contradict => format!(
            "{}; these point in different directions, and {decides} decides: {word}",
            found.join(", and ")
        ),
        _ => format!("{}: {word}", found.join(", and ")),
    };
    Judgement {
        conclusion,
        explanation,
    }
}

/// Each finding in words. Carrying is included only if a pair says something about the two sides: that both carry the
/// load goes without saying.
fn found(a: &str, b: &str, findings: &Findings) -> Vec<String> {
    let numbers = |ratio: Ratio| format!("({:.3} to {:.3})", ratio.low, ratio.high);
    let mut found = Vec::new();
    if let Some(carried) = findings.carried {
        let valid = carried.both + carried.only_a + carried.only_b + carried.neither;
        let (most, other, times, vice_versa) = if carried.only_a >= carried.only_b {
            (a, b, carried.only_a, carried.only_b)
        } else {
            (b, a, carried.only_b, carried.only_a)
        };
        if times > 0 {
            found.push(format!(
                "{most} carried {} {} and {other} did not in {times} of {valid} pairs (the other way round in {vice_versa}; sign test, p = {})",
                carried.sessions,
                findings.load_unit.name(),
                p_value(carried.p_value)
            ));
        }
    }
    if let Some(ratio) = findings.cost {
        let cpu = match findings.account {
            CostAccount::Charged => "CPU",
            CostAccount::Core => "core time",
        };
        found.push(format!(
            "{b} costs {:.3} times the {cpu} of {a} {}",
            ratio.value,
            numbers(ratio)
        ));
    }
    if let Some(ratio) = findings.load_line {
        found.push(format!(
            "{b} carries {:.3} times the load of {a} {}",
            ratio.value,
            numbers(ratio)
        ));
    }
    found
}

/// A probability with as many decimals as it needs: `0.0078`, `0.29`, `1`.
fn p_value(p: f64) -> String {
    match p {
        p if p >= 1.0 => "1".to_owned(),
        p if p >= 0.1 => format!("{p:.2}"),
        p if p >= 0.000_1 => format!("{p:.4}"),
        _ => "under 0.0001".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::sign_test_p;

    fn ratio(value: f64, low: f64, high: f64) -> Option<Ratio> {
        Some(Ratio { value, low, high })
    }

    fn carried(only_a: u32, only_b: u32, shows: Conclusion) -> Option<Carried> {
        Some(Carried {
            sessions: 400,
            both: 0,
            only_a,
            only_b,
            neither: 1,
            p_value: sign_test_p(only_a, only_b),
            shows,
        })
    }

    fn judged(
        cost: Option<Ratio>,
        load_line: Option<Ratio>,
        carried: Option<Carried>,
    ) -> Judgement {
        conclude(
            "a",
            "b",
            &Findings {
                cost,
                load_line,
                carried,
                ..Findings::default()
            },
        )
    }

    #[test]
    fn the_rule_case_by_case() {
        use Conclusion::{Better, NoDifferenceShown, Worse};
        let (more, less, same) = (
            ratio(1.05, 1.01, 1.1),
            ratio(0.95, 0.9, 0.99),
            ratio(1.01, 0.98, 1.03),
        );
        for (cost, load_line, expected) in [
            (None, None, NoDifferenceShown),
            (same, same, NoDifferenceShown),
            (more, None, Worse),
            (less, None, Better),
            (None, more, Better),
            (None, less, Worse),
            (more, same, Worse),
            (less, same, Better),
            (same, more, Better),
            (same, less, Worse),
            (more, less, Worse),
            (less, more, Better),
            // These contradict each other: the load line decides.
            (more, more, Better),
            (less, less, Worse),
        ] {
            let contradict = cost == load_line && cost.is_some() && cost != same;
            for silent in [None, carried(3, 2, NoDifferenceShown)] {
                let judgement = judged(cost, load_line, silent);
                assert_eq!(judgement.conclusion, expected, "{cost:?} {load_line:?}");
                assert_eq!(
                    judgement.explanation.contains("the load line decides"),
                    contradict
                );
            }
            // Carrying decides, whatever the others show.
            for (only_a, only_b, shows) in [(7, 0, Worse), (0, 7, Better)] {
                let judgement = judged(cost, load_line, carried(only_a, only_b, shows));
                assert_eq!(judgement.conclusion, shows, "{cost:?} {load_line:?}");
                let others = [
                    judged(cost, None, None).conclusion,
                    judged(None, load_line, None).conclusion,
                ];
                let contradict = others
                    .iter()
                    .any(|other| *other != NoDifferenceShown && *other != shows);
                assert_eq!(
                    judgement
                        .explanation
                        .contains("who carries the load decides"),
                    contradict,
                    "{}",
                    judgement.explanation
                );
            }
        }
    }

    #[test]
    fn the_explanation_has_the_numbers() {
        let judgement = judged(ratio(1.049, 1.031, 1.067), None, None);
        assert_eq!(
            judgement.explanation,
            "b costs 1.049 times the CPU of a (1.031 to 1.067): worse"
        );
        let findings = Findings {
            cost: ratio(1.0, 0.99, 1.01),
            load_line: ratio(1.0, 0.97, 1.03),
            carried: carried(0, 0, Conclusion::NoDifferenceShown),
            ..Findings::default()
        };
        assert_eq!(
            conclude("x", "x", &findings).explanation,
            "B costs 1.000 times the CPU of A (0.990 to 1.010), and B carries 1.000 times the load of A (0.970 to 1.030): no difference shown"
        );
        assert_eq!(
            judged(None, None, carried(7, 0, Conclusion::Worse)).explanation,
            "a carried 400 sessions and b did not in 7 of 8 pairs (the other way round in 0; sign test, p = 0.0156): worse"
        );
        let of_connections = Findings {
            carried: carried(7, 0, Conclusion::Worse),
            load_unit: LoadUnit::CONNECTIONS_PER_SECOND,
            ..Findings::default()
        };
        let explanation = conclude("a", "b", &of_connections).explanation;
        assert!(explanation.starts_with("a carried 400 connections per second and b did not"));
        assert_eq!(
            judged(
                ratio(1.1, 1.05, 1.2),
                None,
                carried(1, 9, Conclusion::Better)
            )
            .explanation,
            "b carried 400 sessions and a did not in 9 of 11 pairs (the other way round in 1; sign test, p = 0.0215), and \
             b costs 1.100 times the CPU of a (1.050 to 1.200); these point in different directions, and who carries the load decides: better"
        );
    }
}
