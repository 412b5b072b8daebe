//! Sections 3 and 4 of the contract: audio to recognition, and results back.

use std::time::{Duration, Instant};

use plimsoll_conformance::socket::in_fragments;
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::audio::{self, must_be_same};
use super::mock::{query_value, result, result_text};
use super::registry::{Case, Site, Verdict, case};
use super::session::{PATIENCE, config};
use super::setup::KEY;

/// After so long without another result a final result becomes speech-final.
const FORCED_AFTER: Duration = Duration::from_secs(5);

/// How much earlier or later that may come.
const FORCED_MARGIN: Duration = Duration::from_millis(700);

/// Time for what comes once too often.
const LATE: Duration = Duration::from_millis(200);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "stt-blocks-once",
            "Each block of audio comes once and in order to the STT connection that `config` asks for",
            "sections 3 and 4: /v1/listen with its query and key; the audio of 60 blocks, byte for byte",
            blocks_once,
        ),
        case(
            "stt-chunks",
            "Audio may come in messages of any even size",
            "section 3: messages of 0 B, 2 B to 64 KiB, put together as they were",
            chunks,
        ),
        case(
            "stt-flags",
            "Results come back with their text, flags and confidence, in order",
            "section 3: each `stt_result` as the provider said it",
            flags,
        ),
        case(
            "stt-fragments",
            "Messages in fragments are whole messages, from the client and from the provider",
            "section 3, RFC 6455: the audio byte for byte, a pong between, the result once",
            fragments,
        ),
        case(
            "stt-forced-final",
            "A final result that nothing follows for 5 s becomes speech-final",
            "section 3: after 5 s an empty `stt_result` with both flags and confidence 0, once; none where another result followed",
            forced_final,
        ),
    ]
}

fn blocks_once(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let sent = audio::caller(7, 1, 60);
    for message in sent.chunks(3200) {
        session.hear(message)?;
    }
    scene.heard(0, sent.len(), PATIENCE);
    std::thread::sleep(LATE);
    must_be_same(&scene.heard(0, 0, PATIENCE), &sent)?;
    let (path, query, key) = scene.look(|seen| {
        let it = &seen.listeners[0];
        let key = it
            .head
            .field("authorization")
            .unwrap_or("absent")
            .to_owned();
        (it.path.clone(), it.query.clone(), key)
    });
    let wanted = [
        ("encoding", "linear16"),
        ("sample_rate", "16000"),
        ("channels", "1"),
        ("interim_results", "true"),
        ("model", scene.name()),
        ("language", "en-US"),
        ("punctuate", "true"),
    ];
    let wrong = wanted
        .iter()
        .find(|(name, value)| query_value(&query, name) != *value);
    if let Some((name, value)) = wrong {
        return Err(format!("{path}?{query} without {name}={value}"));
    }
    let wanted = format!("Token {KEY}");
    if key != wanted {
        return Err(format!(
            "Authorization {key} instead of Token and PROVIDER_KEY"
        ));
    }
    let opened = scene.look(|seen| seen.listeners.len());
    if opened != 1 {
        return Err(format!("{opened} STT connections instead of one"));
    }
    Ok("60 blocks, each once, and the query".to_owned())
}

fn chunks(site: &Site<'_>) -> Verdict {
    const SIZES: [usize; 9] = [2, 6, 0, 640, 126, 3_200, 2, 65_536, 65_534];
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    let sent = audio::reply(8, SIZES.iter().sum());
    let mut rest = &sent[..];
    for size in SIZES {
        let (message, tail) = rest.split_at(size);
        session.hear(message)?;
        rest = tail;
    }
    must_be_same(&scene.heard(0, sent.len(), PATIENCE), &sent)?;
    session.expect_quiet(LATE)?;
    Ok(format!("{} bytes in {} messages", sent.len(), SIZES.len()))
}

fn flags(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.session(&scene)?;
    session.hear(&audio::caller(7, 1, 5))?;
    scene.heard(0, 3200, PATIENCE);
    let said = [
        ("#7 1-5 100 250 hel", (false, false), 0.5),
        ("héllo \"wörld\" \\ 你好", (false, false), 0.25),
        ("hello", (true, false), 0.75),
        ("hello world", (true, true), 1.0),
    ];
    let frames: Vec<u8> = said
        .iter()
        .flat_map(|(transcript, flags, confidence)| result(transcript, *flags, *confidence))
        .collect();
    scene.say(0, &frames)?;
    for (transcript, (is_final, is_speech_final), confidence) in said {
        let (_, seen) = session.expect_result(PATIENCE)?;
        let same = seen.transcript == transcript
            && (seen.is_final, seen.is_speech_final) == (is_final, is_speech_final)
            && (seen.confidence - confidence).abs() < 1e-6;
        if !same {
            return Err(format!(
                "{} instead of {transcript:?} with {is_final}, {is_speech_final}, {confidence}",
                seen.describe()
            ));
        }
        if seen.provider_ms.is_none() && site.suite.fields == super::Fields::All {
            return Err(format!("{} without provider_ms", seen.describe()));
        }
    }
    session.expect_quiet(LATE)?;
    Ok("4 results as they were said".to_owned())
}

fn fragments(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let mut session = site.connect()?;
    let text = config(scene.name(), "deepgram").to_string();
    for fragment in in_fragments(Opcode::Text, text.as_bytes(), &[1, 0, 40]) {
        session.send(&fragment)?;
    }
    let ready = session.expect_ready(site.ready_limit());
    ready.map_err(|seen| format!("`config` in fragments: {seen}"))?;
    let sent = audio::caller(7, 1, 5);
    let fragments = in_fragments(Opcode::Binary, &sent, &[1, 639, 0, 1001]);
    for (number, fragment) in fragments.iter().enumerate() {
        session.send(fragment)?;
        if number == 1 {
            session.send(&RawFrame::new(Opcode::Ping, b"between").to_vec())?;
            session.expect_pong(b"between")?;
        }
    }
    let heard = must_be_same(&scene.heard(0, sent.len(), PATIENCE), &sent);
    heard.map_err(|seen| format!("audio in fragments: {seen}"))?;
    let text = result_text("in pieces", (true, true), 0.5).to_string();
    let said: Vec<u8> = [&text[..10], &text[10..11], &text[11..]]
        .iter()
        .enumerate()
        .flat_map(|(place, part)| {
            let opcode = if place == 0 {
                Opcode::Text
            } else {
                Opcode::Continuation
            };
            let fin = place == 2;
            RawFrame {
                fin,
                ..RawFrame::server(opcode, part.as_bytes())
            }
            .to_vec()
        })
        .collect();
    scene.say(0, &said)?;
    let (_, seen) = session.expect_result(PATIENCE)?;
    if seen.transcript != "in pieces" {
        return Err(format!("{} instead of \"in pieces\"", seen.describe()));
    }
    session.expect_quiet(LATE)?;
    Ok("audio, pong and result".to_owned())
}

fn forced_final(site: &Site<'_>) -> Verdict {
    let (scene, other) = (site.scene()?, site.scene()?);
    let (mut session, mut followed) = (site.session(&scene)?, site.session(&other)?);
    scene.say(0, &result("and then", (true, false), 0.9))?;
    other.say(0, &result("and then", (true, false), 0.9))?;
    let (begun, _) = session.expect_result(PATIENCE)?;
    followed.expect_result(PATIENCE)?;
    std::thread::sleep(FORCED_AFTER / 5);
    other.say(0, &result("nothing", (true, true), 0.9))?;
    followed.expect_result(PATIENCE)?;
    let left = (FORCED_AFTER + FORCED_MARGIN).saturating_sub(begun.elapsed());
    let (at, seen) = session.expect_result(left)?;
    let after = at.saturating_duration_since(begun);
    let told = format!("{} after {} ms", seen.describe(), after.as_millis());
    let forced = seen.transcript.is_empty()
        && seen.is_final
        && seen.is_speech_final
        && seen.confidence == 0.0;
    if !forced || after + FORCED_MARGIN < FORCED_AFTER {
        return Err(told);
    }
    session
        .expect_quiet(LATE)
        .map_err(|seen| format!("once too often: {seen}"))?;
    // Both 5 s are over: those of the final result, and those of the one that followed.
    let over = begun + FORCED_AFTER + FORCED_AFTER / 5 + FORCED_MARGIN;
    let quiet = followed.expect_quiet(over.saturating_duration_since(Instant::now()));
    quiet.map_err(|seen| format!("where a speech-final result had followed: {seen}"))?;
    Ok(told)
}
