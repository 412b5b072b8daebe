//! Section 4 of the contract: what each provider is asked.

use serde_json::{Value, json};

use super::audio::{self, REPLY_BLOCK_BYTES};
use super::mock::{Asked, Reply, query_value};
use super::registry::{Case, Site, Verdict, case};
use super::session::{config, speak};
use super::setup::KEY;

const TEXT: &str = "#7.2 so \"what\" \\ is this, 你好?";

pub(super) fn cases() -> Vec<Case> {
    vec![case(
        "tts-requests",
        "Each provider is asked in its own way, with its key",
        "section 4: path, query, body and key of deepgram, elevenlabs, openai and cartesia",
        requests,
    )]
}

/// What a provider must be asked.
struct Wanted {
    provider: &'static str,
    voice: Option<&'static str>,
    path: &'static str,
    query: &'static [(&'static str, &'static str)],
    key: (&'static str, String),
    body: Value,
}

fn wanted(model: &str) -> [Wanted; 5] {
    let bearer = || ("authorization", format!("Bearer {KEY}"));
    let eleven_labs = |voice, path| Wanted {
        provider: "elevenlabs",
        voice,
        path,
        query: &[("output_format", "pcm_24000")],
        key: ("xi-api-key", KEY.to_owned()),
        body: json!({"text": TEXT, "model_id": model}),
    };
    [
        Wanted {
            provider: "deepgram",
            voice: None,
            path: "/v1/speak",
            query: &[("encoding", "linear16"), ("sample_rate", "24000")],
            key: ("authorization", format!("Token {KEY}")),
            body: json!({"text": TEXT}),
        },
        eleven_labs(None, "/v1/text-to-speech/default/stream"),
        eleven_labs(Some("vera"), "/v1/text-to-speech/vera/stream"),
        Wanted {
            provider: "openai",
            voice: Some("alloy"),
            path: "/v1/audio/speech",
            query: &[],
            key: bearer(),
            body: json!({"model": model, "input": TEXT, "voice": "alloy", "response_format": "pcm"}),
        },
        Wanted {
            provider: "cartesia",
            voice: None,
            path: "/tts/bytes",
            query: &[],
            key: bearer(),
            body: json!({
                "model_id": model, "transcript": TEXT, "voice": {"mode": "id", "id": "default"},
                "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
            }),
        },
    ]
}

fn requests(site: &Site<'_>) -> Verdict {
    let providers = wanted("").len();
    for place in 0..providers {
        let scene = site.scene()?;
        let audio = audio::reply(40 + place as u64, 3 * REPLY_BLOCK_BYTES);
        scene.answers(TEXT, [Reply::at_once(&audio)]);
        let wanted = wanted(scene.name()).into_iter().nth(place);
        let wanted = wanted.ok_or("no such provider")?;
        let told = |seen| format!("{}: {seen}", wanted.provider);
        let mut config = config(scene.name(), wanted.provider);
        if let Some(voice) = wanted.voice {
            config["tts_config"]["voice_id"] = json!(voice);
        }
        let mut session = site.connect()?;
        session.tell(&config)?;
        session.expect_ready(site.ready_limit()).map_err(told)?;
        session.tell(&speak(TEXT))?;
        session.expect_reply(&audio).map_err(told)?;
        let asked = scene.until_asked(0).map_err(told)?;
        must_be(&asked, &wanted, scene.name()).map_err(told)?;
    }
    Ok(format!("{providers} requests as their providers want them"))
}

fn must_be(asked: &Asked, wanted: &Wanted, model: &str) -> Result<(), String> {
    if asked.path != wanted.path {
        return Err(format!("{} instead of {}", asked.path, wanted.path));
    }
    let of_model = (wanted.provider == "deepgram").then_some(("model", model));
    let query = wanted.query.iter().copied().chain(of_model);
    for (name, value) in query {
        if query_value(&asked.query, name) != value {
            return Err(format!("?{} without {name}={value}", asked.query));
        }
    }
    let (name, key) = &wanted.key;
    let seen = asked.head.field(name).unwrap_or("absent");
    if seen != key {
        return Err(format!(
            "{name}: {seen}, which is not PROVIDER_KEY as this provider wants it"
        ));
    }
    let kind = asked.head.field("content-type").unwrap_or("absent");
    if !kind.starts_with("application/json") {
        return Err(format!("content-type: {kind}"));
    }
    if asked.body == wanted.body {
        Ok(())
    } else {
        Err(format!("{} instead of {}", asked.body, wanted.body))
    }
}
