//! Section 3 of the contract: `config` and `ready`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plimsoll_protocol::websocket::Opcode;
use serde_json::{Value, json};

use super::audio;
use super::mock::Opening;
use super::registry::{Case, Site, Verdict, case, open_case};
use super::session::{PATIENCE, Session, config, speak, without_audio};
use super::vectors::{self, Said, Vector, When};

/// A `config` must come within this time.
const CONFIG_LIMIT: Duration = Duration::from_secs(10);

/// How much later the close may come.
const CONFIG_MARGIN: Duration = Duration::from_secs(2);

pub(super) fn cases() -> Vec<Case> {
    vec![
        open_case(
            "config-stream-id",
            "`ready` has the stream_id of `config`, or a UUID",
            "section 3: up to 256 B come back as they were; without one, a UUID, each time another",
            stream_id,
        ),
        case(
            "config-good",
            "A good `config` is answered with `ready`, whatever unknown fields it has",
            "section 3: `ready` to each good golden message",
            good,
        ),
        case(
            "config-bad-then-good",
            "A bad `config` is answered with its error, and another may come",
            "section 3: bad_config or unsupported to each bad golden message, then `ready`",
            bad_then_good,
        ),
        open_case(
            "config-second",
            "A second `config` is refused, and the session goes on",
            "section 3: `error` bad_config, then a pong",
            second,
        ),
        open_case(
            "config-too-late",
            "A session without a `config` is closed after 10 s",
            "section 3: close 1008, 9.5 to 12 s after the upgrade",
            too_late,
        ),
        case(
            "config-stt-refused",
            "`ready` says that STT is open; without it the answer is an error, and another `config` may come",
            "section 3: `ready` behind the STT connection; stt_failed within READY_MS where it is refused or hangs; then `ready`",
            stt_refused,
        ),
        case(
            "config-without-audio",
            "With \"audio\":false no provider is opened, and audio, speak and clear are not ready",
            "section 3: `ready` without a connection to STT; `error` not_ready to each golden message",
            no_audio,
        ),
    ]
}

/// The golden messages of clients that have said nothing before, with what comes back.
pub(super) fn first_configs(bad: bool) -> Result<Vec<Vector>, String> {
    let vectors = vectors::all()?.into_iter();
    let of_config = vectors.filter(|vector| vector.when == When::First && vector.is_config());
    Ok(of_config
        .filter(|vector| (vector.kind() != "ready") == bad)
        .collect())
}

fn tell_vector(session: &mut Session, vector: &Vector) -> Result<(), String> {
    match vector.said()? {
        Said::Text(text) => session.say(Opcode::Text, text.as_bytes()),
        Said::Binary(bytes) => session.hear(&vec![0; bytes]),
        Said::Declared(_) => Err(format!("{} is for another case", vector.id)),
    }
}

fn stream_id(site: &Site<'_>) -> Verdict {
    let ready = |id: Option<&str>| {
        let mut config = without_audio();
        if let Some(id) = id {
            config["stream_id"] = json!(id);
        }
        let mut session = site.connect()?;
        session.tell(&config)?;
        session.expect_ready(PATIENCE).map(|(_, id)| id)
    };
    let longest = "ü".repeat(128);
    for id in ["call-7", "with \"quotes\" and \\", &longest] {
        let seen = ready(Some(id))?;
        if seen != id {
            return Err(format!("stream_id {id:?} came back as {seen:?}"));
        }
    }
    let made: BTreeSet<String> = (0..3).map(|_| ready(None)).collect::<Result<_, _>>()?;
    match made.iter().find(|id| !is_uuid(id)) {
        Some(id) => Err(format!("without a stream_id came {id:?}, which is no UUID")),
        None if made.len() < 3 => Err(format!("3 sessions have {} UUIDs", made.len())),
        None => Ok("as it was up to 256 B, and 3 UUIDs".to_owned()),
    }
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let hex = text
        .bytes()
        .all(|letter| letter == b'-' || letter.is_ascii_hexdigit());
    hex && lengths.eq([8, 4, 4, 4, 12])
}

fn good(site: &Site<'_>) -> Verdict {
    let vectors = first_configs(false)?;
    for vector in &vectors {
        let told = |seen| format!("{}: {seen}", vector.id);
        let mut session = site.connect()?;
        tell_vector(&mut session, vector)?;
        session.expect_ready(site.ready_limit()).map_err(told)?;
    }
    Ok(format!("`ready`, {} times", vectors.len()))
}

fn bad_then_good(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let vectors = first_configs(true)?;
    let mut session = site.connect()?;
    for vector in &vectors {
        let told = |seen| format!("{}: {seen}", vector.id);
        tell_vector(&mut session, vector)?;
        session
            .expect_error(vector.kind(), PATIENCE)
            .map_err(told)?;
    }
    session.tell(&config(scene.name(), "deepgram"))?;
    session
        .expect_ready(site.ready_limit())
        .map_err(|seen| format!("a good one behind them: {seen}"))?;
    Ok(format!("{} errors, then `ready`", vectors.len()))
}

fn second(site: &Site<'_>) -> Verdict {
    let mut session = site.session_without_audio()?;
    session.tell(&without_audio())?;
    session.expect_error("bad_config", PATIENCE)?;
    session.expect_alive()?;
    Ok("bad_config, and the session went on".to_owned())
}

fn too_late(site: &Site<'_>) -> Verdict {
    let mut session = site.connect()?;
    let begun = Instant::now();
    let seen = session.expect_close(&[1008], CONFIG_LIMIT + CONFIG_MARGIN)?;
    if begun.elapsed() < CONFIG_LIMIT - Duration::from_millis(500) {
        return Err(format!("{seen}: too early"));
    }
    Ok(seen)
}

fn stt_refused(site: &Site<'_>) -> Verdict {
    let ready_ms = site.millis("READY_MS", 30_000);
    let limit = ready_ms + Duration::from_millis(800);
    let scene = site.scene()?;
    let config = config(scene.name(), "deepgram");
    let mut session = site.connect()?;
    for (what, opening) in [("refuses", Opening::Refuse), ("hangs", Opening::Hang)] {
        scene.usually_opens(opening);
        session.tell(&config)?;
        let failed = session.expect_error("stt_failed", limit);
        failed.map_err(|seen| format!("STT {what}: {seen}"))?;
    }
    // A try that is under way may end first.
    scene.usually_opens(Opening::After(ready_ms / 2));
    let known = scene.look(|seen| seen.listeners.len());
    session.tell(&config)?;
    let (at, _) = session
        .expect_ready(limit)
        .map_err(|seen| format!("STT opens late: {seen}"))?;
    let opened = scene.until_open(known, Duration::ZERO);
    let opened = opened.map_err(|_| "`ready` before STT was connected")?;
    if at < opened {
        return Err("`ready` before STT was connected".to_owned());
    }
    session.hear(&audio::caller(1, 1, 1))?;
    let heard = scene.heard(known, 640, PATIENCE).len();
    if heard != 640 {
        return Err(format!("{heard} of 640 bytes of audio came to STT"));
    }
    Ok("stt_failed twice, then `ready` behind the connection".to_owned())
}

fn no_audio(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut config: Value = config(scene.name(), "deepgram");
    config["audio"] = json!(false);
    let mut session = site.connect()?;
    session.tell(&config)?;
    session.expect_ready(PATIENCE)?;
    let vectors = vectors::all()?.into_iter();
    let vectors: Vec<Vector> = vectors
        .filter(|vector| vector.when == When::WithoutAudio)
        .collect();
    for vector in &vectors {
        tell_vector(&mut session, vector)?;
        let told = |seen| format!("{}: {seen}", vector.id);
        session
            .expect_error(vector.kind(), PATIENCE)
            .map_err(told)?;
    }
    session.tell(&speak("to nobody"))?;
    session.expect_error("not_ready", PATIENCE)?;
    // A connection that was not to be may still be on its way.
    session.expect_quiet(Duration::from_millis(300))?;
    let opened = scene.look(|seen| seen.attempts.len() + seen.asked.len());
    if opened > 0 {
        return Err(format!("providers were asked {opened} times"));
    }
    Ok(format!(
        "`ready`, and not_ready {} times",
        vectors.len() + 1
    ))
}
