//! What an inference server holds when it is loaded alone, as words.

use plimsoll_core::record::{EndedBy, Holding, InferenceCalibration, InferenceLoad};

use crate::words::{count, maybe, ms, number, percent, plain, sessions, us};

/// The heading of this part.
pub const HEADING: &str = "Calibration of an inference server";

/// The columns of [`rows`].
pub const COLUMNS: [&str; 11] = [
    ">sessions",
    ">sent",
    ">answered",
    ">p50",
    ">p95",
    ">p99",
    ">p99.9",
    ">send lag p99",
    ">server's CPU per batch",
    ">server's CPU",
    "verdict",
];

/// The note under the table.
pub const NOTE: &str = "One batch per session per second, at random times within the second, whether the server answers or not. Latency from the schedule. A load is held if every batch was answered as the contract says, within the limit at p99, by a client that was on time itself: send lag p99 of at most 2 ms, no thread over 90 % busy. A load that was not held was tried twice. The server's CPU is that of the process and its descendants in the measured window; its share is one of a core.";

/// What the server holds, in a sentence.
#[must_use]
pub fn claim(calibration: &InferenceCalibration) -> String {
    let url = plain(&calibration.url);
    match (calibration.sessions, calibration.ended) {
        (Some(held), EndedBy::Server) => {
            format!("The inference server at {url} holds {}", sessions(held))
        }
        (Some(held), EndedBy::Client | EndedBy::Nothing) => format!(
            "The inference server at {url} holds at least {}",
            sessions(held)
        ),
        (None, EndedBy::Client) => format!(
            "INVALID: nothing can be said of the inference server at {url}, because this client was late with every load"
        ),
        (None, _) => format!(
            "The inference server at {url} holds no load that was tried, the smallest of {}",
            calibration
                .loads
                .iter()
                .map(|load| load.sessions)
                .min()
                .map_or_else(|| sessions(0), sessions)
        ),
    }
}

/// What ended the search, and what to do about it.
#[must_use]
pub fn bounds(calibration: &InferenceCalibration) -> String {
    match calibration.ended {
        EndedBy::Server => "The server was the limit.".to_owned(),
        EndedBy::Client => {
            "This client was the limit, not the server: give it more cores (--client-cpus), or run the server on another machine.".to_owned()
        }
        EndedBy::Nothing => "The most that can be tried was held: half of the descriptors (ulimit -n), and at most 10,000 sessions.".to_owned(),
    }
}

/// One row for each load, in the order tried.
#[must_use]
pub fn rows(calibration: &InferenceCalibration) -> Vec<[String; 11]> {
    calibration.loads.iter().map(row).collect()
}

fn row(load: &InferenceLoad) -> [String; 11] {
    let latency = &load.from_schedule;
    [
        count(load.sessions.into()),
        per_s(load.sent_per_s),
        per_s(load.answered_per_s),
        maybe(latency.p50_ms, ms),
        maybe(latency.p95_ms, ms),
        maybe(latency.p99_ms, ms),
        maybe(latency.p999_ms, ms),
        maybe(load.send_lag.p99_us, us),
        maybe(load.server.map(|it| it.cpu_us_per_batch), us),
        maybe(load.server.map(|it| it.cpu_share), percent),
        verdict(load),
    ]
}

fn per_s(rate: f64) -> String {
    format!("{} /s", number(rate))
}

/// What is said of a load, with what failed.
#[must_use]
pub fn verdict(load: &InferenceLoad) -> String {
    let said = match load.judged {
        Holding::Held => "held",
        Holding::Unanswered => "not all answered",
        Holding::Late => "late",
        Holding::ClientLate => "invalid: the client was late",
    };
    let errors = load.errors.iter();
    let errors: Vec<String> = errors
        .map(|(kind, times)| format!("{} {}", count(*times), plain(kind)))
        .collect();
    if errors.is_empty() {
        return said.to_owned();
    }
    format!("{said}: {}", errors.join(", "))
}

/// How it was measured, and what the server says of itself at the highest load that it held.
#[must_use]
pub fn conditions(calibration: &InferenceCalibration) -> String {
    let held = calibration.highest_held();
    let says = held.and_then(|load| load.server_says.as_ref());
    let says = says.map_or_else(String::new, |says| {
        format!(
            " At the highest load held, the server says of itself: requests waited for a place p99 {}, answers were late by p99 {}, busy {}.",
            maybe(says.queue_wait.p99_us, us),
            maybe(says.answer_lateness.p99_us, us),
            percent(says.busy_share)
        )
    });
    format!(
        "Batches of {} bytes over {}; limit: p99 {} from the schedule; windows of {} s; seed {}; {}.{says}",
        count(calibration.batch_bytes),
        plain(&calibration.transport),
        ms(calibration.p99_limit_ms),
        number(calibration.seconds),
        calibration.seed,
        plain(&calibration.started_at),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(sessions: Option<u32>, ended: EndedBy) -> InferenceCalibration {
        let load = |sessions, judged| InferenceLoad {
            sessions,
            judged,
            ..InferenceLoad::default()
        };
        InferenceCalibration {
            url: "http://127.0.0.1:9000".to_owned(),
            loads: vec![load(10, Holding::Held), load(20, Holding::Late)],
            sessions,
            ended,
            ..InferenceCalibration::default()
        }
    }

    #[test]
    fn a_limit_is_the_servers_only_if_the_server_was_the_limit() {
        let claim = |sessions, ended| claim(&calibration(sessions, ended));
        assert!(claim(Some(10), EndedBy::Server).ends_with("holds 10 sessions"));
        assert!(claim(Some(10), EndedBy::Client).contains("holds at least 10 sessions"));
        assert!(claim(Some(10), EndedBy::Nothing).contains("at least 10"));
        assert!(claim(None, EndedBy::Client).starts_with("INVALID"));
        assert!(claim(None, EndedBy::Server).contains("the smallest of 10 sessions"));
        let bounds = bounds(&calibration(None, EndedBy::Client));
        assert!(bounds.contains("--client-cpus"), "{bounds}");
    }

    #[test]
    fn a_verdict_names_what_failed() {
        let load = InferenceLoad {
            judged: Holding::Unanswered,
            errors: [("http_status 503".to_owned(), 3)].into(),
            ..InferenceLoad::default()
        };
        assert_eq!(verdict(&load), "not all answered: 3 http_status 503");
    }
}
