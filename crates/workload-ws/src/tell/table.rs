//! Trials of one test side by side: the usual table for the test, and with each figure how far the load came, what the
//! client used, and the verdict.

use plimsoll_core::latency::Quantiles;
use plimsoll_core::record::{LoadUnit, TargetResources};

use plimsoll_document::words::{
    self, UNKNOWN, bytes, count, maybe, near_whole, number, percent, plain, us,
};
use plimsoll_document::{Cells, Named};

use crate::record::WsRecord;

use super::facts::{decode_in_a_word, outcomes_in_a_line, per_second, share, steps};

/// Trials of one test against one target, one row each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestTable {
    /// What the trials test: `Test throughput of node-ws, dialect echo`.
    pub(super) title: String,
    /// The names of the columns. A name that begins with `>` is of a column of numbers.
    pub(super) columns: Vec<&'static str>,
    /// The cells as they are: text from outside is not escaped.
    pub(super) rows: Vec<Vec<String>>,
    /// What the columns mean.
    pub(super) note: String,
    /// For each column, whether a terminal, which is narrow, shows it too.
    pub(super) brief: Vec<bool>,
}

/// The trials of workload `ws` among these: one table for each test, dialect and target, in order of appearance.
pub(super) fn tables(trials: &[Named<'_>]) -> Vec<TestTable> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for named in trials {
        let Some(ws) = super::record(named.trial) else {
            continue;
        };
        let row = Row {
            named,
            ws,
            json_cpu_us: None,
        };
        match groups.iter_mut().find(|group| group[0].is_like(&row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.into_iter().map(table).collect()
}

fn table(mut rows: Vec<Row<'_>>) -> TestTable {
    let test = rows[0].ws.test.clone();
    // Sizes ascend; formats stay in the order in which they were measured.
    rows.sort_by_key(|row| {
        let bytes = row.ws.message_bytes.filter(|_| test == "matrix");
        (row.named.trial.sessions, bytes)
    });
    let json: Vec<_> = rows.iter().filter_map(Row::as_json).collect();
    for row in &mut rows {
        let load = row.named.trial.sessions;
        let at_load = json.iter().find(|(sessions, _)| *sessions == load);
        row.json_cpu_us = at_load.map(|(_, cpu_us)| *cpu_us);
    }
    let columns = columns(&test);
    TestTable {
        title: format!(
            "Test {} of {}, dialect {}",
            plain(&test),
            plain(&rows[0].named.trial.target.name),
            plain(&rows[0].ws.dialect)
        ),
        columns: columns.iter().map(|column| column.head).collect(),
        rows: rows
            .iter()
            .map(|row| columns.iter().map(|column| (column.value)(row)).collect())
            .collect(),
        note: note(&test),
        brief: columns.iter().map(|column| column.brief).collect(),
    }
}

fn note(test: &str) -> String {
    let proof = steps(test).proof;
    let mut told = vec![
        "Latencies in ms, of the newest frame from the schedule; an unanswered frame counts with the time we waited, a lower bound.",
        proof,
    ];
    if has_processed(test) {
        told.push(
            "Processed: the application's own count, as a share of what was written in the whole trial.",
        );
    }
    if test == "hold" {
        told.push(
            "Survival: of the connections that were asked for, those that were there at the end.",
        );
    }
    if ["throughput", "matrix", "formats"].contains(&test) {
        told.push("MB are 10^6 bytes of payload.");
    }
    told.join(" ")
}

/// A trial, and what it is compared with.
struct Row<'a> {
    named: &'a Named<'a>,
    ws: WsRecord,
    /// What a message costs in JSON at the same load.
    json_cpu_us: Option<f64>,
}

impl Row<'_> {
    fn is_like(&self, other: &Row<'_>) -> bool {
        let of = |row: &Row<'_>| {
            let name = row.named.trial.target.name.clone();
            (name, row.ws.test.clone(), row.ws.dialect.clone())
        };
        of(self) == of(other)
    }

    /// The load and the cost of a row, if it is in JSON.
    fn as_json(&self) -> Option<(u32, f64)> {
        let is_json = self.ws.format.as_deref() == Some("json");
        let cpu_us = self.resources()?.cpu_us_per_session_second?;
        is_json.then_some((self.named.trial.sessions, cpu_us))
    }

    fn resources(&self) -> Option<&TargetResources> {
        self.named.trial.target_resources.as_ref()
    }

    fn newest(&self) -> &Quantiles {
        &self.named.trial.latency.newest.from_schedule
    }

    fn read_per_s(&self) -> Option<f64> {
        per_second(self.ws.delivered.read, self.named.trial)
    }
}

type Column<'a> = Cells<Row<'a>>;

const fn shown<'a>(head: &'static str, value: fn(&Row<'a>) -> String) -> Column<'a> {
    Cells::new(head, true, value)
}

/// A column for which a terminal has no room.
const fn wide<'a>(head: &'static str, value: fn(&Row<'a>) -> String) -> Column<'a> {
    Cells::new(head, false, value)
}

/// Arrivals and deliveries are not messages that an application receives.
fn has_processed(test: &str) -> bool {
    !["storm", "fanout"].contains(&test)
}

fn columns<'a>(test: &str) -> Vec<Column<'a>> {
    let steps = match test {
        "storm" => [wide(">begun", written), shown(">opened", read)],
        "fanout" => [wide(">published", written), shown(">delivered", read)],
        "ping" | "hold" | "limit" => [wide(">written", written), shown(">answered", read)],
        _ => [wide(">written", written), shown(">read", read)],
    };
    let mut columns = load_columns(test);
    columns.push(shown(">offered", offered));
    columns.extend(steps);
    if has_processed(test) {
        columns.push(shown(">processed", processed));
    }
    columns.extend(own_columns(test));
    columns.extend([
        shown(">p50", |row| digits(row.newest().p50_ms)),
        wide(">p95", |row| digits(row.newest().p95_ms)),
        shown(">p99", |row| digits(row.newest().p99_ms)),
        wide(">p99.9", |row| digits(row.newest().p999_ms)),
        shown(">max", |row| digits(row.newest().max_ms)),
        wide(cost_head(test), cpu),
        wide(">target CPU", target_cpu),
        shown(">client CPU", client_cpu),
        shown("verdict", |row| words::verdict(row.named.trial)),
        shown("against it", |row| words::against(row.named.trial)),
        wide("file", |row| plain(row.named.stem)),
    ]);
    columns
}

/// The columns that tell the rows apart.
fn load_columns<'a>(test: &str) -> Vec<Column<'a>> {
    let load = |unit: LoadUnit| match unit {
        LoadUnit::CONNECTIONS_PER_SECOND => shown(">connections/s", load),
        LoadUnit::MESSAGES_PER_SECOND => shown(">messages/s", load),
        LoadUnit::RECEIVERS => shown(">receivers", load),
        _ => shown(">connections", load),
    };
    let bytes = shown(">message bytes", message_bytes);
    let connections = wide(">connections", connections);
    match test {
        "storm" => vec![load(LoadUnit::CONNECTIONS_PER_SECOND)],
        "throughput" => vec![load(LoadUnit::MESSAGES_PER_SECOND), connections],
        "matrix" => vec![bytes, load(LoadUnit::MESSAGES_PER_SECOND), connections],
        "formats" => vec![
            shown("format", format),
            bytes,
            shown("decoded", |row| decode_in_a_word(&row.ws).to_owned()),
            load(LoadUnit::MESSAGES_PER_SECOND),
            connections,
        ],
        "fanout" => vec![load(LoadUnit::RECEIVERS)],
        _ => vec![load(LoadUnit::CONNECTIONS)],
    }
}

/// The columns that only this test has.
fn own_columns<'a>(test: &str) -> Vec<Column<'a>> {
    let per_s = shown(">read/s", |row| maybe(row.read_per_s(), number));
    let died = shown(">died", |row| count(row.named.trial.ledger.sessions_died));
    let unanswered = shown(">unanswered", |row| count(row.newest().censored));
    let memory = shown(">RSS/connection", rss);
    match test {
        "storm" => vec![
            shown(">opened/s", |row| maybe(row.read_per_s(), number)),
            shown(">failed", not_read),
            wide("how they failed", how_failed),
        ],
        "throughput" | "matrix" => {
            vec![per_s, shown(">MB/s", megabytes), wide(">read/s each", each)]
        }
        "formats" => vec![
            per_s,
            shown(">MB/s", megabytes),
            shown(">CPU vs JSON", versus_json),
        ],
        "hold" => vec![shown(">survival", survival), died, unanswered, memory],
        "limit" => vec![
            shown(">failed", |row| {
                count(row.named.trial.ledger.sessions_failed)
            }),
            died,
            unanswered,
            memory,
        ],
        "fanout" => vec![
            shown(">delivered/s", |row| maybe(row.read_per_s(), number)),
            shown(">lost", |row| count(row.named.trial.ledger.frames_lost)),
            wide(">twice", |row| {
                count(row.named.trial.ledger.frames_duplicated)
            }),
            wide(">out of order", |row| {
                count(row.named.trial.ledger.frames_out_of_order)
            }),
        ],
        _ => vec![unanswered],
    }
}

fn cost_head(test: &str) -> &'static str {
    match test {
        "storm" => ">CPU/connection",
        "throughput" | "matrix" | "formats" => ">CPU/message",
        "fanout" => ">CPU/receiver/s",
        _ => ">CPU/connection/s",
    }
}

fn digits(value: Option<f64>) -> String {
    maybe(value, number)
}

fn load(row: &Row<'_>) -> String {
    count(row.named.trial.sessions.into())
}

fn connections(row: &Row<'_>) -> String {
    known(row.ws.connections.map(u64::from))
}

fn message_bytes(row: &Row<'_>) -> String {
    known(row.ws.message_bytes)
}

fn known(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), count)
}

fn format(row: &Row<'_>) -> String {
    let format = row.ws.format.as_deref();
    format.map_or_else(|| UNKNOWN.to_owned(), plain)
}

fn offered(row: &Row<'_>) -> String {
    count(row.ws.delivered.offered)
}

fn written(row: &Row<'_>) -> String {
    count(row.ws.delivered.written)
}

fn read(row: &Row<'_>) -> String {
    count(row.ws.delivered.read)
}

fn not_read(row: &Row<'_>) -> String {
    let delivered = &row.ws.delivered;
    count(delivered.offered.saturating_sub(delivered.read))
}

fn processed(row: &Row<'_>) -> String {
    let delivered = &row.ws.delivered;
    match delivered.processed {
        Some(processed) => near_whole(share(processed, delivered.written_in_all)),
        None => "unknown".to_owned(),
    }
}

fn how_failed(row: &Row<'_>) -> String {
    outcomes_in_a_line(&row.ws)
}

/// Payload read, in 10^6 bytes per second.
#[expect(
    clippy::cast_precision_loss,
    reason = "a size of a message, far below 2^53"
)]
fn megabytes(row: &Row<'_>) -> String {
    let both = row.read_per_s().zip(row.ws.message_bytes);
    maybe(both.map(|(rate, bytes)| rate * bytes as f64 / 1e6), number)
}

/// Messages read per second on each connection.
fn each(row: &Row<'_>) -> String {
    let both = row.read_per_s().zip(row.ws.connections);
    let each = both
        .and_then(|(rate, connections)| (connections > 0).then(|| rate / f64::from(connections)));
    maybe(each, number)
}

fn survival(row: &Row<'_>) -> String {
    let trial = row.named.trial;
    let ledger = &trial.ledger;
    let there = ledger.sessions_started.saturating_sub(ledger.sessions_died);
    near_whole(share(there, trial.sessions.into()))
}

fn rss(row: &Row<'_>) -> String {
    let resources = row.resources();
    maybe(resources.and_then(|used| used.rss_bytes_per_session), bytes)
}

fn cpu(row: &Row<'_>) -> String {
    let resources = row.resources();
    maybe(
        resources.and_then(|used| used.cpu_us_per_session_second),
        us,
    )
}

fn versus_json(row: &Row<'_>) -> String {
    let resources = row.resources();
    let own = resources.and_then(|used| used.cpu_us_per_session_second);
    let ratio = own.zip(row.json_cpu_us.filter(|json| *json > 0.0));
    maybe(ratio.map(|(own, json)| own / json), percent)
}

fn target_cpu(row: &Row<'_>) -> String {
    maybe(row.resources().map(|used| used.cpu_share), percent)
}

fn client_cpu(row: &Row<'_>) -> String {
    percent(row.named.trial.client.cpu_share)
}
