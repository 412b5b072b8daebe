//! Which side carries a load that the other does not.
//!
//! A pair of valid trials in which exactly one side carried the load counts for that side. If the sides are equal, a
//! pair is as likely to count for one as for the other. So among `n` such pairs, the number that count for A is
//! binomial with `p = 1/2`. The test is the exact two-sided sign test (W. J. Conover, *Practical Nonparametric
//! Statistics*, 3rd ed., 1999, section 3.4). For paired outcomes of two kinds it is the exact form of Q. McNemar's test
//! (*Psychometrika* 12, 1947, pp. 153–157). Pairs in which both or neither carried the load say nothing about which
//! side is better.
//!
//! The second trial of a pair may carry less. Each side is second equally often ([`super::b_goes_first`]), which pulls
//! the two numbers together. So the test errs towards showing nothing.

use crate::record::{Carried, Conclusion, Pair, Verdict};

/// What pairs of trials say about which side carries their load. The sign test is compared with `1 − confidence`. All
/// pairs are at the load of the first one.
///
/// `None` without a pair of valid trials.
#[must_use]
pub fn carried(pairs: &[Pair], confidence: f64) -> Option<Carried> {
    let mut carried = Carried {
        sessions: pairs.first()?.sessions,
        both: 0,
        only_a: 0,
        only_b: 0,
        neither: 0,
        p_value: 1.0,
        shows: Conclusion::NoDifferenceShown,
    };
    for pair in pairs {
        let (Some(a), Some(b)) = (pair.a_verdict, pair.b_verdict) else {
            continue;
        };
        *match (a, b) {
            (Verdict::Invalid, _) | (_, Verdict::Invalid) => continue,
            (Verdict::Pass, Verdict::Pass) => &mut carried.both,
            (Verdict::Pass, Verdict::Fail) => &mut carried.only_a,
            (Verdict::Fail, Verdict::Pass) => &mut carried.only_b,
            (Verdict::Fail, Verdict::Fail) => &mut carried.neither,
        } += 1;
    }
    let (only_a, only_b) = (carried.only_a, carried.only_b);
    if carried.both + only_a + only_b + carried.neither == 0 {
        return None;
    }
    carried.p_value = sign_test_p(only_a, only_b);
    if carried.p_value <= 1.0 - confidence {
        carried.shows = if only_a > only_b {
            Conclusion::Worse
        } else {
            Conclusion::Better
        };
    }
    Some(carried)
}

/// The exact two-sided sign test: the probability that `for_a + for_b` fair coins split at least as unevenly as this,
/// `min(1, 2 · Σ C(n, i) / 2ⁿ)` for `i` from 0 to the lesser of the two.
#[must_use]
pub fn sign_test_p(for_a: u32, for_b: u32) -> f64 {
    let n = for_a + for_b;
    // By logarithms, because 2⁻ⁿ itself underflows at n = 1,075.
    let mut ln_term = -f64::from(n) * std::f64::consts::LN_2;
    let mut tail = ln_term.exp();
    for i in 1..=for_a.min(for_b) {
        ln_term += (f64::from(n - i + 1) / f64::from(i)).ln();
        tail += ln_term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// The fewest pairs that show a difference if all of them count for the same side: the least `n` with
/// `2 · 2⁻ⁿ ≤ 1 − confidence`. That is 6 at 0.95, and 7 at 0.975 and at 0.983, the confidence of each of two and of
/// each of three statements at 0.95.
///
/// Fewer pairs cannot show anything, whatever their outcome.
#[must_use]
pub fn unanimous_pairs_needed(confidence: f64) -> u32 {
    // 2⁻¹⁰⁰⁰ is less than any error that a float near 1 can express.
    (1..1_000)
        .find(|n| sign_test_p(*n, 0) <= 1.0 - confidence)
        .unwrap_or(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::confidence_of_each;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_sign_test_by_hand() {
        for (for_a, for_b, p) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (4, 4, 1.0),
            (6, 0, 2.0 / 64.0),
            (7, 0, 2.0 / 128.0),
            (8, 0, 2.0 / 256.0),
            // 2 · (1 + 8) / 256.
            (7, 1, 18.0 / 256.0),
            // 2 · (1 + 10 + 45) / 1024.
            (2, 8, 112.0 / 1024.0),
        ] {
            assert!(near(sign_test_p(for_a, for_b), p), "{for_a} {for_b}");
            assert!(near(sign_test_p(for_b, for_a), p), "{for_b} {for_a}");
        }
        // Neither overflows nor underflows with many pairs.
        assert!(near(sign_test_p(1_000, 1_000), 1.0));
        assert!((sign_test_p(1_050, 950) - 0.026_9).abs() < 0.001);
    }

    #[test]
    fn how_many_pairs_it_takes() {
        for (confidence, statements, pairs) in [
            (0.95, 1, 6),
            (0.95, 2, 7),
            (0.95, 3, 7),
            (0.9, 1, 5),
            (0.99, 1, 8),
        ] {
            let each = confidence_of_each(confidence, statements);
            assert_eq!(unanimous_pairs_needed(each), pairs, "{each}");
        }
        assert_eq!(unanimous_pairs_needed(1.0), 1_000);
    }

    fn pair(a: Option<Verdict>, b: Option<Verdict>) -> Pair {
        Pair {
            sessions: 400,
            b_first: false,
            a_file: String::new(),
            b_file: String::new(),
            a_cpu_us_per_session_second: None,
            b_cpu_us_per_session_second: None,
            a_core_us_per_session_second: None,
            b_core_us_per_session_second: None,
            a_verdict: a,
            b_verdict: b,
            left_out: Some("its costs are no costs of carrying it".to_owned()),
        }
    }

    #[test]
    fn only_pairs_of_two_valid_trials_count() {
        use Verdict::{Fail, Invalid, Pass};
        let mut pairs = vec![
            pair(Some(Invalid), Some(Pass)),
            pair(Some(Fail), Some(Invalid)),
            pair(Some(Pass), None),
            pair(None, None),
        ];
        assert_eq!(carried(&pairs, 0.95), None);
        assert_eq!(carried(&[], 0.95), None);
        pairs.extend([
            pair(Some(Pass), Some(Pass)),
            pair(Some(Fail), Some(Fail)),
            pair(Some(Fail), Some(Fail)),
            pair(Some(Fail), Some(Pass)),
        ]);
        pairs.extend(vec![pair(Some(Pass), Some(Fail)); 5]);
        let found = carried(&pairs, 0.95).expect("valid pairs");
        let counts = (found.both, found.only_a, found.only_b, found.neither);
        assert_eq!((found.sessions, counts), (400, (1, 5, 1, 2)));
        assert!(near(found.p_value, 14.0 / 64.0));
        assert_eq!(found.shows, Conclusion::NoDifferenceShown);
    }

    #[test]
    fn it_tells_which_way_round() {
        use Verdict::{Fail, Pass};
        let shows = |a, b, n: usize, confidence| {
            carried(&vec![pair(Some(a), Some(b)); n], confidence).map(|carried| carried.shows)
        };
        assert_eq!(shows(Pass, Fail, 6, 0.95), Some(Conclusion::Worse));
        assert_eq!(shows(Fail, Pass, 6, 0.95), Some(Conclusion::Better));
        assert_eq!(
            shows(Pass, Fail, 6, 0.975),
            Some(Conclusion::NoDifferenceShown)
        );
        assert_eq!(shows(Pass, Fail, 7, 0.975), Some(Conclusion::Worse));
        for same in [Pass, Fail] {
            assert_eq!(
                shows(same, same, 100, 0.95),
                Some(Conclusion::NoDifferenceShown)
            );
        }
    }
}
