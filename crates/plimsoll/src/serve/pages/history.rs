//! The first page: what runs now, and the results so far.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use plimsoll_core::record::Live;
use plimsoll_report::facts;
use plimsoll_report::history::{Broken, Entry, Filter, Kind, since};
use plimsoll_report::html::Html;
use plimsoll_report::words::{UNKNOWN, load, maybe, number as digits};

use super::frame;
use crate::commands::history::columns::cost;
use crate::serve::problem::Problem;
use crate::serve::{Answer, Site, page, url};

/// The most results shown: more than anyone reads. The filters find the others.
const MOST: u32 = 500;

/// The content of the page.
pub(in crate::serve) struct Shown<'a> {
    /// The folder of results, as the user named it.
    pub(in crate::serve) results: &'a Path,
    /// Running commands, by folder.
    pub(in crate::serve) live: Vec<(String, Live)>,
    /// Results, newest first.
    pub(in crate::serve) entries: Vec<Entry>,
    /// Folders that cannot be read.
    pub(in crate::serve) broken: Vec<Broken>,
    /// The requested filter.
    pub(in crate::serve) asked: Asked,
}

/// The filter's fields as they were filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::serve) struct Asked {
    target: String,
    workload: String,
    kind: String,
    since: String,
    vcpu: String,
}

impl Asked {
    /// Reads the fields from a query; ignores parameters that it does not know.
    pub(in crate::serve) fn of(query: &[(String, String)]) -> Self {
        let mut asked = Self::default();
        for (name, value) in query {
            let field = match name.as_str() {
                "target" => &mut asked.target,
                "workload" => &mut asked.workload,
                "kind" => &mut asked.kind,
                "since" => &mut asked.since,
                "vcpu" => &mut asked.vcpu,
                _ => continue,
            };
            value.trim().clone_into(field);
        }
        asked
    }

    /// The fields as a filter. An empty field filters nothing.
    pub(in crate::serve) fn filter(&self, now: SystemTime) -> Result<Filter, Problem> {
        let given = |field: &String| Some(field.clone()).filter(|field| !field.is_empty());
        let odd = |name: &str, value: &str, like: &str| {
            Problem::asked(format!("{name} {value}: give {like}"))
        };
        Ok(Filter {
            target: given(&self.target),
            workload: given(&self.workload),
            kind: given(&self.kind)
                .map(|kind| {
                    let kinds = Kind::ALL.map(Kind::word).join(", ");
                    Kind::by_word(&kind).ok_or_else(|| odd("kind", &kind, &kinds))
                })
                .transpose()?,
            since: given(&self.since)
                .map(|text| {
                    let like = "a date (2026-01-31), or how long ago (7d, 12h)";
                    since(&text, now).ok_or_else(|| odd("since", &text, like))
                })
                .transpose()?,
            vcpu: given(&self.vcpu)
                .map(|text| {
                    let number = text.parse::<f64>().ok().filter(|vcpu| vcpu.is_finite());
                    number.ok_or_else(|| odd("vCPU", &text, "a number"))
                })
                .transpose()?,
            limit: Some(MOST),
        })
    }
}

pub(in crate::serve) fn answer(site: &Site, query: &[(String, String)]) -> Answer {
    let now = SystemTime::now();
    let asked = Asked::of(query);
    let filter = asked.filter(now)?;
    let (history, refreshed) = site.history()?;
    let mut live = Vec::new();
    for folder in refreshed.live {
        let known = history.known(&folder)?;
        let shown = known.and_then(|known| plimsoll_report::read_live(&known.path, now));
        live.extend(shown.map(|shown| (folder, shown)));
    }
    Ok(page(html(&Shown {
        results: &site.results,
        live,
        entries: history.list(&filter)?,
        broken: refreshed.broken,
        asked,
    })))
}

/// The page.
pub(in crate::serve) fn html(shown: &Shown<'_>) -> String {
    frame::page("Plimsoll: results", |html| {
        html.element("h1", &[], "Results");
        let folder = shown.results.display().to_string();
        html.element("p", &[("class", "where")], &folder);
        live(html, &shown.live);
        filter(html, &shown.asked);
        results(html, &shown.entries);
        broken(html, &shown.broken);
    })
}

fn live(html: &mut Html, live: &[(String, Live)]) {
    if live.is_empty() {
        return;
    }
    let attributes = [("class", "live"), ("data-test", "live-list")];
    html.inside("section", &attributes, |html| {
        html.element("h2", &[], "Now");
        html.inside("ul", &[], |html| {
            for (folder, shown) in live {
                html.inside("li", &[], |html| {
                    let what = format!("{} {}", shown.command.word(), shown.targets.join(", "));
                    frame::link(html, &url::live(folder), &what);
                    html.text(&at_work(shown));
                });
            }
        });
    });
}

/// `: trial 3 at 800 sessions, measured`.
fn at_work(shown: &Live) -> String {
    shown.trial.as_ref().map_or_else(String::new, |trial| {
        format!(
            ": trial {} of {} at {}, {}",
            trial.number,
            shown.target,
            load(trial.sessions, shown.load_unit),
            trial.phase.word()
        )
    })
}

fn filter(html: &mut Html, asked: &Asked) {
    let form = [
        ("method", "get"),
        ("action", "/"),
        ("class", "filter"),
        ("data-test", "filter"),
    ];
    html.inside("form", &form, |html| {
        field(html, "target", "Target", &asked.target);
        field(html, "workload", "Workload", &asked.workload);
        html.inside("label", &[], |html| {
            html.text("Kind ");
            html.inside("select", &[("name", "kind")], |html| {
                html.element("option", &[("value", "")], "any");
                for word in Kind::ALL.map(Kind::word) {
                    let chosen = [("value", word), ("selected", "")];
                    let attributes = if word == asked.kind {
                        &chosen[..]
                    } else {
                        &chosen[..1]
                    };
                    html.element("option", attributes, word);
                }
            });
        });
        field(html, "since", "Since (7d, 2026-01-31)", &asked.since);
        field(html, "vcpu", "vCPU", &asked.vcpu);
        html.element("button", &[], "Filter");
        frame::link(html, "/", "All");
    });
}

fn field(html: &mut Html, name: &'static str, label: &str, value: &str) {
    html.inside("label", &[], |html| {
        html.text(&format!("{label} "));
        html.open("input", &[("name", name), ("value", value), ("size", "12")]);
    });
}

fn results(html: &mut Html, entries: &[Entry]) {
    if entries.is_empty() {
        html.element("p", &[("data-test", "no-result")], "No result.");
        return;
    }
    let form = [
        ("method", "get"),
        ("action", "/compare"),
        ("data-test", "compare-form"),
    ];
    html.inside("form", &form, |html| {
        html.inside("p", &[], |html| {
            html.element("button", &[], "Compare selected");
            html.text(" two to four results of a target's load line or of a trial");
        });
        let table = [("data-test", "history"), ("aria-label", "Results")];
        html.inside("table", &table, |html| {
            frame::head(
                html,
                &[
                    "Choose",
                    "When",
                    "Kind",
                    "Target",
                    ">vCPU",
                    "Result",
                    "Edge",
                    ">CPU/session/s",
                    "Workload, profile, SLO",
                ],
            );
            html.inside("tbody", &[], |html| {
                let mut chosen = BTreeSet::new();
                for entry in entries {
                    // A folder with two SLOs has two rows, but can be chosen only once.
                    let first = chosen.insert(&entry.folder);
                    row(html, entry, first);
                }
            });
        });
    });
}

fn row(html: &mut Html, entry: &Entry, first_of_folder: bool) {
    html.inside("tr", &[("data-folder", &entry.folder)], |html| {
        html.inside("td", &[], |html| {
            if first_of_folder && matches!(entry.kind, Kind::Find | Kind::Run) {
                let label = format!("compare {}", entry.folder);
                let attributes = [
                    ("type", "checkbox"),
                    ("name", "r"),
                    ("value", entry.folder.as_str()),
                    ("aria-label", label.as_str()),
                ];
                html.open("input", &attributes);
            }
        });
        html.element(
            "th",
            &[("scope", "row"), ("class", "when")],
            &entry.started_at,
        );
        frame::cell(html, entry.kind.word());
        frame::cell(html, &entry.target());
        frame::number(html, &maybe(entry.vcpu, digits));
        html.inside("td", &[("title", &entry.claim)], |html| {
            frame::link(html, &url::result(&entry.folder), &in_short(entry));
            if entry.interrupted {
                html.text(", interrupted");
            }
        });
        let edge = entry.edge.as_ref();
        frame::cell(html, &edge.map_or_else(|| UNKNOWN.to_owned(), facts::edge));
        frame::number(html, &cost(entry));
        let conditions = [&entry.workload, &entry.profile, &entry.slo];
        let told: Vec<&str> = conditions
            .into_iter()
            .map(String::as_str)
            .filter(|word| !word.is_empty())
            .collect();
        frame::cell(html, &told.join(", "));
    });
}

/// The result in short. A link needs a text, so an empty one becomes the kind.
fn in_short(entry: &Entry) -> String {
    let short = entry.in_short();
    if short.is_empty() {
        entry.kind.word().to_owned()
    } else {
        short
    }
}

fn broken(html: &mut Html, broken: &[Broken]) {
    if broken.is_empty() {
        return;
    }
    html.inside("section", &[("data-test", "broken")], |html| {
        html.element("h2", &[], "Folders that cannot be read");
        html.inside("dl", &[], |html| {
            for folder in broken {
                html.element("dt", &[], &folder.folder);
                html.element("dd", &[], &folder.why);
            }
        });
    });
}
