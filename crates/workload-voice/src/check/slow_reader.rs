//! Section 4 of the contract: a caller that reads too slowly hurts only itself.

use std::time::{Duration, Instant};

use plimsoll_conformance::case::{poll, value};
use plimsoll_conformance::socket::{Incoming, describe};

use super::audio::{self, REPLY_BLOCK_BYTES};
use super::messages::Message;
use super::mock::{Reply, Scene, Step, result};
use super::registry::{Case, Site, Verdict, case_in};
use super::session::{PATIENCE, Session, speak};
use super::setup::SMALL_OUT_BUFFER;

/// Far more than the kernel's buffers of both sides hold.
const REPLY_BYTES: usize = 24 * 1024 * 1024;

/// A socket that takes nothing for so long is closed.
const BLOCKED: Duration = Duration::from_secs(10);

/// How much earlier or later.
const MARGIN: Duration = Duration::from_millis(2500);

pub(super) fn cases() -> Vec<Case> {
    vec![case_in(
        &SMALL_OUT_BUFFER,
        (
            "limits-slow-reader",
            "A slow reader loses audio, one that reads nothing is closed, and no other session notices",
            "section 4: audio beyond OUT_BUFFER_BYTES in dropped_bytes; closed after 10 s; a reply and a result of another session meanwhile",
        ),
        slow_reader,
    )]
}

/// A session that does not read while far too much comes: at once, and at a pace for so long behind it. What a slow gateway
/// drops at once does not fill the kernel's buffers, and then no socket is blocked. The pace fills them soon.
fn overrun(site: &Site<'_>, scene: &Scene, behind: Duration) -> Result<Session, String> {
    const PART_BYTES: usize = 64 * 1024;
    const PACE: Duration = Duration::from_millis(20);
    let part = audio::reply(80, PART_BYTES);
    let burst = (0..REPLY_BYTES / PART_BYTES).map(|_| Step::Audio(part.clone()));
    let paced = (0..behind.as_millis() / PACE.as_millis()).flat_map(|_| {
        let part = Step::Audio(part.clone());
        [Step::Pause(PACE), part]
    });
    scene.answers("far too much", [Reply::of(burst.chain(paced))]);
    let mut session = site.session(scene)?;
    session.tell(&speak("far too much"))?;
    Ok(session)
}

fn slow_reader(site: &Site<'_>) -> Verdict {
    let (stuck_scene, slow_scene, scene) = (site.scene()?, site.scene()?, site.scene()?);
    // The kernel takes what waits once the burst is over: to be blocked, a socket needs more.
    let mut stuck = overrun(site, &stuck_scene, BLOCKED + 2 * MARGIN)?;
    let since = Instant::now();
    let mut slow = overrun(site, &slow_scene, Duration::ZERO)?;
    let ended = slow_scene.until_ended(0);
    ended.map_err(|seen| format!("the provider was kept waiting: {seen}"))?;
    // How long the gateway takes for all that audio says nothing about how long it waits for a socket.
    let filled = Instant::now();
    undisturbed(site, &scene).map_err(|seen| format!("another session meanwhile: {seen}"))?;
    let dropped = read_on(&mut slow).map_err(|seen| format!("the slow reader: {seen}"))?;
    drop(slow);
    let open = || {
        let open = value(&site.metrics()?, ("voice_sessions", &[]));
        Ok((open, open == 0.0))
    };
    let (_, closed) = poll((BLOCKED + MARGIN).saturating_sub(filled.elapsed()), open)?;
    if !closed {
        return Err(format!(
            "a socket that takes nothing is still open after {} s",
            filled.elapsed().as_secs()
        ));
    }
    let after = since.elapsed();
    if after + MARGIN < BLOCKED {
        return Err(format!(
            "a socket that takes nothing was closed after {} ms already",
            after.as_millis()
        ));
    }
    let end = read_to_end(&mut stuck)?;
    Ok(format!(
        "{dropped} bytes dropped; {end} after {} ms",
        after.as_millis()
    ))
}

/// A conversation that must not take longer than usual.
fn undisturbed(site: &Site<'_>, scene: &Scene) -> Result<(), String> {
    let audio = audio::reply(81, 20 * REPLY_BLOCK_BYTES);
    scene.answers("some words", [Reply::in_real_time(&audio)]);
    let mut session = site.session(scene)?;
    session.tell(&speak("some words"))?;
    session.expect_reply(&audio)?;
    scene.say(0, &result("hear me", (true, true), 0.9))?;
    session.expect_result(PATIENCE).map(drop)
}

/// Reads on; how much was dropped.
fn read_on(session: &mut Session) -> Result<u64, String> {
    let mut came: u64 = 0;
    loop {
        match session.due("the rest of the reply", PATIENCE)?.1 {
            Message::Audio(audio) => came += audio.len() as u64,
            Message::Complete(complete) => {
                let all = REPLY_BYTES as u64;
                let dropped = complete.dropped_bytes.unwrap_or(all - came.min(all));
                return if dropped > 0 && came + dropped == all {
                    Ok(dropped)
                } else {
                    Err(format!(
                        "{came} bytes came and {dropped} are told as dropped, of {all}"
                    ))
                };
            }
            other => return Err(other.describe()),
        }
    }
}

/// How a session ended that was full. Its close frame may have found no room.
fn read_to_end(session: &mut Session) -> Verdict {
    loop {
        match session.next_within(PATIENCE)? {
            Some((_, Incoming::Binary(_) | Incoming::Text(_) | Incoming::Ping(_))) => {}
            Some((_, Incoming::Close(Some(1008)))) => return Ok("close 1008".to_owned()),
            Some((_, end @ (Incoming::End | Incoming::Reset))) => return Ok(describe(&end)),
            Some((_, other)) => return Err(format!("{} instead of close 1008", describe(&other))),
            None => return Err("the socket is still open, though the session is over".to_owned()),
        }
    }
}
