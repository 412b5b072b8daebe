//! Two dialects described as templates must mean by their golden sessions what the dialects themselves do, words with their
//! times apart: a template reads none.

use std::fs;
use std::path::Path;

use plimsoll_core::secret::Secret;
use plimsoll_workload_stt_real::dialect::template::Template;
use plimsoll_workload_stt_real::dialect::{Key, KeyPlace, Options};
use serde_json::Value;

use super::replay::{Replay, read, sessions_of};

/// A template decides by the conditions of its rules what a message is; so one that lacks a field of its type is unknown,
/// where the dialect reports a fault.
const FAULTS: &str = "faults.jsonl";

fn key() -> Key {
    Key {
        value: Secret::new("key"),
        place: KeyPlace::Header,
    }
}

fn template(name: &str, options: Options) -> Template {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stt-real/templates");
    let text = fs::read_to_string(templates.join(name).with_extension("toml")).unwrap();
    let options = Options {
        key: Some(key()),
        // The template has no place for them.
        params: Vec::new(),
        model: None,
        ..options
    };
    Template::parse(&text, &options).unwrap()
}

#[test]
fn the_example_of_the_page_is_a_template() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stt-real/template.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let options = Options {
        key: Some(key()),
        ..Options::default()
    };
    Template::parse(example, &options).unwrap();
}

fn without_words(events: &Value) -> Vec<Value> {
    let mut events = events.as_array().unwrap().clone();
    for event in &mut events {
        event.as_object_mut().unwrap().remove("words");
    }
    events
}

/// How many messages of the server were compared.
fn compare(name: &str, path: &Path) -> usize {
    let (lines, options) = read(path);
    // Parameters and models are in the opening.
    let has_own_opening = options.params.is_empty() && options.model.is_none();
    let mut replay = Replay::new(Box::new(template(name, options)));
    let mut count = 0;
    for (index, line) in lines.iter().enumerate() {
        let place = format!("{}:{}", path.display(), index + 1);
        match line.get("dir").and_then(Value::as_str) {
            Some("c") if has_own_opening || line.get("act") != Some(&"opening".into()) => {
                replay
                    .client(line)
                    .unwrap_or_else(|why| panic!("{place}: {why}"));
            }
            Some("s") => {
                let seen = Value::Array(replay.server(line));
                assert_eq!(
                    without_words(&seen),
                    without_words(&line["events"]),
                    "{place}"
                );
                count += 1;
            }
            _ => {}
        }
    }
    count
}

#[test]
fn templates_of_two_dialects_give_the_same_events() {
    for name in ["deepgram", "speechmatics"] {
        let sessions = sessions_of(name);
        let sessions = sessions.iter().filter(|path| !path.ends_with(FAULTS));
        let count: usize = sessions.map(|path| compare(name, path)).sum();
        assert!(count > 15, "{name}: only {count} messages");
    }
}
