//! Trials of one test side by side, with each figure what the client used and the verdict; and the peak, which no gate
//! decides.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{MemoryAt, TargetMemory, TargetResources, Trial, Verdict};
use plimsoll_document::words::{
    self, UNKNOWN, count, counted, maybe, number, percent, plain, target, us,
};
use plimsoll_document::{Blocks, Cells, Named, Table};

use crate::record::HttpRecord;

use super::facts;

/// The note under a table.
const NOTE: &str = "Latencies in ms, of requests from the schedule; an unanswered request counts with the time we waited, a lower bound. Achieved: handed to a socket. Completed: answered rightly and in full. Shortfall: share of the measured requests that were not. All busy: share that found every connection busy.";

/// Adds the trials of workload `http` among these: one table for each test, protocol and target, in order of appearance.
pub(super) fn side_by_side(blocks: &mut Blocks, trials: &[Named<'_>]) {
    for rows in groups(trials) {
        blocks.push(table(&rows));
        blocks.note(NOTE);
        if let Some(told) = peak(&rows) {
            blocks.paragraph(told);
        }
    }
}

/// A trial and its section.
pub(super) struct Row<'a> {
    named: &'a Named<'a>,
    http: HttpRecord,
}

/// The rows of each table: fewer bytes, fewer connections and lower loads first.
pub(super) fn groups<'a>(trials: &'a [Named<'a>]) -> Vec<Vec<Row<'a>>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for named in trials {
        let Some(http) = super::record(named.trial) else {
            continue;
        };
        let row = Row { named, http };
        match groups.iter_mut().find(|group| group[0].is_like(&row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|row| {
            let trial = row.trial();
            let bytes = trial.whole_parameter("body_bytes");
            (bytes, facts::connections_of(trial), trial.sessions)
        });
    }
    groups
}

impl Row<'_> {
    fn trial(&self) -> &Trial {
        self.named.trial
    }

    /// What all rows of a table have in common.
    fn kind(&self) -> [String; 3] {
        let word = |name| plain(self.trial().word_parameter(name).unwrap_or(UNKNOWN));
        [target(&self.trial().target), word("test"), word("protocol")]
    }

    fn is_like(&self, other: &Row<'_>) -> bool {
        self.kind() == other.kind()
    }

    fn newest(&self) -> &Quantiles {
        &self.trial().latency.newest.from_schedule
    }

    fn resources(&self) -> Option<&TargetResources> {
        self.trial().target_resources.as_ref()
    }
}

pub(super) fn table(rows: &[Row<'_>]) -> Table {
    let columns = columns(rows);
    Table::of_cells(caption(rows), &columns, rows).hooked("test-table")
}

/// What all rows have in common: `Test rate of nginx, h1: GET / on 100 connections`.
fn caption(rows: &[Row<'_>]) -> String {
    let unknown = || [UNKNOWN; 3].map(str::to_owned);
    let [target, test, protocol] = rows.first().map_or_else(unknown, Row::kind);
    let of_all = |differ: bool, value: fn(&Row<'_>) -> String| {
        let first = rows.first().map(value);
        first.filter(|_| !differ)
    };
    let request = of_all(differ(rows, request), request);
    let request = request.map_or_else(String::new, |request| format!(": {request}"));
    let on = of_all(differ(rows, connections), connections);
    let on = on.map_or_else(String::new, |number| {
        let plural = if number == "1" { "" } else { "s" };
        format!(" on {number} connection{plural}")
    });
    format!("Test {test} of {target}, {protocol}{request}{on}")
}

/// Whether the rows have several values.
fn differ(rows: &[Row<'_>], value: fn(&Row<'_>) -> String) -> bool {
    let first = rows.first().map(value);
    rows.iter().any(|row| Some(value(row)) != first)
}

/// A terminal shows of the columns that tell the rows apart those that differ.
fn columns<'a>(rows: &[Row<'a>]) -> Vec<Cells<Row<'a>>> {
    vec![
        Cells::new("request", differ(rows, request), request),
        Cells::new(">connections", differ(rows, connections), connections),
        Cells::new(">requests/s", true, |row| {
            count(row.trial().sessions.into())
        }),
        Cells::new(">achieved/s", false, |row| number(row.http.achieved_per_s)),
        Cells::new(">completed/s", true, |row| number(row.http.completed_per_s)),
        Cells::new(">shortfall", true, shortfall),
        Cells::new(">all busy", false, all_busy),
        Cells::new(">p50", true, |row| ms(row.newest().p50_ms)),
        Cells::new(">p99", true, |row| ms(row.newest().p99_ms)),
        Cells::new(">p99.9", false, |row| ms(row.newest().p999_ms)),
        Cells::new(">max", true, |row| ms(row.newest().max_ms)),
        Cells::new(">CPU/request", false, cpu),
        Cells::new(">target CPU", false, |row| {
            maybe(row.resources().map(|used| used.cpu_share), percent)
        }),
        Cells::new(">RSS loaded", false, |row| rss(row, |memory| memory.loaded)),
        Cells::new(">RSS after", false, |row| rss(row, |memory| memory.after)),
        Cells::new(">first 200 after", false, |row| {
            maybe(row.trial().start_ms, words::ms)
        }),
        Cells::new(">client CPU", true, |row| {
            percent(row.trial().client.cpu_share)
        }),
        Cells::new("how they failed", false, |row| {
            facts::outcomes_in_a_line(&row.http).unwrap_or_default()
        }),
        Cells::new("verdict", true, |row| words::verdict(row.trial())),
        Cells::new("against it", true, |row| words::against(row.trial())),
        Cells::new("file", false, |row| plain(row.named.stem)),
    ]
}

fn request(row: &Row<'_>) -> String {
    plain(&row.http.request)
}

fn connections(row: &Row<'_>) -> String {
    let known = facts::connections_of(row.trial());
    known.map_or_else(|| UNKNOWN.to_owned(), count)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a trial, far below 2^53"
)]
fn shortfall(row: &Row<'_>) -> String {
    let ledger = &row.trial().ledger;
    let missing = ledger.frames_due.saturating_sub(ledger.frames_answered);
    maybe(
        facts::share(missing as f64, ledger.frames_due as f64),
        percent,
    )
}

fn all_busy(row: &Row<'_>) -> String {
    maybe(facts::busy_share(row.trial(), &row.http), percent)
}

fn ms(value: Option<f64>) -> String {
    maybe(value, number)
}

fn cpu(row: &Row<'_>) -> String {
    let resources = row.resources();
    maybe(
        resources.and_then(|used| used.cpu_us_per_session_second),
        us,
    )
}

fn rss(row: &Row<'_>, moment: fn(&TargetMemory) -> Option<MemoryAt>) -> String {
    let memory = row.resources().and_then(|used| used.memory.as_ref());
    let at = memory.and_then(moment);
    at.map_or_else(|| UNKNOWN.to_owned(), |at| words::whole_bytes(at.rss_bytes))
}

/// The highest completed rate of a valid trial, whatever its gates say; `None` if all trials had one load, or if none is
/// valid.
fn peak(rows: &[Row<'_>]) -> Option<String> {
    let valid = rows
        .iter()
        .filter(|row| row.trial().verdict != Verdict::Invalid);
    let completed = |row: &&Row<'_>| row.http.completed_per_s;
    let peak = valid.max_by(|a, b| completed(a).total_cmp(&completed(b)))?;
    let ledger = &peak.trial().ledger;
    let failed = ledger.frames_errored + ledger.frames_lost;
    let told = format!(
        "Peak: {} completed per second, the most of a valid trial whatever its gates say, when {} were offered: p99 {} ms, {} failed or lost, verdict {}.",
        number(peak.http.completed_per_s),
        number(peak.http.offered_per_s),
        ms(peak.newest().p99_ms),
        counted(failed, "request"),
        peak.trial().verdict.word(),
    );
    let first = rows.first()?.trial().sessions;
    let loads_differ = rows.iter().any(|row| row.trial().sessions != first);
    loads_differ.then_some(told)
}
