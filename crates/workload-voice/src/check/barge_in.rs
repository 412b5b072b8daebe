//! Section 3 of the contract: `clear`, which stops what plays.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::audio::{self, REPLY_BLOCK_BYTES, must_be_same};
use super::messages::Message;
use super::mock::{How, Reply, Scene, result};
use super::registry::{Case, Site, Verdict, case};
use super::session::{PATIENCE, Session, queued, speak};

/// A provider's request must be cancelled by then.
const CANCELLED_WITHIN: Duration = Duration::from_millis(100);

/// The last stale byte may have been on its way for so long.
const STALE: Duration = Duration::from_millis(100);

/// The provider would go on for so long.
const QUIET: Duration = Duration::from_millis(700);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "barge-in-stops",
            "After `clear` no byte of the reply comes, and nothing else",
            "section 3: no audio later than 100 ms behind the `clear`; no `tts_playback_complete`, no error",
            stops,
        )
        .failed_by_delay_of(STALE),
        case(
            "barge-in-cancels-upstream",
            "`clear` cancels the provider's request, and what waits is never spoken",
            "section 3: the request cancelled within 100 ms; no other that lives",
            cancels,
        )
        .failed_by_delay_of(CANCELLED_WITHIN),
        case(
            "barge-in-next-reply-whole",
            "After `clear` STT goes on and the next reply is whole",
            "section 3: audio reaches STT, its result comes, and the next reply byte for byte, speak 2",
            next_reply,
        ),
        case(
            "barge-in-nothing-playing",
            "`clear` with nothing playing does nothing",
            "section 3: no answer, and the next reply is whole",
            nothing_playing,
        ),
        case(
            "barge-in-uninterruptible",
            "Neither `clear` nor a flush touches a reply that may not be interrupted",
            "section 3: the reply whole and complete, then that of the flushing speak",
            uninterruptible,
        ),
    ]
}

/// A session in which a reply of 5 s plays.
fn playing(site: &Site<'_>, scene: &Scene) -> Result<Session, String> {
    let long = audio::reply(50, 250 * REPLY_BLOCK_BYTES);
    scene.answers("a long reply", [Reply::in_real_time(&long)]);
    let mut session = site.session(scene)?;
    session.tell(&speak("a long reply"))?;
    for _ in 0..5 {
        session.expect_audio(PATIENCE)?;
    }
    Ok(session)
}

fn stops(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = playing(site, &scene)?;
    session.clear()?;
    let cleared = Instant::now();
    let mut last = Duration::ZERO;
    loop {
        let left = QUIET.saturating_sub(cleared.elapsed());
        match session.message(left)? {
            None => break,
            Some((at, Message::Audio(_))) => last = at.saturating_duration_since(cleared),
            Some((_, other)) => return Err(format!("{} behind the `clear`", other.describe())),
        }
    }
    let seen = format!("the last audio {} ms behind the `clear`", last.as_millis());
    if last <= STALE { Ok(seen) } else { Err(seen) }
}

fn cancels(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = playing(site, &scene)?;
    let long = audio::reply(51, 250 * REPLY_BLOCK_BYTES);
    scene.answers("it waits", [Reply::in_real_time(&long)]);
    session.tell(&queued("it waits"))?;
    thread::sleep(Duration::from_millis(100));
    session.clear()?;
    let cleared = Instant::now();
    thread::sleep(QUIET);
    let ended = scene.look(|seen| {
        seen.asked
            .iter()
            .map(|asked| asked.ended)
            .collect::<Vec<_>>()
    });
    let mut latest = Duration::ZERO;
    for (number, ended) in ended.iter().enumerate() {
        let number = number + 1;
        match ended {
            Some((at, How::Cancelled)) => {
                latest = latest.max(at.saturating_duration_since(cleared))
            }
            Some((_, how)) => return Err(format!("request {number} ended as {how:?}")),
            None => {
                return Err(format!(
                    "request {number} still lives {} ms later",
                    QUIET.as_millis()
                ));
            }
        }
    }
    let seen = format!(
        "{} requests cancelled, after {} ms",
        ended.len(),
        latest.as_millis()
    );
    if latest <= CANCELLED_WITHIN {
        Ok(seen)
    } else {
        Err(seen)
    }
}

fn next_reply(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let next = audio::reply(52, 12 * REPLY_BLOCK_BYTES);
    scene.answers("the next", [Reply::in_real_time(&next)]);
    let mut session = playing(site, &scene)?;
    session.clear()?;
    // What was on its way comes first.
    match session.audio_until(Duration::from_millis(200))? {
        (_, None) => {}
        (_, Some(other)) => return Err(format!("{} behind the `clear`", other.describe())),
    }
    let sent = audio::caller(7, 1, 10);
    session.hear(&sent)?;
    let heard = must_be_same(&scene.heard(0, sent.len(), PATIENCE), &sent);
    heard.map_err(|seen| format!("to STT behind the `clear`: {seen}"))?;
    scene.say(0, &result("go on", (true, true), 0.9))?;
    session.expect_result(PATIENCE)?;
    session.tell(&speak("the next"))?;
    let heard = session.expect_reply(&next)?;
    match heard.complete.speak {
        Some(2) | None => Ok("a result, and the next reply whole".to_owned()),
        Some(speak) => Err(format!("the next reply is complete as speak {speak}")),
    }
}

fn nothing_playing(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(53, 10 * REPLY_BLOCK_BYTES);
    scene.answers("some words", [Reply::at_once(&audio)]);
    let mut session = site.session(&scene)?;
    for round in 0..2 {
        session.clear()?;
        session.clear()?;
        session.expect_quiet(Duration::from_millis(200))?;
        session.tell(&speak("some words"))?;
        let told = |seen| format!("reply {}: {seen}", round + 1);
        session.expect_reply(&audio).map_err(told)?;
    }
    Ok("no answer, and whole replies".to_owned())
}

fn uninterruptible(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let kept = audio::reply(54, 30 * REPLY_BLOCK_BYTES);
    let next = audio::reply(55, 10 * REPLY_BLOCK_BYTES);
    scene.answers("listen to this", [Reply::in_real_time(&kept)]);
    scene.answers("the next", [Reply::at_once(&next)]);
    let mut session = site.session(&scene)?;
    session
        .tell(&json!({"type": "speak", "text": "listen to this", "allow_interruption": false}))?;
    let (_, mut seen) = session.expect_audio(PATIENCE)?;
    session.clear()?;
    session.tell(&speak("the next"))?;
    let heard = session.reply(PATIENCE)?;
    seen.extend(heard.audio);
    must_be_same(&seen, &kept)
        .map_err(|seen| format!("the reply that may not be interrupted: {seen}"))?;
    if heard.complete.speak.is_some_and(|speak| speak != 1) {
        return Err(format!(
            "it is complete as speak {:?}",
            heard.complete.speak
        ));
    }
    let behind = session.expect_reply(&next);
    behind.map_err(|seen| format!("the speak behind it: {seen}"))?;
    Ok("whole and complete, then the next".to_owned())
}
