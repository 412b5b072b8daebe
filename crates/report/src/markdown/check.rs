//! The section of a conformance check.

use super::{Page, Table, code, escape};
use crate::check::{Case, Check, Outcome};
use crate::words::count;

/// The verdict in words, then every case: first those that failed, then those that show nothing about the target, then
/// those that passed.
pub(super) fn section(page: &mut Page, check: &Check) {
    page.heading(1, &format!("Conformance of {}", escape(&check.target)));
    page.paragraph(&format!("**{}**", verdict(check)));
    // The reader looks for what failed.
    let order = [
        Outcome::Failed,
        Outcome::Disturbed,
        Outcome::Skipped,
        Outcome::Passed,
    ];
    page.table(&table(check, &order));
}

/// The cases with these outcomes, in this order.
pub(crate) fn table(check: &Check, outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(&["case", "what", "passed", "expected", "seen"]);
    for outcome in outcomes {
        let cases = check.cases.iter();
        for case in cases.filter(|case| case.outcome() == *outcome) {
            table.row(row(case));
        }
    }
    table
}

/// How many cases passed, in a sentence.
pub(crate) fn verdict(check: &Check) -> String {
    let counted = |outcome| {
        let cases = check.cases.iter().filter(|case| case.outcome() == outcome);
        cases.count() as u64
    };
    let (failed, skipped) = (counted(Outcome::Failed), counted(Outcome::Skipped));
    let disturbed = counted(Outcome::Disturbed);
    let ran = check.cases.len() as u64 - skipped;
    let mut unknown = String::new();
    if disturbed > 0 {
        unknown += &format!(
            " {} did not pass and {} disturbed: nothing is known of {}.",
            count(disturbed),
            if disturbed == 1 { "was" } else { "were" },
            if disturbed == 1 { "it" } else { "them" },
        );
    }
    if skipped > 0 {
        unknown += &format!(" {} did not run.", count(skipped));
    }
    if ran == 0 {
        format!("No case ran: nothing is known.{unknown}")
    } else if failed > 0 {
        format!(
            "{} of {} cases that ran failed.{unknown}",
            count(failed),
            count(ran)
        )
    } else if disturbed > 0 {
        let passed = count(ran - disturbed);
        format!("{passed} of {} cases that ran passed.{unknown}", count(ran))
    } else {
        format!("All {} cases that ran passed.{unknown}", count(ran))
    }
}

fn row(case: &Case) -> [String; 5] {
    let word = match case.outcome() {
        Outcome::Skipped => "not run",
        Outcome::Disturbed => "disturbed",
        Outcome::Passed => "yes",
        Outcome::Failed => "**no**",
    };
    [
        format!("`{}`", code(&case.id)),
        escape(&case.title),
        word.to_owned(),
        escape(&case.expected),
        escape(&case.seen_in_words()),
    ]
}
