//! The checked-in vectors of the streaming speech-to-text contract are what the generator gives, and they hold for
//! the code in this crate.

#[path = "../examples/stt-vectors/answers.rs"]
mod answers;
#[path = "../examples/stt-vectors/generate.rs"]
mod generate;
#[path = "../examples/stt-vectors/messages.rs"]
mod messages;
#[path = "../examples/stt-vectors/sessions.rs"]
mod sessions;

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use plimsoll_workload_stt::reference::Answer;
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../targets/stt/vectors")
}

fn cases(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join(name)).expect("the vector file is checked in");
    let vectors: Value = serde_json::from_str(&text).expect("a vector file is JSON");
    vectors["cases"]
        .as_array()
        .expect("`cases` is an array")
        .clone()
}

#[test]
fn checked_in_files_are_what_the_generator_gives() {
    let files = generate::files();
    for file in &files {
        let checked_in = fs::read_to_string(folder().join(file.name)).unwrap_or_default();
        assert!(
            checked_in == file.json,
            "{} differs from its generator: run cargo run -p plimsoll-workload-stt --example stt-vectors -- targets/stt/vectors",
            file.name
        );
    }
    let generated: HashSet<&str> = files.iter().map(|file| file.name).collect();
    for entry in fs::read_dir(folder()).expect("the folder is checked in") {
        let name = entry.expect("a readable folder").file_name();
        let name = name.to_str().expect("ASCII names");
        assert!(
            !name.ends_with(".json") || generated.contains(name),
            "{name} is nobody's: remove it"
        );
    }
}

#[test]
fn ids_are_unique_and_kebab_case() {
    for file in generate::files() {
        let mut seen = HashSet::new();
        for case in cases(file.name) {
            let id = case["id"]
                .as_str()
                .expect("every case has an id")
                .to_owned();
            let kebab = id
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(kebab && !id.is_empty(), "{}: {id}", file.name);
            assert!(seen.insert(id.clone()), "{}: {id} twice", file.name);
        }
    }
}

/// The rows were written by hand: the strict reader agrees with every one of them.
#[test]
fn the_strict_reader_agrees_about_answers() {
    for case in cases("inference_answers.json") {
        let body = case["body"].as_str().expect("a body is text");
        let read = Answer::from_json(body.as_bytes());
        assert_eq!(
            read.is_ok(),
            case["ok"].as_bool().expect("ok is a bool"),
            "{}: {read:?}",
            case["id"]
        );
        assert_eq!(case["kind"].is_null(), read.is_ok(), "{}", case["id"]);
    }
}

/// And so does a strict reader of start messages.
#[test]
fn a_strict_reader_agrees_about_start_messages() {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        r#type: String,
    }
    for case in cases("start.json") {
        let text = case["text"].as_str().expect("a start is text");
        let object = text
            .trim_start_matches([' ', '\t', '\n', '\r'])
            .starts_with('{');
        let ok = object
            && serde_json::from_str::<Start>(text).is_ok_and(|start| start.r#type == "start");
        assert_eq!(
            ok,
            case["ok"].as_bool().expect("ok is a bool"),
            "{}",
            case["id"]
        );
    }
}
