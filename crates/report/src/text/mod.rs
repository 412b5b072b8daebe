//! Documents as plain text for terminals: the verdict first, then the evidence, in aligned columns. Colour is optional,
//! and never the only sign of anything.

mod columns;

use plimsoll_core::record::{
    ClientCosts, Comparison, FleetCalibration, InferenceCalibration, Ranking, Trial,
};

use crate::document::{
    self, Answer, Block, Blocks, Detail, Document, Fact, Shown, Span, Table, Tellers, Text, Tone,
};
use crate::escalation::Escalated;
use crate::folder::{SearchView, StoredTrial};
use crate::goals::GoalsOf;
use crate::words::plain;
use columns::{Align, Cell, Columns};

/// The block for one trial.
#[must_use]
pub fn trial(trial: &Trial, color: bool, tellers: Tellers) -> String {
    let stored = StoredTrial {
        stem: "trial".to_owned(),
        trial: trial.clone(),
    };
    let charts = document::trial::Charts::OfOthers;
    written(&document::trial::document(&stored, charts, tellers), color)
}

/// The block for a search, by one SLO.
#[must_use]
pub fn search(view: &SearchView<'_>, color: bool, tellers: Tellers) -> String {
    written(&document::search::document(view, 0, tellers), color)
}

/// The block for a comparison.
#[must_use]
pub fn comparison(comparison: &Comparison, color: bool) -> String {
    written(
        &document::comparison::document(comparison, &[], Tellers::NONE),
        color,
    )
}

/// The block for a ranking.
#[must_use]
pub fn ranking(ranking: &Ranking, color: bool) -> String {
    written(&document::ranking::document(ranking), color)
}

/// The block for what became of the goals in several results.
#[must_use]
pub fn key_findings(results: &[GoalsOf<'_>], color: bool) -> String {
    written(&document::goals::document(results), color)
}

/// The block for what each kind of a workload's work costs.
#[must_use]
pub fn client_costs(costs: &ClientCosts) -> String {
    written(&document::calibration::client_costs(costs), false)
}

/// The block for what a fleet of agents can drive.
#[must_use]
pub fn fleet(calibration: &FleetCalibration) -> String {
    written(&document::calibration::of_fleet(calibration), false)
}

/// The block for what an inference server holds alone.
#[must_use]
pub fn inference(calibration: &InferenceCalibration) -> String {
    written(&document::calibration::of_inference(calibration), false)
}

/// The block for several trials: as their workloads show them side by side, what they show of an escalation, and
/// what became of goals. Empty where there is nothing to say.
#[must_use]
pub fn side_by_side(trials: &[StoredTrial], tellers: Tellers) -> String {
    let mut blocks = Blocks::default();
    document::side_by_side(&mut blocks, trials, tellers);
    if let Some(escalated) = Escalated::of_trials(&trials.iter().collect::<Vec<_>>()) {
        blocks.push(document::escalation::of_trials(&escalated));
    }
    blocks.push(document::goals::of_trials(trials));
    let mut writer = Writer::new(false);
    writer.blocks(&blocks);
    writer.finish()
}

fn written(document: &Document, color: bool) -> String {
    let mut writer = Writer::new(color);
    writer.answer(&document.answer);
    writer.blocks(&document.evidence);
    writer.finish()
}

/// Lines under construction.
struct Writer {
    color: bool,
    lines: Vec<String>,
    /// Whether the last line is the title of what follows.
    is_titled: bool,
}

impl Writer {
    fn new(color: bool) -> Self {
        Self {
            color,
            lines: Vec::new(),
            is_titled: false,
        }
    }

    fn finish(self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
        self.is_titled = false;
    }

    /// Begins something new.
    fn space(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) && !self.is_titled {
            self.line(String::new());
        }
    }

    fn title(&mut self, title: &str) {
        self.space();
        self.line(self.bold(&plain(title)));
        self.is_titled = true;
    }

    fn answer(&mut self, answer: &Answer) {
        let claim = self.bold(&plain(&answer.claim));
        self.line(match &answer.verdict {
            Some((word, tone)) => format!("{}  {claim}", self.verdict(&word.to_uppercase(), *tone)),
            None => claim,
        });
        if !answer.bounds.is_empty() {
            self.line(plain(&answer.bounds));
        }
        self.blocks(&answer.blocks);
    }

    fn blocks(&mut self, blocks: &Blocks) {
        let shown = Shown {
            detail: Detail::Brief,
            has_figure: &|_| false,
            timelines: false,
        };
        for block in blocks.shown(shown) {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text) => self.line(self.inline(text).printed),
            Block::Note(text) => self.line(format!("  ({})", self.inline(text).printed)),
            Block::List(list) => {
                for item in &list.items {
                    self.line(format!("  {}", self.inline(item).printed));
                }
            }
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
            Block::Section(section) => {
                self.title(&section.title);
                self.blocks(&section.blocks);
            }
            Block::Folded(title, blocks) => {
                self.title(title);
                self.blocks(blocks);
            }
            Block::Command(command) => self.line(format!("  {}", plain(command))),
            // A terminal shows neither.
            Block::Figure(_) | Block::Timelines(_) => {}
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        self.separate_from_table();
        let width = facts.iter().map(|fact| fact.term.chars().count()).max();
        let width = width.unwrap_or(0);
        for Fact { term, value, .. } in facts {
            let value = self.inline(value).printed;
            self.line(format!("  {term:<width$}  {value}"));
        }
    }

    /// Facts right under a table would look like its last rows.
    fn separate_from_table(&mut self) {
        if self.lines.last().is_some_and(|line| line.starts_with("  ")) {
            self.space();
        }
    }

    /// The title right above a table says what its caption says.
    fn table(&mut self, table: &Table) {
        if !self.is_titled {
            self.title(&table.caption);
        }
        let shown = table.shown(Detail::Brief);
        let heads: Vec<(&str, Align)> = shown
            .iter()
            .map(|index| &table.columns[*index])
            .map(|column| {
                let align = if column.is_number {
                    Align::Right
                } else {
                    Align::Left
                };
                (column.short.as_str(), align)
            })
            .collect();
        let mut columns = Columns::new(&heads);
        for row in &table.rows {
            columns.row(
                shown
                    .iter()
                    .map(|index| self.inline(&row[*index]))
                    .collect(),
            );
        }
        for line in columns.lines() {
            self.line(line);
        }
    }

    fn inline(&self, text: &Text) -> Cell {
        let mut cell = Cell::default();
        for span in &text.0 {
            let text = plain(span.text());
            let printed = match span {
                Span::Toned(_, tone @ (Tone::Good | Tone::Bad)) => self.verdict(&text, *tone),
                Span::Strong(_) => self.bold(&text),
                _ => text.clone(),
            };
            cell.push(&text, &printed);
        }
        cell
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn verdict(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Open => "1;33",
        };
        self.paint(code, text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
