//! One request over HTTP and its answer, read as it comes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::wire::{Body, Head, Part, Wire};

/// How long an answer's head, and each part of its body, may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// An answer, with how its body ended.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// When the first byte of the body came.
    pub(super) first: Option<Instant>,
    /// Whether the connection ended before the body did.
    pub(super) cut: bool,
}

/// Asks. Any status is an answer.
pub(super) fn ask(
    address: SocketAddr,
    (method, path): (&str, &str),
    body: Option<&[u8]>,
) -> Result<Answer, String> {
    let asked = |seen: String| format!("{method} {path}: {seen}");
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    if let Some(body) = body {
        request += &format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
    }
    request += "\r\n";
    let mut request = request.into_bytes();
    request.extend_from_slice(body.unwrap_or_default());
    let mut wire = Wire::to(address)?;
    let sent = wire.send(&request);
    sent.map_err(|error| asked(format!("the target stopped reading: {error}")))?;
    read(&mut wire).map_err(asked)
}

/// Reads an answer to its end.
fn read(wire: &mut Wire) -> Result<Answer, String> {
    let late = || format!("no answer within {} s", PATIENCE.as_secs());
    let head = wire.head(Instant::now() + PATIENCE)?.ok_or_else(late)?;
    rest(wire, head)
}

/// Reads the body behind a head.
pub(super) fn rest(wire: &mut Wire, head: Head) -> Result<Answer, String> {
    let status = head.status()?;
    let mut body = head.body(Body::UntilEnd)?;
    let mut answer = Answer {
        status,
        head,
        body: Vec::new(),
        first: None,
        cut: false,
    };
    loop {
        match wire.part(&mut body, Instant::now() + PATIENCE)? {
            Part::Data(data) => {
                answer.first.get_or_insert_with(Instant::now);
                answer.body.extend(data);
            }
            Part::End => return Ok(answer),
            Part::Cut => {
                answer.cut = true;
                return Ok(answer);
            }
            Part::Nothing => {
                return Err(format!(
                    "status {status}, {} bytes, and nothing more for {} s",
                    answer.body.len(),
                    PATIENCE.as_secs()
                ));
            }
        }
    }
}

impl Answer {
    /// The body as JSON.
    pub(super) fn json(&self) -> Result<Value, String> {
        let read = serde_json::from_slice(&self.body);
        read.map_err(|_| format!("{} is not JSON", self.describe()))
    }

    /// Passes when it is an error of this status and cause, as the contract writes errors.
    pub(super) fn must_be_error(&self, status: u16, cause: &str) -> Result<(), String> {
        let seen = || self.describe();
        if self.status != status {
            return Err(seen());
        }
        let body = self.json()?;
        let told = body["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty());
        if told && body["cause"] == cause {
            Ok(())
        } else {
            Err(seen())
        }
    }

    /// In a few words.
    pub(super) fn describe(&self) -> String {
        const SHOWN: usize = 120;
        if self.body.len() > SHOWN {
            return format!("status {} with {} bytes", self.status, self.body.len());
        }
        let body = String::from_utf8_lossy(&self.body);
        format!("status {} with {body:?}", self.status)
    }
}
