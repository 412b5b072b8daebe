//! Budgets: what the last trials are for, and what is known when time is up.

use super::*;

#[test]
fn the_last_trials_of_a_time_budget_raise_the_line() {
    for trials in 9..=20 {
        let mut search = search(settings());
        let mut ran = 0;
        let last = loop {
            search.expect_time_for(trials - ran);
            let Step::Trial { load, length, .. } = search.next() else {
                panic!("it ends before its time");
            };
            let Step::Done(before) = outcome_now(&search) else {
                panic!("it was interrupted");
            };
            search.record(load, length, pass_if(load <= 730));
            ran += 1;
            if ran == trials {
                break (load, length, before);
            }
        };
        let (load, length, before) = last;
        let Step::Done(outcome) = outcome_now(&search) else {
            panic!("it was interrupted");
        };
        let (line, low) = (outcome.confirmed.unwrap(), outcome.edge.unwrap().low);
        // If the line was below the interval, the last trial was for the answer: it raised the line or moved the
        // interval.
        assert!(f64::from(line) <= 730.0);
        let before_line = f64::from(before.confirmed.unwrap_or(0));
        let before_low = before.edge.unwrap().low;
        if before_line < before_low * 0.98 {
            assert_eq!(length, Length::Full, "{trials}");
            assert!(f64::from(load) > before_line && f64::from(load) <= before_low);
            assert_eq!(line, load, "{trials}: {outcome:?}");
        }
        assert!(f64::from(line) > low * 0.85, "{trials}: {outcome:?}");
    }
}

/// What the search would return if it ended now.
fn outcome_now(search: &Search) -> Step {
    let mut search = search.clone();
    search.interrupt();
    search.next()
}

/// `standard` within 10 minutes: seven full trials, or three times as many short ones.
#[test]
fn a_short_budget_narrows_before_it_confirms() {
    const BUDGET_S: f64 = 600.0;
    let (full_s, short_s) = (85.0, 27.0);
    for edge in [210, 480, 730, 1_234, 1_600, 3_333, 5_900] {
        let mut search = search(Settings {
            start: 400,
            short_share: short_s / full_s,
            ..settings()
        });
        let (mut elapsed_s, mut ran) = (0.0, 0);
        let outcome = loop {
            search.expect_time_for(trials_in(BUDGET_S, elapsed_s, ran, full_s));
            match search.next() {
                Step::Done(outcome) => break outcome,
                Step::Trial { load, length, .. } => {
                    search.record(load, length, pass_if(load <= edge));
                    elapsed_s += if length == Length::Full {
                        full_s
                    } else {
                        short_s
                    };
                    ran += 1;
                }
            }
        };
        let found = outcome.edge.expect("an edge");
        let high = found.high.expect("an upper end");
        assert!(high / found.low < 1.4, "{edge}: {outcome:?}");
        let line = f64::from(outcome.confirmed.expect("a line"));
        assert!(
            line > 0.8 * f64::from(edge) && line <= f64::from(edge),
            "{edge}: {outcome:?}"
        );
    }
}

#[test]
fn when_time_is_up_it_says_what_is_known() {
    let mut search = search(settings());
    for load in [100, 200] {
        let probe = Step::Trial {
            load,
            length: Length::Short,
            why: Why::Probe,
        };
        assert_eq!(search.next(), probe);
        // The caller may run a full trial where the search asked for a short one.
        search.record(load, Length::Full, TrialVerdict::Pass);
    }
    search.expect_time_for(0);
    let Step::Done(outcome) = search.next() else {
        panic!("it goes on after its time");
    };
    assert_eq!(
        (outcome.confirmed, outcome.ended),
        (Some(200), Ended::TimeBudget)
    );
    assert!(outcome.lower_bound_only);
    assert!(
        outcome
            .conclusion
            .contains("200 passes (1 of 1 full trials)"),
        "{}",
        outcome.conclusion
    );
    assert_eq!(search.remaining_trials_estimate(), 0);
}

#[test]
fn a_time_budget_lasts_for_as_many_trials_as_their_mean_says() {
    // No trial ran yet: full trials of 16 s.
    assert_eq!(trials_in(240.0, 0.0, 0, 16.0), 15);
    // Ten trials took 20 s each; 40 s are left.
    assert_eq!(trials_in(240.0, 200.0, 10, 16.0), 2);
    // Short trials so far; the last ones will be full.
    assert_eq!(trials_in(240.0, 80.0, 10, 16.0), 10);
    assert_eq!(trials_in(240.0, 240.0, 10, 16.0), 0);
    assert_eq!(trials_in(240.0, 250.0, 10, 16.0), 0);
}
