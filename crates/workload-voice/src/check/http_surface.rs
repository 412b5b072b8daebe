//! Section 2 of the contract: what the gateway answers over HTTP. Section 5: while it drains. Section 7: metrics.

use std::time::Duration;

use plimsoll_conformance::case::{Series, poll, value};
use plimsoll_conformance::socket::SOCKET_LIMIT;
use plimsoll_host::http::Metrics;
use serde_json::{Value, json};

use super::admission::refusal;
use super::audio::{self, REPLY_BLOCK_BYTES};
use super::exchange::ask;
use super::mock::{Reply, result};
use super::registry::{Case, Site, Verdict, case_in, open_case};
use super::session::{PATIENCE, speak};
use super::setup::{COUNTERS, DRAIN};

/// A gateway may take this long to notice the signal.
const SIGNAL_SEEN: Duration = Duration::from_millis(500);

pub(super) fn cases() -> Vec<Case> {
    vec![
        open_case(
            "http-root",
            "GET / answers that it is ready",
            "section 2: status 200 with {\"status\":\"OK\"}",
            root,
        ),
        case_in(
            &DRAIN,
            (
                "http-draining",
                "While it drains, GET / says so and no session is accepted",
                "section 5: 503 {\"status\":\"DRAINING\"}, an upgrade 503 `draining` with Retry-After",
            ),
            draining,
        ),
        open_case(
            "http-not-found",
            "What there is not answers 404, another method 405, /ws without an upgrade 426",
            "section 2: 404, 405 and 426",
            not_found,
        ),
        case_in(
            &COUNTERS,
            (
                "http-metrics",
                "GET /metrics has every series, and a conversation counts exactly",
                "section 7: Prometheus text, each name with its type; the counts of one conversation",
            ),
            metrics,
        ),
        case_in(
            &COUNTERS,
            (
                "http-voices",
                "GET /voices lists voices, and is kept for 60 s",
                "section 2: lists of {id, name, language, gender, accent, sample} by provider; providers asked once",
            ),
            voices,
        ),
    ]
}

fn root(site: &Site<'_>) -> Verdict {
    let answer = ask(site.address, ("GET", "/"), None)?;
    let seen = format!("GET /: {}", answer.describe());
    let ready = answer.status == 200 && answer.json()? == json!({"status": "OK"});
    if ready { Ok(seen) } else { Err(seen) }
}

fn draining(site: &Site<'_>) -> Verdict {
    let scene = site.scene()?;
    let audio = audio::reply(1, 75 * REPLY_BLOCK_BYTES);
    scene.answers("a long reply", [Reply::in_real_time(&audio)]);
    let mut session = site.session(&scene)?;
    session.tell(&speak("a long reply"))?;
    session.expect_audio(PATIENCE)?;
    site.server()?.terminate()?;
    let root = || {
        let answer = ask(site.address, ("GET", "/"), None)?;
        let done = answer.status == 503;
        Ok((answer, done))
    };
    let (answer, done) = poll(SIGNAL_SEEN, root)?;
    if !done || answer.json()? != json!({"status": "DRAINING"}) {
        return Err(format!("GET /: {}", answer.describe()));
    }
    let refused = refusal(site.address, &[])?;
    refused.must_be(503, "draining")?;
    // Had the gateway ended by then, a refusal would show nothing.
    session
        .expect_audio(PATIENCE)
        .map_err(|seen| format!("the reply that played: {seen}"))?;
    Ok("503 DRAINING, and 503 draining with Retry-After".to_owned())
}

fn not_found(site: &Site<'_>) -> Verdict {
    let asked = [
        ("GET", "/nowhere", 404),
        ("GET", "/ws/more", 404),
        ("POST", "/speak/more", 404),
        ("POST", "/", 405),
        ("DELETE", "/voices", 405),
        ("GET", "/speak", 405),
        ("PUT", "/metrics", 405),
        ("POST", "/ws", 405),
        ("GET", "/ws", 426),
    ];
    for (method, path, status) in asked {
        let body = (method != "GET").then_some(&b"{}"[..]);
        let answer = ask(site.address, (method, path), body)?;
        if answer.status != status {
            return Err(format!(
                "{method} {path}: {} instead of {status}",
                answer.describe()
            ));
        }
    }
    Ok("404, 405 and 426".to_owned())
}

/// Section 7. A counter with labels has no sample before its first event, so that only its type is looked for.
const NAMES: [(&str, &str); 8] = [
    ("voice_sessions", "gauge"),
    ("voice_sessions_total", "counter"),
    ("voice_refused_total", "counter"),
    ("voice_audio_bytes_total", "counter"),
    ("voice_results_total", "counter"),
    ("voice_speaks_total", "counter"),
    ("voice_errors_total", "counter"),
    ("voice_requests_total", "counter"),
];

/// How much one conversation adds to each: 1,280 bytes in, two results, a reply of 9,600 bytes, an error.
const GROWN: [(Series, f64); 10] = [
    (("voice_sessions", &[]), 0.0),
    (("voice_sessions_total", &[]), 1.0),
    (("voice_audio_bytes_total", &[("direction", "in")]), 1280.0),
    (("voice_audio_bytes_total", &[("direction", "out")]), 9600.0),
    (("voice_results_total", &[("final", "false")]), 1.0),
    (("voice_results_total", &[("final", "true")]), 1.0),
    (("voice_speaks_total", &[("outcome", "complete")]), 1.0),
    (("voice_errors_total", &[("kind", "bad_message")]), 1.0),
    (
        (
            "voice_requests_total",
            &[("provider", "deepgram_tts"), ("outcome", "complete")],
        ),
        1.0,
    ),
    (("voice_speaks_total", &[("outcome", "failed")]), 0.0),
];

fn metrics(site: &Site<'_>) -> Verdict {
    let content_type = site.get("/metrics")?;
    let content_type = content_type.header("content-type").unwrap_or_default();
    if !content_type.starts_with("text/plain") {
        return Err(format!("content type {content_type:?}"));
    }
    let before = site.metrics()?;
    for (name, kind) in NAMES {
        let declared = before.type_of(name);
        if declared != Some(kind) {
            let declared = declared.unwrap_or("nothing");
            return Err(format!("{name} is declared as {declared}, not as {kind}"));
        }
    }
    converse(site)?;
    let growth = |now: &Metrics, series: Series| value(now, series) - value(&before, series);
    let reached = |now: &Metrics| GROWN.iter().all(|(series, by)| growth(now, *series) == *by);
    let (after, done) = site.metrics_within(PATIENCE, reached)?;
    let wrong = GROWN
        .iter()
        .filter(|(series, by)| growth(&after, *series) != *by);
    let wrong: Vec<String> = wrong
        .map(|(series, by)| {
            format!(
                "{series:?} grew by {} instead of {by}",
                growth(&after, *series)
            )
        })
        .collect();
    if done {
        Ok("every name, and the counts of a conversation".to_owned())
    } else {
        Err(wrong.join("; "))
    }
}

/// What [`GROWN`] counts.
fn converse(site: &Site<'_>) -> Result<(), String> {
    let scene = site.scene()?;
    let audio = audio::reply(2, 10 * REPLY_BLOCK_BYTES);
    scene.answers("hello", [Reply::at_once(&audio)]);
    let mut session = site.session(&scene)?;
    session.hear(&audio::caller(1, 1, 2))?;
    scene.heard(0, 1280, PATIENCE);
    scene.say(0, &result("hel", (false, false), 0.5))?;
    session.expect_result(PATIENCE)?;
    scene.say(0, &result("hello", (true, true), 0.9))?;
    session.expect_result(PATIENCE)?;
    session.tell(&speak("hello"))?;
    session.expect_reply(&audio)?;
    session.tell(&json!({"type": "greet"}))?;
    session.expect_error("bad_message", PATIENCE)?;
    session.send_what_may_be_refused(&plimsoll_conformance::socket::close_frame(1000));
    session.expect_end(SOCKET_LIMIT)
}

fn voices(site: &Site<'_>) -> Verdict {
    let before = site.mock()?.voices_asked();
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let answer = ask(site.address, ("GET", "/voices"), None)?;
        if answer.status != 200 {
            return Err(format!("GET /voices: {}", answer.describe()));
        }
        bodies.push(answer.json()?);
    }
    let listed = listed(&bodies[0])?;
    let asked = site.mock()?.voices_asked() - before;
    // Each of the two addresses may be asked.
    if asked > 2 {
        return Err(format!(
            "the providers were asked {asked} times for 3 requests within 60 s"
        ));
    }
    if bodies.iter().any(|body| *body != bodies[0]) {
        return Err("another list, within 60 s".to_owned());
    }
    Ok(format!("{listed} voices"))
}

/// How many voices a list has; an error if it is none.
fn listed(body: &Value) -> Result<usize, String> {
    const FIELDS: [&str; 6] = ["id", "name", "language", "gender", "accent", "sample"];
    let providers = body
        .as_object()
        .ok_or_else(|| format!("{body} is no object"))?;
    let mut count = 0;
    for (provider, voices) in providers {
        let voices = voices.as_array();
        for voice in voices.ok_or_else(|| format!("{provider} has no list"))? {
            let missing = FIELDS.iter().find(|field| !voice[**field].is_string());
            if let Some(field) = missing {
                return Err(format!("{provider}: a voice without {field}: {voice}"));
            }
            count += 1;
        }
    }
    if count == 0 {
        Err(format!("no voice in {body}"))
    } else {
        Ok(count)
    }
}
