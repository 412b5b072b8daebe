//! The posterior of the edge, by hand and by properties.

use super::*;
use crate::record::LoadClass;
use proptest::prelude::*;

/// The evidence at a load: passed, failed, short passed, short failed.
pub(crate) fn at(sessions: u32, counts: [u32; 4]) -> LoadEvidence {
    let [passed, failed, short_passed, short_failed] = counts;
    LoadEvidence {
        sessions,
        passed,
        failed,
        short_passed,
        short_failed,
        invalid: 0,
        class: LoadClass::Undecided,
    }
}

fn of(evidence: &[LoadEvidence]) -> EdgePosterior {
    EdgePosterior::of(evidence).expect("something passed")
}

#[test]
fn without_a_pass_there_is_no_posterior() {
    assert_eq!(EdgePosterior::of(&[]), None);
    assert_eq!(EdgePosterior::of(&[at(100, [0, 3, 0, 1])]), None);
}

#[test]
fn without_a_fail_there_is_no_upper_end() {
    let edge = of(&[at(100, [0, 0, 1, 0]), at(200, [2, 0, 0, 0])]).interval(0.95);
    assert_eq!(edge.high, None);
    assert!(
        edge.low <= 200.0 && edge.value <= 200.0 && edge.low > 100.0,
        "{edge:?}"
    );
}

#[test]
fn agreement_on_both_sides_bounds_the_edge() {
    let trials = [
        at(900, [4, 0, 1, 0]),
        at(1_000, [4, 0, 0, 0]),
        at(1_020, [0, 4, 0, 0]),
        at(1_100, [0, 2, 0, 1]),
    ];
    let edge = of(&trials).interval(0.95);
    let high = edge.high.expect("an upper end");
    assert!((980.0..1_010.0).contains(&edge.low), "{edge:?}");
    assert!((1_000.0..1_020.0).contains(&edge.value), "{edge:?}");
    assert!((1_010.0..1_040.0).contains(&high), "{edge:?}");
}

#[test]
fn disagreement_widens_the_interval() {
    let sharp = [
        at(980, [3, 0, 0, 0]),
        at(1_000, [3, 0, 0, 0]),
        at(1_020, [0, 3, 0, 0]),
        at(1_040, [0, 3, 0, 0]),
    ];
    let soft = [
        at(980, [2, 1, 0, 0]),
        at(1_000, [1, 2, 0, 0]),
        at(1_020, [2, 1, 0, 0]),
        at(1_040, [1, 2, 0, 0]),
    ];
    let width = |trials: &[LoadEvidence]| of(trials).quantile(0.975) / of(trials).quantile(0.025);
    assert!(width(&soft) > 1.5 * (width(&sharp) - 1.0) + 1.0);
}

#[test]
fn one_false_fail_far_below_moves_little() {
    let good = [
        at(500, [1, 0, 0, 0]),
        at(1_000, [3, 0, 0, 0]),
        at(1_050, [0, 3, 0, 0]),
    ];
    let lied = [
        at(500, [1, 1, 0, 0]),
        at(1_000, [3, 0, 0, 0]),
        at(1_050, [0, 3, 0, 0]),
    ];
    let (good, lied) = (of(&good).quantile(0.5), of(&lied).quantile(0.5));
    assert!((lied / good - 1.0).abs() < 0.01, "{good} {lied}");
}

#[test]
fn a_short_trial_says_less_than_a_full_one() {
    let by_full = [at(900, [1, 0, 0, 0]), at(1_000, [0, 2, 0, 0])];
    let by_short = [at(900, [1, 0, 0, 0]), at(1_000, [0, 0, 0, 2])];
    // After two short fails at a load, it is less likely that the edge lies below it than after two full ones.
    assert!(of(&by_short).below(1_000.0) < of(&by_full).below(1_000.0));
}

#[test]
fn fails_among_invalid_trials_count_for_nothing() {
    let mut survivor = at(1_000, [0, 1, 0, 0]);
    survivor.invalid = 2;
    let edge = of(&[at(900, [2, 0, 0, 0]), survivor]).interval(0.95);
    assert_eq!(edge.high, None);
}

#[test]
fn counts_of_one_load_in_two_pieces_say_the_same() {
    let whole = of(&[at(900, [3, 1, 0, 0]), at(1_000, [0, 2, 0, 0])]);
    let pieces = of(&[
        at(900, [1, 1, 0, 0]),
        at(900, [2, 0, 0, 0]),
        at(1_000, [0, 2, 0, 0]),
    ]);
    let (whole, pieces) = (whole.below(900.0), pieces.below(900.0));
    assert!((whole - pieces).abs() < 1e-9, "{whole} {pieces}");
}

#[test]
fn hundreds_of_trials_do_not_underflow() {
    let edge = of(&[at(1_000, [900, 100, 0, 0]), at(1_100, [100, 900, 0, 0])]).interval(0.95);
    assert!(
        edge.low > 1_000.0 && edge.high.unwrap() < 1_100.0,
        "{edge:?}"
    );
}

fn trials() -> impl Strategy<Value = Vec<LoadEvidence>> {
    let counts = [0_u32..4, 0_u32..4, 0_u32..3, 0_u32..3];
    prop::collection::vec((1_u32..50_000, counts), 1..12)
        .prop_map(|loads| loads.into_iter().map(|(load, c)| at(load, c)).collect())
}

proptest! {
    #[test]
    fn order_does_not_matter(trials in trials()) {
        let mut reversed = trials.clone();
        reversed.reverse();
        // Equal loads may come in either order, which changes only rounding.
        match (EdgePosterior::of(&trials), EdgePosterior::of(&reversed)) {
            (Some(a), Some(b)) => for q in [0.025, 0.5, 0.975] {
                prop_assert!((a.quantile(q) / b.quantile(q) - 1.0).abs() < 1e-6);
            },
            (a, b) => prop_assert!(a.is_none() && b.is_none()),
        }
    }

    #[test]
    fn quantiles_ascend_and_agree_with_below(trials in trials(), q in 0.001..0.999_f64) {
        if let Some(posterior) = EdgePosterior::of(&trials) {
            let load = posterior.quantile(q);
            prop_assert!(load.is_finite() && load > 0.0);
            prop_assert!(posterior.quantile(q / 2.0) <= load);
            prop_assert!((posterior.below(load) - q).abs() < 1e-6);
            let edge = posterior.interval(0.95);
            prop_assert!(edge.low <= edge.value);
            prop_assert!(edge.high.is_none_or(|high| edge.value <= high));
        }
    }

    #[test]
    fn passes_move_the_edge_up_and_fails_down(trials in trials(), which in any::<prop::sample::Index>(), passes in any::<bool>()) {
        let mut more = trials.clone();
        let load = which.get(&trials).sessions;
        for evidence in more.iter_mut().filter(|e| e.sessions == load) {
            let count = if passes { &mut evidence.passed } else { &mut evidence.failed };
            *count += 1;
        }
        // Both use the same grid, so that only the trial differs.
        let before = EdgePosterior::of(&trials).filter(|_| trials.iter().all(|e| e.passed + e.failed > 0));
        if let (Some(before), Some(after)) = (before, EdgePosterior::of(&more)) {
            for at in trials.iter().map(|e| e.sessions) {
                let (before, after) = (before.below(at.into()), after.below(at.into()));
                let (lower, upper) = if passes { (after, before) } else { (before, after) };
                let slack = if at == load { AT_THE_LOAD } else { ELSEWHERE };
                prop_assert!(lower <= upper + slack, "{at}: {before} {after}");
            }
        }
    }
}

/// At the load of the trial itself the direction holds, except for what the trial says about the softness of the edge.
const AT_THE_LOAD: f64 = 0.02;
/// A pass can make a disturbance more likely elsewhere, and so move the far tail slightly against its own direction.
const ELSEWHERE: f64 = 0.3;
