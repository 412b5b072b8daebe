//! The line that a target prints when it starts: one JSON object with the versions of its runtime and libraries.

use super::case::Verdict;

/// Whether the first line of this output is such a line.
///
/// # Errors
/// It is not; what it is instead.
pub fn check(output: &str) -> Verdict {
    let line = output
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    match serde_json::from_str::<serde_json::Value>(line) {
        Ok(value) if value.is_object() && names_a_version(&value) => Ok(line.to_owned()),
        Ok(_) => Err(format!("no version in {line}")),
        Err(_) => Err(format!("the first line is {line:?}")),
    }
}

/// Whether a text that looks like a version (a digit, a dot) is anywhere in the value.
fn names_a_version(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => {
            text.contains('.') && text.contains(|letter: char| letter.is_ascii_digit())
        }
        serde_json::Value::Array(values) => values.iter().any(names_a_version),
        serde_json::Value::Object(fields) => fields.values().any(names_a_version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_at_any_depth() {
        for (text, expected) in [
            (r#"{"runtime":"tokio 1.48.0"}"#, true),
            (r#"{"libraries":{"axum":"0.8.1"}}"#, true),
            (r#"{"libraries":[{"version":"0.8"}]}"#, true),
            (r#"{"msg":"listening","port":3000}"#, false),
            (r#"["tokio 1.48.0"]"#, false),
            ("listening on 3000", false),
        ] {
            assert_eq!(check(text).is_ok(), expected, "{text}");
        }
    }
}
