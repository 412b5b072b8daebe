//! What the requests of REST clients tell.

use plimsoll_document::words::{count, near_whole};
use plimsoll_document::{Blocks, Fact, Table};

use super::record::RequestRecord;
use super::request::Kind;
use crate::tell::{LEG_COLUMNS, in_short, row_of, rows_of_leg, share};

pub(crate) const REQUESTS: &str = "Right: status 200 and the body that the contract has. Good: right, and at most 250 ms from the schedule; of POST /speak, at most 250 ms of overhead. The answer to a GET counts when it is complete, a reply with its first byte. No request is a turn, and each kind has its own samples.";

/// Two tables: what became of the requests, and how long they took.
pub(crate) fn append(requests: &[RequestRecord], blocks: &mut Blocks) {
    const COLUMNS: [&str; 5] = ["request", ">due", ">right", ">good", ">with a gap"];
    let row = |record: &RequestRecord| {
        let of_all =
            |part: u64| format!("{} ({})", count(part), near_whole(share(part, record.due)));
        let gaps = match record.request {
            Kind::Speak => of_all(record.with_gap),
            Kind::Root | Kind::Voices => String::new(),
        };
        let name = record.request.name().to_owned();
        [
            name,
            count(record.due),
            of_all(record.right),
            of_all(record.good),
            gaps,
        ]
    };
    let table = Table::new("Requests", COLUMNS).hooked("requests");
    blocks.push(table.with_rows(requests.iter().map(row)));
    let table = Table::new("Latency of requests in ms", LEG_COLUMNS).hooked("answers");
    blocks.push(table.with_rows(requests.iter().flat_map(answers)));
    blocks.note(REQUESTS);
}

fn answers(record: &RequestRecord) -> Vec<[String; 8]> {
    let name = record.request.name();
    match record.request {
        Kind::Root | Kind::Voices => vec![row_of(name, &record.answer.end_to_end)],
        Kind::Speak => rows_of_leg(&format!("{name}, first audio"), &record.answer),
    }
}

/// One kind on the terminal.
pub(crate) fn in_a_line(record: &RequestRecord) -> Fact {
    let (what, of) = match record.request {
        Kind::Root | Kind::Voices => ("answer", &record.answer.end_to_end),
        Kind::Speak => ("overhead of the first audio", &record.answer.overhead),
    };
    let (due, right) = (count(record.due), count(record.right));
    let told = format!(
        "{due} due, {right} right; {what} p50/p95/p99 {} ms",
        in_short(of)
    );
    Fact::new(record.request.name(), told)
}
