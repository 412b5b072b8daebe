//! What an inference server answers, and how its failures are named.

use plimsoll_workload_stt::reference::{Answer, compute};
use plimsoll_workload_stt::synthetic::Synthetic;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Reference {
    id: &'static str,
    passes: u32,
    #[serde(flatten)]
    batch: Batch,
    expect: Answer,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Batch {
    Given { pcm: String },
    Synthetic { pcm_from: Frames },
}

#[derive(Clone, Copy, Serialize)]
struct Frames {
    session: u64,
    first_seq: u64,
    frames: u64,
}

pub(crate) fn reference() -> Vec<Reference> {
    let given = |id, passes, samples: &[i16]| {
        let pcm: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
        Reference {
            id,
            passes,
            expect: answer(&pcm, passes),
            batch: Batch::Given { pcm: hex(&pcm) },
        }
    };
    let from = |id, passes, (session, first_seq, frames)| {
        let pcm = Synthetic::new().batch(session, first_seq, frames);
        let pcm_from = Frames {
            session,
            first_seq,
            frames,
        };
        Reference {
            id,
            passes,
            expect: answer(&pcm, passes),
            batch: Batch::Synthetic { pcm_from },
        }
    };
    vec![
        from("golden", 4, (0, 1, 1)),
        given("empty", 4, &[]),
        given("one-sample", 4, &[1]),
        given("one-negative-sample", 1, &[-1]),
        given("zero-is-not-negative", 1, &[0, -1, 0, 1, 0]),
        given("crossing-at-the-seam", 3, &[5, 6, -7]),
        given("no-crossing-at-the-seam", 3, &[5, -6, 7]),
        given("extremes", 4, &[i16::MIN, i16::MAX, i16::MAX, i16::MIN]),
        given("operand-wraps-at-16-bits", 5, &[i16::MAX, i16::MAX]),
        given("silence", 4, &[0; 320]),
        from("one-pass", 1, (0, 1, 1)),
        from("two-passes", 2, (0, 1, 1)),
        from("three-passes", 3, (0, 1, 1)),
        from("five-passes", 5, (0, 1, 1)),
        from("another-session", 4, (17, 1, 1)),
        from("one-second", 4, (0, 1, 50)),
        from("a-later-second", 4, (3, 151, 50)),
        from("49-frames", 4, (1000, 51, 49)),
        from("51-frames", 4, (1000, 100, 51)),
        from("table-wraps", 4, (19_999, 62, 3)),
    ]
}

fn answer(pcm: &[u8], passes: u32) -> Answer {
    compute(pcm, passes).expect("whole samples")
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Serialize)]
pub(crate) struct Body {
    id: String,
    body: String,
    ok: bool,
    kind: Option<&'static str>,
}

/// The fields of a good answer as (name, JSON text of its value).
const FIELDS: [(&str, &str); 6] = [
    ("rms", "2425.5023191083533"),
    ("zero_crossings", "7"),
    ("checksum", "1745339397"),
    ("samples", "1280"),
    ("transcript", "\"now\""),
    ("audio_bytes", "640"),
];

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// The good answer with one value replaced.
fn with(name: &str, value: &str) -> String {
    object(FIELDS.map(|(field, good)| (field, if field == name { value } else { good })))
}

pub(crate) fn bodies() -> Vec<Body> {
    let good = |id: &str, body| Body {
        id: id.to_owned(),
        body,
        ok: true,
        kind: None,
    };
    let mut bodies = vec![
        good("plain", object(FIELDS)),
        good("other-order", object(FIELDS.into_iter().rev())),
        good(
            "white-space",
            format!(
                " {} \r\n",
                object(FIELDS).replace(',', " ,\n\t").replace(':', " : ")
            ),
        ),
        good("rms-integer", with("rms", "0")),
        good("rms-exponent", with("rms", "2.4255e3")),
        good("checksum-largest", with("checksum", "4294967295")),
        good("transcript-escaped", with("transcript", r#""n\u006fw""#)),
        good("empty-batch", {
            let answer = answer(&[], 4);
            serde_json::to_string(&answer).expect("an answer is plain data")
        }),
    ];
    bodies.extend(bad_bodies().into_iter().map(|(id, body)| Body {
        id,
        body,
        ok: false,
        kind: Some("parse_error"),
    }));
    bodies
}

fn bad_bodies() -> Vec<(String, String)> {
    let good = object(FIELDS);
    let mut bad: Vec<(String, String)> = Vec::new();
    for (name, value) in FIELDS {
        let kebab = name.replace('_', "-");
        bad.push((
            format!("missing-{kebab}"),
            object(FIELDS.into_iter().filter(|(field, _)| *field != name)),
        ));
        bad.push((
            format!("duplicate-{kebab}"),
            object(FIELDS.into_iter().chain([(name, value)])),
        ));
        bad.push((format!("null-{kebab}"), with(name, "null")));
        let other_type = if name == "transcript" {
            "1".to_owned()
        } else {
            format!("\"{value}\"")
        };
        bad.push((format!("wrong-type-{kebab}"), with(name, &other_type)));
    }
    for name in ["zero_crossings", "checksum", "samples", "audio_bytes"] {
        let kebab = name.replace('_', "-");
        bad.push((format!("negative-{kebab}"), with(name, "-1")));
        bad.push((format!("fraction-{kebab}"), with(name, "7.5")));
    }
    let more = [
        ("checksum-over-32-bits", with("checksum", "4294967296")),
        ("rms-nan", with("rms", "NaN")),
        ("rms-boolean", with("rms", "true")),
        ("transcript-array", with("transcript", "[\"now\"]")),
        (
            "unknown-field",
            object(FIELDS.into_iter().chain([("language", "\"en\"")])),
        ),
        (
            "unknown-field-null",
            object(FIELDS.into_iter().chain([("language", "null")])),
        ),
        ("name-in-capitals", good.replace("\"rms\"", "\"RMS\"")),
        ("empty", String::new()),
        ("only-white-space", " \n".to_owned()),
        ("empty-object", "{}".to_owned()),
        ("not-json", "upstream is busy".to_owned()),
        (
            "html",
            "<html><body>502 Bad Gateway</body></html>".to_owned(),
        ),
        ("null", "null".to_owned()),
        ("number", "7".to_owned()),
        ("string", "\"now\"".to_owned()),
        (
            "array-of-values",
            format!("[{}]", FIELDS.map(|(_, value)| value).join(",")),
        ),
        ("array-around-object", format!("[{good}]")),
        ("truncated", good[..good.len() - 1].to_owned()),
        ("truncated-in-a-value", good[..good.len() / 2].to_owned()),
        ("trailing-garbage", format!("{good}x")),
        ("trailing-object", format!("{good}{good}")),
        ("trailing-comma", good.replace('}', ",}")),
    ];
    bad.extend(more.map(|(id, body)| (id.to_owned(), body)));
    bad
}

#[derive(Serialize)]
pub(crate) struct Failure {
    id: &'static str,
    status: Option<u16>,
    transport: Option<&'static str>,
    kind: &'static str,
    retryable: bool,
    stage: &'static str,
}

pub(crate) fn failures() -> Vec<Failure> {
    let stage = "inference_request";
    let status = |id, status, kind, retryable| Failure {
        id,
        status: Some(status),
        transport: None,
        kind,
        retryable,
        stage,
    };
    let transport = |id, transport, kind| Failure {
        id,
        status: None,
        transport: Some(transport),
        kind,
        retryable: true,
        stage,
    };
    vec![
        status("status-429", 429, "http_429", true),
        status("status-500", 500, "http_5xx", true),
        status("status-502", 502, "http_5xx", true),
        status("status-503", 503, "http_5xx", true),
        status("status-400", 400, "http_4xx", false),
        status("status-404", 404, "http_4xx", false),
        status("status-413", 413, "http_4xx", false),
        transport("reset", "reset", "connection_reset"),
        transport("timeout", "timeout", "timeout"),
    ]
}
