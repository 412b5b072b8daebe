//! What a trial says besides its ledger and its latencies, in words: what was asked, the three rates, how requests ended,
//! what became of connections, and what a closed loop says about the same server.

use plimsoll_core::record::Trial;
use plimsoll_document::words::{bytes, count, counted, maybe, near_whole, number, percent, plain};

use crate::record::HttpRecord;

/// The columns of [`rates`].
pub(super) const RATE_COLUMNS: [&str; 3] = ["rate", ">per second", "share of the offered rate"];

/// The note under [`rates`].
pub(super) const RATES: &str = "Offered: due by the schedule. Achieved: handed to a socket. Completed: answered rightly and in full. All three count inside the measured window, so work that is left from the warm-up can make a share exceed 100 %.";

/// The caption of [`outcomes`].
pub(super) const OUTCOMES: &str = "Requests that failed or got lost, by outcome";

/// The caption of [`closed_loop`], its columns and the note under it.
pub(super) const CLOSED_LOOP: &str = "Closed loop, as wrk would say";
pub(super) const CLOSED_LOOP_COLUMNS: [&str; 3] = ["what", ">open loop", ">closed loop"];
pub(super) const CLOSED_LOOP_NOTE: &str = "In the closed loop each connection asks again as soon as it has its answer, and latency counts from the write: a server that stalls is asked less, and its stall is in few samples. The closed loop decides nothing and is shown only for comparison.";

/// What was asked, and on what: `GET /bytes/64 on 100 connections`.
pub(super) fn asked(trial: &Trial, http: &HttpRecord) -> String {
    let request = plain(&http.request);
    let connections = connections_of(trial).map(|number| counted(number, "connection"));
    let h2 = trial.word_parameter("protocol") == Some("h2c");
    let streams = trial.whole_parameter("streams").filter(|_| h2);
    let streams =
        streams.map(|streams| format!(" of h2c with {} at once", counted(streams, "stream")));
    match (trial.word_parameter("test"), connections) {
        (_, None) => request,
        (Some("connect"), Some(connections)) => {
            format!("{request}, a connection for each, at most {connections} at once")
        }
        (_, Some(connections)) => {
            format!("{request} on {connections}{}", streams.unwrap_or_default())
        }
    }
}

/// The same with all that a user can choose: `GET / on 100 connections, browser headers, Poisson arrivals`.
pub(super) fn conditions(trial: &Trial, http: &HttpRecord) -> String {
    let mut told = vec![asked(trial, http)];
    let posted = trial
        .whole_parameter("body_bytes")
        .filter(|_| trial.word_parameter("test") == Some("post"));
    told.extend(posted.map(|bytes| format!("bodies of {} B", count(bytes))));
    let is = |name: &str, value: &str| trial.word_parameter(name) == Some(value);
    let flag = |name: &str| {
        trial
            .parameters
            .get(name)
            .and_then(serde_json::Value::as_bool)
            == Some(true)
    };
    let choices = [
        (is("headers", "browser"), "a browser's header fields"),
        (is("dispatch", "fixed"), "request k on connection k mod N"),
        (flag("poisson"), "Poisson arrivals"),
    ];
    told.extend(
        choices
            .iter()
            .filter(|(chosen, _)| *chosen)
            .map(|(_, words)| (*words).to_owned()),
    );
    let warm_up = trial.whole_parameter("warm_up_rate");
    told.extend(
        warm_up.map(|rate| format!("{} a second in the warm-up", counted(rate, "request"))),
    );
    told.join(", ")
}

/// The three rates, each with its share of the offered one.
pub(super) fn rates(http: &HttpRecord) -> [[String; 3]; 3] {
    let row = |name: &str, rate: f64, share: String| [name.to_owned(), number(rate), share];
    let of_offered = |rate| near_whole(share(rate, http.offered_per_s));
    [
        row("offered", http.offered_per_s, String::new()),
        row(
            "achieved",
            http.achieved_per_s,
            of_offered(http.achieved_per_s),
        ),
        row(
            "completed",
            http.completed_per_s,
            of_offered(http.completed_per_s),
        ),
    ]
}

/// The same in a line: `5,000 offered, 5,000 achieved (100 %), 4,990 completed (99.8 %) per second`.
pub(super) fn rates_in_a_line(http: &HttpRecord) -> String {
    let [offered, achieved, completed] = rates(http);
    let with_share = |[name, rate, share]: [String; 3]| format!("{rate} {name} ({share})");
    format!(
        "{} offered, {}, {} per second",
        offered[1],
        with_share(achieved),
        with_share(completed)
    )
}

/// A part of a whole; `None` where the whole is 0.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// How many requests found every connection busy: `120 requests (0.2 %)`.
fn all_busy(trial: &Trial, http: &HttpRecord) -> String {
    let of_due = busy_share(trial, http);
    let of_due = of_due.map_or_else(String::new, |share| format!(" ({})", percent(share)));
    format!("{}{of_due}", counted(http.found_all_busy, "request"))
}

/// The share of the measured requests that found every connection busy.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a trial, far below 2^53"
)]
pub(super) fn busy_share(trial: &Trial, http: &HttpRecord) -> Option<f64> {
    share(http.found_all_busy as f64, trial.ledger.frames_due as f64)
}

/// The same in a line, if there were any.
pub(super) fn all_busy_in_a_line(trial: &Trial, http: &HttpRecord) -> Option<String> {
    let told = || {
        format!(
            "{} waited in the client for a free connection",
            all_busy(trial, http)
        )
    };
    (http.found_all_busy > 0).then(told)
}

/// How requests that were not answered rightly ended, and how many in each way.
pub(super) fn outcomes(http: &HttpRecord) -> Vec<(String, String)> {
    let all = http.outcomes.iter();
    all.map(|outcome| (plain(&outcome.name), count(outcome.count)))
        .collect()
}

/// The same in a line: `3 × timeout, 1 × http_status 503`; `None` if there were none.
pub(super) fn outcomes_in_a_line(http: &HttpRecord) -> Option<String> {
    let told = outcomes(http).into_iter();
    let told: Vec<String> = told
        .map(|(name, times)| format!("{times} × {name}"))
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// What became of connections, how many requests had to wait for one, and what an answer weighs.
pub(super) fn connections(trial: &Trial, http: &HttpRecord) -> Vec<(String, String)> {
    let of = &http.connections;
    let mut rows = vec![(
        "requests that found every connection busy",
        all_busy(trial, http),
    )];
    rows.extend(
        [
            ("connections opened", of.opened),
            ("connections not opened", of.failed),
            ("closed by the server, announced", of.closed_announced),
            ("closed by the server while idle", of.closed_idle),
            (
                "requests asked once more after such a close",
                of.asked_again,
            ),
            (
                "left open by the server, closed by the client",
                of.left_open,
            ),
        ]
        .map(|(name, value)| (name, count(value))),
    );
    rows.push((
        "bytes per answer, head included",
        maybe(http.bytes_per_answer, bytes),
    ));
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    rows.into_iter().map(owned).collect()
}

/// The same in a line; what did not happen is left out.
pub(super) fn connections_in_a_line(http: &HttpRecord) -> String {
    let of = &http.connections;
    let further = [
        (of.failed, "not opened"),
        (of.closed_announced, "closed by the server as announced"),
        (of.closed_idle, "closed while idle"),
        (of.left_open, "left open by the server"),
    ];
    let mut told = vec![format!("{} opened", count(of.opened))];
    let further = further.iter().filter(|(number, _)| *number > 0);
    told.extend(further.map(|(number, what)| format!("{} {what}", count(*number))));
    if of.asked_again > 0 {
        told.push(format!(
            "{} asked once more",
            counted(of.asked_again, "request")
        ));
    }
    let weight = http
        .bytes_per_answer
        .map(|weight| format!("; {} an answer", bytes(weight)));
    told.join(", ") + &weight.unwrap_or_default()
}

/// The closed loop beside the open one: the quantity, its value in the trial, and its value in the closed loop; `None`
/// where no closed loop was asked for.
pub(super) fn closed_loop(trial: &Trial, http: &HttpRecord) -> Option<Vec<[String; 3]>> {
    let closed = http.closed_loop.as_ref()?;
    let open = &trial.latency.newest.from_schedule;
    let ms = |value| maybe(value, number);
    let row = |what: &str, open: String, closed: String| [what.to_owned(), open, closed];
    Some(vec![
        row(
            "answers per second",
            number(http.completed_per_s),
            number(closed.completed_per_s),
        ),
        row("p50 in ms", ms(open.p50_ms), ms(closed.p50_ms)),
        row("p99 in ms", ms(open.p99_ms), ms(closed.p99_ms)),
        row("max in ms", ms(open.max_ms), ms(closed.max_ms)),
    ])
}

/// The same in a line: `52,300 answers per second, p50 1.9 ms, p99 2.4 ms`.
pub(super) fn closed_loop_in_a_line(http: &HttpRecord) -> Option<String> {
    let closed = http.closed_loop.as_ref()?;
    Some(format!(
        "{} answers per second, p50 {} ms, p99 {} ms",
        number(closed.completed_per_s),
        maybe(closed.p50_ms, number),
        maybe(closed.p99_ms, number),
    ))
}

/// The connections that share the load.
pub(super) fn connections_of(trial: &Trial) -> Option<u64> {
    trial.whole_parameter("connections")
}
