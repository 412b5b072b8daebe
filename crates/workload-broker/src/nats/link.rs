//! The beginning of a connection, and what all machines do alike.

use serde::Deserialize;

use super::frame::{Frame, Message};
use super::write;
use crate::Login;
use crate::dialect::Fault;

/// The number of our first subscription: answers to requests and to messages.
pub(super) const INBOX_SID: u64 = 1;

/// What the server says of itself, as far as it matters.
#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    headers: bool,
    #[serde(default)]
    jetstream: bool,
    #[serde(default)]
    tls_required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The server speaks first.
    Info,
    /// It has our CONNECT, our subscription and a PING.
    Pong,
    /// It answered.
    Open,
}

/// What a command means for a machine.
pub(super) enum Took<'a> {
    /// Nothing.
    Nothing,
    /// The greeting is over.
    Open,
    /// A message came.
    Message(Message<'a>),
    /// The server complains of something that we sent, and goes on.
    Complaint(&'a str),
}

/// The greeting of a connection and its upkeep.
#[derive(Debug)]
pub(super) struct Link {
    step: Step,
    login: Option<Login>,
    /// Answers come to this and a last word.
    inbox: Vec<u8>,
}

impl Link {
    /// For a connection with this name.
    pub(super) fn new(connection: &str, login: Option<Login>) -> Self {
        Self {
            step: Step::Info,
            login,
            inbox: format!("_INBOX.{connection}.").into_bytes(),
        }
    }

    /// Where an answer with this last word goes.
    pub(super) fn reply(&self, word: &str) -> Vec<u8> {
        [&self.inbox[..], word.as_bytes()].concat()
    }

    /// The last word of a subject that is ours.
    pub(super) fn word<'a>(&self, subject: &'a [u8]) -> Option<&'a [u8]> {
        subject.strip_prefix(&self.inbox[..])
    }

    /// Takes a command; answers what every client answers.
    pub(super) fn take<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Took<'a>, Fault> {
        match frame {
            Frame::Message(message) if self.step == Step::Open => Ok(Took::Message(message)),
            Frame::Message(_) => Err(Fault(
                "NATS: a message came before the greeting was over".to_owned(),
            )),
            Frame::Ping => {
                out.extend_from_slice(write::PONG);
                Ok(Took::Nothing)
            }
            Frame::Pong if self.step == Step::Pong => {
                self.step = Step::Open;
                Ok(Took::Open)
            }
            Frame::Info(text) if self.step == Step::Info => {
                check(text)?;
                write::connect(out, self.login.as_ref());
                write::subscribe(out, &self.reply("*"), INBOX_SID);
                out.extend_from_slice(write::PING);
                self.step = Step::Pong;
                Ok(Took::Nothing)
            }
            Frame::Error(text) if self.step == Step::Open && is_survived(text) => {
                Ok(Took::Complaint(text))
            }
            Frame::Error(text) => Err(Fault(format!("NATS: the server says `{text}`"))),
            Frame::Info(_) | Frame::Pong | Frame::Ok | Frame::Part => Ok(Took::Nothing),
        }
    }
}

fn check(text: &[u8]) -> Result<(), Fault> {
    let info: Info = serde_json::from_slice(text)
        .map_err(|error| Fault(format!("NATS: INFO is not what it must be: {error}")))?;
    if info.tls_required {
        return Err(Fault(
            "NATS: the server wants TLS; start it without".to_owned(),
        ));
    }
    if !info.jetstream || !info.headers {
        return Err(Fault(
            "NATS: the server has no JetStream; start it with a `jetstream` block".to_owned(),
        ));
    }
    Ok(())
}

/// After these errors the server keeps the connection open ("Client Protocol", +OK/ERR).
fn is_survived(text: &str) -> bool {
    let kept = [
        "Permissions Violation",
        "Invalid Subject",
        "Invalid Publish Subject",
    ];
    kept.iter().any(|begin| {
        text.get(..begin.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(begin))
    })
}
