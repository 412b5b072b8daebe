//! Two to four results side by side.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_core::comparison::{
    Difference, Measured, compare_measured, differences, differences_of_targets,
};
use plimsoll_core::record::{Comparison, Trial};
use plimsoll_core::stats::Ratio;
use plimsoll_host::timestamp;
use plimsoll_report::facts;
use plimsoll_report::history::{Entry, Kind, ResultConditions, entry};
use plimsoll_report::html::Html;
use plimsoll_report::load;
use plimsoll_report::words::{self, UNKNOWN, count, us};

use super::{frame, load_lines};
use crate::commands::compare::folders;
use crate::serve::problem::Problem;
use crate::serve::{Answer, Site, folder, page, url};
use crate::workloads::tellers;

/// The same as for `plimsoll compare`.
const CONFIDENCE: f64 = 0.95;
const SEED: u64 = 1;
/// The most results shown side by side.
const MOST: usize = 4;

/// One of the results on the page.
pub(in crate::serve) struct Column {
    /// Its search, by the first SLO, or its first trial.
    entry: Entry,
    /// One trial, which stands for the conditions of all.
    trial: Trial,
}

/// The content of the page.
pub(in crate::serve) struct Shown {
    columns: Vec<Column>,
    /// For two results: their comparison, or why there is no conclusion.
    compared: Option<Result<Comparison, String>>,
}

pub(in crate::serve) fn answer(site: &Site, query: &[(String, String)]) -> Answer {
    let names = chosen(query);
    if !(2..=MOST).contains(&names.len()) {
        return Err(Problem::asked(
            "choose two to four results: /compare?a=FOLDER&b=FOLDER",
        ));
    }
    let mut columns = Vec::new();
    let mut paths = Vec::new();
    for name in &names {
        let path = folder::with_result(site, name)?.path;
        columns.push(column(name, &path)?);
        paths.push(path);
    }
    let compared = match (paths.as_slice(), names.as_slice()) {
        ([a, b], [name_of_a, name_of_b]) => {
            let measured = |path: &Path, name: &str| -> Result<Measured, Problem> {
                // The name that the history uses.
                let folder = name.to_owned();
                Ok(Measured {
                    folder,
                    ..folders::measured(path)?
                })
            };
            let (a, b) = (measured(a, name_of_a)?, measured(b, name_of_b)?);
            let compared = compare_measured(&a, &b, CONFIDENCE, SEED, timestamp::now());
            Some(compared.map_err(|error| error.to_string()))
        }
        _ => None,
    };
    Ok(page(html(&Shown { columns, compared })))
}

/// The chosen folders, each once, in the order in which they were chosen.
fn chosen(query: &[(String, String)]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let named = query
        .iter()
        .filter(|(name, _)| ["a", "b", "c", "d", "r"].contains(&name.as_str()));
    named
        .filter(|(_, folder)| seen.insert(folder.clone()))
        .map(|(_, folder)| folder.clone())
        .collect()
}

fn column(name: &str, path: &Path) -> Result<Column, Problem> {
    let results = load(path, tellers())?;
    let entries = entry::of(name, &results);
    let measured = |entry: &Entry| matches!(entry.kind, Kind::Find | Kind::Run);
    let entry = entries.into_iter().find(measured);
    let trial = results.trials.into_iter().next();
    match (entry, trial) {
        (Some(entry), Some(stored)) => Ok(Column {
            entry,
            trial: stored.trial,
        }),
        _ => Err(Problem::asked(format!(
            "{name} holds neither a search nor a trial; choose results of `find` or `run`"
        ))),
    }
}

/// The page.
pub(in crate::serve) fn html(shown: &Shown) -> String {
    let entries: Vec<&Entry> = shown.columns.iter().map(|column| &column.entry).collect();
    frame::page("Plimsoll: side by side", |html| {
        html.element("h1", &[], "Side by side");
        if let Some(compared) = &shown.compared {
            conclusion(html, compared);
        }
        let any = entries.iter().any(|entry| entry.load_line.is_some());
        if any {
            html.element("h2", &[], "Load lines, with the intervals of their edges");
            load_lines::draw(html, &entries);
        }
        claims(html, &entries);
        conditions(html, &shown.columns);
    })
}

fn conclusion(html: &mut Html, compared: &Result<Comparison, String>) {
    html.inside(
        "section",
        &[("data-test", "conclusion")],
        |html| match compared {
            Ok(comparison) => {
                let word = comparison.conclusion.word();
                html.element("p", &[("class", "conclusion")], &format!("B is: {word}"));
                html.element("p", &[], &comparison.explanation);
                ratio(html, "Load line, B / A", comparison.load_line_ratio);
                ratio(html, "Cost, B / A", comparison.cost_ratio);
                for note in &comparison.notes {
                    html.element("p", &[("class", "note")], note);
                }
            }
            Err(why) => {
                html.element("p", &[("class", "conclusion")], "No conclusion");
                html.element("p", &[], why);
            }
        },
    );
}

fn ratio(html: &mut Html, name: &str, ratio: Option<Ratio>) {
    if let Some(ratio) = ratio {
        html.element("p", &[], &format!("{name}: {}", facts::ratio(&ratio)));
    }
}

fn claims(html: &mut Html, entries: &[&Entry]) {
    html.element("h2", &[], "Results");
    let table = [("data-test", "side-by-side"), ("aria-label", "Results")];
    html.inside("table", &table, |html| {
        lettered(html, entries.len());
        html.inside("tbody", &[], |html| {
            html.inside("tr", &[], |html| {
                named(html, "folder");
                for entry in entries {
                    html.inside("td", &[], |html| {
                        frame::link(html, &url::result(&entry.folder), &entry.folder);
                    });
                }
            });
            let mut row = |name: &str, of: &dyn Fn(&Entry) -> String| {
                html.inside("tr", &[], |html| {
                    named(html, name);
                    for entry in entries {
                        frame::cell(html, &of(entry));
                    }
                });
            };
            row("claim", &|entry| entry.claim.clone());
            row("began", &|entry| entry.started_at.clone());
            row("load line", &load_line);
            row("edge", &|entry| {
                let edge = entry.edge.as_ref();
                edge.map_or_else(|| UNKNOWN.to_owned(), facts::edge)
            });
            let unit = entries.first().map(|entry| entry.load_unit);
            row(&words::cpu_cost(unit.unwrap_or_default()), &cost);
            row(
                "probe of the machine: wake-up, CPU time of a timer",
                &|entry| {
                    entry.probe.map_or_else(
                        || UNKNOWN.to_owned(),
                        |probe| format!("{}, {}", us(probe.wake_up_us), us(probe.timer_cpu_us)),
                    )
                },
            );
            row("trials", &|entry| count(entry.trials as u64));
        });
    });
}

fn load_line(entry: &Entry) -> String {
    match entry.kind {
        Kind::Find => entry.in_short(),
        _ => UNKNOWN.to_owned(),
    }
}

/// `333 µs (332 µs to 334 µs) at 750 sessions`.
fn cost(entry: &Entry) -> String {
    let Some(cost) = &entry.cost else {
        return UNKNOWN.to_owned();
    };
    let range = match cost.trials {
        0 | 1 => String::new(),
        _ => format!(" ({} to {})", us(cost.low), us(cost.high)),
    };
    let mean = us(cost.cpu_us_per_session_second);
    let load = words::load(cost.sessions, entry.load_unit);
    let cores = cost.core_us_per_session_second;
    let cores = cores.map_or_else(String::new, |core_us| {
        format!(", {} of its cores", us(core_us))
    });
    format!("{mean}{range}{cores} at {load}")
}

/// The conditions that differ, with each result's value, and the others in one line.
fn conditions(html: &mut Html, columns: &[Column]) {
    let [first, others @ ..] = columns else {
        return;
    };
    html.element("h2", &[], "Conditions");
    let rows = differing(&first.trial, others.iter().map(|column| &column.trial));
    if rows.is_empty() {
        let words = ResultConditions::of(&first.entry).words();
        let same = format!("The same for all: {words}.");
        html.element("p", &[("data-test", "conditions-same")], &same);
        return;
    }
    let table = [("data-test", "conditions"), ("aria-label", "Conditions")];
    html.inside("table", &table, |html| {
        lettered(html, columns.len());
        html.inside("tbody", &[], |html| {
            for (name, values) in &rows {
                html.inside("tr", &[], |html| {
                    named(html, name);
                    for value in values {
                        let differs = Some(value) != values.first();
                        let class = if differs { "differs" } else { "same" };
                        html.element("td", &[("class", class)], value);
                    }
                });
            }
        });
    });
    html.element(
        "p",
        &[],
        "All other conditions that affect the numbers were the same.",
    );
}

/// The conditions that differ, by name, with each result's value.
fn differing<'a>(
    first: &Trial,
    others: impl Iterator<Item = &'a Trial>,
) -> Vec<(String, Vec<String>)> {
    let found: Vec<Vec<Difference>> = others
        .map(|other| {
            let mut found = differences_of_targets(first, other);
            found.extend(differences(first, other));
            found
        })
        .collect();
    let mut names: Vec<&Difference> = Vec::new();
    for difference in found.iter().flatten() {
        if !names.iter().any(|known| known.name == difference.name) {
            names.push(difference);
        }
    }
    let of_first = |named: &Difference| -> Vec<String> {
        let others = found.iter().map(|of_one| {
            let differs = of_one.iter().find(|other| other.name == named.name);
            differs.map_or_else(|| named.a.clone(), |differs| differs.b.clone())
        });
        std::iter::once(named.a.clone()).chain(others).collect()
    };
    names
        .into_iter()
        .map(|named| (named.name.clone(), of_first(named)))
        .collect()
}

fn lettered(html: &mut Html, columns: usize) {
    let letters: Vec<String> = ('A'..).take(columns).map(String::from).collect();
    let head: Vec<&str> = std::iter::once("")
        .chain(letters.iter().map(String::as_str))
        .collect();
    frame::head(html, &head);
}

fn named(html: &mut Html, name: &str) {
    html.element("th", &[("scope", "row")], name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_chosen_once_each_in_their_order() {
        let query = |pairs: &[(&str, &str)]| -> Vec<String> {
            let owned: Vec<_> = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            chosen(&owned)
        };
        assert_eq!(
            query(&[("r", "b"), ("x", "c"), ("r", "a"), ("r", "b")]),
            ["b", "a"]
        );
        assert_eq!(
            query(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]).len(),
            4
        );
        assert!(query(&[]).is_empty());
    }
}
