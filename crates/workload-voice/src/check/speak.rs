//! Section 2 of the contract: `POST /speak`.

use std::time::Duration;

use serde_json::{Value, json};

use super::audio::{self, REPLY_BLOCK_BYTES, must_be_same};
use super::exchange::{Answer, ask};
use super::mock::{How, Reply, Scene, Step};
use super::registry::{Case, Site, Verdict, case};
use super::session::tts_config;

/// No longer text may be spoken.
pub(super) const TEXT_MAX_BYTES: usize = 102_400;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "speak-bytes",
            "POST /speak answers with the provider's audio, byte for byte",
            "section 2: status 200 with the bytes that the provider handed over",
            bytes,
        ),
        case(
            "speak-first-byte",
            "The audio comes as it arrives: the first byte before the provider's last",
            "section 2: the first byte at least 200 ms before the provider has handed over the last",
            first_byte,
        ),
        case(
            "speak-headers",
            "The answer says what its audio is and how long the provider took",
            "section 2: content-type audio/pcm, x-audio-format linear16, x-sample-rate 24000, x-provider-ms as the provider says",
            headers,
        ),
        case(
            "speak-bad-request",
            "A request that cannot be spoken is refused with its cause",
            "section 2: 400 bad_json, bad_field, empty_text; 413 too_large over 102,400 B, and 200 at that",
            bad_request,
        ),
        case(
            "speak-provider-errors",
            "A provider that fails is a 502, one that is silent a 504",
            "section 2: 502 provider_failed after two tries; 504 provider_timeout after TTS_FIRST_MS",
            provider_errors,
        ),
        case(
            "speak-cut-body",
            "Audio that breaks off is cut, not ended",
            "section 2: status 200 and the audio so far, then the end of the connection without the last chunk",
            cut_body,
        ),
    ]
}

fn post(site: &Site<'_>, body: &Value) -> Result<Answer, String> {
    ask(
        site.address,
        ("POST", "/speak"),
        Some(body.to_string().as_bytes()),
    )
}

fn text(scene: &Scene, text: &str) -> Value {
    json!({"text": text, "tts_config": tts_config(scene.name(), "deepgram")})
}

fn must_be_ok(answer: &Answer) -> Result<(), String> {
    if answer.status == 200 && !answer.cut {
        return Ok(());
    }
    let cut = if answer.cut { ", cut" } else { "" };
    Err(format!("{}{cut}", answer.describe()))
}

fn bytes(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(3, 50_000);
    let parts = [1, 959, 960, 3, 20_000, 28_077];
    let mut rest = &audio[..];
    let steps = parts.map(|size| {
        let (part, tail) = rest.split_at(size);
        rest = tail;
        Step::Audio(part.to_vec())
    });
    scene.answers("some words", [Reply::of(steps)]);
    let answer = post(site, &text(&scene, "some words"))?;
    must_be_ok(&answer)?;
    must_be_same(&answer.body, &audio)?;
    if scene.asked() == 1 {
        Ok(format!("{} bytes", audio.len()))
    } else {
        Err(format!("the provider was asked {} times", scene.asked()))
    }
}

fn first_byte(site: &Site<'_>) -> Verdict {
    const HELD: Duration = Duration::from_millis(400);
    let scene = site.scene()?;
    let block = |seed| Step::Audio(audio::reply(seed, REPLY_BLOCK_BYTES));
    scene.answers(
        "slowly",
        [Reply::of([block(1), Step::Pause(HELD), block(2)])],
    );
    let answer = post(site, &text(&scene, "slowly"))?;
    must_be_ok(&answer)?;
    let (last, _) = scene.until_ended(0)?;
    let first = answer.first.ok_or("no audio")?;
    let before = last.saturating_duration_since(first).as_millis();
    let seen = format!("the first byte {before} ms before the provider's last");
    if before >= 200 { Ok(seen) } else { Err(seen) }
}

fn headers(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(4, REPLY_BLOCK_BYTES);
    let said = Reply::at_once(&audio).with("x-mock-provider-ms", "37.5");
    scene.answers("with a claim", [said]);
    let slow = Reply::of([Step::Pause(Duration::from_millis(150)), Step::Audio(audio)]);
    scene.answers("without a claim", [slow]);
    let wanted = [
        ("content-type", "audio/pcm"),
        ("x-audio-format", "linear16"),
        ("x-sample-rate", "24000"),
    ];
    let mut claims = Vec::new();
    for words in ["with a claim", "without a claim"] {
        let answer = post(site, &text(&scene, words))?;
        must_be_ok(&answer)?;
        for (name, value) in wanted {
            let seen = answer.head.field(name).unwrap_or("absent");
            if seen != value {
                return Err(format!("{name}: {seen} instead of {value}"));
            }
        }
        let claim = answer.head.field("x-provider-ms").unwrap_or("absent");
        let number: Result<f64, _> = claim.parse();
        claims.push(number.map_err(|_| format!("x-provider-ms: {claim}"))?);
    }
    let seen = format!("x-provider-ms {} and {}", claims[0], claims[1]);
    let right = (claims[0] - 37.5).abs() < 0.01 && (145.0..650.0).contains(&claims[1]);
    if right {
        Ok(seen)
    } else {
        Err(format!(
            "{seen} instead of 37.5, and about 150 by its own clock"
        ))
    }
}

fn bad_request(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let tts = tts_config(scene.name(), "deepgram");
    let long = "x".repeat(TEXT_MAX_BYTES + 1);
    let refused: [(&str, String, u16, &str); 8] = [
        ("no JSON", "hello".to_owned(), 400, "bad_json"),
        ("half an object", "{".to_owned(), 400, "bad_json"),
        (
            "no text",
            json!({"tts_config": tts}).to_string(),
            400,
            "bad_field",
        ),
        (
            "a number as text",
            json!({"text": 7, "tts_config": tts}).to_string(),
            400,
            "bad_field",
        ),
        (
            "no tts_config",
            json!({"text": "hello"}).to_string(),
            400,
            "bad_field",
        ),
        (
            "a text as tts_config",
            json!({"text": "hello", "tts_config": "x"}).to_string(),
            400,
            "bad_field",
        ),
        (
            "an empty text",
            json!({"text": "", "tts_config": tts}).to_string(),
            400,
            "empty_text",
        ),
        (
            "a long text",
            json!({"text": long, "tts_config": tts}).to_string(),
            413,
            "too_large",
        ),
    ];
    for (what, body, status, cause) in refused {
        let answer = ask(site.address, ("POST", "/speak"), Some(body.as_bytes()))?;
        let wrong = |seen| format!("{what}: {seen} instead of {status} {cause}");
        answer.must_be_error(status, cause).map_err(wrong)?;
    }
    if scene.asked() > 0 {
        return Err("the provider was asked all the same".to_owned());
    }
    let longest = post(site, &text(&scene, &"x".repeat(TEXT_MAX_BYTES)))?;
    must_be_ok(&longest).map_err(|seen| format!("a text of 102,400 B: {seen}"))?;
    Ok("each refused with its cause".to_owned())
}

fn provider_errors(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    scene.answers("fail", [Reply::status(500)]);
    let answer = post(site, &text(&scene, "fail"))?;
    let failed = |seen| format!("a provider that answers 500: {seen}");
    answer
        .must_be_error(502, "provider_failed")
        .map_err(failed)?;
    if scene.asked() != 2 {
        return Err(format!(
            "a provider that answers 500 was asked {} times instead of twice",
            scene.asked()
        ));
    }
    scene.answers("silence", [Reply::of([Step::Stall])]);
    let answer = post(site, &text(&scene, "silence"))?;
    let silent = |seen| format!("a silent provider: {seen}");
    answer
        .must_be_error(504, "provider_timeout")
        .map_err(silent)?;
    match scene.until_ended(2)? {
        (_, How::Cancelled) => Ok("502 after two tries, and 504".to_owned()),
        (_, how) => Err(format!(
            "the request to the silent provider ended as {how:?}, not as cancelled"
        )),
    }
}

fn cut_body(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(5, 5 * REPLY_BLOCK_BYTES);
    let pause = Step::Pause(Duration::from_millis(150));
    scene.answers(
        "break off",
        [Reply::of([Step::Audio(audio.clone()), pause, Step::Reset])],
    );
    let answer = post(site, &text(&scene, "break off"))?;
    let seen = format!(
        "status {}, {} bytes, cut: {}",
        answer.status,
        answer.body.len(),
        answer.cut
    );
    if answer.status != 200 || !answer.cut {
        return Err(seen);
    }
    must_be_same(&answer.body, &audio)?;
    if scene.asked() == 1 {
        Ok(seen)
    } else {
        Err(format!(
            "{seen}; asked {} times, though audio had come",
            scene.asked()
        ))
    }
}
