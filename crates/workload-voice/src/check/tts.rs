//! Section 3 of the contract: replies.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::audio::{self, REPLY_BLOCK_BYTES, must_be_same};
use super::messages::Message;
use super::mock::{How, Reply, Step, result};
use super::registry::{Case, Site, Verdict, case};
use super::session::{Heard, PATIENCE, queued, speak};

/// A client's clock and a gateway's are the same here.
const CLOCK_MARGIN_MS: u64 = 2_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "tts-bytes",
            "A reply comes as the provider handed it over, however it was cut",
            "section 3: the provider's bytes, in messages of any size",
            bytes,
        ),
        case(
            "tts-complete-last",
            "`tts_playback_complete` comes once, behind the last byte, with the number of its speak",
            "section 3: behind the audio, speak 1, 2, 3, timestamp now, provider_ms of the provider, dropped_bytes 0",
            complete_last,
        ),
        case(
            "tts-queue",
            "\"flush\":false queues",
            "section 3: three replies, each whole and complete before the next, in the order of their speaks",
            queue,
        ),
        case(
            "tts-flush",
            "A speak drops what plays and what waits",
            "section 3: of three speaks only the last is complete, and none of the others' audio follows its first byte",
            flush,
        ),
        case(
            "tts-no-crosstalk",
            "Sessions side by side get their own replies and results; they take the providers' addresses in turn",
            "sections 3 and 4: 8 sessions, each with its own audio and text; both addresses asked",
            no_crosstalk,
        ),
    ]
}

fn bytes(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(9, 60_000);
    let mut rest = &audio[..];
    let steps = [1, 959, 961, 2, 30_000, 28_077].map(|size| {
        let (part, tail) = rest.split_at(size);
        rest = tail;
        [
            Step::Audio(part.to_vec()),
            Step::Pause(Duration::from_millis(10)),
        ]
    });
    scene.answers("some words", [Reply::of(steps.into_iter().flatten())]);
    let mut session = site.session(&scene)?;
    session.tell(&speak("some words"))?;
    session.expect_reply(&audio)?;
    if scene.asked() == 1 {
        Ok(format!("{} bytes", audio.len()))
    } else {
        Err(format!("the provider was asked {} times", scene.asked()))
    }
}

fn complete_last(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    for number in 1..=3 {
        let text = format!("words {number}");
        let audio = audio::reply(10 + number, 20 * REPLY_BLOCK_BYTES);
        let reply = Reply::at_once(&audio).with("x-mock-provider-ms", "37.5");
        scene.answers(&text, [reply]);
        session.tell(&speak(&text))?;
        let heard = session.expect_reply(&audio)?;
        must_be_of(&heard, number)?;
    }
    session.expect_quiet(Duration::from_millis(200))?;
    Ok("3 replies, each complete once, behind its audio".to_owned())
}

/// Passes when a reply's `tts_playback_complete` is that of this speak.
fn must_be_of(heard: &Heard, number: u64) -> Result<(), String> {
    let complete = &heard.complete;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let off_ms = complete.timestamp.abs_diff(now_ms);
    if off_ms > CLOCK_MARGIN_MS {
        return Err(format!(
            "timestamp {} is {off_ms} ms off",
            complete.timestamp
        ));
    }
    let speak = complete.speak.unwrap_or(number);
    let provider_ms = complete.provider_ms.unwrap_or(37.5);
    let dropped_bytes = complete.dropped_bytes.unwrap_or(0);
    if speak == number && (provider_ms - 37.5).abs() < 0.01 && dropped_bytes == 0 {
        return Ok(());
    }
    Err(format!(
        "speak {speak}, provider_ms {provider_ms}, dropped_bytes {dropped_bytes} instead of {number}, 37.5, 0"
    ))
}

fn queue(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let replies: Vec<Vec<u8>> = (0..3)
        .map(|n| audio::reply(20 + n, 12 * REPLY_BLOCK_BYTES))
        .collect();
    for (number, audio) in replies.iter().enumerate() {
        let text = format!("words {number}");
        scene.answers(&text, [Reply::in_real_time(audio)]);
        session.tell(&if number == 0 {
            speak(&text)
        } else {
            queued(&text)
        })?;
    }
    for (number, audio) in replies.iter().enumerate() {
        let told = |seen| format!("reply {}: {seen}", number + 1);
        let heard = session.expect_reply(audio).map_err(told)?;
        let speak = heard.complete.speak.unwrap_or(number as u64 + 1);
        if speak != number as u64 + 1 {
            return Err(format!("reply {} is complete as speak {speak}", number + 1));
        }
    }
    session.expect_quiet(Duration::from_millis(200))?;
    Ok("3 replies in order".to_owned())
}

fn flush(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let long = audio::reply(30, 150 * REPLY_BLOCK_BYTES);
    let last = audio::reply(31, 10 * REPLY_BLOCK_BYTES);
    scene.answers("first", [Reply::in_real_time(&long)]);
    scene.answers("second", [Reply::in_real_time(&long)]);
    scene.answers("third", [Reply::at_once(&last)]);
    session.tell(&speak("first"))?;
    session.tell(&queued("second"))?;
    session.expect_audio(PATIENCE)?;
    session.tell(&json!({"type": "speak", "text": "third", "flush": true}))?;
    let heard = session.reply(PATIENCE)?;
    let stale = heard.audio.len().saturating_sub(last.len());
    let (before, behind) = heard.audio.split_at(stale);
    must_be_same(behind, &last).map_err(|seen| format!("the third reply: {seen}"))?;
    if !long.windows(before.len().max(1)).any(|part| part == before) && !before.is_empty() {
        return Err(format!(
            "{} bytes of no reply before the third",
            before.len()
        ));
    }
    let speak = heard.complete.speak.unwrap_or(3);
    if speak != 3 {
        return Err(format!("speak {speak} is complete, though it was dropped"));
    }
    session.expect_quiet(Duration::from_millis(300))?;
    match scene.until_ended(0)? {
        (_, How::Cancelled) => Ok("only the third reply is complete".to_owned()),
        (_, how) => Err(format!(
            "the first request ended as {how:?}, not as cancelled"
        )),
    }
}

fn no_crosstalk(site: &Site<'_>) -> Verdict {
    const SESSIONS: u64 = 8;
    let one = |number: u64| -> Result<usize, String> {
        let scene = site.scene()?;
        let audio = audio::reply(100 + number, 25 * REPLY_BLOCK_BYTES);
        scene.answers("the same words", [Reply::in_real_time(&audio)]);
        let mut session = site.session(&scene)?;
        session.tell(&speak("the same words"))?;
        let (mut seen, own) = (
            session.expect_audio(PATIENCE)?.1,
            format!("caller {number}"),
        );
        scene.say(0, &result(&own, (true, true), 0.9))?;
        let mut results = Vec::new();
        loop {
            match session.due("the rest of the reply", PATIENCE)?.1 {
                Message::Audio(part) => seen.extend(part),
                Message::Result(result) => results.push(result.transcript),
                Message::Complete(_) => break,
                other => return Err(other.describe()),
            }
        }
        must_be_same(&seen, &audio)?;
        if results != [own] {
            return Err(format!("results {results:?}"));
        }
        scene.until_asked(0).map(|asked| asked.place)
    };
    let places: Result<Vec<usize>, String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        let ended = threads.into_iter().enumerate().map(|(number, thread)| {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err("the client failed".to_owned()));
            ended.map_err(|seen| format!("session {} of {SESSIONS}: {seen}", number + 1))
        });
        ended.collect()
    });
    let places = places?;
    let first = places.iter().filter(|place| **place == 0).count();
    if first == 0 || first == places.len() {
        return Err("every session took the same address of PROVIDER_URLS".to_owned());
    }
    Ok(format!("{SESSIONS} sessions with their own audio and text"))
}
