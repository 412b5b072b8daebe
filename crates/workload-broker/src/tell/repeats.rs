//! The trials of one load as one row, with median and range; and the word that only several rates together show.

use plimsoll_core::record::{LoadUnit, Trial, Verdict};
use plimsoll_core::stats::median;
use plimsoll_document::words::{self, UNKNOWN, count, number, us};
use plimsoll_document::{Cells, Table};

use crate::word::{Percentile, Word};

use super::facts::{self, known};
use super::table::{Row, caption};

/// The note under a table.
pub(super) const NOTE: &str = "Median of the trials at a load, with the least and the greatest; invalid trials are left out of it. The word and the verdict are the worst of all trials. Knee: deliver p99 above three times that of the lowest rate of the same messages.";

/// Gives the word `knee` to the rows that deserve it.
pub(super) fn find_knees(rows: &mut [Row<'_>]) {
    let words: Vec<Word> = rows.iter().map(|row| word(row, rows)).collect();
    for (row, word) in rows.iter_mut().zip(words) {
        row.word = word;
    }
}

/// The word of a row among the others.
fn word(row: &Row<'_>, rows: &[Row<'_>]) -> Word {
    let judged = &row.broker.judged;
    let is_rate = row.trial().load_unit == LoadUnit::MESSAGES_PER_SECOND;
    let alike = rows.iter().filter(|other| same_messages(row, other));
    let lowest = alike.clone().map(|other| other.trial().sessions).min();
    let lowest = lowest.filter(|lowest| is_rate && *lowest < row.trial().sessions);
    let Some(lowest) = lowest else {
        return judged.word;
    };
    let at_lowest = alike.filter(|other| other.trial().sessions == lowest && is_valid(other));
    let of_lowest: Vec<Percentile> = at_lowest.filter_map(deliver_p99).collect();
    let all_ms: Vec<f64> = of_lowest.iter().map(|p99| p99.ms).collect();
    let lowest_p99 = median(&all_ms).map(|ms| Percentile {
        ms,
        at_least: of_lowest.iter().any(|p99| p99.at_least),
    });
    judged.among_rates(deliver_p99(row), lowest_p99)
}

/// Whether two trials differ in nothing but their load.
fn same_messages(a: &Row<'_>, b: &Row<'_>) -> bool {
    let (a, b) = (a.trial(), b.trial());
    a.parameters == b.parameters && a.load_unit == b.load_unit && a.profile == b.profile
}

fn is_valid(row: &Row<'_>) -> bool {
    row.trial().verdict != Verdict::Invalid
}

fn deliver_p99(row: &Row<'_>) -> Option<Percentile> {
    row.broker.delivered_per_s?;
    let delivered = row.delivered();
    Some(Percentile {
        ms: delivered.p99_ms?,
        at_least: delivered.censored > 0,
    })
}

/// One row for each load; `None` if no load was repeated.
pub(super) fn table(rows: &[Row<'_>]) -> Option<Table> {
    let mut loads: Vec<Repeats<'_, '_>> = Vec::new();
    for row in rows {
        let same = |of: &&mut Repeats<'_, '_>| {
            of.0[0].trial().sessions == row.trial().sessions && same_messages(of.0[0], row)
        };
        match loads.iter_mut().find(same) {
            Some(of) => of.0.push(row),
            None => loads.push(Repeats(vec![row])),
        }
    }
    if loads.iter().all(|of| of.0.len() == 1) {
        return None;
    }
    let caption = format!("{}: median and range", caption(rows));
    Some(Table::of_cells(caption, &columns(), &loads).hooked("repeats-table"))
}

/// The trials of one load, at least one.
struct Repeats<'a, 'b>(Vec<&'b Row<'a>>);

fn columns<'a, 'b>() -> Vec<Cells<Repeats<'a, 'b>>> {
    vec![
        Cells::new(">bytes", false, |of| of.parameter("message_bytes")),
        Cells::new(">window", false, |of| of.parameter("confirm")),
        Cells::new(">writers", false, |of| count(of.0[0].broker.writers.into())),
        Cells::new(">readers", false, |of| count(of.0[0].broker.readers.into())),
        Cells::new(">load", true, |of| count(of.trial().sessions.into())),
        Cells::new(">trials", true, |of| of.trials()),
        Cells::new(">published/s", false, |of| {
            of.range(|row| Some(row.broker.published_per_s), number)
        }),
        Cells::new(">delivered/s", true, |of| {
            of.range(|row| row.delivered_per_s(), number)
        }),
        Cells::new(">confirm p99", true, |of| {
            of.range(|row| row.confirmed()?.p99_ms, number)
        }),
        Cells::new(">deliver p99", true, |of| {
            of.range(|row| deliver_p99(row).map(|p99| p99.ms), number)
        }),
        Cells::new(">CPU/message", true, |of| {
            of.range(
                |row| facts::cpu_us_per_message(row.trial(), &row.broker),
                us,
            )
        }),
        Cells::new("word", true, |of| of.word()),
        Cells::new("verdict", true, |of| of.verdict()),
    ]
}

impl Repeats<'_, '_> {
    fn trial(&self) -> &Trial {
        self.0[0].trial()
    }

    fn parameter(&self, name: &str) -> String {
        known(self.trial().whole_parameter(name), count)
    }

    /// How many there are, and how many of them are valid.
    fn trials(&self) -> String {
        let valid = self.0.iter().filter(|row| is_valid(row)).count();
        if valid == self.0.len() {
            valid.to_string()
        } else {
            format!("{} ({valid} valid)", self.0.len())
        }
    }

    /// `12.5 (11–14)`.
    fn range(&self, value: fn(&Row<'_>) -> Option<f64>, shown: fn(f64) -> String) -> String {
        let valid = self.0.iter().filter(|row| is_valid(row));
        let values: Vec<f64> = valid.filter_map(|row| value(row)).collect();
        let Some(middle) = median(&values) else {
            return UNKNOWN.to_owned();
        };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.len() == 1 {
            return shown(middle);
        }
        format!("{} ({}–{})", shown(middle), shown(least), shown(greatest))
    }

    /// The first of the words, in the order of their rules.
    fn word(&self) -> String {
        let words = self.0.iter().map(|row| row.word);
        let judged = self.0.iter().map(|row| row.broker.judged.storage_bound);
        let bound = judged.flatten().reduce(|bound, other| bound || other);
        facts::beside(words.min().unwrap_or(Word::Clean), bound)
    }

    /// Failed if one did; invalid if one says nothing, and none failed.
    fn verdict(&self) -> String {
        let of = |verdict| self.0.iter().find(|row| row.trial().verdict == verdict);
        let worst = of(Verdict::Fail).or_else(|| of(Verdict::Invalid));
        words::verdict(worst.unwrap_or(&self.0[0]).trial())
    }
}
