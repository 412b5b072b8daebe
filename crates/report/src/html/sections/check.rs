//! A conformance check, case by case.

use crate::check::{Check, Outcome};
use crate::html::parts::{self, Cell, Contents, Levels, yes_or_no};
use crate::html::write::Html;
use crate::markdown::check::verdict;

/// Names the target that was checked.
pub(in crate::html) fn title(check: &Check) -> String {
    format!("Conformance of {}", check.target)
}

/// The verdict, then every case: first those that failed, then those that show nothing about the target, then those
/// that passed.
pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    check: &Check,
    level: Levels,
) {
    html.inside("article", &[("aria-labelledby", "check")], |html| {
        contents.push("check", "Conformance");
        let failed = of(check, Outcome::Failed).count();
        let passed = of(check, Outcome::Passed).count();
        let disturbed = of(check, Outcome::Disturbed).count();
        let (good, word) = match (failed, disturbed, passed) {
            (0, 0, 0) => (None, "not known"),
            (0, 0, _) => (Some(true), "pass"),
            (0, _, _) => (None, "disturbed"),
            _ => (Some(false), "fail"),
        };
        parts::pill(html, good, word);
        let heading = [("id", "check"), ("data-test", "claim")];
        html.element(level.result, &heading, &title(check));
        parts::paragraph(html, &verdict(check));
        for (outcome, caption) in [
            (Outcome::Failed, "Cases that failed"),
            (Outcome::Disturbed, "Cases that were disturbed"),
            (Outcome::Skipped, "Cases that did not run"),
            (Outcome::Passed, "Cases that passed"),
        ] {
            if of(check, outcome).next().is_some() {
                cases(html, check, outcome, caption);
            }
        }
    });
}

fn of(check: &Check, outcome: Outcome) -> impl Iterator<Item = &crate::check::Case> {
    check
        .cases
        .iter()
        .filter(move |case| case.outcome() == outcome)
}

fn cases(html: &mut Html, check: &Check, outcome: Outcome, caption: &str) {
    let rows = of(check, outcome).map(|case| {
        let passed = match outcome {
            Outcome::Skipped => Cell::from("not run"),
            Outcome::Disturbed => Cell::from("disturbed"),
            Outcome::Passed | Outcome::Failed => yes_or_no(outcome == Outcome::Passed),
        };
        let seen = case.seen_in_words();
        vec![
            Cell::from(case.id.as_str()),
            Cell::from(case.title.as_str()),
            passed,
            Cell::from(case.expected.as_str()),
            Cell::from(seen.as_str()),
        ]
    });
    let columns = ["case", "what", "passed", "expected", "seen"];
    parts::table(html, caption, &columns, rows);
}
