//! Section 8 of the contract: SIGTERM. Stop accepting, answer what is in flight, close 1001, exit 0.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::Upgrade;

use super::client::usual;
use super::in_flight::wait_for_request;
use super::registry::{Case, Site, Verdict, case};
use super::setup::{DRAIN, SHORT_DRAIN};

/// What an exit may take beyond the drain itself.
const EXIT_MARGIN: Duration = Duration::from_millis(1000);

/// A gateway may take this long to notice the signal.
const SIGNAL_SEEN: Duration = Duration::from_millis(150);

/// Close codes of a gateway that ends: "going away", or "normal" or "service restart" as some frameworks have it.
const GOING_AWAY: [u16; 3] = [1001, 1000, 1012];

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "drain-answers-in-flight",
            "On SIGTERM what is in flight is answered, then the session is closed",
            "a partial, then close 1001, 1000 or 1012",
            answers_in_flight,
        )
        .in_setup(&DRAIN),
        case(
            "drain-refuses",
            "While draining, /health answers 503 and no session is accepted",
            "503 or no connection, for both",
            refuses,
        )
        .in_setup(&DRAIN)
        .failed_by_delay_of(SIGNAL_SEEN),
        case(
            "drain-exit",
            "After SIGTERM the gateway exits with 0",
            "exit code 0 before DRAIN_TIMEOUT_MS",
            exits,
        )
        .in_setup(&DRAIN),
        case(
            "drain-timeout",
            "A drain ends after DRAIN_TIMEOUT_MS, whatever is still in flight",
            "close 1001, 1000 or 1012 and exit code 0, at most a second after DRAIN_TIMEOUT_MS",
            times_out,
        )
        .in_setup(&SHORT_DRAIN),
    ]
}

fn answers_in_flight(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(3)?;
    wait_for_request(site)?;
    site.server()?.terminate()?;
    let (_, partial) = session.next_partial(site.patience())?;
    let close = session.expect_close(&GOING_AWAY, site.millis("DRAIN_TIMEOUT_MS", 5000))?;
    Ok(format!(
        "a partial for {} frames, then {close}",
        partial.frames
    ))
}

fn refuses(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    wait_for_request(site)?;
    site.server()?.terminate()?;
    // The request in flight keeps the drain going; a signal is not seen at once.
    thread::sleep(SIGNAL_SEEN);
    let health = site
        .get("/health")
        .map_or("no connection".to_owned(), |answer| {
            answer.status.to_string()
        });
    let upgrade = match site.upgrade(&usual()) {
        Err(_) => "no connection".to_owned(),
        Ok(Upgrade::Refused { status, .. }) => status.to_string(),
        Ok(Upgrade::Done(_)) => "101".to_owned(),
    };
    // Had the gateway ended by then, a refusal would show nothing.
    session
        .next_partial(site.patience())
        .map_err(|seen| format!("the drain was over too soon: {seen}"))?;
    let seen = format!("/health: {health}, upgrade: {upgrade}");
    let refused = |answer: &str| answer == "503" || answer == "no connection";
    if refused(&health) && refused(&upgrade) {
        Ok(seen)
    } else {
        Err(seen)
    }
}

/// Signals, and tells how long the exit with 0 took.
fn exit_after_signal(site: &Site<'_>, limit: Duration) -> Result<Duration, String> {
    let gateway = site.server()?;
    let since = Instant::now();
    gateway.terminate()?;
    match gateway.wait(limit)? {
        Some(0) => Ok(since.elapsed()),
        Some(code) => Err(format!(
            "exit code {code} after {} ms",
            since.elapsed().as_millis()
        )),
        None => Err(format!(
            "it still runs {} ms after SIGTERM",
            limit.as_millis()
        )),
    }
}

fn exits(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    wait_for_request(site)?;
    let took = exit_after_signal(site, site.millis("DRAIN_TIMEOUT_MS", 5000) + EXIT_MARGIN)?;
    let seen = format!("exit code 0 after {} ms", took.as_millis());
    if took <= site.millis("DRAIN_TIMEOUT_MS", 5000) {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn times_out(site: &Site<'_>) -> Verdict {
    let mut session = site.session()?;
    session.send_audio(1)?;
    wait_for_request(site)?;
    let limit = site.millis("DRAIN_TIMEOUT_MS", 5000) + EXIT_MARGIN;
    let (exit, close) = thread::scope(|scope| {
        let reader = scope.spawn(|| session.expect_close(&GOING_AWAY, limit));
        let exit = exit_after_signal(site, limit);
        (
            exit,
            reader
                .join()
                .unwrap_or_else(|_| Err("the client failed".to_owned())),
        )
    });
    let passed = exit.is_ok() && close.is_ok();
    let exit = exit.map_or_else(
        |seen| seen,
        |took| format!("exit code 0 after {} ms", took.as_millis()),
    );
    let seen = format!("{}; {exit}", close.unwrap_or_else(|seen| seen));
    if passed { Ok(seen) } else { Err(seen) }
}
