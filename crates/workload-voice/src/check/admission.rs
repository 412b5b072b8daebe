//! Section 2 of the contract: admission, which comes before the upgrade.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::case::poll;
use plimsoll_conformance::socket::key;
use plimsoll_conformance::subject::{Bench, Environment, Server};
use plimsoll_host::http::{self, Metrics};
use plimsoll_protocol::websocket::{Opcode, RawFrame, upgrade_request};

use super::exchange::{Answer, ask, rest};
use super::registry::{Case, Site, Verdict, case_in};
use super::session::{PATH, without_audio};
use super::setup::SLOTS;
use super::wire::Wire;

/// A gateway may take this long to notice that a session has ended.
const SLOT_LIMIT: Duration = Duration::from_secs(2);

/// How long an upgrade may take to be answered.
const UPGRADE_LIMIT: Duration = Duration::from_secs(4);

/// Sessions that are torn.
const RESETS: usize = 100;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case_in(
            &SLOTS,
            (
                "admission-burst",
                "Of twice as many upgrades at once as MAX_SESSIONS exactly that many are accepted",
                "section 2: in each of 3 bursts of 20, 10 times 101 and 10 times 503 `capacity` with Retry-After",
            ),
            burst,
        ),
        Case::on_bench(
            "admission-causes",
            "Each cause has its status and its body, and is counted",
            "sections 2 and 7: 503 capacity, 429 per_address, 429 rate, 401 auth; Retry-After; voice_refused_total{cause}",
            causes,
        ),
        case_in(
            &SLOTS,
            (
                "admission-slot-back",
                "A session that is torn gives its place back",
                "section 2: 100 sessions accepted one after the other, each reset; then 10 at once",
            ),
            slot_back,
        ),
    ]
}

/// How an upgrade was answered.
pub(super) enum Answered {
    Accepted(Wire),
    Refused(Refusal),
}

/// An upgrade that was refused.
pub(super) struct Refusal(Answer);

impl Refusal {
    /// Passes when it is an error of this status and cause; all but 401 say when to come again.
    pub(super) fn must_be(&self, status: u16, cause: &str) -> Result<(), String> {
        let wrong = |seen| format!("an upgrade: {seen} instead of {status} {cause}");
        self.0.must_be_error(status, cause).map_err(wrong)?;
        let retry_after = self.0.head.field("retry-after");
        let seconds = retry_after.and_then(|value| value.parse::<u32>().ok());
        if status != 401 && seconds.is_none() {
            return Err(format!(
                "{status} {cause} with Retry-After: {}",
                retry_after.unwrap_or("absent")
            ));
        }
        Ok(())
    }
}

/// Asks for an upgrade with these fields, too.
fn upgrade(wire: Wire, address: SocketAddr, fields: &[(&str, &str)]) -> Result<Answered, String> {
    let request = upgrade_request(&address.to_string(), PATH, key(7), fields);
    let request = request.map_err(|error| error.to_string())?;
    let mut wire = wire;
    let sent = wire.send(&request);
    sent.map_err(|error| format!("the upgrade request could not be sent: {error}"))?;
    let head = wire.head(Instant::now() + UPGRADE_LIMIT)?;
    let head = head.ok_or("the upgrade was not answered")?;
    if head.status()? == 101 {
        return Ok(Answered::Accepted(wire));
    }
    rest(&mut wire, head).map(|answer| Answered::Refused(Refusal(answer)))
}

fn asked(address: SocketAddr, fields: &[(&str, &str)]) -> Result<Answered, String> {
    upgrade(Wire::to(address)?, address, fields)
}

/// An upgrade that must be refused.
pub(super) fn refusal(address: SocketAddr, fields: &[(&str, &str)]) -> Result<Refusal, String> {
    match asked(address, fields)? {
        Answered::Accepted(_) => Err("an upgrade was accepted".to_owned()),
        Answered::Refused(refusal) => Ok(refusal),
    }
}

/// An upgrade that must be accepted, once an ended session has made room for it.
fn accepted(address: SocketAddr, fields: &[(&str, &str)]) -> Result<Wire, String> {
    let ask = || match asked(address, fields)? {
        Answered::Accepted(wire) => Ok((Ok(wire), true)),
        Answered::Refused(refusal) => Ok((Err(refusal.0.describe()), false)),
    };
    let (answered, _) = poll(SLOT_LIMIT, ask)?;
    answered.map_err(|seen| format!("an upgrade with places left: {seen}"))
}

fn burst(site: &Site<'_>) -> Verdict {
    let most = usize::try_from(site.setup.number("MAX_SESSIONS", 0)).unwrap_or(0);
    for round in 1..=3 {
        let told = |seen: String| format!("burst {round}: {seen}");
        must_be_empty(site)?;
        let answers = at_once(site.address, 2 * most).map_err(told)?;
        let (mut held, mut refused) = (Vec::new(), 0);
        for answered in answers {
            match answered {
                Answered::Accepted(wire) => held.push(wire),
                Answered::Refused(refusal) => {
                    refusal.must_be(503, "capacity").map_err(told)?;
                    refused += 1;
                }
            }
        }
        if (held.len(), refused) != (most, most) {
            let accepted = held.len();
            return Err(told(format!(
                "{accepted} accepted and {refused} refused of {}",
                2 * most
            )));
        }
    }
    Ok(format!("{most} of {}, three times", 2 * most))
}

/// Waits until no session of an earlier case holds a place.
fn must_be_empty(site: &Site<'_>) -> Result<(), String> {
    let open = |metrics: &Metrics| metrics.get("voice_sessions", &[]).unwrap_or(0.0);
    let (metrics, empty) = site.metrics_within(SLOT_LIMIT, |metrics| open(metrics) == 0.0)?;
    if empty {
        return Ok(());
    }
    Err(format!(
        "voice_sessions is {} though no session is open",
        open(&metrics)
    ))
}

/// Asks for so many upgrades in the same moment.
fn at_once(address: SocketAddr, count: usize) -> Result<Vec<Answered>, String> {
    let barrier = Barrier::new(count);
    let one = || {
        let wire = Wire::to(address);
        barrier.wait();
        upgrade(wire?, address, &[])
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(one)).collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err("the client failed".to_owned())))
            .collect()
    })
}

fn slot_back(site: &Site<'_>) -> Verdict {
    let most = usize::try_from(site.setup.number("MAX_SESSIONS", 0)).unwrap_or(0);
    for number in 1..=RESETS {
        let torn = accepted(site.address, &[]).and_then(reset);
        torn.map_err(|seen| format!("session {number}: {seen}"))?;
    }
    must_be_empty(site)?;
    let held: Result<Vec<Wire>, String> = (0..most).map(|_| accepted(site.address, &[])).collect();
    let held = held.map_err(|seen| format!("behind {RESETS} resets: {seen}"))?;
    refusal(site.address, &[])?.must_be(503, "capacity")?;
    Ok(format!(
        "{RESETS} sessions torn, then {} at once",
        held.len()
    ))
}

/// Tears a session that is ready: a stream that is closed with an answer unread is reset.
fn reset(mut wire: Wire) -> Result<(), String> {
    let config = without_audio().to_string();
    let sent = wire.send(&RawFrame::new(Opcode::Text, config.as_bytes()).to_vec());
    sent.map_err(|error| format!("the target stopped reading: {error}"))?;
    let limit = wire.stream().set_read_timeout(Some(UPGRADE_LIMIT));
    let came = limit.and_then(|()| wire.stream().peek(&mut [0]));
    match came {
        Ok(1) => Ok(()),
        _ => Err("no answer to `config`".to_owned()),
    }
}

const TOKEN: &str = "load-line-9876543210";

fn causes(bench: &dyn Bench) -> Verdict {
    one_too_many(bench, ("MAX_SESSIONS", 503, "capacity"))?;
    one_too_many(bench, ("MAX_SESSIONS_PER_ADDRESS", 429, "per_address"))?;
    too_fast(bench)?;
    without_token(bench)?;
    Ok("capacity, per_address, rate and auth, each counted".to_owned())
}

fn start(bench: &dyn Bench, name: &str, value: &str) -> Result<Box<dyn Server>, String> {
    let environment = Environment::from([
        (name.to_owned(), value.to_owned()),
        ("WORKER_THREADS".to_owned(), "2".to_owned()),
    ]);
    let started = bench.start(&environment);
    started.map_err(|error| format!("it did not start with {name}={value}: {error}"))
}

/// Passes when a gateway has refused so often for this cause.
fn must_have_refused(server: &dyn Server, cause: &str, count: f64) -> Result<(), String> {
    let url = format!("http://{}/metrics", server.http());
    let ask = || {
        let answer = http::get(&url, UPGRADE_LIMIT).map_err(|error| error.to_string())?;
        let metrics = Metrics::parse(&answer.body)?;
        let refused = metrics.get("voice_refused_total", &[("cause", cause)]);
        let refused = refused.unwrap_or(0.0);
        Ok((refused, refused >= count))
    };
    let (refused, _) = poll(SLOT_LIMIT, ask)?;
    if refused == count {
        return Ok(());
    }
    Err(format!(
        "voice_refused_total{{cause=\"{cause}\"}} is {refused} instead of {count}"
    ))
}

/// Two sessions are let in and no third, until one ends.
fn one_too_many(bench: &dyn Bench, (name, status, cause): (&str, u16, &str)) -> Result<(), String> {
    let server = start(bench, name, "2")?;
    let address = server.address();
    let mut held = vec![accepted(address, &[])?, accepted(address, &[])?];
    let told = |seen: String| format!("{name}=2: {seen}");
    for _ in 0..2 {
        refusal(address, &[])
            .and_then(|refusal| refusal.must_be(status, cause))
            .map_err(told)?;
    }
    must_have_refused(&*server, cause, 2.0).map_err(told)?;
    held.pop();
    accepted(address, &[]).map(drop).map_err(told)
}

/// Of six upgrades at once two are let in, and another a second later.
fn too_fast(bench: &dyn Bench) -> Result<(), String> {
    let server = start(bench, "RATE_LIMIT_RPS", "2")?;
    let told = |seen: String| format!("RATE_LIMIT_RPS=2: {seen}");
    let mut refused = 0;
    for answered in at_once(server.address(), 6).map_err(told)? {
        if let Answered::Refused(refusal) = answered {
            refusal.must_be(429, "rate").map_err(told)?;
            refused += 1;
        }
    }
    // Where a second ends in between, twice as many are let in.
    if !(2..=4).contains(&refused) {
        return Err(told(format!("{refused} of 6 at once refused")));
    }
    must_have_refused(&*server, "rate", refused.into()).map_err(told)?;
    thread::sleep(Duration::from_millis(1100));
    match asked(server.address(), &[]).map_err(told)? {
        Answered::Accepted(_) => Ok(()),
        Answered::Refused(refusal) => Err(told(format!("a second later {}", refusal.0.describe()))),
    }
}

fn without_token(bench: &dyn Bench) -> Result<(), String> {
    let server = start(bench, "AUTH_TOKEN", TOKEN)?;
    let address = server.address();
    let wrong = [
        None,
        Some(format!("Bearer {}", &TOKEN[1..])),
        Some(format!("Bearer {TOKEN}x")),
        Some(format!("Basic {TOKEN}")),
    ];
    for value in &wrong {
        let told = |seen: String| format!("Authorization {value:?}: {seen}");
        let fields: Vec<(&str, &str)> = value
            .iter()
            .map(|value| ("Authorization", value.as_str()))
            .collect();
        let refused = refusal(address, &fields).map_err(told)?;
        refused.must_be(401, "auth").map_err(told)?;
    }
    let speak = ask(address, ("POST", "/speak"), Some(b"{}"))?;
    let told = |seen: String| format!("POST /speak without the token: {seen}");
    speak.must_be_error(401, "auth").map_err(told)?;
    let right = format!("Bearer {TOKEN}");
    accepted(address, &[("Authorization", &right)])?;
    for path in ["/", "/metrics"] {
        let answer = ask(address, ("GET", path), None)?;
        if answer.status != 200 {
            return Err(format!(
                "GET {path} without the token: {}",
                answer.describe()
            ));
        }
    }
    Ok(())
}
