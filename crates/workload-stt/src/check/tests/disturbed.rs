//! A gateway that was kept from its core is checked again, and never fails for it; one that breaks the contract fails when the disturbance ends.
//!
//! Only the gateway's process counts here, so that the outcome does not depend on what else this machine does.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_conformance::{Check as _, CheckReport, Options, Subject, Witnesses};

use super::bench::FakeBench;
use super::hold::Hold;
use super::{Defect, suite};

/// Longer than any deadline of the cases here.
const HELD: Duration = Duration::from_millis(3500);

fn check(bench: FakeBench, ids: &[&str]) -> CheckReport {
    let bench = Arc::new(bench);
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &*bench,
    };
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        witnesses: Witnesses::ProcessesOnly,
        ..Options::default()
    };
    suite(None, &bench).run(&subject, &options, &mut |_| ())
}

fn counts(report: &CheckReport) -> [usize; 3] {
    [report.passed, report.failed, report.disturbed]
}

#[test]
fn a_gateway_that_was_held_once_passes_when_it_is_checked_again() {
    let hold = Hold::of_first_sessions(1, HELD);
    let report = check(FakeBench::held(Defect::None, hold), &["numbering"]);
    assert_eq!(counts(&report), [1, 0, 0], "{report:#?}");
    assert_eq!(report.cases[0].attempts, Some(2));
    assert_eq!(report.cases[0].disturbed, None);
}

#[test]
fn a_gateway_that_is_held_each_time_is_disturbed_and_has_not_failed() {
    let hold = Hold::of_first_sessions(u32::MAX, HELD);
    let report = check(FakeBench::held(Defect::None, hold), &["numbering"]);
    assert_eq!(counts(&report), [0, 0, 1], "{report:#?}");
    let case = &report.cases[0];
    assert_eq!((case.pass, case.attempts), (false, Some(4)));
    let why = case.disturbed.as_deref().unwrap_or_default();
    assert!(
        why.contains("the target was kept from its core for"),
        "{why}"
    );
    assert!(case.seen.contains("no message within"), "{}", case.seen);
}

#[test]
fn a_late_gateway_fails_at_once_where_nothing_holds_it() {
    let hold = Hold::of_first_sessions(0, HELD);
    let report = check(FakeBench::held(Defect::LateClose, hold), &["message-empty"]);
    assert_eq!(counts(&report), [0, 1, 0], "{report:#?}");
    assert_eq!(report.cases[0].attempts, None);
}

#[test]
fn a_gateway_that_breaks_its_schedule_fails_when_the_disturbance_has_ended() {
    let hold = Hold::of_first_sessions(1, HELD);
    let bench = FakeBench::held(Defect::FlushOnAnswer, hold);
    let report = check(bench, &["deferred-keeps-schedule"]);
    assert_eq!(counts(&report), [0, 1, 0], "{report:#?}");
    assert_eq!(report.cases[0].attempts, Some(2));
}
