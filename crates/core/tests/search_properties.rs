//! What must hold of the search on any server, exact or noisy, measurable or not.

mod synthetic_server;

use plimsoll_core::search::{Ended, Outcome, Search, Settings, Step, TrialVerdict};
use proptest::prelude::*;
use synthetic_server::{SyntheticServer, run, uniform};

/// Never reached by what these tests search, so a search that does not end by itself shows.
const ENDLESS: u32 = 2_000;

fn settings() -> impl Strategy<Value = Settings> {
    (
        1_u32..200,
        200_u32..100_000,
        1_u32..100_000,
        0.005..0.2_f64,
        1_u32..6,
        any::<u64>(),
    )
        .prop_map(
            |(min, max, start, relative_width, repeats, seed)| Settings {
                start,
                min,
                max,
                relative_width,
                repeats,
                max_trials: ENDLESS,
                seed,
            },
        )
}

fn search(settings: &Settings, server: impl FnMut(u32, u32) -> TrialVerdict) -> (Outcome, u32) {
    run(
        &mut Search::new(*settings).expect("the settings make sense"),
        server,
    )
}

fn exact(edge: u32) -> impl Fn(u32, u32) -> TrialVerdict {
    move |load, _| {
        if load <= edge {
            TrialVerdict::Pass
        } else {
            TrialVerdict::Fail
        }
    }
}

/// Probes over the whole range, halvings down to the width, and both sides confirmed; doubled for an uneven split.
fn most_trials(settings: &Settings) -> f64 {
    let range = f64::from(settings.max) / f64::from(settings.min);
    range.ln() / 1.8_f64.ln()
        + 2.0
            * (2.0_f64.ln() / settings.relative_width.ln_1p())
                .log2()
                .max(1.0)
        + f64::from(settings.repeats)
        + 4.0
}

/// Holds of every outcome whatever the server did.
fn is_consistent(outcome: &Outcome) -> Result<(), TestCaseError> {
    let passing = |load: u32| {
        let (pass, fail, _) = outcome.trials_at[&load];
        pass > 0 && pass * 3 >= (pass + fail) * 2
    };
    if let Some(load) = outcome.confirmed {
        prop_assert!(passing(load), "{outcome:?}");
    }
    if let Some(load) = outcome.first_fail {
        let (pass, fail, _) = outcome.trials_at[&load];
        prop_assert!(fail > 0 && fail * 3 >= (pass + fail) * 2, "{outcome:?}");
        prop_assert!(
            outcome.confirmed.is_none_or(|confirmed| confirmed < load),
            "{outcome:?}"
        );
    }
    for load in &outcome.borderline {
        prop_assert!(
            !passing(*load) && outcome.trials_at[load].0 > 0,
            "{outcome:?}"
        );
    }
    prop_assert_eq!(
        outcome.lower_bound_only,
        outcome.confirmed.is_some() && outcome.first_fail.is_none()
    );
    prop_assert!(outcome.conclusion.ends_with('.'));
    Ok(())
}

proptest! {
    #[test]
    fn an_exact_edge_lies_in_the_bracket(settings in settings(), place in 0.0..=1.0_f64) {
        // Anywhere in the range, on a logarithmic scale, or just outside it.
        let (min, max) = (f64::from(settings.min), f64::from(settings.max));
        let edge = ((min - 1.0).max(0.5) * (max * 2.0 / min).powf(place)) as u32;
        let (outcome, trials) = search(&settings, exact(edge));
        is_consistent(&outcome)?;
        prop_assert!(outcome.borderline.is_empty());
        prop_assert!(f64::from(trials) <= most_trials(&settings), "{trials} trials: {outcome:?}");
        if edge < settings.min {
            prop_assert_eq!((outcome.confirmed, outcome.first_fail), (None, Some(settings.min)));
            prop_assert_eq!(outcome.ended, Ended::AtMinimum);
        } else if edge >= settings.max {
            prop_assert_eq!((outcome.confirmed, outcome.first_fail), (Some(settings.max), None));
            prop_assert_eq!(outcome.ended, Ended::AtMaximum);
        } else {
            let (low, high) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
            prop_assert!(low <= edge && edge < high);
            prop_assert!(high - low == 1 || f64::from(high) / f64::from(low) - 1.0 <= settings.relative_width + 1e-9);
            let needed = settings.repeats / 2 + 1;
            prop_assert_eq!((outcome.trials_at[&low], outcome.trials_at[&high]), ((needed, 0, 0), (0, needed, 0)));
            prop_assert_eq!(outcome.ended, Ended::Narrow);
        }
    }

    #[test]
    fn a_single_false_verdict_anywhere_moves_nothing(edge in 300_u32..5_000, flipped in 0_u32..20, seed in any::<u64>()) {
        let settings = Settings { start: 100, min: 10, max: 20_000, relative_width: 0.05, repeats: 3, max_trials: ENDLESS, seed };
        let server = exact(edge);
        let (outcome, _) = search(&settings, |load, trial| match (server(load, trial), trial == flipped) {
            (TrialVerdict::Pass, true) => TrialVerdict::Fail,
            (TrialVerdict::Fail, true) => TrialVerdict::Pass,
            (verdict, _) => verdict,
        });
        is_consistent(&outcome)?;
        let (low, high) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
        prop_assert!(low <= edge && edge < high, "{outcome:?}");
        prop_assert!(f64::from(high) / f64::from(low) <= 1.05 + 1e-9, "{outcome:?}");
    }

    #[test]
    fn it_ends_on_any_noise(settings in settings(), edge in 1.0..100_000_f64, noise in 0.0..2.0_f64, false_fails in 0.0..0.5_f64, seed in any::<u64>()) {
        let server = SyntheticServer { edge, noise, false_fails, seed };
        let (outcome, trials) = search(&settings, |load, trial| server.verdict(load, trial));
        is_consistent(&outcome)?;
        prop_assert!(trials < ENDLESS, "{trials} trials: {outcome:?}");
    }

    #[test]
    fn it_ends_on_arbitrary_verdicts(settings in settings(), seed in any::<u64>(), shares in (0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64)) {
        let (outcome, trials) = search(&settings, |_, trial| {
            let draw = uniform(seed, trial) * (shares.0 + shares.1 + shares.2 + 0.1);
            if draw < shares.0 {
                TrialVerdict::Pass
            } else if draw < shares.0 + shares.1 {
                TrialVerdict::Invalid { client_ran_out: uniform(!seed, trial) < 0.5 }
            } else {
                TrialVerdict::Fail
            }
        });
        is_consistent(&outcome)?;
        prop_assert!(trials < ENDLESS, "{trials} trials: {outcome:?}");
    }

    #[test]
    fn any_budget_is_kept(settings in settings(), edge in 1.0..100_000_f64, max_trials in 1_u32..30, seed in any::<u64>()) {
        let settings = Settings { max_trials, ..settings };
        let server = SyntheticServer { edge, noise: 0.05, false_fails: 0.05, seed };
        let mut search = Search::new(settings).unwrap();
        for trial in 0.. {
            let left = search.remaining_trials_estimate();
            prop_assert!(trial + left <= max_trials);
            match search.next() {
                Step::Done(outcome) => {
                    is_consistent(&outcome)?;
                    prop_assert_eq!(left, 0);
                    break;
                }
                Step::Trial { load, .. } => {
                    prop_assert!(left >= 1);
                    prop_assert!((settings.min..=settings.max).contains(&load));
                    search.record(load, server.verdict(load, trial));
                }
            }
        }
    }

    #[test]
    fn where_the_client_runs_out_nothing_above_is_claimed(settings in settings(), reach in 1_u32..100_000, edge in 1_u32..100_000) {
        let (outcome, trials) = search(&settings, |load, trial| {
            if load > reach { TrialVerdict::Invalid { client_ran_out: true } } else { exact(edge)(load, trial) }
        });
        is_consistent(&outcome)?;
        prop_assert!(f64::from(trials) <= 3.0 * most_trials(&settings), "{trials} trials: {outcome:?}");
        prop_assert!(outcome.first_fail.is_none_or(|load| load <= reach && load > edge));
        prop_assert!(outcome.confirmed.is_none_or(|load| load <= reach && load <= edge));
        if edge >= reach && reach >= settings.min && reach < settings.max {
            // Everything within reach passes, and the search comes as near to the reach as to an edge.
            prop_assert!(outcome.lower_bound_only, "{outcome:?}");
            prop_assert_eq!(outcome.ended, Ended::OutOfReach);
            let low = outcome.confirmed.unwrap();
            prop_assert!(f64::from(reach) <= f64::from(low) * (1.0 + settings.relative_width) + 1.0, "{outcome:?}");
        }
    }

    #[test]
    fn every_second_trial_invalid_costs_trials_but_not_the_answer(settings in settings(), edge in 1_u32..100_000, client_ran_out in any::<bool>()) {
        let (undisturbed, trials) = search(&settings, exact(edge));
        let (outcome, disturbed_trials) = search(&settings, |load, trial| {
            if trial % 2 == 0 { TrialVerdict::Invalid { client_ran_out } } else { exact(edge)(load, trial) }
        });
        prop_assert_eq!((outcome.confirmed, outcome.first_fail), (undisturbed.confirmed, undisturbed.first_fail));
        prop_assert_eq!(disturbed_trials, 2 * trials);
    }
}

/// How often, of 400 seeds, `confirmed` is within `share` of the edge.
fn hits(noise: f64, false_fails: f64, share: f64) -> usize {
    let settings = Settings {
        start: 100,
        min: 1,
        max: 100_000,
        relative_width: 0.05,
        repeats: 3,
        max_trials: 60,
        seed: 0,
    };
    let near = |seed: u64| {
        let edge = 200.0 * 40_f64.powf(uniform(seed, u32::MAX));
        let server = SyntheticServer {
            edge,
            noise,
            false_fails,
            seed,
        };
        let settings = Settings { seed, ..settings };
        let (outcome, _) = search(&settings, |load, trial| server.verdict(load, trial));
        outcome
            .confirmed
            .is_some_and(|load| (f64::from(load) / edge - 1.0).abs() <= share)
    };
    (0..400).filter(|seed| near(*seed)).count()
}

#[test]
fn a_noisy_edge_is_found_for_most_seeds() {
    let (sharp, soft, disturbed) = (
        hits(0.0, 0.0, 0.05),
        hits(0.01, 0.0, 0.06),
        hits(0.01, 0.05, 0.06),
    );
    assert_eq!(sharp, 400);
    assert!(soft >= 380, "{soft} of 400");
    assert!(disturbed >= 360, "{disturbed} of 400");
}
