//! `summary.md`: the answer first, then whether you can believe it, then the evidence, then how to repeat it.

pub(crate) mod check;
mod comparison;
pub(crate) mod evidence;
pub(crate) mod ranking;
mod resources;
pub(crate) mod search;
mod trial;
pub(crate) mod ws;

use std::fmt::Write;

use plimsoll_core::record::{Calibration, WsCalibration};

use crate::facts::client_cost;
use crate::folder::Results;
use crate::words::{self, count, number, plain, us};

/// The summary of a result folder.
#[must_use]
pub fn of(results: &Results) -> String {
    let mut page = Page::default();
    if let Some(ranking) = &results.ranking {
        ranking::section(&mut page, ranking);
    }
    if let Some(comparison) = &results.comparison {
        let ws = words::comparison::ws(&results.trials);
        comparison::section(&mut page, comparison, ws);
    }
    for (number, view) in results.searches().iter().enumerate() {
        search::section(&mut page, view, number == 0);
    }
    // A folder can hold separate trials besides those of a search.
    let others: Vec<_> = results.other_trials().collect();
    if others.len() > 1 && others.iter().any(|stored| stored.trial.ws.is_some()) {
        page.heading(1, "Trials side by side");
        ws::side_by_side(&mut page, &others);
    }
    for stored in others {
        trial::section(&mut page, stored);
    }
    if let Some(check) = &results.check {
        check::section(&mut page, check);
    }
    if let Some(calibration) = &results.calibration {
        calibration_section(&mut page, calibration);
    }
    if let Some(calibration) = &results.ws_calibration {
        ws_calibration_section(&mut page, calibration);
    }
    page.text
}

fn calibration_section(page: &mut Page, calibration: &Calibration) {
    page.heading(1, "Calibration of this machine's client");
    page.paragraph(&format!(
        "**This client can drive {} on time** (send lag p99 {} at that load).",
        words::sessions(calibration.max_sessions),
        us(calibration.send_lag_p99_us)
    ));
    let mut table = Table::new(&["what", ">value"]);
    table.row([
        "CPU per frame, bare send loop",
        &us(calibration.bare_us_per_frame),
    ]);
    table.row([
        "CPU per frame, engine",
        &us(calibration.engine_us_per_frame),
    ]);
    table.row(["engine / bare", &number(calibration.ratio)]);
    table.row([
        "how late a sleep ends, p99",
        &us(calibration.timer_error_p99_us),
    ]);
    table.row([
        "sessions that the costs were measured on",
        &count(calibration.sessions.into()),
    ]);
    table.row(["engine backend", &escape(&calibration.engine_backend)]);
    page.table(&table);
    page.paragraph(&format!("Measured at {}.", escape(&calibration.started_at)));
}

fn ws_calibration_section(page: &mut Page, calibration: &WsCalibration) {
    page.heading(1, client_cost::HEADING);
    let claim = escape(&client_cost::claim(calibration));
    page.paragraph(&format!("**{claim}.**"));
    client_costs(page, calibration);
}

/// The costs, and how they were measured.
pub(crate) fn client_costs(page: &mut Page, calibration: &WsCalibration) {
    let mut table = Table::new(&client_cost::COLUMNS);
    for row in client_cost::rows(calibration) {
        table.row(row.map(|cell| escape(&cell)));
    }
    page.table(&table);
    page.paragraph(client_cost::NOTE);
    page.paragraph(&escape(&client_cost::conditions(calibration)));
}

/// A page under construction: blocks separated by one empty line.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {text}", "#".repeat(level)));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.block(text);
    }

    pub(crate) fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            let lines: Vec<_> = items.iter().map(|item| format!("- {item}")).collect();
            self.block(&lines.join("\n"));
        }
    }

    fn code_block(&mut self, text: &str) {
        self.block(&format!("```sh\n{text}\n```"));
    }

    /// Folds the content away until the reader opens it; GitHub shows it this way.
    pub(crate) fn folded(&mut self, title: &str, inside: impl FnOnce(&mut Self)) {
        self.block(&format!("<details>\n<summary>{title}</summary>"));
        inside(self);
        self.block("</details>");
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.block(table.text.trim_end());
    }

    fn block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// A table under construction. A column whose name begins with `>` is aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    text: String,
}

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        let names: Vec<_> = columns
            .iter()
            .map(|name| name.trim_start_matches('>'))
            .collect();
        let rules: Vec<_> = columns
            .iter()
            .map(|name| if name.starts_with('>') { "---:" } else { "---" })
            .collect();
        Self {
            text: format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | ")),
        }
    }

    /// Adds a row of cells that are already Markdown.
    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.text.push('|');
        for cell in cells {
            // Writing to a string cannot fail.
            let _ = write!(self.text, " {} |", cell.as_ref());
        }
        self.text.push('\n');
    }
}

/// Text from outside as Markdown text: on one line, with all markup escaped. An underscore within a word is not markup.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut in_word = false;
    let plain = plain(text);
    let mut chars = plain.chars().peekable();
    while let Some(c) = chars.next() {
        let word_goes_on = chars.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '_' if in_word && word_goes_on => escaped.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                escaped.extend(['\\', c]);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            c => escaped.push(c),
        }
        in_word = c.is_alphanumeric();
    }
    escaped
}

/// Text from outside within a code span: on one line, and nothing in it can end the span or a table's cell.
pub(crate) fn code(text: &str) -> String {
    plain(text).replace(['`', '|'], "'")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    /// What a reader of GitHub's Markdown sees: the kinds of elements, and the text.
    fn read(markdown: &str) -> (Vec<String>, String) {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_MATH
            | Options::ENABLE_GFM;
        let mut kinds = Vec::new();
        let mut text = String::new();
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Text(found) | Event::Code(found) => text.push_str(&found),
                Event::Start(Tag::Table(_)) => kinds.push("table".to_owned()),
                Event::Start(tag) => kinds.push(format!("{tag:?}")),
                Event::End(_) => {}
                other => kinds.push(format!("{other:?}")),
            }
        }
        (kinds, text)
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_given(text in "[ -~\\PC\n]{0,40}") {
            let (kinds, read_back) = read(&format!("a {} z\n", escape(&text)));
            prop_assert_eq!(kinds, ["Paragraph"]);
            prop_assert_eq!(read_back, format!("a {} z", plain(&text)));
        }

        #[test]
        fn any_text_stays_in_its_cell(text in "[ -~\\PC\n]{0,40}") {
            let mut table = Table::new(&["one", "two"]);
            table.row([format!("a {} z", escape(&text)), format!("`a {} z`", code(&text))]);
            let (kinds, read_back) = read(&table.text);
            prop_assert_eq!(
                kinds,
                ["table", "TableHead", "TableCell", "TableCell", "TableRow", "TableCell", "TableCell"]
            );
            let in_code = plain(&text).replace(['`', '|'], "'");
            prop_assert_eq!(read_back, format!("onetwoa {} za {in_code} z", plain(&text)));
        }
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            escape("a|b\n<c> **d** `e`"),
            "a\\|b &lt;c&gt; \\*\\*d\\*\\* \\`e\\`"
        );
        assert_eq!(code("a`b|c\nd"), "a'b'c d");
        assert_eq!(escape("oldest_p95_ms"), "oldest_p95_ms");
        assert_eq!(escape("_so_ $x$"), "\\_so\\_ \\$x\\$");
    }
}
