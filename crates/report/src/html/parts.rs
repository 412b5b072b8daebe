//! The building blocks of sections.

use super::write::{Attribute, Html};
use crate::facts::trial::Fact;
use crate::words::{count, plain};

/// The parts of the page in order, so that the reader can jump to one.
#[derive(Debug, Default)]
pub(super) struct Contents {
    parts: Vec<(String, String)>,
}

impl Contents {
    pub(super) fn push(&mut self, id: &str, title: &str) {
        self.parts.push((id.to_owned(), title.to_owned()));
    }

    /// The ids and titles.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.parts.iter()
    }
}

/// Levels of headings: of a result and of its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    pub(super) result: &'static str,
    pub(super) part: &'static str,
}

impl Levels {
    /// For the first result of a page.
    pub(super) const FIRST: Self = Self {
        result: "h1",
        part: "h2",
    };
    /// For the other results.
    pub(super) const FURTHER: Self = Self {
        result: "h2",
        part: "h3",
    };
}

/// A part of a result: its heading, its entry in the contents, and its content.
pub(super) fn part(
    html: &mut Html,
    contents: &mut Contents,
    (id, title, level): (&str, &str, &'static str),
    inside: impl FnOnce(&mut Html),
) {
    contents.push(id, title);
    unlisted_part(html, (id, title, level), inside);
}

/// The same without an entry in the contents.
pub(super) fn unlisted_part(
    html: &mut Html,
    (id, title, level): (&str, &str, &'static str),
    inside: impl FnOnce(&mut Html),
) {
    let title_id = format!("{id}-title");
    let attributes = [("id", id), ("aria-labelledby", title_id.as_str())];
    html.inside("section", &attributes, |html| {
        html.element(level, &[("id", &title_id)], title);
        inside(html);
    });
}

/// A sentence.
pub(super) fn paragraph(html: &mut Html, text: &str) {
    html.element("p", &[], text);
}

/// A side note.
pub(super) fn note(html: &mut Html, text: &str) {
    html.element("p", &[("class", "note")], text);
}

/// A word or two about the whole result. `good` is `None` where it is neither good nor bad.
pub(super) fn pill(html: &mut Html, good: Option<bool>, text: &str) {
    let class = match good {
        Some(true) => "pill good",
        Some(false) => "pill bad",
        None => "pill",
    };
    html.element("p", &[("class", class), ("data-test", "verdict")], text);
}

/// A shell command.
pub(super) fn command(html: &mut Html, command: &str) {
    html.inside("pre", &[("tabindex", "0")], |html| {
        html.element("code", &[], command)
    });
}

/// Sentences as a list; nothing if there are none.
pub(super) fn list(html: &mut Html, attributes: &[Attribute<'_>], items: &[String]) {
    if items.is_empty() {
        return;
    }
    html.inside("ul", attributes, |html| {
        for item in items {
            html.element("li", &[], item);
        }
    });
}

/// A term, its value, and the hook by which tests find it.
pub(super) type Term<'a> = (&'a str, String, &'static str);

/// Terms and their values.
pub(super) fn terms(html: &mut Html, terms: &[Term<'_>]) {
    html.inside("dl", &[("class", "facts")], |html| {
        for (term, value, hook) in terms {
            html.element("dt", &[], term);
            let test = [("data-test", *hook)];
            let attributes = &test[..usize::from(!hook.is_empty())];
            html.element("dd", attributes, value);
        }
    });
}

/// A drawing with its caption.
pub(super) fn figure(html: &mut Html, hook: &str, svg: &str, caption: &str) {
    html.inside("figure", &[("data-test", hook)], |html| {
        html.drawing(svg);
        html.element("figcaption", &[], caption);
    });
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    /// Text.
    Text(String),
    /// A word that is good or bad news.
    Word(String, bool),
    /// A link to a file below this page: its path and its text.
    Link(String, String),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// `yes`, or `no` as bad news.
pub(super) fn yes_or_no(yes: bool) -> Cell {
    Cell::Word(if yes { "yes" } else { "no" }.to_owned(), yes)
}

/// A table: its caption, its columns (a name that begins with `>` is of a column of numbers), its rows. The first cell
/// of a row names the row. On a narrow screen the table scrolls within the page.
pub(super) fn table(
    html: &mut Html,
    caption: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = Vec<Cell>>,
) {
    let scroll = [
        ("class", "scroll"),
        ("role", "region"),
        ("aria-label", caption),
        ("tabindex", "0"),
    ];
    html.inside("div", &scroll, |html| {
        html.inside("table", &[], |html| {
            html.element("caption", &[], caption);
            html.inside("thead", &[], |html| {
                html.inside("tr", &[], |html| {
                    for column in columns {
                        let attributes = [("scope", "col"), ("class", "number")];
                        let attributes = &attributes[..1 + usize::from(is_number(column))];
                        html.element("th", attributes, column.trim_start_matches('>'));
                    }
                });
            });
            html.inside("tbody", &[], |html| {
                for cells in rows {
                    row(html, columns, &cells);
                }
            });
        });
    });
}

fn is_number(column: &str) -> bool {
    column.starts_with('>')
}

fn row(html: &mut Html, columns: &[&str], cells: &[Cell]) {
    debug_assert_eq!(columns.len(), cells.len(), "one cell per column");
    html.inside("tr", &[], |html| {
        for (index, (cell, column)) in cells.iter().zip(columns).enumerate() {
            let mut attributes = Vec::new();
            if index == 0 {
                attributes.push(("scope", "row"));
            }
            if is_number(column) {
                attributes.push(("class", "number"));
            }
            let name = if index == 0 { "th" } else { "td" };
            html.inside(name, &attributes, |html| match cell {
                Cell::Text(text) => html.text(text),
                Cell::Word(word, good) => {
                    let class = if *good { "good" } else { "bad" };
                    html.element("strong", &[("class", class)], word);
                }
                Cell::Link(path, text) => html.element("a", &[("href", &relative(path))], text),
            });
        }
    });
}

/// Names and values as a table.
pub(super) fn facts(html: &mut Html, caption: &str, rows: &[Fact]) {
    let rows = rows
        .iter()
        .map(|(name, value)| vec![Cell::from(name.as_str()), Cell::from(value.as_str())]);
    table(html, caption, &["what", "value"], rows);
}

/// A path beside this page as a link. Whatever the path contains, it cannot lead to another scheme or host.
fn relative(path: &str) -> String {
    let mut link = "./".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./".contains(&byte) {
            link.push(char::from(byte));
        } else {
            link.push_str(&format!("%{byte:02X}"));
        }
    }
    link
}

/// The most reasons of a ledger that are listed, and the most characters of each. A target can say anything, any number
/// of times.
const REASONS_MAX: usize = 40;
const REASON_CHARS_MAX: usize = 300;

/// What happened, how often and why.
pub(super) fn reasons<'a>(
    html: &mut Html,
    title: &str,
    reasons: impl ExactSizeIterator<Item = (&'a String, &'a u64)>,
) {
    let left_out = reasons.len().saturating_sub(REASONS_MAX);
    let mut items: Vec<String> = reasons
        .take(REASONS_MAX)
        .map(|(reason, times)| {
            let reason: String = plain(reason).chars().take(REASON_CHARS_MAX).collect();
            format!("{} × {reason}", count(*times))
        })
        .collect();
    if items.is_empty() {
        return;
    }
    if left_out > 0 {
        items.push(format!(
            "and {} more, in the trial's record",
            count(left_out as u64)
        ));
    }
    paragraph(html, title);
    list(html, &[], &items);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_path_whatever_it_is() {
        assert_eq!(relative("rust-axum/report.html"), "./rust-axum/report.html");
        assert_eq!(
            relative("javascript:alert(1)"),
            "./javascript%3Aalert%281%29"
        );
        assert_eq!(relative("//host/é?x#y"), ".///host/%C3%A9%3Fx%23y");
    }
}
