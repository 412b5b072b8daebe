//! What a real part of a load says, and when.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_fleet::connection::monotonic_ns;
use plimsoll_fleet::{Connection, Event, Side, Token};
use plimsoll_lab::trial::parts::SUBCOMMAND;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agents::{Told, joined};
use crate::{AnyError, ours};

/// Everything that a part said, in order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recording(pub(crate) Vec<Line>);

/// A message of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    /// When it was said, from the beginning of the trial on; `None` if that was before it was known when it begins.
    pub(crate) at_ns: Option<u64>,
    /// Whether the part had been told that all are settled.
    pub(crate) may_end: bool,
    pub(crate) json: Box<RawValue>,
}

impl Line {
    /// Its content, if it is a message of this kind.
    pub(crate) fn content(&self, kind: &str) -> Option<Value> {
        let mut said: Value = serde_json::from_str(self.json.get()).ok()?;
        said.get_mut(kind).map(Value::take)
    }
}

/// How much later the server answers its message of this number: 20 to 90 ms, so that the answers of a session stay in order.
pub(crate) fn delay(number: u64) -> Duration {
    Duration::from_micros(20_000 + number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 70_000)
}

/// What the part has been told.
#[derive(Debug, Default)]
struct Heard {
    /// When the trial begins; 0 if it has not been told.
    begins_ns: AtomicU64,
    may_end: AtomicBool,
}

/// Joins as an agent, has a client process carry its part, and keeps what that says.
pub(crate) fn record(at: SocketAddr, token: &Token) -> Result<Recording, AnyError> {
    let channel = joined(at, token)?;
    let mut engine = ours(&[SUBCOMMAND]).stdin(Stdio::piped()).spawn()?;
    let stdin = Arc::new(Mutex::new(engine.stdin.take()));
    let says = engine.stdout.take().ok_or("its output is no pipe")?;
    let heard = Arc::<Heard>::default();
    let noted = Arc::clone(&heard);
    let passed_to = Arc::clone(&stdin);
    let connection = Connection::start(channel, Side::Answers, move |event| {
        pass_on(event, &noted, &passed_to);
    })?;
    let mut lines = Vec::new();
    for line in BufReader::new(says).lines() {
        let json: Box<RawValue> = serde_json::from_str(&line?)?;
        connection.say(&json)?;
        let begins_ns = heard.begins_ns.load(Ordering::Relaxed);
        lines.push(Line {
            at_ns: (begins_ns > 0).then(|| monotonic_ns().saturating_sub(begins_ns)),
            may_end: heard.may_end.load(Ordering::Relaxed),
            json,
        });
    }
    engine.wait()?;
    // The coordinator hangs up when it needs nothing more.
    while stdin
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some()
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Recording(lines))
}

/// Passes on what the coordinator says to the process. The end of its input tells that to stop.
fn pass_on(event: Event, heard: &Heard, to: &Mutex<Option<ChildStdin>>) {
    let mut stdin = to.lock().unwrap_or_else(PoisonError::into_inner);
    let Event::Message(mut json) = event else {
        *stdin = None;
        return;
    };
    match Told::of(&json) {
        Told::Begin(at_ns) => heard.begins_ns.store(at_ns, Ordering::Relaxed),
        Told::End => heard.may_end.store(true, Ordering::Relaxed),
        Told::Order | Told::Other => {}
    }
    json.push(b'\n');
    if let Some(stdin) = stdin.as_mut() {
        // It may have ended.
        let _ = stdin.write_all(&json).and_then(|()| stdin.flush());
    }
}
