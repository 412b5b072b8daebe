//! Sections 3 and 5 of the contract: silence, floods, and the drain.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::Opcode;

use super::audio::{self, REPLY_BLOCK_BYTES};
use super::mock::Reply;
use super::registry::{Case, Site, Verdict, case_in};
use super::session::{PATIENCE, Session, speak};
use super::setup::{DRAIN, IDLE};

/// So many bad messages within 10 s close a session.
const FLOOD: usize = 100;

/// How much later a close may come.
const MARGIN: Duration = Duration::from_millis(500);

/// What an exit may take beyond the drain itself.
const EXIT_MARGIN: Duration = Duration::from_millis(1000);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case_in(
            &IDLE,
            (
                "limits-idle-and-flood",
                "A silent session is closed with 1001, one with 100 bad messages with 1008",
                "section 3: 1001 after IDLE_MS (± 10 %), not where pings come; 1008 at the 100th bad message",
            ),
            idle_and_flood,
        ),
        case_in(
            &DRAIN,
            (
                "limits-drain",
                "A drain lets replies end, closes each session when it is quiet, and ends in time",
                "section 5: the reply whole, then close 1001; a longer one closed after DRAIN_TIMEOUT_MS; exit code 0",
            ),
            drain,
        ),
    ]
}

fn idle_and_flood(site: &Site<'_>) -> Verdict {
    thread::scope(|scope| {
        let parts = [
            scope.spawn(|| idle(site).map_err(|seen| format!("a silent session: {seen}"))),
            scope.spawn(|| not_idle(site).map_err(|seen| format!("a session with pings: {seen}"))),
            scope.spawn(|| flood(site).map_err(|seen| format!("bad messages: {seen}"))),
        ];
        let mut seen = Vec::new();
        for part in parts {
            let ended = part.join();
            seen.push(ended.unwrap_or_else(|_| Err("the client failed".to_owned()))?);
        }
        Ok(seen.join("; "))
    })
}

fn idle(site: &Site<'_>) -> Verdict {
    let idle = site.millis("IDLE_MS", 300_000);
    let mut session = site.session_without_audio()?;
    let since = Instant::now();
    let seen = session.expect_close(&[1001], idle * 11 / 10 + MARGIN)?;
    if since.elapsed() < idle * 9 / 10 {
        return Err(format!("{seen}, before {} ms", (idle * 9 / 10).as_millis()));
    }
    Ok(seen)
}

fn not_idle(site: &Site<'_>) -> Verdict {
    let idle = site.millis("IDLE_MS", 300_000);
    let mut session = site.session_without_audio()?;
    let since = Instant::now();
    while since.elapsed() < idle * 3 / 2 {
        thread::sleep(idle / 4);
        session.expect_alive()?;
    }
    Ok("open with pings".to_owned())
}

fn flood(site: &Site<'_>) -> Verdict {
    let mut session = site.session_without_audio()?;
    for number in 1..FLOOD {
        session.say(Opcode::Text, b"hello")?;
        let error = session.expect_error("bad_message", PATIENCE);
        error.map_err(|seen| format!("message {number}: {seen}"))?;
    }
    session.say(Opcode::Text, b"hello")?;
    let seen = session.expect_close(&[1008], PATIENCE);
    seen.map_err(|seen| format!("at message {FLOOD}: {seen}"))
}

/// Sessions with a reply that ends within the drain and with one that does not.
fn drain(site: &Site<'_>) -> Verdict {
    let timeout = site.millis("DRAIN_TIMEOUT_MS", 5000);
    let scene = site.scene()?;
    let short = audio::reply(70, 40 * REPLY_BLOCK_BYTES);
    let long = audio::reply(71, 1500 * REPLY_BLOCK_BYTES);
    scene.answers("short", [Reply::in_real_time(&short)]);
    scene.answers("long", [Reply::in_real_time(&long)]);
    let mut ends = playing(site, &scene, "short")?;
    let mut lasts = playing(site, &scene, "long")?;
    let server = site.server()?;
    let since = Instant::now();
    server.terminate()?;
    let heard = ends.0.reply(PATIENCE);
    let mut heard = heard
        .map_err(|seen| format!("the short reply: {seen}"))?
        .audio;
    heard.splice(..0, ends.1);
    audio::must_be_same(&heard, &short).map_err(|seen| format!("the short reply: {seen}"))?;
    let closed = ends
        .0
        .expect_close(&[1001], timeout.saturating_sub(since.elapsed()));
    closed.map_err(|seen| format!("the session that was quiet: {seen}"))?;
    let closed = lasts.0.expect_close(
        &[1001],
        (timeout + EXIT_MARGIN).saturating_sub(since.elapsed()),
    );
    closed.map_err(|seen| format!("the session with the long reply: {seen}"))?;
    let after = since.elapsed();
    if after + MARGIN < timeout {
        return Err(format!(
            "the long reply was closed after {} ms already",
            after.as_millis()
        ));
    }
    match server.wait(EXIT_MARGIN)? {
        Some(0) => Ok(format!(
            "a whole reply, closes 1001, exit code 0 after {} ms",
            since.elapsed().as_millis()
        )),
        Some(code) => Err(format!("exit code {code}")),
        None => Err(format!(
            "it still runs {} ms after SIGTERM",
            since.elapsed().as_millis()
        )),
    }
}

/// A session in which this text is being spoken, and what was heard of it.
fn playing(
    site: &Site<'_>,
    scene: &super::mock::Scene,
    text: &str,
) -> Result<(Session, Vec<u8>), String> {
    let mut session = site.session(scene)?;
    session.tell(&speak(text))?;
    let (_, audio) = session.expect_audio(PATIENCE)?;
    Ok((session, audio))
}
