//! Section 4 of the contract: providers that fail.

use std::thread;
use std::time::{Duration, Instant};

use super::audio::{self, REPLY_BLOCK_BYTES, must_be_same};
use super::messages::Message;
use super::mock::{Ending, How, Opening, Reply, Scene, Step, result};
use super::registry::{Case, Site, Verdict, case, case_in};
use super::session::{PATIENCE, Session, speak};
use super::setup::BASE;

/// The first pause before STT is connected again; each next is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Connections that are tried before STT is given up.
const TRIES: usize = 5;

/// How much later something may come.
const MARGIN: Duration = Duration::from_millis(700);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case_in(
            &BASE,
            (
                "failure-stt-back",
                "When STT is back, the newest audio follows, and what was dropped is told once",
                "section 4: stt_lost (retryable); AUDIO_BUFFER_MS of audio first, then the rest; audio_dropped with its milliseconds",
            ),
            stt_back,
        ),
        case(
            "failure-stt-gone",
            "STT is tried again five times, then given up; replies go on",
            "section 4: stt_lost, tries after 100, 200, 400, 800, 1600 ms, stt_failed (not retryable); a reply",
            stt_gone,
        ),
        case(
            "failure-retry",
            "A request is tried once more after a reset or a 5xx before the first byte, and never else",
            "section 4: two tries of a 5xx or a reset; one of a 429 (tts_rate_limited), a 4xx and a reset in the audio (tts_failed)",
            retry,
        ),
        case_in(
            &BASE,
            (
                "failure-stall",
                "A provider that falls silent is given up in time",
                "section 4: tts_timeout after TTS_FIRST_MS and after TTS_GAP_MS, the request cancelled; stt_lost without a pong within STT_PONG_MS",
            ),
            stall,
        ),
        case(
            "failure-spares-the-other",
            "A provider that is out spares the other one, and the other sessions",
            "section 4: results while TTS is out, a reply while STT is out, both in another session",
            spares_the_other,
        ),
    ]
}

/// Passes when the session is told that STT is lost, which may be tried again.
fn expect_lost(session: &mut Session, limit: Duration) -> Result<Instant, String> {
    let (at, lost) = session.expect_error("stt_lost", limit)?;
    if lost.retryable == Some(false) {
        return Err(format!("{} is not retryable", lost.describe()));
    }
    Ok(at)
}

fn stt_back(site: &Site<'_>) -> Verdict {
    let buffer_ms = usize::try_from(site.millis("AUDIO_BUFFER_MS", 5000).as_millis()).unwrap_or(0);
    let kept_within = lost_audio(site, 8, buffer_ms)?;
    let too_much = lost_audio(site, 8 + buffer_ms / 100, buffer_ms)?;
    Ok(format!("{kept_within}; {too_much}"))
}

/// STT goes away, a client says so many messages of 100 ms, and STT comes back: what came of it.
fn lost_audio(site: &Site<'_>, messages: usize, buffer_ms: usize) -> Verdict {
    const MESSAGE_BYTES: usize = 3200;
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    // Back at the third try, 700 ms later: time to say everything meanwhile.
    scene.opens([Opening::Refuse, Opening::Refuse]);
    scene.end(0, Ending::Drop)?;
    expect_lost(&mut session, PATIENCE)?;
    let blocks = u32::try_from(5 * messages).unwrap_or(u32::MAX);
    let said = audio::caller(7, 1, blocks + 5);
    let (meanwhile, then) = said.split_at(messages * MESSAGE_BYTES);
    for message in meanwhile.chunks(MESSAGE_BYTES) {
        session.hear(message)?;
    }
    if scene.look(|seen| seen.listeners.len()) > 1 {
        return Err("STT was connected again before the third try".to_owned());
    }
    scene.until_open(1, PATIENCE)?;
    let kept_bytes = (buffer_ms / 100 * MESSAGE_BYTES).min(meanwhile.len());
    session.hear(then)?;
    scene.heard(1, kept_bytes + then.len(), PATIENCE);
    thread::sleep(Duration::from_millis(100));
    let heard = scene.heard(1, 0, PATIENCE);
    // The newest, give or take the message that the buffer's end cuts.
    let due = &said[said.len() - heard.len().min(said.len())..];
    must_be_same(&heard, due).map_err(|seen| format!("behind the reconnect: {seen}"))?;
    let off = heard.len().abs_diff(kept_bytes + then.len());
    let seen = format!(
        "{messages} messages, {} of {} bytes came",
        heard.len(),
        said.len()
    );
    if off >= MESSAGE_BYTES && !(kept_bytes < meanwhile.len() && off == MESSAGE_BYTES) {
        return Err(format!("{seen} instead of {}", kept_bytes + then.len()));
    }
    let dropped_ms = (said.len() - heard.len()) / 32;
    if dropped_ms == 0 {
        session.expect_quiet(Duration::from_millis(200))?;
        return Ok(seen);
    }
    let (_, dropped) = session.expect_error("audio_dropped", PATIENCE)?;
    let words = dropped
        .message
        .split(|letter: char| !letter.is_ascii_digit());
    if !words.into_iter().any(|word| word == dropped_ms.to_string()) {
        return Err(format!("{} for {dropped_ms} ms", dropped.describe()));
    }
    session.expect_quiet(Duration::from_millis(200))?;
    Ok(format!("{seen}, {dropped_ms} ms told"))
}

fn stt_gone(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(60, 10 * REPLY_BLOCK_BYTES);
    scene.answers("still there", [Reply::at_once(&audio)]);
    let mut session = site.session(&scene)?;
    scene.usually_opens(Opening::Refuse);
    scene.end(0, Ending::Close(1011))?;
    let mut last = expect_lost(&mut session, PATIENCE)?;
    let all: Duration = (0..TRIES).map(|number| FIRST_PAUSE * (1 << number)).sum();
    let (_, failed) = session.expect_error("stt_failed", all + PATIENCE)?;
    if failed.retryable == Some(true) {
        return Err(format!("{} is retryable", failed.describe()));
    }
    let tries = scene.look(|seen| seen.attempts[1..].to_vec());
    for (number, at) in tries.iter().enumerate() {
        let pause = at.saturating_duration_since(last);
        let due = FIRST_PAUSE * (1 << number.min(TRIES));
        if pause < due * 3 / 4 || pause > due + MARGIN {
            let (pause, due) = (pause.as_millis(), due.as_millis());
            return Err(format!(
                "try {} came {pause} ms later, not {due} ms",
                number + 1
            ));
        }
        last = *at;
    }
    if tries.len() != TRIES {
        return Err(format!("{} tries instead of {TRIES}", tries.len()));
    }
    session.tell(&speak("still there"))?;
    let reply = session.expect_reply(&audio);
    reply.map_err(|seen| format!("a reply without STT: {seen}"))?;
    Ok("5 tries, then stt_failed; a reply all the same".to_owned())
}

fn retry(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let audio = audio::reply(61, 5 * REPLY_BLOCK_BYTES);
    let good = || Reply::at_once(&audio);
    let begun = Reply::of([
        Step::Audio(audio.clone()),
        Step::Pause(Duration::from_millis(100)),
        Step::Reset,
    ]);
    let reset = || Reply::of([Step::Reset]);
    let tried: [(&str, Vec<Reply>, Option<&str>, usize); 8] = [
        (
            "a 503, then a reply",
            vec![Reply::status(503), good()],
            None,
            2,
        ),
        ("a reset, then a reply", vec![reset(), good()], None, 2),
        (
            "a 500 each time",
            vec![Reply::status(500)],
            Some("tts_failed"),
            2,
        ),
        ("a reset each time", vec![reset()], Some("tts_failed"), 2),
        (
            "a 503, then a reset",
            vec![Reply::status(503), reset()],
            Some("tts_failed"),
            2,
        ),
        (
            "a 429",
            vec![Reply::status(429).with("retry-after", "60"), good()],
            Some("tts_rate_limited"),
            1,
        ),
        (
            "a 404",
            vec![Reply::status(404), good()],
            Some("tts_failed"),
            1,
        ),
        (
            "a reset in the audio",
            vec![begun, good()],
            Some("tts_failed"),
            1,
        ),
    ];
    for (what, replies, kind, tries) in tried {
        let told = |seen| format!("{what}: {seen}");
        let before = scene.asked();
        scene.answers(what, replies);
        session.tell(&speak(what))?;
        match kind {
            None => drop(session.expect_reply(&audio).map_err(told)?),
            Some(kind) => expect_failed(&mut session, kind).map_err(told)?,
        }
        session
            .expect_quiet(Duration::from_millis(150))
            .map_err(told)?;
        let asked = scene.asked() - before;
        if asked != tries {
            return Err(told(format!("asked {asked} times instead of {tries}")));
        }
    }
    Ok("what may be tried again was, once".to_owned())
}

/// Passes when an error of this kind ends the reply, some of whose audio may have come.
fn expect_failed(session: &mut Session, kind: &str) -> Result<(), String> {
    loop {
        match session.due(&format!("`error` {kind}"), PATIENCE)?.1 {
            Message::Audio(_) => {}
            Message::Error(failure) if failure.is(kind) => return Ok(()),
            other => return Err(format!("{} instead of `error` {kind}", other.describe())),
        }
    }
}

fn stall(site: &Site<'_>) -> Verdict {
    let deaf = site.scene()?;
    let mut unheard = site.session(&deaf)?;
    let since = Instant::now();
    deaf.goes_deaf();
    let first = site.millis("TTS_FIRST_MS", 10_000);
    let gap = site.millis("TTS_GAP_MS", 2000);
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let audio = audio::reply(62, 5 * REPLY_BLOCK_BYTES);
    let begun = Reply::of([Step::Audio(audio.clone()), Step::Stall]);
    scene.answers("no byte", [Reply::of([Step::Stall])]);
    scene.answers("no more", [begun]);
    scene.answers("all of it", [Reply::at_once(&audio)]);
    for (number, (text, time)) in [("no byte", first), ("no more", gap)]
        .into_iter()
        .enumerate()
    {
        session.tell(&speak(text))?;
        let asked = Instant::now();
        let told = |seen| format!("{text}: {seen}");
        expect_failed(&mut session, "tts_timeout").map_err(told)?;
        let after = asked.elapsed();
        if after < time * 4 / 5 || after > time + MARGIN {
            let (after, time) = (after.as_millis(), time.as_millis());
            return Err(told(format!(
                "tts_timeout after {after} ms instead of {time} ms"
            )));
        }
        match scene.until_ended(number).map_err(told)? {
            (_, How::Cancelled) => {}
            (_, how) => {
                return Err(told(format!(
                    "the request ended as {how:?}, not as cancelled"
                )));
            }
        }
    }
    session.tell(&speak("all of it"))?;
    session
        .expect_reply(&audio)
        .map_err(|seen| format!("a reply behind them: {seen}"))?;
    if scene.asked() != 3 {
        return Err(format!(
            "{} requests for 3 speaks, though a timeout is not tried again",
            scene.asked()
        ));
    }
    // A ping every 5 s, and the time for its answer.
    let limit = Duration::from_secs(5) + site.millis("STT_PONG_MS", 5000) + MARGIN;
    let lost = expect_lost(&mut unheard, limit.saturating_sub(since.elapsed()));
    lost.map_err(|seen| format!("STT that answers no ping: {seen}"))?;
    deaf.until_open(1, PATIENCE)
        .map_err(|seen| format!("behind stt_lost: {seen}"))?;
    Ok("tts_timeout twice, and stt_lost".to_owned())
}

/// Has recognition say something; passes when the session hears it.
fn expect_said(session: &mut Session, scene: &Scene, number: usize) -> Result<(), String> {
    scene.say(number, &result("hear me", (true, true), 0.9))?;
    session.expect_result(PATIENCE).map(drop)
}

fn spares_the_other(site: &Site<'_>) -> Verdict {
    let (scene, other) = (site.scene()?, site.scene()?);
    let audio = audio::reply(63, 40 * REPLY_BLOCK_BYTES);
    scene.answers("out", [Reply::status(503)]);
    scene.answers("some words", [Reply::in_real_time(&audio)]);
    other.answers("some words", [Reply::in_real_time(&audio)]);
    let (mut session, mut bystander) = (
        site.session(&scene)?,
        site.session_with(&other, "cartesia")?,
    );
    session.tell(&speak("out"))?;
    expect_failed(&mut session, "tts_failed")?;
    expect_said(&mut session, &scene, 0)
        .map_err(|seen| format!("a result while TTS is out: {seen}"))?;
    scene.opens([Opening::Refuse, Opening::Refuse]);
    session.tell(&speak("some words"))?;
    bystander.tell(&speak("some words"))?;
    let (_, begun) = session.expect_audio(PATIENCE)?;
    scene.end(0, Ending::Drop)?;
    reply_without_stt(&mut session, begun, &audio)
        .map_err(|seen| format!("a reply while STT is out: {seen}"))?;
    bystander
        .expect_reply(&audio)
        .map_err(|seen| format!("another session's reply: {seen}"))?;
    expect_said(&mut bystander, &other, 0)
        .map_err(|seen| format!("another session's result: {seen}"))?;
    scene.until_open(1, PATIENCE)?;
    expect_said(&mut session, &scene, 1)
        .map_err(|seen| format!("a result when STT is back: {seen}"))?;
    let reconnected = other.look(|seen| seen.attempts.len());
    if reconnected != 1 {
        return Err(format!(
            "another session connected to STT {reconnected} times"
        ));
    }
    Ok("results, replies, and nothing in the other session".to_owned())
}

/// Passes when the rest of a reply comes whole, and `stt_lost` meanwhile.
fn reply_without_stt(session: &mut Session, begun: Vec<u8>, audio: &[u8]) -> Result<(), String> {
    let (mut heard, mut lost) = (begun, false);
    loop {
        match session.due("the rest of the reply", PATIENCE)?.1 {
            Message::Audio(part) => heard.extend(part),
            Message::Error(failure) if failure.is("stt_lost") && !lost => lost = true,
            Message::Complete(_) if lost => return must_be_same(&heard, audio),
            other => return Err(format!("{} after {} bytes", other.describe(), heard.len())),
        }
    }
}
