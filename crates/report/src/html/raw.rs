//! The records themselves, for programs that read the page.

use serde::Serialize;

use super::blocks::note;
use super::order::Ranked;
use super::write::{Html, harmless};
use crate::folder::{
    BRACKET, CALIBRATION, CHECK, COMPARISON, FLEET, INFERENCE, RANKING, Results, client_costs,
    further_bracket,
};
use crate::words::counted;

/// Room for all records, in bytes.
const ROOM_BYTES: usize = 400_000;

/// The records as one JSON object, keyed by file name.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) json: String,
    /// How many records the object has.
    records: u64,
    /// The files of the records that did not fit.
    left_out: Vec<String>,
}

/// The records of a folder: first those of the whole result, then those of the trials in this order.
pub(super) fn of(results: &Results, order: &[Ranked]) -> Raw {
    let mut raw = Raw {
        json: "{".to_owned(),
        records: 0,
        left_out: Vec::new(),
    };
    raw.add_known(RANKING, results.ranking.as_ref());
    raw.add_known(COMPARISON, results.comparison.as_ref());
    raw.add_known(BRACKET, results.bracket.as_ref());
    for bracket in &results.further_brackets {
        raw.add(&further_bracket(&bracket.slo), bracket);
    }
    raw.add_known(CHECK, results.check.as_ref());
    raw.add_known(CALIBRATION, results.calibration.as_ref());
    for costs in &results.client_costs {
        raw.add(&client_costs(&costs.workload), costs);
    }
    raw.add_known(FLEET, results.fleet.as_ref());
    raw.add_known(INFERENCE, results.inference.as_ref());
    for ranked in order {
        let stem = &ranked.stored.stem;
        // As on disk, not as one of several SLOs judges it.
        let stored = results.trials.iter().find(|stored| stored.stem == *stem);
        raw.add_known(&format!("{stem}.json"), stored.map(|stored| &stored.trial));
    }
    raw.json.push('}');
    raw
}

impl Raw {
    fn add_known<T: Serialize>(&mut self, file: &str, record: Option<&T>) {
        if let Some(record) = record {
            self.add(file, record);
        }
    }

    fn add<T: Serialize>(&mut self, file: &str, record: &T) {
        let json = serde_json::to_string(file)
            .and_then(|name| Ok(format!("{name}:{}", serde_json::to_string(record)?)))
            .map(|json| harmless(&json));
        match json {
            // One more byte for the comma before it or the brace at the end.
            Ok(json) if self.json.len() + json.len() + 2 <= ROOM_BYTES => {
                if self.records > 0 {
                    self.json.push(',');
                }
                self.json.push_str(&json);
                self.records += 1;
            }
            _ => self.left_out.push(file.to_owned()),
        }
    }

    /// Writes the records as a folded part. The script fills it in when it is opened.
    pub(super) fn write(&self, html: &mut Html) {
        html.inside("section", &[("aria-labelledby", "raw-title")], |html| {
            html.element("h2", &[("id", "raw-title")], "Raw JSON");
            html.inside("details", &[("id", "raw"), ("data-test", "raw-json")], |html| {
                let records = counted(self.records, "record");
                let summary = format!("{records}, by the names of their files");
                html.element("summary", &[], &summary);
                let told = "They are embedded in this page, in the element with the id raw-json, and stored next to it as files.";
                note(html, &told.into());
                if !self.left_out.is_empty() {
                    let files = self.left_out.join(", ");
                    note(
                        html,
                        &format!("No room in a page of this size for: {files}.").into(),
                    );
                }
                html.element("pre", &[("id", "raw-view"), ("hidden", ""), ("tabindex", "0")], "");
            });
        });
    }
}
