//! A conformance check, case by case.

use super::{Answer, Block, Blocks, Document, Table, Text, Tone};
use crate::check::{Case, CaseOutcome, Check};

pub(crate) fn document(check: &Check) -> Document {
    let [failed, passed] = [CaseOutcome::Failed, CaseOutcome::Passed]
        .map(|outcome| of(check, outcome).next().is_some());
    let disturbed = of(check, CaseOutcome::Disturbed).any(Case::decides);
    let (word, tone) = match (failed, disturbed, passed) {
        (true, _, _) => ("fail", Tone::Bad),
        (false, true, _) => ("disturbed", Tone::Open),
        (false, false, true) => ("pass", Tone::Good),
        (false, false, false) => ("not known", Tone::Open),
    };
    let mut evidence = Blocks::default();
    // The reader looks for what failed.
    let failed = [
        (CaseOutcome::Failed, "Cases that failed"),
        (CaseOutcome::Disturbed, "Cases that were disturbed"),
        (CaseOutcome::Deviates, "Deviations that the manifest states"),
        (CaseOutcome::NotMet, "Cases that should pass and did not"),
    ];
    for table in failed.into_iter().filter_map(|of| table(check, of)) {
        evidence.push(table);
    }
    let mut others = Blocks::default();
    for of in [
        (CaseOutcome::Skipped, "Cases that did not run"),
        (CaseOutcome::Passed, "Cases that passed"),
    ] {
        if let Some(table) = table(check, of) {
            evidence.full(table.clone());
            others.push(table);
        }
    }
    let title = "Cases that passed or did not run".to_owned();
    evidence.brief(Block::Folded(title, others));
    Document {
        id: "check".to_owned(),
        entry: "Conformance".to_owned(),
        answer: Answer {
            title: format!("Conformance of {}", check.target),
            verdict: Some((word.to_owned(), tone)),
            claim: format!("Conformance of {}", check.target),
            bounds: check.in_words().trim_end_matches('.').to_owned(),
            blocks: Blocks::default(),
            figure: None,
        },
        evidence,
    }
}

/// The cases that ended so; `None` where there are none.
fn table(check: &Check, (outcome, caption): (CaseOutcome, &str)) -> Option<Table> {
    let columns = ["case", "what", "passed", "expected", "seen"];
    let table = Table::new(caption, columns).with_rows(of(check, outcome).map(row));
    (!table.rows.is_empty()).then_some(table)
}

fn of(check: &Check, outcome: CaseOutcome) -> impl Iterator<Item = &Case> {
    let cases = check.cases.iter();
    cases.filter(move |case| case.outcome() == outcome)
}

fn row(case: &Case) -> [Text; 5] {
    let passed = match case.outcome() {
        CaseOutcome::Skipped => "not run".into(),
        CaseOutcome::Disturbed => "disturbed".into(),
        CaseOutcome::Passed => Text::yes_or_no(true),
        CaseOutcome::Failed => Text::yes_or_no(false),
        CaseOutcome::NotMet => "no (should)".into(),
        CaseOutcome::Deviates => "no (deviation)".into(),
    };
    [
        Text::code(&case.id),
        case.title.as_str().into(),
        passed,
        case.expected.as_str().into(),
        case.seen_in_words().into(),
    ]
}
