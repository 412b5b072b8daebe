//! Trials of one test side by side: one row shape for queues and streams.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::Trial;
use plimsoll_document::words::{self, UNKNOWN, count, number, percent, plain, target, us};
use plimsoll_document::{Blocks, Cells, Named, Table};

use crate::marks::Delivery;
use crate::record::BrokerRecord;
use crate::word::Word;

use super::facts::{self, known};
use super::repeats;

/// The note under a table.
const NOTE: &str = "Latencies in ms, of messages from the schedule; a message that did not come counts with the time we waited, a lower bound. Drained: arrived after the window. Missing: published and never delivered. Lost: confirmed as well.";

/// Adds the trials of workload `broker` among these: one table for each test and target, in order of appearance. If loads
/// were repeated, one row for each load comes first, and the single trials only where there is room.
pub(super) fn side_by_side(blocks: &mut Blocks, trials: &[Named<'_>]) {
    for rows in groups(trials) {
        if let Some(repeats) = repeats::table(&rows) {
            blocks.push(repeats);
            blocks.note(repeats::NOTE);
            blocks.full(table(&rows));
        } else {
            blocks.push(table(&rows));
        }
        blocks.note(NOTE);
    }
}

/// A trial and its section.
pub(super) struct Row<'a> {
    named: &'a Named<'a>,
    pub(super) broker: BrokerRecord,
    /// What sums the trial up among those of its table.
    pub(super) word: Word,
}

/// The rows of each table: smaller messages, smaller windows and lower loads first.
pub(super) fn groups<'a>(trials: &'a [Named<'a>]) -> Vec<Vec<Row<'a>>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for named in trials {
        let Some(broker) = super::record(named.trial) else {
            continue;
        };
        let word = broker.judged.word;
        let row = Row {
            named,
            broker,
            word,
        };
        match groups
            .iter_mut()
            .find(|group| group[0].kind() == row.kind())
        {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|row| {
            let whole = |name| row.trial().whole_parameter(name);
            (
                whole("message_bytes"),
                whole("confirm"),
                row.broker.readers,
                row.trial().sessions,
            )
        });
        repeats::find_knees(group);
    }
    groups
}

impl Row<'_> {
    pub(super) fn trial(&self) -> &Trial {
        self.named.trial
    }

    /// What all rows of a table have in common.
    fn kind(&self) -> [String; 3] {
        let word = |name| plain(self.trial().word_parameter(name).unwrap_or(UNKNOWN));
        [target(&self.trial().target), word("test"), word("level")]
    }

    /// How many messages arrived each second; in test `drain` while there were some.
    pub(super) fn delivered_per_s(&self) -> Option<f64> {
        let closed = self.broker.closed_loop.as_ref();
        let drained = closed.and_then(|closed| closed.drained_per_s);
        drained.or(self.broker.delivered_per_s)
    }

    pub(super) fn delivered(&self) -> &Quantiles {
        &self.trial().latency.newest.from_schedule
    }

    pub(super) fn confirmed(&self) -> Option<&Quantiles> {
        self.trial()
            .latency
            .confirm
            .as_ref()
            .map(|both| &both.from_schedule)
    }
}

pub(super) fn table(rows: &[Row<'_>]) -> Table {
    let columns = columns();
    Table::of_cells(caption(rows), &columns, rows).hooked("test-table")
}

/// What all rows of a table have in common: `Test steady of nats, durable`.
pub(super) fn caption(rows: &[Row<'_>]) -> String {
    let unknown = || [UNKNOWN; 3].map(str::to_owned);
    let [target, test, level] = rows.first().map_or_else(unknown, Row::kind);
    format!("Test {test} of {target}, {level}")
}

fn columns<'a>() -> Vec<Cells<Row<'a>>> {
    vec![
        Cells::new("guarantee", false, |row| {
            known(row.broker.guarantee, |promised| promised.to_string())
        }),
        Cells::new(">bytes", false, |row| {
            known(row.trial().whole_parameter("message_bytes"), count)
        }),
        Cells::new(">window", false, |row| {
            known(row.trial().whole_parameter("confirm"), count)
        }),
        Cells::new(">writers", false, |row| count(row.broker.writers.into())),
        Cells::new(">readers", false, |row| count(row.broker.readers.into())),
        Cells::new(">load", true, |row| count(row.trial().sessions.into())),
        Cells::new(">published/s", false, |row| {
            number(row.broker.published_per_s)
        }),
        Cells::new(">confirmed/s", false, |row| {
            number(row.broker.confirmed_per_s)
        }),
        Cells::new(">delivered/s", true, |row| {
            known(row.delivered_per_s(), number)
        }),
        Cells::new(">drained", false, |row| delivery(row, |of| of.drained)),
        Cells::new(">missing", true, |row| delivery(row, |of| of.missing)),
        Cells::new(">lost", true, |row| delivery(row, |of| of.lost)),
        Cells::new(">duplicated", false, |row| {
            delivery(row, |of| of.duplicated)
        }),
        Cells::new(">reordered", false, |row| delivery(row, |of| of.reordered)),
        Cells::new(">confirm p50", false, |row| {
            ms(row.confirmed().and_then(|q| q.p50_ms))
        }),
        Cells::new(">confirm p99", true, |row| {
            ms(row.confirmed().and_then(|q| q.p99_ms))
        }),
        Cells::new(">deliver p50", false, |row| ms(row.delivered().p50_ms)),
        Cells::new(">deliver p99", true, |row| ms(row.delivered().p99_ms)),
        Cells::new(">deliver max", false, |row| ms(row.delivered().max_ms)),
        Cells::new(">backlog grows", false, |row| {
            known(row.broker.backlog_slope, |slope| percent(slope.share()))
        }),
        Cells::new(">CPU/message", true, |row| {
            known(facts::cpu_us_per_message(row.trial(), &row.broker), us)
        }),
        Cells::new(">flushes/1,000", false, |row| {
            known(row.broker.flushes_per_1000, number)
        }),
        Cells::new(">bytes/byte", false, |row| {
            known(row.broker.written_per_payload_byte, number)
        }),
        Cells::new(">client CPU", false, |row| {
            percent(row.trial().client.cpu_share)
        }),
        Cells::new("word", true, |row| {
            facts::beside(row.word, row.broker.judged.storage_bound)
        }),
        Cells::new("verdict", true, |row| words::verdict(row.trial())),
        Cells::new("against it", true, |row| words::against(row.trial())),
        Cells::new("file", false, |row| plain(row.named.stem)),
    ]
}

fn delivery(row: &Row<'_>, value: fn(&Delivery) -> u64) -> String {
    let delivery = row.broker.messages.delivery.as_ref();
    known(delivery.map(value), count)
}

fn ms(value: Option<f64>) -> String {
    known(value, number)
}
