//! The end of section 3 of the contract: SIGTERM.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::Verdict;

use super::setup::DRAIN;
use super::talk::{answers, open};
use super::{Case, Site};

/// A target may take this long to notice the signal.
const SIGNAL_SEEN: Duration = Duration::from_millis(300);

/// What an exit may take beyond the drain itself.
const EXIT_MARGIN: Duration = Duration::from_millis(1000);

/// The close that a client gets.
const GOING_AWAY: u16 = 1001;

pub(super) fn cases() -> Vec<Case> {
    [
        Case::new(
            "drain-closes",
            "On SIGTERM the open connections get close 1001",
            "close 1001 on each of three",
            &DRAIN,
            closes,
        ),
        Case::new(
            "drain-exit",
            "On SIGTERM the target exits with 0 within DRAIN_TIMEOUT_MS",
            "exit code 0 within 1,500 ms",
            &DRAIN,
            exits,
        ),
        Case::new(
            "drain-exit-idle",
            "On SIGTERM a target without connections exits with 0",
            "exit code 0 within 1,500 ms",
            &DRAIN,
            exits_idle,
        ),
        Case::new(
            "drain-refuses",
            "On SIGTERM no new connection is accepted",
            "no connection, or a status other than 101, while an old one is still open",
            &DRAIN,
            refuses,
        )
        .failed_by_delay_of(SIGNAL_SEEN),
        Case::new(
            "drain-timeout",
            "The target exits with 0 within DRAIN_TIMEOUT_MS even if some clients have not answered by then",
            "exit code 0, at most a second after DRAIN_TIMEOUT_MS",
            &DRAIN,
            times_out,
        ),
    ]
    .map(|case| case.in_setup(&DRAIN))
    .into()
}

fn timeout(site: &Site<'_>) -> Duration {
    site.millis("DRAIN_TIMEOUT_MS", 5000)
}

/// Passes when the target exits with 0 within `limit` of now; how long it took.
fn exit_within(site: &Site<'_>, begun: Instant, limit: Duration) -> Verdict {
    let left = limit.saturating_sub(begun.elapsed());
    match site.server()?.wait(left)? {
        Some(0) => Ok(format!(
            "exit code 0 after {} ms",
            begun.elapsed().as_millis()
        )),
        Some(-1) => Err("it was ended by a signal".to_owned()),
        Some(code) => Err(format!("exit code {code}")),
        None => Err(format!("it still runs after {} ms", limit.as_millis())),
    }
}

fn closes(site: &Site<'_>) -> Verdict {
    let mut sockets = [open(site)?, open(site)?, open(site)?];
    for socket in &mut sockets {
        answers(site, socket)?;
    }
    site.server()?.terminate()?;
    let mut seen = String::new();
    for socket in &mut sockets {
        seen = socket.expect_close(&[GOING_AWAY], timeout(site))?;
    }
    Ok(seen)
}

fn exits(site: &Site<'_>) -> Verdict {
    let mut socket = open(site)?;
    answers(site, &mut socket)?;
    let begun = Instant::now();
    site.server()?.terminate()?;
    socket.expect_close(&[GOING_AWAY], timeout(site))?;
    exit_within(site, begun, timeout(site))
}

fn exits_idle(site: &Site<'_>) -> Verdict {
    let begun = Instant::now();
    site.server()?.terminate()?;
    exit_within(site, begun, timeout(site))
}

fn refuses(site: &Site<'_>) -> Verdict {
    let mut deaf = open(site)?;
    answers(site, &mut deaf)?;
    site.server()?.terminate()?;
    // Its close stays unanswered, which keeps the drain going; a signal is not seen at once.
    thread::sleep(SIGNAL_SEEN);
    match open(site) {
        Ok(_) => Err("a new connection was accepted".to_owned()),
        Err(seen) => Ok(seen),
    }
}

fn times_out(site: &Site<'_>) -> Verdict {
    let mut deaf = open(site)?;
    answers(site, &mut deaf)?;
    let begun = Instant::now();
    site.server()?.terminate()?;
    exit_within(site, begun, timeout(site) + EXIT_MARGIN)
}
