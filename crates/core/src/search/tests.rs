//! Each rule of the search, on servers without chance.

use super::*;

mod invalid;

fn settings() -> Settings {
    Settings {
        start: 100,
        min: 1,
        max: 10_000,
        relative_width: 0.05,
        repeats: 3,
        max_trials: 60,
        seed: 1,
    }
}

fn search(settings: Settings) -> Search {
    Search::new(settings).expect("the settings make sense")
}

fn pass_if(passes: bool) -> TrialVerdict {
    if passes {
        TrialVerdict::Pass
    } else {
        TrialVerdict::Fail
    }
}

/// Runs a search against `server`, which is told the load and how many trials it has had before.
fn drive(
    search: &mut Search,
    mut server: impl FnMut(u32, u32) -> TrialVerdict,
) -> (Vec<(u32, Why)>, Outcome) {
    let mut steps = Vec::new();
    loop {
        match search.next() {
            Step::Done(outcome) => return (steps, outcome),
            Step::Trial { load, why } => {
                assert!(steps.len() < 1_000, "the search does not end: {steps:?}");
                let nth = steps.iter().filter(|(tried, _)| *tried == load).count();
                let verdict = server(load, u32::try_from(nth).expect("few trials"));
                steps.push((load, why));
                search.record(load, verdict);
            }
        }
    }
}

fn loads(steps: &[(u32, Why)], why: Why) -> Vec<u32> {
    let of_kind = steps.iter().filter(|step| step.1 == why);
    of_kind.map(|step| step.0).collect()
}

#[test]
fn settings_without_sense_are_named() {
    let refused = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        Search::new(settings).expect_err("no sense").to_string()
    };
    assert!(refused(|s| s.min = 0).contains("lowest load"));
    assert!(refused(|s| s.min = 20_000).contains("20000"));
    assert!(refused(|s| s.relative_width = f64::NAN).contains("width"));
    assert!(refused(|s| s.relative_width = 0.0).contains("width"));
    assert!(refused(|s| s.repeats = 0).contains("repeat"));
    assert!(refused(|s| s.max_trials = 0).contains("trial"));
}

#[test]
fn it_doubles_until_a_load_fails_then_narrows_and_confirms() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_eq!(loads(&steps, Why::Probe), [100, 200, 400, 800]);
    assert_eq!(loads(&steps, Why::Narrow), [600, 700, 740, 720]);
    let mut confirmed = loads(&steps, Why::Confirm);
    confirmed.sort_unstable();
    assert_eq!(confirmed, [720, 740]);
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(720), Some(740))
    );
    assert_eq!(outcome.ended, Ended::Narrow);
    assert!(!outcome.lower_bound_only && outcome.borderline.is_empty());
    assert_eq!(outcome.trials_at[&720], (2, 0, 0));
    assert_eq!(outcome.trials_at[&800], (0, 1, 0));
    assert_eq!(
        outcome.conclusion,
        "720 passes (2 of 2 trials) and 740 fails (2 of 2 trials), so the load line is 720, with 2.8 % to the first fail."
    );
}

#[test]
fn it_halves_while_nothing_passes() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 13));
    assert_eq!(loads(&steps, Why::Probe), [100, 50, 25, 12]);
    // 13 and 14 are neighbours: no narrower bracket exists.
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(13), Some(14))
    );
    assert_eq!(outcome.ended, Ended::Narrow);
}

#[test]
fn the_seed_draws_which_side_is_confirmed_first() {
    let first_confirmed = |seed| {
        let mut search = search(Settings { seed, ..settings() });
        let (steps, _) = drive(&mut search, |load, _| pass_if(load <= 730));
        loads(&steps, Why::Confirm)[0]
    };
    let drawn: Vec<u32> = (0..20).map(first_confirmed).collect();
    assert!(drawn.contains(&720) && drawn.contains(&740), "{drawn:?}");
}

#[test]
fn a_false_fail_does_not_bound_the_search_for_ever() {
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, nth| {
        pass_if(load <= 730 && !(load == 200 && nth == 0))
    });
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(720), Some(740))
    );
    assert_eq!(outcome.trials_at[&200], (2, 1, 0));
}

#[test]
fn a_lonely_fail_needs_a_witness() {
    // A disturbance meets the first load twice. The load above it passes, so the fail is tried again until it is no fail.
    let mut misled = search(settings());
    let (steps, outcome) = drive(&mut misled, |load, nth| {
        pass_if(load <= 730 && !(load == 100 && nth < 2))
    });
    assert!(steps.contains(&(120, Why::Confirm)), "{steps:?}");
    assert_eq!(outcome.trials_at[&100], (2, 2, 0));
    assert_eq!(outcome.borderline, [100]);
    let (confirmed, first_fail) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
    assert!(confirmed <= 730 && first_fail > 730, "{outcome:?}");
    // A true edge just there costs that one trial.
    let mut exact = search(settings());
    let (steps, outcome) = drive(&mut exact, |load, _| pass_if(load < 100));
    assert_eq!(steps.last(), Some(&(120, Why::Confirm)));
    assert_eq!(
        (outcome.first_fail, outcome.ended),
        (Some(100), Ended::Narrow)
    );
}

#[test]
fn a_false_pass_does_not_hold_the_line_up() {
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, nth| {
        pass_if(load <= 730 || (load == 800 && nth == 0))
    });
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(720), Some(740))
    );
    assert_eq!(outcome.trials_at[&800], (1, 2, 0));
}

#[test]
fn a_load_without_two_thirds_is_borderline() {
    // With 5 repeats, 3 to 2 is not enough; the loads around it are clear.
    let mut search = search(Settings {
        repeats: 5,
        ..settings()
    });
    let (_, outcome) = drive(&mut search, |load, nth| {
        pass_if(if load == 740 {
            nth % 2 == 1
        } else {
            load < 740
        })
    });
    assert_eq!(outcome.borderline, [740]);
    assert_eq!(outcome.trials_at[&740], (2, 3, 0));
    let (confirmed, first_fail) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
    assert!((705..740).contains(&confirmed), "{confirmed}");
    assert!((741..=777).contains(&first_fail), "{first_fail}");
    assert!(
        outcome.conclusion.contains("trials at 740 disagree"),
        "{}",
        outcome.conclusion
    );
}

#[test]
fn a_pass_above_a_fail_opens_the_lower_load_again() {
    let recorded = || {
        let mut search = search(settings());
        for (load, passes) in [
            (100, true),
            (300, false),
            (300, false),
            (400, true),
            (800, false),
        ] {
            search.record(load, pass_if(passes));
        }
        search
    };
    // The higher pass is confirmed, then the lower fail gets its further trials, here: passes.
    let (steps, outcome) = drive(&mut recorded(), |load, _| pass_if(load <= 410));
    assert_eq!(
        steps[..3],
        [
            (400, Why::Confirm),
            (300, Why::Confirm),
            (300, Why::Confirm)
        ]
    );
    assert_eq!(outcome.borderline, [300]);
    assert!(outcome.confirmed >= Some(390), "{outcome:?}");
    // If it goes on failing, it is the first fail and the pass above does not count.
    let (steps, outcome) = drive(&mut recorded(), |load, _| {
        pass_if(load < 300 || load == 400)
    });
    assert_eq!(loads(&steps[..4], Why::Confirm), [400, 300, 300, 300]);
    assert_eq!(outcome.first_fail, Some(300));
    assert!(outcome.confirmed < Some(300));
    assert!(
        outcome
            .conclusion
            .contains("400 passes although a lower load fails"),
        "{}",
        outcome.conclusion
    );
    // If it was the higher pass that was false, nothing is contradicted any more.
    let (steps, _) = drive(&mut recorded(), |load, _| pass_if(load < 300));
    assert_eq!(steps[..2], [(400, Why::Confirm), (400, Why::Confirm)]);
    assert_eq!(steps[2].1, Why::Narrow);
}

#[test]
fn a_server_that_carries_the_maximum() {
    let mut search = search(Settings {
        max: 1_000,
        ..settings()
    });
    let (steps, outcome) = drive(&mut search, |_, _| TrialVerdict::Pass);
    assert_eq!(loads(&steps, Why::Probe), [100, 200, 400, 800, 1_000]);
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (Some(1_000), Ended::AtMaximum)
    );
    assert!(outcome.lower_bound_only);
    assert_eq!(
        outcome.conclusion,
        "The load line is at least 1000: 1000 passes (2 of 2 trials) and no load fails, and 1000 is the highest load that this search may try; raise its maximum to find the limit."
    );
}

#[test]
fn a_server_that_carries_nothing() {
    let mut search = search(Settings {
        min: 10,
        ..settings()
    });
    let (steps, outcome) = drive(&mut search, |_, _| TrialVerdict::Fail);
    assert_eq!(loads(&steps, Why::Probe), [100, 50, 25, 12, 10]);
    assert_eq!((outcome.confirmed, outcome.first_fail), (None, Some(10)));
    assert_eq!(outcome.ended, Ended::AtMinimum);
    assert!(!outcome.lower_bound_only);
    assert!(
        outcome
            .conclusion
            .starts_with("No load passes: 10 fails (2 of 2 trials)"),
        "{}",
        outcome.conclusion
    );
}

#[test]
fn the_last_trials_of_a_budget_confirm() {
    let mut search = search(Settings {
        max_trials: 7,
        ..settings()
    });
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_eq!(steps.len(), 7);
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(600), Some(800))
    );
    assert_eq!(
        (outcome.trials_at[&600], outcome.trials_at[&800]),
        ((2, 0, 0), (0, 2, 0))
    );
    assert_eq!(outcome.ended, Ended::TrialBudget);
    assert!(
        outcome
            .conclusion
            .starts_with("Ended by the limit of 7 trials"),
        "{}",
        outcome.conclusion
    );
}

#[test]
fn a_budget_that_just_suffices_cuts_nothing_short() {
    let free = {
        let mut search = search(settings());
        drive(&mut search, |load, _| pass_if(load <= 730)).0.len()
    };
    let max_trials = u32::try_from(free).unwrap();
    let mut exact = search(Settings {
        max_trials,
        ..settings()
    });
    assert_eq!(
        drive(&mut exact, |load, _| pass_if(load <= 730)).1.ended,
        Ended::Narrow
    );
    let mut short = search(Settings {
        max_trials: max_trials - 1,
        ..settings()
    });
    assert_eq!(
        drive(&mut short, |load, _| pass_if(load <= 730)).1.ended,
        Ended::TrialBudget
    );
}

#[test]
fn when_time_is_up_it_says_what_is_known() {
    let mut search = search(settings());
    for load in [100, 200] {
        assert_eq!(
            search.next(),
            Step::Trial {
                load,
                why: Why::Probe
            }
        );
        search.record(load, TrialVerdict::Pass);
    }
    search.expire();
    let Step::Done(outcome) = search.next() else {
        panic!("it goes on after its time");
    };
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (Some(200), Ended::TimeBudget)
    );
    assert!(outcome.lower_bound_only);
    assert!(
        outcome.conclusion.contains("200 passes (1 of 1 trials)"),
        "{}",
        outcome.conclusion
    );
    assert_eq!(search.remaining_trials_estimate(), 0);
}

#[test]
fn a_recorded_search_goes_on_where_it_was() {
    let mut whole = search(settings());
    let (steps, outcome) = drive(&mut whole, |load, _| pass_if(load <= 730));
    for cut in 0..steps.len() {
        let mut resumed = search(settings());
        for (load, _) in steps[..cut].iter().rev() {
            resumed.record(*load, pass_if(*load <= 730));
        }
        let (rest, again) = drive(&mut resumed, |load, _| pass_if(load <= 730));
        assert_eq!((&rest[..], &again), (&steps[cut..], &outcome));
    }
}

#[test]
fn the_estimate_of_what_is_left_is_close_and_ends_at_zero() {
    let mut search = search(settings());
    let mut estimates = Vec::new();
    while let Step::Trial { load, .. } = search.next() {
        estimates.push(search.remaining_trials_estimate());
        search.record(load, pass_if(load <= 730));
    }
    assert_eq!(search.remaining_trials_estimate(), 0);
    // Once there is a bracket, only rounding is unknown.
    for (done, estimate) in (0_u32..).zip(&estimates).skip(4) {
        let left = u32::try_from(estimates.len()).unwrap() - done;
        assert!(
            left.abs_diff(*estimate) <= 1,
            "{left} left, estimates {estimates:?}"
        );
    }
}

#[test]
fn load_zero_is_ignored() {
    let mut search = search(settings());
    search.record(0, TrialVerdict::Fail);
    assert_eq!(
        search.next(),
        Step::Trial {
            load: 100,
            why: Why::Probe
        }
    );
}

#[test]
fn an_interrupted_search_says_so() {
    let mut search = search(settings());
    search.record(100, TrialVerdict::Pass);
    search.interrupt();
    let Step::Done(outcome) = search.next() else {
        panic!("it goes on after an interruption");
    };
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (Some(100), Ended::Interrupted)
    );
    assert!(
        outcome.conclusion.starts_with("Interrupted before"),
        "{}",
        outcome.conclusion
    );
}
