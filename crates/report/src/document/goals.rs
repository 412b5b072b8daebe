//! The key findings: what became of the goals that were set before the measurement.

use plimsoll_core::record::{Bound, Finding, Goals, Outcome};

use super::{Answer, Block, Blocks, Document, List, Section, Table, Text, Tone};
use crate::folder::StoredTrial;
use crate::goals::GoalsOf;
use crate::words::{UNKNOWN, number, percent};

const TITLE: &str = "Key findings";

/// Of one result; empty if no goals were set.
pub(super) fn of_one(goals: Option<&Goals>) -> Section {
    section(&[], goals.map(|goals| (Vec::new(), goals)).as_slice())
}

/// Of several trials; empty if no goals were set.
pub(crate) fn of_trials<'a>(trials: impl IntoIterator<Item = &'a StoredTrial>) -> Section {
    let with_goals = trials.into_iter().filter_map(|stored| {
        let goals = stored.trial.goals.as_ref()?;
        Some((vec![stored.stem.clone()], goals))
    });
    section(&["trial"], &with_goals.collect::<Vec<_>>())
}

/// Of several results, each with the cells that name it, in columns with these heads. Each goal has a row for every result
/// that it is for, so the results must have the goals of one file. Empty if no goals were set.
pub(super) fn section(heads: &[&str], results: &[(Vec<String>, &Goals)]) -> Section {
    let mut blocks = Blocks::default();
    if let Some((_, first)) = results.first() {
        let differ = results
            .iter()
            .any(|(_, other)| other.sha256 != first.sha256);
        if differ {
            blocks.push(List {
                bad: true,
                ..List::of(["These results were measured with different goals, so they have no common findings."])
            });
        } else {
            blocks.push(table(heads, results));
            blocks.full(Block::Note(note(first)));
        }
    }
    Section::new("goals", TITLE, blocks).unlisted()
}

/// The findings of several result folders, as a document of its own.
pub(crate) fn document(results: &[GoalsOf<'_>]) -> Document {
    let rows: Vec<_> = results
        .iter()
        .filter_map(|result| {
            let cells = vec![result.target.clone(), result.scenario.clone()];
            Some((cells, result.goals?))
        })
        .collect();
    let mut evidence = Blocks::default();
    evidence.push(section(&["target", "scenario"], &rows));
    Document {
        id: "goals".to_owned(),
        entry: TITLE.to_owned(),
        answer: Answer {
            title: TITLE.to_owned(),
            verdict: None,
            claim: claim(&rows),
            bounds: String::new(),
            blocks: Blocks::default(),
            figure: None,
        },
        evidence,
    }
}

/// How many rows there are of each outcome.
fn claim(results: &[(Vec<String>, &Goals)]) -> String {
    let rows = shown(results);
    let outcomes = [
        Outcome::Met,
        Outcome::Missed,
        Outcome::NotMeasured,
        Outcome::Waived,
    ];
    let counted = outcomes.map(|outcome| {
        let of = rows.iter().filter(|(_, found)| found.outcome == outcome);
        format!("{} {}", of.count(), outcome.word())
    });
    counted.join(", ")
}

/// The findings by goal. A goal that is for none of the results has one row, without a result's name.
fn shown<'a>(results: &'a [(Vec<String>, &'a Goals)]) -> Vec<(Vec<String>, &'a Finding)> {
    let (Some((cells, first)), mut rows) = (results.first(), Vec::new()) else {
        return Vec::new();
    };
    for (index, found) in first.findings.iter().enumerate() {
        let of_goal = results.iter().filter_map(|(cells, goals)| {
            let found = goals.findings.get(index)?;
            (!found.is_of_another_test).then(|| (cells.clone(), found))
        });
        let before = rows.len();
        rows.extend(of_goal);
        if rows.len() == before {
            rows.push((vec![UNKNOWN.to_owned(); cells.len()], found));
        }
    }
    rows
}

fn table(heads: &[&str], results: &[(Vec<String>, &Goals)]) -> Table {
    let rows = shown(results);
    let has_margin = rows.iter().any(|(_, found)| found.margin.is_some());
    let columns = ["metric", ">result", "goal", "outcome"];
    let margin = has_margin.then_some(">margin");
    let caption = "What became of the goals that were set before the measurement";
    let columns = heads.iter().chain(&columns).copied().chain(margin);
    let mut table = Table::new(caption, columns).hooked("goals");
    for (cells, found) in rows {
        let further = [
            Text::code(&found.goal.metric),
            result(found).into(),
            goal(found).into(),
            outcome(found),
        ];
        let margin = has_margin.then(|| margin_of(found).into());
        let cells = cells.into_iter().map(Text::from);
        table.row(cells.chain(further).chain(margin));
    }
    table
}

fn result(found: &Finding) -> String {
    let Some(value) = found.result.map(number) else {
        return UNKNOWN.to_owned();
    };
    match found.bound {
        Bound::Exact => value,
        Bound::AtLeast => format!("at least {value}"),
        Bound::Below => format!("below {value}"),
    }
}

fn goal(found: &Finding) -> String {
    let limit =
        |words: &str, limit: Option<f64>| limit.map(|limit| format!("{words} {}", number(limit)));
    let goal = &found.goal;
    let most = || limit("at most", goal.at_most);
    let told = limit("at least", goal.at_least).or_else(most);
    told.unwrap_or_default()
}

fn outcome(found: &Finding) -> Text {
    let word = found.outcome.word();
    let text = match found.outcome {
        Outcome::Met => Text::toned(word, Tone::Good),
        Outcome::Missed => Text::toned(word, Tone::Bad),
        Outcome::NotMeasured => Text::toned(word, Tone::Open),
        Outcome::Waived => Text::from(word),
    };
    match &found.why {
        Some(why) => text.then_plain(format!(": {why}")),
        None => text,
    }
}

/// By how much a load line is above what is needed: `+25 %`.
fn margin_of(found: &Finding) -> String {
    let Some(margin) = found.margin else {
        return String::new();
    };
    let sign = if margin > 0.0 { "+" } else { "" };
    let margin = format!("{sign}{}", percent(margin));
    if found.bound == Bound::AtLeast {
        format!("at least {margin}")
    } else {
        margin
    }
}

fn note(goals: &Goals) -> Text {
    Text::from("Goals of the file with the SHA-256 ")
        .joined(Text::code(&goals.sha256))
        .then_plain(", read before the first trial. They decide no verdict. Of a search, each metric but the load line is the worst of the full trials that passed at the load line. A margin is what the load line has beyond the goal.")
}

#[cfg(test)]
mod tests {
    use plimsoll_core::record::Goal;

    use super::super::{Detail, Shown};
    use super::*;

    fn found(metric: &str, result: Option<f64>, outcome: Outcome) -> Finding {
        Finding {
            goal: Goal {
                metric: metric.to_owned(),
                test: None,
                at_most: None,
                at_least: Some(400.0),
                why_waived: None,
            },
            result,
            bound: Bound::Exact,
            outcome,
            is_of_another_test: false,
            why: (outcome == Outcome::NotMeasured).then(|| "no trial".to_owned()),
            margin: None,
        }
    }

    fn goals(findings: Vec<Finding>) -> Goals {
        Goals {
            sha256: "ab12".to_owned(),
            findings,
        }
    }

    fn cells(table: &Table) -> Vec<Vec<String>> {
        let told = |text: &Text| text.0.iter().map(|span| span.text()).collect::<String>();
        let rows = table.rows.iter();
        rows.map(|row| row.iter().map(told).collect()).collect()
    }

    #[test]
    fn a_result_without_goals_has_no_findings() {
        assert!(of_one(None).blocks.is_empty());
    }

    #[test]
    fn a_row_has_result_goal_outcome_and_margin() {
        let line = Finding {
            margin: Some(0.25),
            bound: Bound::AtLeast,
            ..found("load_line", Some(500.0), Outcome::Met)
        };
        let short = Finding {
            margin: Some(-0.5),
            ..found("load_line", Some(200.0), Outcome::Missed)
        };
        let none = found("shortfall", None, Outcome::NotMeasured);
        let goals = goals(vec![line, short, none]);
        let rows = cells(&table(&[], &[(Vec::new(), &goals)]));
        assert_eq!(
            rows,
            [
                [
                    "load_line",
                    "at least 500",
                    "at least 400",
                    "met",
                    "at least +25 %"
                ],
                ["load_line", "200", "at least 400", "missed", "-50 %"],
                [
                    "shortfall",
                    "–",
                    "at least 400",
                    "not measured: no trial",
                    ""
                ],
            ]
        );
    }

    #[test]
    fn a_goal_has_a_row_for_each_result_that_it_is_for() {
        let of_another = |metric| Finding {
            is_of_another_test: true,
            ..found(metric, None, Outcome::NotMeasured)
        };
        let talk = goals(vec![
            found("load_line", Some(500.0), Outcome::Met),
            of_another("shortfall"),
            of_another("frames_lost"),
        ]);
        let calls = goals(vec![
            found("load_line", Some(5.0), Outcome::Missed),
            found("shortfall", Some(0.0), Outcome::Met),
            of_another("frames_lost"),
        ]);
        let results = [
            (vec!["talk".to_owned()], &talk),
            (vec!["calls".to_owned()], &calls),
        ];
        let rows = cells(&table(&["scenario"], &results));
        let first: Vec<_> = rows.iter().map(|row| [row[0].as_str(), &row[1]]).collect();
        assert_eq!(
            first,
            [
                ["talk", "load_line"],
                ["calls", "load_line"],
                ["calls", "shortfall"],
                ["–", "frames_lost"],
            ]
        );
        assert_eq!(claim(&results), "2 met, 1 missed, 1 not measured, 0 waived");
    }

    #[test]
    fn goals_of_two_files_are_not_put_in_one_table() {
        let one = goals(vec![found("load_line", Some(500.0), Outcome::Met)]);
        let other = Goals {
            sha256: "cd34".to_owned(),
            ..one.clone()
        };
        let cell = || vec!["x".to_owned()];
        let section = section(&["target"], &[(cell(), &one), (cell(), &other)]);
        let has_figure = |_: &str| false;
        let by = Shown {
            detail: Detail::Full,
            has_figure: &has_figure,
            timelines: false,
        };
        let blocks: Vec<_> = section.blocks.shown(by).collect();
        assert!(
            matches!(blocks.as_slice(), [Block::List(list)] if list.bad),
            "{blocks:?}"
        );
    }
}
