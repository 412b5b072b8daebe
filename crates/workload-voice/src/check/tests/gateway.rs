//! A gateway of a few threads per caller, good enough for every case, with one defect at a time: HTTP, admission, drain.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};
use plimsoll_protocol::websocket::handshake::accept_for;
use serde_json::{Value, json};

use super::Defect;
use super::caller;
use super::settings::Settings;
use super::upstream::{self, Cancel, Order, Sound};
use crate::check::exchange::ask;
use crate::check::wire::{Body, Head, Part, Wire};

/// Starts gateways with one defect.
pub(super) struct FakeBench(pub(super) Defect);

impl Bench for FakeBench {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        let settings = Settings::parse(environment)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared::new(settings, self.0));
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&own);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Box::new(FakeGateway { address, shared }))
    }

    fn start_refused(&self, _: &Environment, _: Duration) -> Result<Ended, String> {
        Err("no case of this contract wants that".to_owned())
    }
}

/// What all callers share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) defect: Defect,
    pub(super) draining: AtomicBool,
    drain_by: Mutex<Option<Instant>>,
    over: AtomicBool,
    places: Mutex<Places>,
    counters: Mutex<BTreeMap<String, f64>>,
    voices: Mutex<Option<String>>,
    turn: AtomicUsize,
    pub(super) number: AtomicU64,
    /// For the defect that mixes callers.
    pub(super) mixed: Mutex<Option<String>>,
}

#[derive(Default)]
struct Places {
    open: u64,
    stamps: VecDeque<Instant>,
}

impl Shared {
    fn new(settings: Settings, defect: Defect) -> Self {
        Self {
            settings,
            defect,
            draining: AtomicBool::new(false),
            drain_by: Mutex::default(),
            over: AtomicBool::new(false),
            places: Mutex::default(),
            counters: Mutex::default(),
            voices: Mutex::default(),
            turn: AtomicUsize::new(0),
            number: AtomicU64::new(0),
            mixed: Mutex::default(),
        }
    }

    pub(super) fn count(&self, series: &str, by: f64) {
        let mut counters = self.counters.lock().expect("sound");
        *counters.entry(series.to_owned()).or_insert(0.0) += by;
    }

    /// When the drain must be over, once it has begun.
    pub(super) fn drain_by(&self) -> Option<Instant> {
        *self.drain_by.lock().expect("sound")
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The provider whose turn it is.
    pub(super) fn provider(&self) -> String {
        let providers = &self.settings.providers;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let turn = if self.defect == Defect::OneAddress {
            0
        } else {
            turn
        };
        providers[turn % providers.len()].clone()
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        for name in [
            "sessions_total",
            "refused_total",
            "audio_bytes_total",
            "results_total",
            "speaks_total",
            "errors_total",
            "requests_total",
        ] {
            text += &format!("# TYPE voice_{name} counter\n");
        }
        let open = self.places.lock().expect("sound").open;
        text += &format!("# TYPE voice_sessions gauge\nvoice_sessions {open}\n");
        for (series, value) in &*self.counters.lock().expect("sound") {
            text += &format!("{series} {value}\n");
        }
        text
    }
}

struct FakeGateway {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server for FakeGateway {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn output(&self) -> String {
        "{\"runtime\":\"rust 1.0\"}\n".to_owned()
    }

    fn terminate(&self) -> Result<(), String> {
        let until = Instant::now() + self.shared.settings.drain;
        *self.shared.drain_by.lock().expect("sound") = Some(until);
        self.shared.draining.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn wait(&self, limit: Duration) -> Result<Option<i32>, String> {
        let deadline = Instant::now() + limit;
        loop {
            if self.shared.places.lock().expect("sound").open == 0 {
                return Ok(Some(0));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(stream: TcpStream, shared: &Arc<Shared>) {
    let mut wire = Wire::new(stream);
    let Ok(Some(head)) = wire.head(Instant::now() + Duration::from_secs(5)) else {
        return;
    };
    let Some((method, path)) = head.request() else {
        return;
    };
    let draining = shared.draining.load(Ordering::SeqCst) && shared.defect != Defect::NotDraining;
    match (method, path) {
        ("GET", "/ws") if head.field("upgrade").is_some() => admit(wire, &head, shared),
        ("GET", "/ws") => answer(wire, 426, "", "{}"),
        ("GET", "/") if shared.defect == Defect::RootText => answer(wire, 200, "", "OK"),
        ("GET", "/") if draining => answer(wire, 503, "", r#"{"status":"DRAINING"}"#),
        ("GET", "/") => answer(wire, 200, "", r#"{"status":"OK"}"#),
        ("GET", "/metrics") => answer(wire, 200, "", &shared.metrics()),
        ("GET", "/voices") => answer(wire, 200, "", &voices(shared)),
        ("POST", "/speak") => speak(wire, &head, shared),
        (_, "/" | "/voices" | "/metrics" | "/speak" | "/ws") => answer(wire, 405, "", "{}"),
        _ if shared.defect == Defect::AnyPath => answer(wire, 200, "", "{}"),
        _ => answer(wire, 404, "", "{}"),
    }
}

fn answer(mut wire: Wire, status: u16, fields: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} So\r\nContent-Type: text/plain\r\nConnection: close\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // The client may have left.
    drop(wire.send(head.as_bytes()));
}

fn refuse(wire: Wire, status: u16, fields: &str, cause: &str) {
    let body = json!({"error": "so it is", "cause": cause}).to_string();
    answer(wire, status, fields, &body);
}

fn voices(shared: &Shared) -> String {
    let mut kept = shared.voices.lock().expect("sound");
    if let Some(kept) = kept
        .as_ref()
        .filter(|_| shared.defect != Defect::VoicesNotKept)
    {
        return kept.clone();
    }
    let address = shared.settings.providers[0].parse().expect("an address");
    let asked = ask(address, ("GET", "/v1/voices"), None).and_then(|answer| answer.json());
    let asked = asked.unwrap_or_default();
    let voices = asked["voices"].as_array().cloned().unwrap_or_default();
    let voices = voices.iter().map(|voice| {
        let labels = &voice["labels"];
        let mut voice = json!({
            "id": voice["voice_id"], "name": voice["name"], "language": labels["language"],
            "gender": labels["gender"], "accent": labels["accent"], "sample": voice["preview_url"],
        });
        if shared.defect == Defect::VoicesWithoutSample {
            voice["sample"] = Value::Null;
        }
        voice
    });
    let text = json!({"elevenlabs": voices.collect::<Vec<_>>()}).to_string();
    *kept = Some(text.clone());
    text
}

fn has_token(head: &Head, shared: &Shared) -> bool {
    let token = &shared.settings.token;
    let given = head
        .field("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    token.is_empty() || given == Some(token)
}

/// Why an upgrade is refused now; if it is not, it has a place.
fn refusal(head: &Head, shared: &Shared) -> Option<(u16, &'static str)> {
    let settings = &shared.settings;
    let mut places = shared.places.lock().expect("sound");
    let now = Instant::now();
    places
        .stamps
        .retain(|at| now - *at < Duration::from_secs(1));
    let full = |most: u64| most > 0 && places.open >= most && shared.defect != Defect::NoAdmission;
    let refused = if !has_token(head, shared) {
        Some((401, "auth"))
    } else if shared.draining.load(Ordering::SeqCst) {
        Some((503, "draining"))
    } else if full(settings.sessions_max) {
        Some((503, "capacity"))
    } else if full(settings.per_address_max) {
        Some((429, "per_address"))
    } else if settings.rate_rps > 0 && places.stamps.len() as u64 >= settings.rate_rps {
        Some((429, "rate"))
    } else {
        None
    };
    if refused.is_none() {
        if shared.defect == Defect::RacyAdmission {
            drop(places);
            thread::sleep(Duration::from_millis(30));
            places = shared.places.lock().expect("sound");
        }
        places.stamps.push_back(now);
        places.open += 1;
    }
    refused
}

fn admit(mut wire: Wire, head: &Head, shared: &Arc<Shared>) {
    if let Some((status, cause)) = refusal(head, shared) {
        if shared.defect != Defect::RefusesUncounted {
            shared.count(&format!("voice_refused_total{{cause=\"{cause}\"}}"), 1.0);
        }
        let fields = if shared.defect == Defect::NoRetryAfter {
            ""
        } else {
            "Retry-After: 1\r\n"
        };
        return refuse(wire, status, fields, cause);
    }
    shared.count("voice_sessions_total", 1.0);
    let key = head.field("sec-websocket-key").unwrap_or_default();
    let accept = accept_for(key);
    let upgraded = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    let torn = wire.send(upgraded.as_bytes()).is_err() || {
        let rest = wire.take();
        let stream = wire.stream().try_clone().expect("a stream");
        // Nothing else reads it now, and reads take as long as they take.
        stream.set_read_timeout(None).expect("no limit");
        caller::run(stream, rest, shared)
    };
    if !(torn && shared.defect == Defect::LeaksSlot) {
        shared.places.lock().expect("sound").open -= 1;
    }
}

/// The order of a request, or its status and cause.
fn order(body: &[u8], shared: &Shared) -> Result<Order, (u16, &'static str)> {
    let body: Value = serde_json::from_slice(body).map_err(|_| (400, "bad_json"))?;
    let text = body["text"].as_str().ok_or((400, "bad_field"))?;
    let provider = body["tts_config"]["provider"].as_str();
    provider.ok_or((400, "bad_field"))?;
    if text.is_empty() && shared.defect != Defect::SpeaksNothing {
        return Err((400, "empty_text"));
    }
    if text.len() > 102_400 {
        return Err((413, "too_large"));
    }
    Ok(Order {
        base: shared.provider(),
        tts: body["tts_config"].clone(),
        text: text.to_owned(),
    })
}

fn speak(mut wire: Wire, head: &Head, shared: &Shared) {
    if !has_token(head, shared) {
        return refuse(wire, 401, "", "auth");
    }
    let bytes = whole_body(&mut wire, head);
    let order = match order(&bytes, shared) {
        Ok(order) => order,
        Err((status, cause)) => return refuse(wire, status, "", cause),
    };
    let (defect, mut held) = (shared.defect, Vec::new());
    let mut failed = None;
    let mut begun = false;
    let mut stream = wire.stream().try_clone().expect("a stream");
    let mut on = |sound: Sound| {
        match sound {
            Sound::First(ms) => {
                begun = true;
                let fields = if defect == Defect::NoSpeakHeaders {
                    String::new()
                } else {
                    format!(
                        "X-Audio-Format: linear16\r\nX-Sample-Rate: 24000\r\nX-Provider-Ms: {ms}\r\n"
                    )
                };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\n{fields}Transfer-Encoding: chunked\r\n\r\n"
                );
                held.extend(head.into_bytes());
            }
            Sound::Data(mut data) => {
                if defect == Defect::DropsByte {
                    data.pop();
                }
                if !data.is_empty() {
                    held.extend(format!("{:x}\r\n", data.len()).into_bytes());
                    held.extend(data);
                    held.extend(b"\r\n");
                }
            }
            Sound::End => held.extend(b"0\r\n\r\n"),
            Sound::Failed(kind) => {
                failed = Some(kind);
                if begun && defect == Defect::EndsCutBody {
                    held.extend(b"0\r\n\r\n");
                }
            }
        }
        // One defect waits for the end.
        if defect != Defect::SpeakWaits || held.ends_with(b"0\r\n\r\n") {
            return stream.write_all(&std::mem::take(&mut held)).is_ok();
        }
        true
    };
    upstream::speak(
        &order,
        &shared.settings,
        defect,
        &Cancel::default(),
        &mut on,
    );
    match failed {
        Some("tts_timeout") if !begun && defect != Defect::OneFailure => {
            refuse(wire, 504, "", "provider_timeout")
        }
        Some(_) if !begun => refuse(wire, 502, "", "provider_failed"),
        _ => {}
    }
}

fn whole_body(wire: &mut Wire, head: &Head) -> Vec<u8> {
    let (mut body, mut bytes) = (head.body(Body::Over).expect("a length"), Vec::new());
    while let Ok(Part::Data(data)) = wire.part(&mut body, Instant::now() + Duration::from_secs(2)) {
        bytes.extend(data);
    }
    bytes
}
