//! From the start to the end: variables, readiness, workers, and what is in flight when the target is asked to stop.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::subject::{Bench, Environment};
use plimsoll_conformance::{Verdict, start_line};

use super::answer::Asked;
use super::exchange::{Exchange, body};
use super::offer::{LARGEST, Offer, Protocol, Route};
use super::routes::host;
use super::setup::{BASE, DRAIN};
use super::talk::{Came, Line, PATIENCE};
use super::{Case, Site};

/// A target may take this long to notice the signal.
const SIGNAL_SEEN: Duration = Duration::from_millis(300);

/// What an exit may take beyond the drain itself.
const EXIT_MARGIN: Duration = Duration::from_secs(1);

/// Connections for each number of workers.
const CONNECTIONS: usize = 20;

/// Values of each variable that are refused.
const BAD_VALUES: [(&str, &[&str]); 3] = [
    ("PORT", &["http", "65536"]),
    ("WORKER_THREADS", &["0", "many"]),
    ("DRAIN_TIMEOUT_MS", &["soon", "-1"]),
];
const BAD_BODY_LIMIT: (&str, &[&str]) = ("MAX_BODY_BYTES", &["1MiB", "-1"]);
const BAD_H2_PORT: (&str, &[&str]) = ("H2_PORT", &["h2", "65536"]);

pub(super) fn cases(offer: &Offer) -> Vec<Case> {
    let mut cases = vec![
        Case::new(
            "life-start-line",
            "On start the target prints one line of JSON with its versions",
            "a JSON object with a version on the first line",
            &BASE,
            |site| start_line::check(&site.server()?.output()),
        )
        .only_when_started(),
        Case::on_bench(
            "life-ready",
            "Once /healthz answers 200, requests are served",
            "an answer to GET / at the first attempt",
            ready,
        ),
        Case::on_bench(
            "life-workers",
            "One worker serves many connections, and so do two",
            "an answer on each of 20 connections, with WORKER_THREADS=1 and 2",
            workers,
        ),
    ];
    cases.push(drain(
        "life-drain-idle",
        "On the stop signal idle connections are closed, and the target exits with 0",
        "the end of each of three connections, and exit code 0 within 2,000 ms",
        idle,
    ));
    if can_be_busy(offer) {
        cases.extend(of_busy_ends());
    }
    let mut values = BAD_VALUES.to_vec();
    values.extend(offer.has(Route::Sum).then_some(BAD_BODY_LIMIT));
    let own_port = offer.h2_port && offer.protocols.contains(&Protocol::H2c);
    values.extend(own_port.then_some(BAD_H2_PORT));
    cases.extend(
        values
            .into_iter()
            .map(|(name, values)| Case::of_bad_values(name, values)),
    );
    cases
}

/// Whether a request can be in flight: one with a body, or with an answer that takes its time.
pub(super) fn can_be_busy(offer: &Offer) -> bool {
    offer.has(Route::Sum) || offer.has_bytes(LARGEST)
}

/// A case of the end.
fn drain(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &DRAIN, run).in_setup(&DRAIN)
}

fn of_busy_ends() -> [Case; 3] {
    [
        drain(
            "life-drain-in-flight",
            "A request that is in flight at the stop signal is answered, and the connection closes",
            "the right answer, Connection: close with it where its head is not yet sent, the end, and exit code 0 within 2,000 ms",
            in_flight,
        ),
        drain(
            "life-drain-refuses",
            "After the stop signal no new connection is served",
            "no connection, or no 200 on it, while a request is in flight",
            refuses,
        )
        .failed_by_delay_of(SIGNAL_SEEN),
        drain(
            "life-drain-timeout",
            "The target exits with 0 within DRAIN_TIMEOUT_MS even if a client never finishes",
            "exit code 0, at most a second after DRAIN_TIMEOUT_MS",
            times_out,
        ),
    ]
}

fn ready(bench: &dyn Bench) -> Verdict {
    let server = bench.start(&Environment::new())?;
    let address = server.address();
    Line::to(address)?.ask(&Exchange::root(&address.to_string()))?;
    Ok("an answer".to_owned())
}

fn workers(bench: &dyn Bench) -> Verdict {
    for count in ["1", "2"] {
        let environment = Environment::from([("WORKER_THREADS".to_owned(), count.to_owned())]);
        let server = bench.start(&environment)?;
        let address = server.address();
        let root = Exchange::root(&address.to_string());
        let lines = (0..CONNECTIONS).map(|_| Line::to(address));
        let mut lines = lines.collect::<Result<Vec<_>, _>>()?;
        for line in &mut lines {
            let asked = line.ask(&root);
            asked.map_err(|seen| format!("WORKER_THREADS={count}: {seen}"))?;
        }
    }
    Ok(format!("{CONNECTIONS} answers each"))
}

fn timeout(site: &Site<'_>) -> Duration {
    site.millis("DRAIN_TIMEOUT_MS", 5000)
}

/// Passes when the target exits with 0 within `limit` of then; how long it took.
pub(super) fn exits(site: &Site<'_>, begun: Instant, limit: Duration) -> Verdict {
    let left = limit.saturating_sub(begun.elapsed());
    let ended = site.server()?.wait(left)?;
    let took = begun.elapsed().as_millis();
    match ended {
        Some(0) => Ok(format!("exit code 0 after {took} ms")),
        Some(-1) => Err("it was ended by a signal".to_owned()),
        Some(code) => Err(format!("exit code {code}")),
        None => Err(format!("it still runs after {} ms", limit.as_millis())),
    }
}

/// A request in the middle.
struct Busy {
    line: Line,
    exchange: Exchange,
    /// What of the request is not sent.
    rest: Vec<u8>,
}

impl Busy {
    /// Half a body; for a target that reads no bodies, an answer that its client has not read.
    fn on(site: &Site<'_>) -> Result<Self, String> {
        let host = host(site);
        if site.suite.offer.has(Route::Sum) {
            let exchange = Exchange::sum(&host, &body(1000, 3));
            let bytes = exchange.request();
            let (sent, rest) = bytes.split_at(bytes.len() - 500);
            let mut line = Line::open(site)?;
            line.send(sent)?;
            let rest = rest.to_vec();
            return Ok(Self {
                line,
                exchange,
                rest,
            });
        }
        let exchange = Exchange::bytes(&host, LARGEST);
        let mut line = Line::slowly_to(site.address)?;
        line.send(exchange.request())?;
        Ok(Self {
            line,
            exchange,
            rest: Vec::new(),
        })
    }

    /// Passes when the right answer comes, and then the end.
    fn finish(mut self) -> Result<(), String> {
        self.line.send(&self.rest)?;
        let answer = self.line.expect(&self.exchange)?;
        if !self.rest.is_empty() && !answer.announces_close() {
            return Err("the answer has no Connection: close".to_owned());
        }
        self.line.expect_end(PATIENCE).map(drop)
    }
}

/// The target has begun to serve what is on its way to it.
fn settle() {
    thread::sleep(SIGNAL_SEEN);
}

fn in_flight(site: &Site<'_>) -> Verdict {
    let busy = Busy::on(site)?;
    settle();
    let begun = Instant::now();
    site.server()?.terminate()?;
    settle();
    busy.finish()?;
    exits(site, begun, timeout(site))
}

fn idle(site: &Site<'_>) -> Verdict {
    let root = Exchange::root(&host(site));
    let mut lines = [Line::open(site)?, Line::open(site)?, Line::open(site)?];
    for line in &mut lines {
        line.ask(&root)?;
    }
    let begun = Instant::now();
    site.server()?.terminate()?;
    for line in &mut lines {
        line.expect_end(timeout(site))?;
    }
    exits(site, begun, timeout(site))
}

fn refuses(site: &Site<'_>) -> Verdict {
    let busy = Busy::on(site)?;
    settle();
    site.server()?.terminate()?;
    settle();
    let seen = match Line::open(site) {
        Err(seen) => seen,
        Ok(mut line) => {
            line.send_what_may_be_refused(Exchange::root(&host(site)).request());
            match line.next_within(Asked::Other, SIGNAL_SEEN)? {
                Came::Answer(answer) if answer.status == 200 => return Err(answer.describe()),
                Came::Answer(answer) => answer.describe(),
                Came::End | Came::Reset => "the connection closed".to_owned(),
                Came::Nothing => "no answer".to_owned(),
            }
        }
    };
    // It drained meanwhile: an end at once would refuse everybody, too.
    busy.finish()?;
    Ok(seen)
}

fn times_out(site: &Site<'_>) -> Verdict {
    let _busy = Busy::on(site)?;
    settle();
    let begun = Instant::now();
    site.server()?.terminate()?;
    exits(site, begun, timeout(site) + EXIT_MARGIN)
}
