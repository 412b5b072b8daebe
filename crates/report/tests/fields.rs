//! `docs/reference/fields.md` lists every field of every record. It is generated from the schemas.
//!
//! After a change to the records: `PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report`.

mod example;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const HEAD: &str = "# Fields of the records

<!-- Written by PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report. Do not edit: change the comments of the record types instead. -->

Every field of every JSON file in a [result folder](results.md), made from the [schemas](../../crates/report/schema). A field's unit is
the end of its name. A field that is unknown is `null`.
";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a field holds, as a link if it has its own table.
fn kind(schema: &Value) -> String {
    if let Some(name) = text(&schema["$ref"]).strip_prefix("#/$defs/") {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(either) = schema["anyOf"].as_array() {
        let kinds: Vec<String> = either.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    if let Some(types) = schema["type"].as_array() {
        let names: Vec<&str> = types.iter().map(text).collect();
        let one = names.iter().find(|name| **name != "null");
        let mut one_of = schema.clone();
        one_of["type"] = one.map_or(Value::Null, |name| (*name).into());
        let null = if names.contains(&"null") {
            " or null"
        } else {
            ""
        };
        return kind(&one_of) + null;
    }
    match text(&schema["type"]) {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        name => name.to_owned(),
    }
}

fn cell(description: &Value) -> String {
    let words: Vec<&str> = text(description).split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

/// A table of an object's fields, or of an enumeration's values.
fn table(page: &mut String, schema: &Value) {
    if !text(&schema["description"]).is_empty() {
        let _ = writeln!(page, "\n{}", cell(&schema["description"]));
    }
    if let Some(values) = schema["oneOf"].as_array() {
        page.push_str("\n| value | meaning |\n|---|---|\n");
        for value in values {
            let word = value["const"].as_str().expect("every choice is a word");
            let _ = writeln!(page, "| `{word}` | {} |", cell(&value["description"]));
        }
        return;
    }
    if schema["type"] == "string" {
        let examples = schema["examples"].as_array().expect("a word has examples");
        let words: Vec<_> = examples
            .iter()
            .map(|word| format!("`{}`", text(word)))
            .collect();
        let _ = writeln!(page, "\nA word, such as {}.", words.join(", "));
        return;
    }
    let fields = schema["properties"].as_object().expect("fields");
    page.push_str("\n| field | holds | meaning |\n|---|---|---|\n");
    for (name, field) in fields {
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} |",
            kind(field),
            cell(&field["description"])
        );
    }
}

fn page() -> String {
    let mut page = String::from(HEAD);
    let mut parts = BTreeMap::new();
    for (file, schema) in plimsoll_report::schema::all(example::TELLERS) {
        let schema: Value = serde_json::from_str(&schema).expect("a schema");
        let _ = writeln!(page, "\n## {file}");
        table(&mut page, &schema);
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            let earlier = parts.insert(name.clone(), part.clone());
            assert!(earlier.is_none_or(|earlier| earlier == *part), "two {name}");
        }
    }
    page.push_str("\n## Parts\n");
    for (name, part) in &parts {
        let _ = writeln!(page, "\n### {name}");
        table(&mut page, part);
    }
    page
}

#[test]
fn the_page_of_fields_is_that_of_the_schemas() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/fields.md");
    let page = page();
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        fs::write(&file, &page).expect("docs/ can be written");
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == page,
        "docs/reference/fields.md is behind: PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report"
    );
    assert!(page.contains("| `frames_lost` | integer |"), "{page}");
}
