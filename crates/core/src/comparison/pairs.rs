//! Everything that pairs of trials, and two edges, show together.

use super::cost::PAIRS_MIN;
use super::{
    Findings, carried, confidence_of_each, load_line_ratio, paired_cost_ratio,
    unanimous_pairs_needed,
};
use crate::record::{CostAccount, LoadUnit, Pair};
use crate::search::edge::EdgePosterior;

/// What pairs of trials at one load show, and the edges if both are bounded (`a`, then `b`). All of it holds together
/// with `confidence`.
///
/// There are up to three statements: the ratio of costs, the ratio of load lines, and which side carries the load of
/// the pairs. The error is divided among the statements that can be made at all. The cost needs three pairs that count.
/// Carrying needs [`unanimous_pairs_needed`] pairs in which exactly one side carried the load. How many pairs are of
/// which kind does not favour a side: given these numbers, two equal targets are as likely to have come out the other
/// way round. So each test keeps its level, and so does the sum. If both sides carry the load in all pairs, as they
/// should, the statement about carrying takes nothing from the confidence of the cost.
///
/// Pairs do not know what their load counts: the caller sets that.
#[must_use]
pub fn findings_of_pairs(
    pairs: &[Pair],
    edges: Option<&(EdgePosterior, EdgePosterior)>,
    confidence: f64,
    seed: u64,
) -> Findings {
    let (account, costs) = costs_that_count(pairs);
    let others = u32::from(costs.len() >= PAIRS_MIN) + u32::from(edges.is_some());
    let beside_carrying = confidence_of_each(confidence, others + 1);
    let speaks = carried(pairs, beside_carrying).filter(|carried| {
        carried.only_a + carried.only_b >= unanimous_pairs_needed(beside_carrying)
    });
    let each = match speaks {
        Some(_) => beside_carrying,
        None => confidence_of_each(confidence, others),
    };
    Findings {
        cost: paired_cost_ratio(&costs, each),
        account,
        load_line: edges
            .and_then(|(a, b)| load_line_ratio(|q| a.quantile(q), |q| b.quantile(q), each, seed)),
        // If carrying cannot make a statement, it shows nothing at this confidence either.
        carried: carried(pairs, beside_carrying),
        load_unit: LoadUnit::default(),
    }
}

/// The costs, by that account, of the pairs in which both sides carried the load and both costs are known.
#[must_use]
pub fn costs_of_pairs(pairs: &[Pair], account: CostAccount) -> Vec<(f64, f64)> {
    let counted = pairs.iter().filter(|pair| pair.left_out.is_none());
    counted.filter_map(|pair| pair.costs(account)).collect()
}

/// The same by the account to use: the core account if every such pair has it, because it leaves nothing out; otherwise
/// the charged account.
fn costs_that_count(pairs: &[Pair]) -> (CostAccount, Vec<(f64, f64)>) {
    let costs = |account| costs_of_pairs(pairs, account);
    let (charged, core) = (costs(CostAccount::Charged), costs(CostAccount::Core));
    if core.is_empty() || core.len() < charged.len() {
        (CostAccount::Charged, charged)
    } else {
        (CostAccount::Core, core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{b_goes_first, conclude};
    use crate::record::{Conclusion, Verdict};
    use crate::schedule::mix;

    /// Uniform between 0 and 1.
    fn even(seed: u64) -> f64 {
        (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Pairs in which each side passes with its given chance, and the second trial with `order` less. Costs have 2 % of
    /// uniform noise.
    fn pairs(seed: u64, n: u32, (a, b): (f64, f64), order: f64) -> Vec<Pair> {
        let one = |pair: u32| {
            let b_first = b_goes_first(pair, seed);
            let trial = |of_b: bool, chance: f64| {
                let drawn = mix(seed) ^ mix(u64::from(pair) * 2 + u64::from(of_b));
                let second = b_first != of_b;
                let chance = chance - if second { order } else { 0.0 };
                let verdict = if even(drawn) < chance {
                    Verdict::Pass
                } else {
                    Verdict::Fail
                };
                (verdict, 250.0 * (1.0 + 0.04 * (even(!drawn) - 0.5)))
            };
            let ((a_verdict, a_cost), (b_verdict, b_cost)) = (trial(false, a), trial(true, b));
            let both = (a_verdict, b_verdict) == (Verdict::Pass, Verdict::Pass);
            Pair {
                sessions: 400,
                b_first,
                a_file: String::new(),
                b_file: String::new(),
                a_cpu_us_per_session_second: Some(a_cost),
                b_cpu_us_per_session_second: Some(b_cost),
                a_core_us_per_session_second: None,
                b_core_us_per_session_second: None,
                a_verdict: Some(a_verdict),
                b_verdict: Some(b_verdict),
                left_out: (!both).then(|| "not carried".to_owned()),
            }
        };
        (0..n).map(one).collect()
    }

    /// The shares of 2,000 comparisons in which carrying shows a difference, `b` is better, and `b` is worse.
    fn alarms(n: u32, chances: (f64, f64), order: f64) -> (f64, f64, f64) {
        const CASES: u64 = 2_000;
        let (mut by_carrying, mut better, mut worse) = (0.0, 0.0, 0.0);
        for seed in 0..CASES {
            let findings = findings_of_pairs(&pairs(seed, n, chances, order), None, 0.95, seed);
            let shows = findings.carried.expect("valid pairs").shows;
            by_carrying += f64::from(u8::from(shows != Conclusion::NoDifferenceShown));
            let conclusion = conclude("a", "b", &findings).conclusion;
            better += f64::from(u8::from(conclusion == Conclusion::Better));
            worse += f64::from(u8::from(conclusion == Conclusion::Worse));
        }
        let share = |cases: f64| cases / CASES as f64;
        (share(by_carrying), share(better), share(worse))
    }

    /// Two equal targets at a load where each fails half the time. With 2,000 cases, one standard error is 0.5 %.
    #[test]
    fn at_the_edge_of_both_it_cries_wolf_less_than_once_in_twenty() {
        for n in [8, 16, 40] {
            for order in [0.0, 0.3] {
                let (by_carrying, better, worse) = alarms(n, (0.5, 0.5), order);
                assert!(by_carrying <= 0.04, "{n} pairs: {by_carrying}");
                assert!(better + worse <= 0.06, "{n} pairs: {better} {worse}");
            }
        }
        // The test above can fail: with many pairs, carrying uses up the error it is given.
        assert!(alarms(40, (0.5, 0.5), 0.0).0 > 0.005);
    }

    #[test]
    fn a_load_that_only_one_carries_is_seen_with_the_default_number_of_pairs() {
        assert_eq!(alarms(8, (1.0, 0.0), 0.0), (1.0, 0.0, 1.0));
        assert_eq!(alarms(8, (0.0, 1.0), 0.0), (1.0, 1.0, 0.0));
        // A passes 98 of 100 trials, B 2 of 100.
        let (_, better, worse) = alarms(8, (0.98, 0.02), 0.0);
        assert!(worse > 0.9 && better < 0.001, "{worse} {better}");
    }

    #[test]
    fn where_both_carry_the_load_the_cost_pays_nothing() {
        let pairs = pairs(1, 8, (1.0, 1.0), 0.0);
        let (_, costs) = costs_that_count(&pairs);
        let findings = findings_of_pairs(&pairs, None, 0.95, 1);
        assert_eq!(findings.cost, paired_cost_ratio(&costs, 0.95));
        assert_eq!(findings.carried.map(|carried| carried.both), Some(8));
    }

    #[test]
    fn the_cores_account_is_used_where_every_pair_that_counts_has_it() {
        let mut pairs = pairs(1, 4, (1.0, 1.0), 0.0);
        assert_eq!(costs_that_count(&pairs).0, CostAccount::Charged);
        for pair in &mut pairs {
            pair.a_core_us_per_session_second = pair.a_cpu_us_per_session_second;
            pair.b_core_us_per_session_second =
                pair.a_cpu_us_per_session_second.map(|cost| cost * 2.0);
        }
        let findings = findings_of_pairs(&pairs, None, 0.95, 1);
        assert_eq!(findings.account, CostAccount::Core);
        let ratio = findings.cost.expect("four pairs");
        assert!((ratio.value - 2.0).abs() < 1e-9, "{ratio:?}");
        let told = conclude("a", "b", &findings).explanation;
        assert!(told.contains("2.000 times the core time of a"), "{told}");
        // If one pair lacks it, all pairs use the other account: costs of different accounts are never compared.
        pairs[2].b_core_us_per_session_second = None;
        assert_eq!(costs_that_count(&pairs).0, CostAccount::Charged);
        // A pair that does not count decides nothing.
        pairs[2].left_out = Some("B did not carry this load".to_owned());
        assert_eq!(costs_that_count(&pairs).0, CostAccount::Core);
        assert_eq!(costs_that_count(&[]).1, []);
    }

    #[test]
    fn the_error_is_shared_when_both_can_speak() {
        let mut all = pairs(1, 4, (1.0, 1.0), 0.0);
        all.extend(pairs(2, 6, (1.0, 0.0), 0.0));
        // Six of six would be enough alone, but not next to a cost ratio. So carrying makes no statement, and the cost
        // gets the whole error.
        let findings = findings_of_pairs(&all, None, 0.95, 1);
        let shows = |findings: &Findings| findings.carried.map(|carried| carried.shows);
        assert_eq!(shows(&findings), Some(Conclusion::NoDifferenceShown));
        let (_, costs) = costs_that_count(&all);
        assert_eq!(findings.cost, paired_cost_ratio(&costs, 0.95));
        all.extend(pairs(3, 1, (1.0, 0.0), 0.0));
        let findings = findings_of_pairs(&all, None, 0.95, 1);
        assert_eq!(shows(&findings), Some(Conclusion::Worse));
        assert_eq!(findings.cost, paired_cost_ratio(&costs, 0.975));
    }
}
