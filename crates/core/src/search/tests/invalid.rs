//! Invalid trials: repeats, loads out of reach, loads to go around.

use super::*;
use crate::schedule::mix;

const RAN_OUT: TrialVerdict = TrialVerdict::Invalid {
    client_ran_out: true,
};
const DISTURBED: TrialVerdict = TrialVerdict::Invalid {
    client_ran_out: false,
};

#[test]
fn an_invalid_trial_is_repeated() {
    let mut once = search(settings());
    let (steps, outcome) = drive(&mut once, |load, nth| {
        if load == 200 && nth == 0 {
            RAN_OUT
        } else {
            pass_if(load <= 730)
        }
    });
    let tried: Vec<u32> = steps.iter().map(|step| step.0).take(4).collect();
    assert_eq!(tried, [100, 200, 200, 400]);
    assert_eq!(evidence(&outcome, 200).invalid, 1);
    assert_found(&outcome, 730.5, 0.05);
    let mut always = search(settings());
    let (steps, outcome) = drive(&mut always, |load, _| {
        if load == 200 {
            DISTURBED
        } else {
            pass_if(load <= 730)
        }
    });
    assert_eq!(steps.iter().filter(|step| step.0 == 200).count(), 3);
    assert_found(&outcome, 730.5, 0.05);
}

#[test]
fn where_the_client_runs_out_the_answer_is_at_least() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |load, _| {
        if load > 500 {
            RAN_OUT
        } else {
            TrialVerdict::Pass
        }
    });
    let confirmed = outcome.confirmed.unwrap();
    assert!((476..=500).contains(&confirmed), "{outcome:?}");
    assert_eq!(evidence(&outcome, confirmed).passed, 2);
    assert_eq!(
        (outcome.first_fail, outcome.ended),
        (None, Ended::OutOfReach)
    );
    assert!(outcome.lower_bound_only);
    assert_eq!(outcome.edge.unwrap().high, None);
    let limit = steps
        .iter()
        .map(|step| step.0)
        .filter(|load| *load > 500)
        .min();
    for beyond in &outcome.evidence {
        let at_most = if Some(beyond.sessions) == limit { 7 } else { 3 };
        assert!(beyond.invalid <= at_most, "wasted trials: {outcome:?}");
    }
    assert!(
        outcome
            .conclusion
            .contains(&format!("at least {confirmed}"))
            && outcome.conclusion.contains("ran out"),
        "{}",
        outcome.conclusion
    );
}

/// Sixteen trials of a server that passes up to 730 sessions, in which full trials at `late` loads are invalid.
fn with_a_client_late_in_full_trials(
    late: impl Fn(u32) -> bool,
) -> (Vec<(u32, Length)>, SearchResult) {
    let mut search = search(Settings {
        max_trials: 16,
        ..settings()
    });
    let mut tried = Vec::new();
    loop {
        match search.next() {
            Step::Done(outcome) => return (tried, outcome),
            Step::Trial { load, length, .. } => {
                tried.push((load, length));
                let verdict = if length == Length::Full && late(load) {
                    DISTURBED
                } else {
                    pass_if(load <= 730)
                };
                search.record(load, length, verdict);
            }
        }
    }
}

/// Just below the edge the client is late in each full trial. A budget that ends there must not end without an answer.
#[test]
fn the_last_trials_go_where_full_ones_are_valid() {
    let (tried, outcome) = with_a_client_late_in_full_trials(|load| load > 600 && load <= 730);
    let confirmed = outcome.confirmed.expect("an answer");
    assert!((400..=600).contains(&confirmed), "{tried:?} {outcome:?}");
    assert_eq!(evidence(&outcome, confirmed).passed, 1, "{tried:?}");
    assert!(outcome.edge.is_some_and(|edge| edge.value > 650.0));
}

/// If the client is late in full trials from far below the edge on, the last ones begin further down, not just below it.
#[test]
fn the_last_trials_go_down_until_full_ones_are_valid() {
    for late_above in [250, 350, 450] {
        let (tried, outcome) = with_a_client_late_in_full_trials(|load| load > late_above);
        let confirmed = outcome
            .confirmed
            .unwrap_or_else(|| panic!("{late_above}: {tried:?} {outcome:?}"));
        assert!(confirmed <= late_above, "{tried:?} {outcome:?}");
        assert!(confirmed * 3 > late_above, "{tried:?} {outcome:?}");
    }
}

/// Where no full trial is ever valid, the answer says so, and does not say that no load passed.
#[test]
fn without_a_full_pass_it_says_so() {
    let (_, outcome) = with_a_client_late_in_full_trials(|load| load <= 730);
    assert_eq!(outcome.confirmed, None);
    assert!(
        outcome.conclusion.contains("no full trial passed"),
        "{outcome:?}"
    );
}

#[test]
fn a_client_that_ran_out_by_chance_is_found_out() {
    // A disturbance of the machine hit the first trials at 200. A last trial before the end shows this.
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, nth| {
        if load == 200 && nth < 3 {
            RAN_OUT
        } else {
            pass_if(load <= 730)
        }
    });
    assert_found(&outcome, 730.5, 0.05);
}

/// A number from 0 to 99, drawn for this trial of a load.
fn drawn_of_100(seed: u64, load: u32, nth: u32) -> u64 {
    mix(mix(seed) ^ mix(u64::from(load) << 32 | u64::from(nth))) % 100
}

/// A fail far below was chance, and the client runs out above. The search splits the gap; it does not go to the load just
/// below the one out of reach.
#[test]
fn below_a_load_out_of_reach_it_splits_the_gap() {
    for seed in 1..20 {
        let mut search = search(Settings {
            start: 16_000,
            max: 64_000,
            seed,
            ..settings()
        });
        let (steps, outcome) = drive(&mut search, |load, nth| {
            if load >= 32_000 {
                RAN_OUT
            } else {
                pass_if(load != 16_000 || nth > 0)
            }
        });
        let next_to_it = steps
            .iter()
            .map(|step| step.0)
            .filter(|load| (31_500..32_000).contains(load));
        assert_eq!(next_to_it.count(), 0, "{seed}: {steps:?}");
        let confirmed = outcome
            .confirmed
            .unwrap_or_else(|| panic!("{seed}: {steps:?} {outcome:?}"));
        assert!((16_000..32_000).contains(&confirmed), "{seed}: {outcome:?}");
    }
}

/// Some trials fail by chance, and the client mostly runs out above the edge. The last trials go to a line before anything
/// else, also if the search would give up. In a few searches the very last trial makes it unsure again.
#[test]
fn a_search_secures_a_line_before_it_gives_up() {
    let without_a_line = (0..200u64).filter(|seed| {
        let mut search = search(Settings {
            seed: *seed,
            ..settings()
        });
        let (_, outcome) = drive(&mut search, |load, nth| {
            let drawn = drawn_of_100(*seed, load, nth);
            if load > 700 && drawn < 80 {
                RAN_OUT
            } else if drawn >= 90 {
                TrialVerdict::Fail
            } else {
                pass_if(load <= 730)
            }
        });
        outcome.confirmed.is_none()
    });
    assert!(without_a_line.count() <= 4);
}

#[test]
fn survivors_among_invalid_trials_do_not_become_the_first_fail() {
    // A client at its limit: its valid trials fail because the client is late.
    for survivor in 0..4 {
        let mut search = search(settings());
        let (_, outcome) = drive(&mut search, |load, nth| {
            if load <= 500 {
                TrialVerdict::Pass
            } else if nth == survivor {
                TrialVerdict::Fail
            } else {
                RAN_OUT
            }
        });
        assert_eq!(outcome.first_fail, None, "{survivor}: {outcome:?}");
        assert!(outcome.lower_bound_only, "{survivor}: {outcome:?}");
        assert!(outcome.confirmed.is_some_and(|load| load <= 500));
    }
}

#[test]
fn an_edge_below_the_clients_limit_is_found() {
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, _| {
        if load > 700 {
            RAN_OUT
        } else {
            pass_if(load <= 500)
        }
    });
    assert_found(&outcome, 500.5, 0.05);
}

#[test]
fn valid_trials_above_show_that_the_client_reaches_it() {
    let mut search = search(settings());
    for nth in 0..3 {
        search.record(100, Length::Short, RAN_OUT);
        if nth > 0 {
            search.record(200, Length::Short, TrialVerdict::Pass);
        }
    }
    let (_, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_found(&outcome, 730.5, 0.05);
}

#[test]
fn a_client_too_weak_for_the_start_goes_down() {
    let mut found = search(settings());
    let (_, outcome) = drive(&mut found, |load, _| {
        if load > 30 {
            RAN_OUT
        } else {
            TrialVerdict::Pass
        }
    });
    assert!(
        outcome.lower_bound_only && (29..=30).contains(&outcome.confirmed.unwrap()),
        "{outcome:?}"
    );
    let mut nothing = search(settings());
    let (steps, outcome) = drive(&mut nothing, |_, _| RAN_OUT);
    assert_eq!(
        loads(&steps, Why::Probe).len(),
        3 * 7,
        "100, 50, 25, 12, 6, 3 and 1"
    );
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (None, Ended::OutOfReach)
    );
    assert!(!outcome.lower_bound_only);
    assert!(
        outcome
            .conclusion
            .starts_with("Nothing is known: none of 21 trials"),
        "{}",
        outcome.conclusion
    );
}

#[test]
fn a_load_that_stays_invalid_is_gone_around() {
    for disturbed in [100, 200, 400, 600, 700, 720, 730, 740, 800] {
        let mut search = search(settings());
        let (_, outcome) = drive(&mut search, |load, _| {
            if load == disturbed {
                DISTURBED
            } else {
                pass_if(load <= 730)
            }
        });
        let (confirmed, first_fail) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
        assert!(
            confirmed <= 730 && first_fail > 730,
            "{disturbed}: {outcome:?}"
        );
        assert!(
            f64::from(first_fail) / f64::from(confirmed) <= 1.15,
            "{disturbed}: {outcome:?}"
        );
    }
}

#[test]
fn when_nothing_can_be_measured_it_soon_says_so() {
    let mut search = search(settings());
    let (steps, outcome) = drive(&mut search, |_, _| DISTURBED);
    assert_eq!(steps.len(), 9, "three loads, three times");
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (None, Ended::Unmeasurable)
    );
    assert_eq!(
        outcome.conclusion,
        "Nothing is known: none of 9 trials was valid."
    );
}

#[test]
fn a_gap_that_cannot_be_measured_is_named() {
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, _| {
        if (401..800).contains(&load) {
            DISTURBED
        } else {
            pass_if(load <= 400)
        }
    });
    assert!(
        outcome.confirmed.is_some_and(|load| load <= 400),
        "{outcome:?}"
    );
    assert!(
        outcome.first_fail.is_some_and(|load| load >= 800),
        "{outcome:?}"
    );
    assert_ne!(outcome.ended, Ended::Narrow);
}

#[test]
fn a_load_that_mostly_fails_where_the_client_runs_out_does_not_pass() {
    let mut search = search(settings());
    for (length, verdict) in [
        (Length::Full, TrialVerdict::Pass),
        (Length::Full, TrialVerdict::Fail),
        (Length::Full, TrialVerdict::Fail),
        (Length::Short, TrialVerdict::Pass),
    ] {
        search.record(200, length, verdict);
    }
    for _ in 0..13 {
        search.record(200, Length::Full, RAN_OUT);
    }
    search.interrupt();
    let Step::Done(outcome) = search.next() else {
        panic!("it was interrupted");
    };
    assert_eq!(outcome.confirmed, None);
    assert_eq!(evidence(&outcome, 200).class, LoadClass::Undecided);
    assert!(
        outcome
            .conclusion
            .contains("nothing is known: 13 of 17 trials were invalid"),
        "{}",
        outcome.conclusion
    );
}

/// Seen with a start near the client's limit: the loads that passed turned out to be beyond it, and the search ended
/// without a word about the loads below.
#[test]
fn where_loads_passed_and_none_failed_there_is_a_lower_bound() {
    for seed in 0..400u64 {
        let chance = 40 + seed % 5 * 10;
        let mut search = search(Settings {
            start: 1_200,
            max: 2_199,
            seed,
            ..settings()
        });
        let (_, outcome) = drive(&mut search, |load, nth| {
            let drawn = drawn_of_100(seed, load, nth);
            if load > 1_100 && drawn < chance {
                RAN_OUT
            } else {
                TrialVerdict::Pass
            }
        });
        let confirmed = outcome.confirmed;
        assert!(confirmed.is_some(), "{seed}: {outcome:?}");
        assert!(outcome.lower_bound_only, "{seed}: {outcome:?}");
    }
}
