//! What a record says that nobody here can tell: sections of a workload of another Plimsoll, as they are.

use plimsoll_core::record::{Json, Trial};

use crate::blocks::{Blocks, Section, Table};
use crate::words::{UNKNOWN, count, number, plain};

/// The most fields of a section that are shown, and the most characters of each. A record can hold anything.
const FIELDS_MAX: usize = 100;
const CHARS_MAX: usize = 300;

/// A table of the fields of each section. `None` if there is no section.
pub(crate) fn sections(trial: &Trial) -> Option<Section> {
    let mut blocks = Blocks::default();
    for (name, section) in trial.sections.iter() {
        if let Json::Object(fields) = section {
            blocks.push(Table::of_facts(&words_of(name), facts(fields)));
        }
    }
    (!blocks.is_empty()).then(|| Section::new("sections", "What the workload adds", blocks))
}

fn facts(fields: &[(String, Json)]) -> Vec<(String, String)> {
    let shown = fields.iter().take(FIELDS_MAX);
    let mut facts: Vec<_> = shown
        .map(|(name, value)| (words_of(name), value_of(value)))
        .collect();
    let left_out = fields.len().saturating_sub(FIELDS_MAX) as u64;
    if left_out > 0 {
        facts.push(("more fields in the record".to_owned(), count(left_out)));
    }
    facts
}

fn words_of(name: &str) -> String {
    cut(&plain(&name.replace('_', " ")))
}

fn value_of(value: &Json) -> String {
    match value {
        Json::Null => UNKNOWN.to_owned(),
        Json::Bool(true) => "yes".to_owned(),
        Json::Bool(false) => "no".to_owned(),
        Json::Whole(value) => count(*value),
        Json::Negative(value) => value.to_string(),
        Json::Real(value) => number(*value),
        Json::Text(text) => cut(&plain(text)),
        Json::List(_) | Json::Object(_) => cut(&plain(&value.to_string())),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_words_and_what_is_long_is_cut() {
        let fields = |text: &str| match serde_json::from_str(text) {
            Ok(Json::Object(fields)) => fields,
            other => panic!("{other:?}"),
        };
        let long = "x".repeat(1_000);
        let found = facts(&fields(&format!(
            r#"{{"queue_depth":1234,"share":0.5,"ok":true,"why":null,"name":"a\u001b[2J","list":[1],"long":"{long}"}}"#
        )));
        let told: Vec<_> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            told[..6],
            [
                ("queue depth", "1,234"),
                ("share", "0.5"),
                ("ok", "yes"),
                ("why", UNKNOWN),
                ("name", "a [2J"),
                ("list", "[1]"),
            ]
        );
        assert_eq!(told[6].1.chars().count(), CHARS_MAX + 1);
        let many: Vec<String> = (0..150).map(|number| format!("\"f{number}\":1")).collect();
        let found = facts(&fields(&format!("{{{}}}", many.join(","))));
        assert_eq!(found.len(), FIELDS_MAX + 1);
        assert_eq!(found[FIELDS_MAX].1, "50");
    }
}
