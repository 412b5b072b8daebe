//! Mock providers that a case controls exactly: when recognition connects, refuses and closes; when a byte of a reply comes;
//! what was asked, with which fields, and when it was cancelled.
//!
//! Cases run side by side against one gateway. Each has a [`Scene`] of its own: the model that it names in its `config`, by
//! which the mock knows whose a request is.

mod listen;
mod scene;
mod speak;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wire::{Body, Head, Part, Wire};

pub(super) use listen::{Ending, Opening, result, result_text};
pub(super) use scene::{Asked, How, Scene};
pub(super) use speak::{Reply, Step};

/// How often a thread looks whether the mock is over.
const LOOK: Duration = Duration::from_millis(50);

/// How long a request's body may take.
const BODY_LIMIT: Duration = Duration::from_secs(5);

/// Providers at two addresses. Dropped, they end.
pub(super) struct Mock {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
}

/// What all connections of a mock know.
pub(super) struct Shared {
    scenes: Mutex<HashMap<String, Arc<Scene>>>,
    /// Whose model no case has: it listens and speaks, and remembers nothing.
    nobody: Arc<Scene>,
    voices_asked: AtomicU64,
    over: AtomicBool,
}

impl Shared {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn scene(&self, model: &str) -> Arc<Scene> {
        let scenes = self.scenes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = scenes.get(model);
        Arc::clone(known.unwrap_or(&self.nobody))
    }
}

impl Mock {
    /// Listens on two free ports.
    pub(super) fn start() -> Result<Self, String> {
        let shared = Arc::new(Shared {
            scenes: Mutex::default(),
            nobody: Arc::new(Scene::forgetful()),
            voices_asked: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let mut mock = Self {
            addresses: Vec::new(),
            shared,
        };
        for place in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            mock.addresses.push(address);
            let shared = Arc::clone(&mock.shared);
            thread::spawn(move || accept(&listener, &shared, place));
        }
        Ok(mock)
    }

    /// For `PROVIDER_URLS`.
    pub(super) fn urls(&self) -> String {
        let urls: Vec<String> = self
            .addresses
            .iter()
            .map(|at| format!("http://{at}"))
            .collect();
        urls.join(",")
    }

    /// A scene of its own, with a name that no other has.
    pub(super) fn scene(&self) -> Arc<Scene> {
        let mut scenes = self
            .shared
            .scenes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let name = format!("scene-{}", scenes.len() + 1);
        let scene = Arc::new(Scene::new(name.clone()));
        scenes.insert(name, Arc::clone(&scene));
        scene
    }

    /// How often anybody asked for the voices.
    pub(super) fn voices_asked(&self) -> u64 {
        self.shared.voices_asked.load(Ordering::SeqCst)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for address in &self.addresses {
            // Wakes the listener, which then sees that it is over.
            let _ = TcpStream::connect(address);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, place: usize) {
    for stream in listener.incoming().flatten() {
        if shared.over() {
            return;
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || serve(Wire::new(stream), &shared, place));
    }
}

/// One request of a gateway, whole.
struct Request {
    place: usize,
    method: String,
    path: String,
    query: String,
    head: Head,
    body: Value,
}

/// Answers request after request, until the gateway leaves.
fn serve(mut wire: Wire, shared: &Shared, place: usize) {
    while let Some(request) = next_request(&mut wire, shared, place) {
        let route = (request.method.as_str(), request.path.as_str());
        match route {
            ("GET", "/v1/listen") => {
                let scene = shared.scene(&query_value(&request.query, "model"));
                return listen::serve(wire, &request, &scene, shared);
            }
            ("GET", "/v1/voices") => {
                shared.voices_asked.fetch_add(1, Ordering::SeqCst);
                if wire.send(&answer("200 OK", &voices().to_string())).is_err() {
                    return;
                }
            }
            ("POST", path) if speak::is_of_a_provider(path) => {
                let scene = shared.scene(&speak::model_of(&request));
                match speak::serve(wire, &request, &scene, shared) {
                    Some(again) => wire = again,
                    None => return,
                }
            }
            _ => {
                if wire.send(&answer("404 Not Found", "{}")).is_err() {
                    return;
                }
            }
        }
    }
}

fn next_request(wire: &mut Wire, shared: &Shared, place: usize) -> Option<Request> {
    let head = loop {
        if shared.over() {
            return None;
        }
        if let Some(head) = wire.head(Instant::now() + LOOK).ok()? {
            break head;
        }
    };
    let (mut body, mut bytes) = (head.body(Body::Over).ok()?, Vec::new());
    let deadline = Instant::now() + BODY_LIMIT;
    loop {
        match wire.part(&mut body, deadline).ok()? {
            Part::Data(data) => bytes.extend(data),
            Part::End => break,
            Part::Cut | Part::Nothing => return None,
        }
    }
    let (method, target) = head.request()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request {
        place,
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        head,
    })
}

/// A whole answer of JSON.
fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// What `GET /v1/voices` of ElevenLabs answers.
fn voices() -> Value {
    json!({"voices": [{
        "voice_id": "v1", "name": "Vera", "preview_url": "http://127.0.0.1/vera.mp3",
        "labels": {"language": "en", "gender": "female", "accent": "british"},
    }]})
}

/// The value of this name in a query, with its escapes undone; empty where there is none.
pub(super) fn query_value(query: &str, name: &str) -> String {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| *known == name);
    found.map_or_else(String::new, |(_, value)| unescaped(value))
}

fn unescaped(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let [first, tail @ ..] = rest {
        let hex = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(hex))
            .flatten();
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_found() {
        let query = "model=a%2Fb+c&punctuate=true&x=%zz";
        assert_eq!(query_value(query, "model"), "a/b c");
        assert_eq!(query_value(query, "punctuate"), "true");
        assert_eq!(query_value(query, "x"), "%zz");
        assert_eq!(query_value(query, "y"), "");
    }
}
