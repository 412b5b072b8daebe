//! Each rule of the search, on servers without randomness.

use super::*;

mod budget;
mod invalid;

fn settings() -> Settings {
    Settings {
        start: 100,
        min: 1,
        short_min: 1,
        max: 10_000,
        relative_width: 0.05,
        confidence: 0.95,
        repeats: 3,
        max_trials: 60,
        seed: 1,
        short_share: 0.5,
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

/// Runs a search against `server`, which receives the load and the number of earlier trials at this load.
fn drive(
    search: &mut Search,
    mut server: impl FnMut(u32, u32) -> TrialVerdict,
) -> (Vec<Trial>, SearchResult) {
    let mut steps: Vec<Trial> = Vec::new();
    loop {
        match search.next() {
            Step::Done(outcome) => return (steps, outcome),
            Step::Trial { load, length, why } => {
                assert!(steps.len() < 1_000, "the search does not end: {steps:?}");
                let nth = steps.iter().filter(|step| step.0 == load).count();
                let verdict = server(load, u32::try_from(nth).expect("few trials"));
                steps.push((load, length, why));
                search.record(load, length, verdict);
            }
        }
    }
}

fn loads(steps: &[Trial], why: Why) -> Vec<u32> {
    let of_kind = steps.iter().filter(|step| step.2 == why);
    of_kind.map(|step| step.0).collect()
}

fn evidence(outcome: &SearchResult, load: u32) -> &LoadEvidence {
    let mut of_load = outcome.evidence.iter().filter(|e| e.sessions == load);
    of_load.next().expect("that load was tried")
}

/// What must hold for a search that found the edge of a server that passes up to `edge`.
fn assert_found(outcome: &SearchResult, edge: f64, width: f64) {
    assert_eq!(outcome.ended, Ended::Narrow, "{outcome:?}");
    let found = outcome.edge.expect("an edge");
    let high = found.high.expect("an upper end");
    assert!(found.low <= edge && edge <= high, "{outcome:?}");
    assert!(
        high / found.low <= 1.0 + width || high - found.low <= 1.0,
        "{outcome:?}"
    );
    let (confirmed, first_fail) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
    assert!(
        f64::from(confirmed) <= edge && edge < f64::from(first_fail),
        "{outcome:?}"
    );
    assert!(
        f64::from(first_fail) <= f64::from(confirmed) * (1.0 + 2.5 * width) + 2.0,
        "{outcome:?}"
    );
    assert!(!outcome.lower_bound_only);
    let (passing, failing) = (evidence(outcome, confirmed), evidence(outcome, first_fail));
    assert_eq!(passing.class, LoadClass::Passing);
    assert_eq!(failing.class, LoadClass::Failing);
    assert!(passing.passed >= 2 && failing.failed >= 2, "{outcome:?}");
}

/// Two passes at the highest load do not settle the doubt that one false fail leaves. No higher load can help.
#[test]
fn the_highest_load_allowed_is_tried_until_it_is_sure() {
    let mut search = search(Settings {
        start: 120,
        max: 140,
        ..settings()
    });
    let mut first = true;
    let (steps, outcome) = drive(&mut search, |_, _| {
        if std::mem::take(&mut first) {
            TrialVerdict::Fail
        } else {
            TrialVerdict::Pass
        }
    });
    assert_eq!(outcome.confirmed, Some(140), "{steps:?}");
    assert!(outcome.lower_bound_only, "{steps:?}");
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
    assert!(refused(|s| s.confidence = 1.0).contains("confidence"));
    assert!(refused(|s| s.confidence = f64::NAN).contains("confidence"));
    assert!(refused(|s| s.short_share = 0.0).contains("short trial"));
    assert!(refused(|s| s.short_share = f64::NAN).contains("short trial"));
    assert!(refused(|s| s.repeats = 0).contains("repeat"));
    assert!(refused(|s| s.max_trials = 0).contains("trial"));
}

#[test]
fn short_trials_find_the_neighbourhood_and_full_ones_the_edge() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_eq!(loads(&steps, Why::Probe), [100, 200, 400, 800]);
    assert_found(&outcome, 730.5, 0.05);
    for (load, length, _) in &steps {
        let far = !(600..=900).contains(load);
        assert!(!far || *length == Length::Short, "{steps:?}");
    }
    assert!(steps.iter().filter(|s| s.1 == Length::Full).count() >= 4);
    let confirmed = outcome.confirmed.unwrap();
    let passed = evidence(&outcome, confirmed).passed;
    assert!(
        outcome.conclusion.starts_with(&format!(
            "{confirmed} passes ({passed} of {passed} full trials) and "
        )),
        "{}",
        outcome.conclusion
    );
    assert!(outcome.conclusion.contains("(95 % confidence)"));
}

#[test]
fn where_short_trials_save_nothing_the_edge_is_sought_by_full_ones() {
    let mut search = search(Settings {
        short_share: 1.0,
        ..settings()
    });
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_found(&outcome, 730.5, 0.05);
    let narrowing = steps.iter().filter(|step| step.2 == Why::Narrow);
    assert!(narrowing.clone().count() > 0);
    assert!(narrowing.into_iter().all(|step| step.1 == Length::Full));
}

#[test]
fn it_halves_while_nothing_passes() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 13));
    assert_eq!(loads(&steps, Why::Probe), [100, 50, 25, 12]);
    // 13 and 14 are neighbours: no narrower bracket exists.
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(13), Some(14)),
        "{outcome:?}"
    );
    assert_eq!(outcome.ended, Ended::Narrow);
}

#[test]
fn a_false_fail_does_not_bound_the_search_for_ever() {
    for lied_at in [100, 200, 400] {
        let mut search = search(settings());
        let (_, outcome) = drive(&mut search, |load, nth| {
            pass_if(load <= 730 && !(load == lied_at && nth == 0))
        });
        assert_found(&outcome, 730.5, 0.05);
    }
}

#[test]
fn a_disturbance_that_meets_a_load_twice_is_overcome() {
    let mut misled = search(settings());
    let (_, outcome) = drive(&mut misled, |load, nth| {
        pass_if(load <= 730 && !(load == 200 && nth < 2))
    });
    assert_found(&outcome, 730.5, 0.05);
}

#[test]
fn a_false_pass_does_not_hold_the_line_up() {
    for lied_at in [800, 1_100] {
        let mut search = search(settings());
        let (_, outcome) = drive(&mut search, |load, nth| {
            pass_if(load <= 730 || (load == lied_at && nth == 0))
        });
        assert_found(&outcome, 730.5, 0.05);
    }
}

#[test]
fn a_pass_above_a_fail_is_weighed_not_believed() {
    // Two fails at 300 against a pass at 400: the edge may be on either side, so further trials decide.
    let recorded = || {
        let mut search = search(settings());
        for (load, passes) in [
            (100, true),
            (300, false),
            (300, false),
            (400, true),
            (800, false),
        ] {
            search.record(load, Length::Full, pass_if(passes));
        }
        search
    };
    let Step::Trial { .. } = recorded().next() else {
        panic!("nothing is decided yet");
    };
    let (_, outcome) = drive(&mut recorded(), |load, _| pass_if(load <= 410));
    assert_found(&outcome, 410.5, 0.05);
    let (_, outcome) = drive(&mut recorded(), |load, _| pass_if(load < 300));
    assert_found(&outcome, 299.5, 0.05);
    assert!(
        outcome
            .conclusion
            .contains("400 passes although a lower load fails")
            || evidence(&outcome, 400).failed > 0,
        "{}",
        outcome.conclusion
    );
}

#[test]
fn only_full_trials_of_its_own_confirm_a_load() {
    let mut search = search(settings());
    for (load, verdict) in [(100, true), (200, true), (400, false), (400, false)] {
        for _ in 0..3 {
            search.record(load, Length::Short, pass_if(verdict));
        }
    }
    search.interrupt();
    let Step::Done(outcome) = search.next() else {
        panic!("it goes on after an interruption");
    };
    assert_eq!(evidence(&outcome, 100).class, LoadClass::Passing);
    assert_eq!((outcome.confirmed, outcome.first_fail), (None, Some(400)));
    assert!(outcome.edge.is_some());
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
    assert_eq!(outcome.edge.unwrap().high, None);
    assert_eq!(
        outcome.conclusion,
        "The load line is at least 1000: 1000 passes (2 of 2 full trials) and no load surely fails, and 1000 is the highest load that this search may try; raise its maximum to find the limit."
    );
}

#[test]
fn one_false_fail_does_not_hide_the_maximum() {
    let mut search = search(Settings {
        max: 1_000,
        ..settings()
    });
    let (_, outcome) = drive(&mut search, |load, nth| pass_if(!(load == 400 && nth == 0)));
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (Some(1_000), Ended::AtMaximum),
        "{outcome:?}"
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
    assert_eq!(
        (outcome.ended, outcome.edge, outcome.lower_bound_only),
        (Ended::AtMinimum, None, false)
    );
    assert_eq!(
        outcome.conclusion,
        "No load passes: 10 fails (2 of 2 full trials), and 10 is the least load at which this profile can give a verdict; measure longer to try lower loads (--profile standard, or --measured), or give the target more vCPU."
    );
    let mut search = self::search(settings());
    let (_, outcome) = drive(&mut search, |_, _| TrialVerdict::Fail);
    assert_eq!(
        outcome.conclusion,
        "No load passes: 1 fails (2 of 2 full trials), and no load is lower; give the target more vCPU."
    );
}

#[test]
fn below_the_least_load_of_short_trials_they_are_full() {
    let least = || {
        search(Settings {
            min: 20,
            short_min: 75,
            ..settings()
        })
    };
    let (steps, outcome) = drive(&mut least(), |load, _| pass_if(load <= 33));
    assert_found(&outcome, 33.5, 0.05);
    assert!(
        steps
            .iter()
            .all(|step| step.0 >= 75 || step.1 == Length::Full),
        "{steps:?}"
    );
    assert_eq!(steps[0], (100, Length::Short, Why::Probe));
    assert_eq!(steps[1], (50, Length::Full, Why::Probe));
}

#[test]
fn trials_of_another_search_below_the_least_load_do_no_harm() {
    let mut search = search(Settings {
        min: 100,
        short_min: 400,
        ..settings()
    });
    let invalid = TrialVerdict::Invalid {
        client_ran_out: true,
    };
    // Too few answers for this SLO, and answers that fail a gate on a count.
    for (load, verdict) in [
        (50, invalid),
        (50, invalid),
        (60, TrialVerdict::Fail),
        (60, invalid),
    ] {
        search.record(load, Length::Full, verdict);
    }
    let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_found(&outcome, 730.5, 0.05);
    assert!(steps.iter().all(|step| step.0 >= 100), "{steps:?}");
}

#[test]
fn the_last_trials_of_a_budget_confirm() {
    for max_trials in [8, 10, 12, 14] {
        let mut search = search(Settings {
            max_trials,
            ..settings()
        });
        let (steps, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
        assert_eq!(steps.len(), max_trials as usize);
        assert_eq!(outcome.ended, Ended::TrialBudget);
        assert!(
            outcome.confirmed.is_some_and(|load| load <= 730),
            "{outcome:?}"
        );
        assert!(
            outcome
                .conclusion
                .starts_with(&format!("Ended by the limit of {max_trials} trials")),
            "{}",
            outcome.conclusion
        );
    }
}

#[test]
fn a_recorded_search_goes_on_where_it_was() {
    let mut whole = search(settings());
    let (steps, outcome) = drive(&mut whole, |load, _| pass_if(load <= 730));
    for cut in 0..steps.len() {
        let mut resumed = search(settings());
        for (load, length, _) in steps[..cut].iter().rev() {
            resumed.record(*load, *length, pass_if(*load <= 730));
        }
        let (rest, again) = drive(&mut resumed, |load, _| pass_if(load <= 730));
        assert_eq!((&rest[..], &again), (&steps[cut..], &outcome));
    }
}

#[test]
fn the_estimate_of_what_is_left_ends_at_zero() {
    let mut search = search(settings());
    let mut done = 0;
    while let Step::Trial { load, length, .. } = search.next() {
        let left = search.remaining_trials_estimate();
        assert!((1..=60 - done).contains(&left), "{left} left after {done}");
        search.record(load, length, pass_if(load <= 730));
        done += 1;
    }
    assert_eq!(search.remaining_trials_estimate(), 0);
}

#[test]
fn load_zero_is_ignored() {
    let mut search = search(settings());
    let before = search.next();
    search.record(0, Length::Full, TrialVerdict::Fail);
    assert_eq!(search.next(), before);
}

#[test]
fn an_interrupted_search_says_so() {
    let mut search = search(settings());
    search.record(100, Length::Full, TrialVerdict::Pass);
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
