//! `summary.md`: the answer first, then whether it can be believed, then the evidence, then how to repeat it.

mod check;
mod evidence;
mod trial;

use std::fmt::Write;

use plimsoll_core::record::{Bracket, Calibration};

use crate::folder::Results;
use crate::loads;
use crate::words::{self, count, number, plain, us};

/// The summary of a result folder.
#[must_use]
pub fn of(results: &Results) -> String {
    let mut page = Page::default();
    if let Some(bracket) = &results.bracket {
        find(&mut page, bracket, results);
    }
    // A folder can hold trials of its own beside those of a search.
    for stored in &results.trials {
        if !words::is_of_search(results.bracket.as_ref(), stored) {
            trial::section(&mut page, stored);
        }
    }
    if let Some(check) = &results.check {
        check::section(&mut page, check);
    }
    if let Some(calibration) = &results.calibration {
        calibration_section(&mut page, calibration);
    }
    page.text
}

/// The load line of a find.
fn find(page: &mut Page, bracket: &Bracket, results: &Results) {
    let headline = words::headline(bracket, &results.trials);
    page.heading(1, &format!("Load line of {}", escape(&bracket.target.name)));
    let bounds = match headline.bounds.as_str() {
        "" => String::new(),
        bounds => format!(" ({})", escape(bounds)),
    };
    page.paragraph(&format!("**{}**{bounds}.", escape(&headline.claim)));
    let mut facts = Vec::new();
    if let Some(density) = bracket.sessions_per_vcpu {
        facts.push(format!("{} sessions per vCPU.", number(density)));
    }
    if !bracket.borderline.is_empty() {
        let loads: Vec<_> = bracket
            .borderline
            .iter()
            .map(|n| count(u64::from(*n)))
            .collect();
        facts.push(format!(
            "Borderline, sometimes passing and sometimes failing: {}.",
            loads.join(", ")
        ));
    }
    if let Some(bottleneck) = &bracket.bottleneck {
        facts.push(format!(
            "Bottleneck: {}.",
            escape(bottleneck.trim_end_matches('.'))
        ));
    }
    let end = escape(bracket.conclusion.trim_end_matches('.'));
    facts.push(format!("Why the search ended: {end}."));
    page.paragraph(&facts.join(" "));

    let trials: Vec<_> = words::of_search(bracket, &results.trials).collect();
    evidence::belief(page, bracket, &trials);
    page.heading(2, "Evidence");
    page.paragraph(&format!(
        "Workload `{}`, profile `{}`, SLO `{}`; latencies from the schedule; a range where the trials of a load differ.",
        code(&bracket.workload),
        code(&bracket.profile),
        code(&bracket.slo)
    ));
    if let Some(first) = trials.first() {
        evidence::gates(page, &first.trial);
    }
    evidence::table(page, &loads::of(results));
    page.paragraph("![Latency against sessions](chart.svg)");
    if let Some(first) = trials.first() {
        page.heading(2, "Environment");
        evidence::environment(page, &first.trial);
        page.heading(2, "How to repeat");
        evidence::repeat(page, &first.trial, "find", None, bracket.seed);
    }
    page.paragraph(&format!("Measured at {}.", escape(&bracket.started_at)));
}

fn calibration_section(page: &mut Page, calibration: &Calibration) {
    page.heading(1, "Calibration of this machine's client");
    page.paragraph(&format!(
        "**This client can honestly drive {}** (send lag p99 {} at that load).",
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

/// The page in the making: blocks with one empty line between them.
#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {text}", "#".repeat(level)));
    }

    fn paragraph(&mut self, text: &str) {
        self.block(text);
    }

    fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            let lines: Vec<_> = items.iter().map(|item| format!("- {item}")).collect();
            self.block(&lines.join("\n"));
        }
    }

    fn code_block(&mut self, text: &str) {
        self.block(&format!("```sh\n{text}\n```"));
    }

    fn table(&mut self, table: &Table) {
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

/// A table in the making. A column whose name begins with `>` is aligned to the right.
#[derive(Debug)]
struct Table {
    text: String,
}

impl Table {
    fn new(columns: &[&str]) -> Self {
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

    /// Adds a row of cells that are Markdown already.
    fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.text.push('|');
        for cell in cells {
            // Writing to a string cannot fail.
            let _ = write!(self.text, " {} |", cell.as_ref());
        }
        self.text.push('\n');
    }
}

/// Text from outside as Markdown text: on one line, and nothing in it is markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '|' | '#' | '~' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text from outside within a code span: on one line, and nothing in it ends the span or a table's cell.
fn code(text: &str) -> String {
    plain(text).replace(['`', '|'], "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            escape("a|b\n<c> **d** `e`"),
            "a\\|b &lt;c> \\*\\*d\\*\\* \\`e\\`"
        );
        assert_eq!(code("a`b|c\nd"), "a'b'c d");
        assert_eq!(escape("oldest_p95_ms"), "oldest_p95_ms");
    }
}
