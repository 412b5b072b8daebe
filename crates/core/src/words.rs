//! Lists in sentences.

use std::fmt::Display;

/// The items with commas, and "and" before the last.
#[must_use]
pub fn listed(items: &[impl Display]) -> String {
    let words: Vec<String> = items.iter().map(ToString::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.join(""),
    }
}
