//! Searches that go on beyond the load line, at a server that nobody runs.

use plimsoll_core::outright::Outright;
use plimsoll_core::record::{CollapseSign, Goodput};

use super::*;
use crate::error::{Error, Result};
use crate::find::Found;

/// The server of [`trial`] does most with 1,500 callers, half as much with 3,000, and then nothing.
fn slowing(sessions: u32, length: Length) -> Trial {
    let due_per_s = f64::from(sessions) / 8.0;
    let most = 1_500.0 / 8.0;
    let past = f64::from(sessions.saturating_sub(1_500)) / 1_500.0;
    Trial {
        goodput: Some(Goodput {
            due_per_s,
            good_per_s: due_per_s.min(most * (1.0 - 0.5 * past).max(0.0)),
            failed_share: 0.0,
        }),
        ..trial(sessions, length)
    }
}

fn of_plan(line: &str) -> Conditions {
    Conditions {
        plan: plan(line),
        ..conditions()
    }
}

/// Searches, with trials from a table that also gets how many ran before. Returns what every trial was wanted for.
fn hunted(
    conditions: &Conditions,
    earlier: Vec<KeptTrial>,
    mut table: impl FnMut(&Wanted, u32) -> Result<Trial>,
) -> (Vec<Wanted>, Found) {
    let plan = FindPlan {
        settings: SETTINGS,
        time_budget: None,
    };
    let mut all = Vec::new();
    let mut run = |wanted: &Wanted, kept: &Kept| {
        assert!(kept.count() < 200, "no end");
        all.push(*wanted);
        let trial = table(wanted, kept.count())?;
        let file = format!("trial-{:03}.json", kept.count() + 1);
        Ok(KeptTrial { trial, file })
    };
    let mut hunt = Hunt::new(conditions, &plan, earlier).expect("a search");
    while hunt.step(&mut run).expect("a trial") {}
    (all, hunt.found())
}

fn loads(wanted: &[Wanted]) -> Vec<u32> {
    wanted.iter().map(|wanted| wanted.load).collect()
}

/// Fault of a report: "stable" was what failed less than 5 %, at a fraction of the throughput.
#[test]
fn a_slowing_servers_limit_is_far_below_its_collapse() {
    let (wanted, found) = hunted(&of_plan("voice test=breaking"), Vec::new(), |wanted, _| {
        Ok(slowing(wanted.load, wanted.length))
    });
    let (talk, line_only) = hunted(&of_plan("voice test=talk"), Vec::new(), |wanted, _| {
        Ok(slowing(wanted.load, wanted.length))
    });
    assert_eq!(line_only.brackets[0].escalation, None);
    let [first, further] = &found.brackets[..] else {
        panic!("{} brackets", found.brackets.len());
    };
    // The search for the load line is the same, and what comes after it changes nothing there.
    assert_eq!(loads(&wanted)[..talk.len()], loads(&talk));
    assert_eq!(first.confirmed, line_only.brackets[0].confirmed);
    assert_eq!(first.conclusion, line_only.brackets[0].conclusion);
    assert_eq!(first.evidence, line_only.brackets[0].evidence);
    assert_eq!(further.escalation, None);
    assert_eq!(further.trials.len(), wanted.len());

    let escalation = first.escalation.as_ref().expect("it went on");
    let limit = first.confirmed.expect("a load line");
    let knee = escalation.knee.expect("a knee");
    let collapse = escalation.collapse.expect("a collapse");
    assert!((900..=1_000).contains(&limit), "{limit}");
    assert!((1_100..=2_100).contains(&knee.load), "{knee:?}");
    assert!((2_900..=3_700).contains(&collapse.load), "{collapse:?}");
    assert_eq!(collapse.sign, CollapseSign::GoodputHalved);
    let beyond = &wanted[talk.len()..];
    assert!(beyond.iter().all(|wanted| wanted.length == Length::Full));
    assert_eq!(beyond[0].why, "beyond the load line");
    // Progress: those beyond are left from the beginning on, and at the end one is.
    assert!(wanted[0].trials_left > talk[0].trials_left);
    assert_eq!(beyond.last().map(|last| last.trials_left), Some(1));
}

#[test]
fn an_interrupted_search_goes_on_beyond_where_it_was() {
    let conditions = of_plan("voice test=breaking");
    let (whole, _) = hunted(&conditions, Vec::new(), |wanted, _| {
        Ok(slowing(wanted.load, wanted.length))
    });
    let last = u32::try_from(whole.len()).expect("few") - 1;
    for cut in [3, last - 6, last - 1, last] {
        let mut earlier: Vec<KeptTrial> = Vec::new();
        let (before, found) = hunted(&conditions, Vec::new(), |wanted, number| {
            let mut trial = slowing(wanted.load, wanted.length);
            trial.interrupted = number == cut;
            if !trial.interrupted {
                earlier.push(KeptTrial {
                    file: format!("trial-{:03}.json", number + 1),
                    trial: trial.clone(),
                });
            }
            Ok(trial)
        });
        assert!(found.brackets[0].interrupted);
        let escalation = &found.brackets[0].escalation;
        let went_on = escalation.as_ref().map(|it| it.conclusion.as_str());
        assert_eq!(
            went_on.is_some_and(|it| it.starts_with("Interrupted: ")),
            cut > 3,
            "{went_on:?}"
        );
        let (after, found) = hunted(&conditions, earlier, |wanted, _| {
            Ok(slowing(wanted.load, wanted.length))
        });
        let mut both = loads(&before);
        assert_eq!(both.pop(), after.first().map(|wanted| wanted.load));
        both.extend(loads(&after));
        assert_eq!(both, loads(&whole), "cut at {cut}");
        assert!(!found.brackets[0].interrupted);
    }
}

#[test]
fn a_target_that_dies_has_collapsed() {
    let (_, found) = hunted(&of_plan("voice test=breaking"), Vec::new(), |wanted, _| {
        let mut trial = slowing(wanted.load, wanted.length);
        if wanted.load >= 1_300 {
            trial.verdict = Verdict::Fail;
            trial.gates.push(Outright::TargetDied.gate());
        }
        Ok(trial)
    });
    let escalation = found.brackets[0].escalation.as_ref().expect("it went on");
    let collapse = escalation.collapse.expect("a collapse");
    assert_eq!(collapse.sign, CollapseSign::TargetGone);
    assert!((1_300..1_370).contains(&collapse.load), "{collapse:?}");
}

#[test]
fn an_error_ends_it_with_what_is_known() {
    let (_, found) = hunted(&of_plan("voice test=breaking"), Vec::new(), |wanted, _| {
        if wanted.load > 1_800 && wanted.why == "beyond the load line" {
            return Err(Error::Usage("it does not start any more".to_owned()));
        }
        Ok(slowing(wanted.load, wanted.length))
    });
    let bracket = &found.brackets[0];
    assert!(found.cut_short.is_some() && bracket.interrupted);
    assert!(bracket.confirmed.is_some());
    let escalation = bracket.escalation.as_ref().expect("it went on");
    assert_eq!(escalation.collapse, None);
    let up_to = escalation.no_collapse_up_to.expect("a lower bound");
    assert!((1_300..=1_800).contains(&up_to), "{escalation:?}");
}

#[test]
fn without_a_load_line_there_is_nothing_beyond() {
    let (wanted, found) = hunted(&of_plan("voice test=breaking"), Vec::new(), |wanted, _| {
        let mut trial = slowing(wanted.load, wanted.length);
        trial.verdict = Verdict::Fail;
        trial.further_slos[0].verdict = Verdict::Fail;
        Ok(trial)
    });
    let escalation = found.brackets[0].escalation.as_ref().expect("a sentence");
    assert_eq!((escalation.knee, escalation.collapse), (None, None));
    assert_eq!(
        escalation.conclusion,
        "No load surely passes, so there is no load line to go beyond."
    );
    assert!(
        wanted
            .iter()
            .all(|wanted| wanted.why != "beyond the load line")
    );
}
