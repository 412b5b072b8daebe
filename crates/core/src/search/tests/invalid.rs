//! Invalid trials: repeats, loads out of reach, loads to go around.

use super::*;

const RAN_OUT: TrialVerdict = TrialVerdict::Invalid {
    client_ran_out: true,
};
const DISTURBED: TrialVerdict = TrialVerdict::Invalid {
    client_ran_out: false,
};

#[test]
fn an_invalid_trial_is_repeated_twice_at_most() {
    let mut twice = search(settings());
    let (steps, outcome) = drive(&mut twice, |load, nth| {
        if load == 200 && nth < 2 {
            RAN_OUT
        } else {
            pass_if(load <= 730)
        }
    });
    let tried: Vec<u32> = steps.iter().map(|step| step.0).take(5).collect();
    assert_eq!(tried, [100, 200, 200, 200, 400]);
    assert_eq!(outcome.trials_at[&200], (1, 0, 2));
    assert_eq!(outcome.confirmed, Some(720));
    let mut always = search(settings());
    let (steps, _) = drive(&mut always, |load, _| {
        if load == 200 {
            DISTURBED
        } else {
            pass_if(load <= 730)
        }
    });
    assert_eq!(steps.iter().filter(|step| step.0 == 200).count(), 3);
}

#[test]
fn where_the_client_runs_out_the_answer_is_at_least() {
    let mut search = search(settings());
    let (_, outcome) = drive(&mut search, |load, _| {
        if load > 500 {
            RAN_OUT
        } else {
            TrialVerdict::Pass
        }
    });
    let confirmed = outcome.confirmed.unwrap();
    assert!((476..=500).contains(&confirmed), "{confirmed}");
    assert_eq!(outcome.trials_at[&confirmed], (2, 0, 0));
    assert_eq!(
        (outcome.first_fail, outcome.ended),
        (None, Ended::OutOfReach)
    );
    assert!(outcome.lower_bound_only);
    assert!(
        outcome
            .conclusion
            .contains(&format!("at least {confirmed}")),
        "{}",
        outcome.conclusion
    );
    assert!(
        outcome.conclusion.contains("ran out"),
        "{}",
        outcome.conclusion
    );
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
    assert!(!outcome.lower_bound_only);
    let (confirmed, first_fail) = (outcome.confirmed.unwrap(), outcome.first_fail.unwrap());
    assert!(
        confirmed <= 500 && 500 < first_fail && first_fail <= confirmed * 105 / 100,
        "{outcome:?}"
    );
}

#[test]
fn a_valid_trial_above_shows_that_the_client_reaches_it() {
    let mut search = search(settings());
    for _ in 0..3 {
        search.record(100, RAN_OUT);
    }
    search.record(200, TrialVerdict::Pass);
    let (_, outcome) = drive(&mut search, |load, _| pass_if(load <= 730));
    assert_eq!(
        (outcome.confirmed, outcome.lower_bound_only),
        (Some(720), false)
    );
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
    for disturbed in [100, 200, 400, 600, 700, 720, 740, 800] {
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
            grid::width(confirmed, first_fail) <= 0.05,
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
    assert_eq!(
        (outcome.confirmed, outcome.first_fail),
        (Some(400), Some(800))
    );
    assert_eq!(outcome.ended, Ended::Unmeasurable);
    assert!(
        outcome.conclusion.contains("stayed invalid"),
        "{}",
        outcome.conclusion
    );
}
