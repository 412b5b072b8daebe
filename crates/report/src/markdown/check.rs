//! The section of a conformance check.

use super::{Page, Table, code, escape};
use crate::check::{Case, Check, Outcome};
use crate::words::count;

/// The verdict in words, then every case: first those that failed, then those that did not run, then those that passed.
pub(super) fn section(page: &mut Page, check: &Check) {
    page.heading(1, &format!("Conformance of {}", escape(&check.target)));
    page.paragraph(&format!("**{}**", verdict(check)));
    // What failed is what the reader is here for.
    let order = [Outcome::Failed, Outcome::Skipped, Outcome::Passed];
    page.table(&table(check, &order));
}

/// The cases that ended so, in that order.
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
    let ran = count(check.cases.len() as u64 - skipped);
    let not_run = match skipped {
        0 => String::new(),
        skipped => format!(" {} did not run.", count(skipped)),
    };
    if ran == "0" {
        format!("No case ran: nothing is known.{not_run}")
    } else if failed == 0 {
        format!("All {ran} cases that ran passed.{not_run}")
    } else {
        format!("{} of {ran} cases that ran failed.{not_run}", count(failed))
    }
}

fn row(case: &Case) -> [String; 5] {
    let (word, seen) = match (case.outcome(), &case.skipped) {
        (Outcome::Skipped, Some(why)) => ("not run", why),
        (Outcome::Passed, _) => ("yes", &case.seen),
        (_, _) => ("**no**", &case.seen),
    };
    [
        format!("`{}`", code(&case.id)),
        escape(&case.title),
        word.to_owned(),
        escape(&case.expected),
        escape(seen),
    ]
}
