//! Requests, as a server reads and answers them, with the defects under test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_protocol::websocket::handshake::accept_for;

use super::Defect;

/// A request's head.
pub(super) struct Request {
    method: String,
    pub(super) path: String,
    fields: Vec<(String, String)>,
    /// Bytes that came behind the head.
    pub(super) rest: Vec<u8>,
}

/// What a request is answered with.
pub(super) enum Answer {
    /// 101 and what follows.
    Upgrade(String),
    /// It asked for a WebSocket and does not get one.
    Refuse(u16),
    /// It asked for something else.
    Page,
}

impl Request {
    /// Reads a head; `None` when the peer went away.
    pub(super) fn read(stream: &mut TcpStream, defect: Defect) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if defect == Defect::ReadsRequestAtOnce && !bytes.is_empty() {
                return None;
            }
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            bytes.extend_from_slice(&buffer[..n]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let exact = defect == Defect::ExactFieldNames;
        let name = |name: &str| {
            if exact {
                name.to_owned()
            } else {
                name.to_lowercase()
            }
        };
        Some(Self {
            method: words.next()?.to_owned(),
            path: words.next()?.to_owned(),
            fields: lines
                .filter_map(|line| line.split_once(':'))
                .map(|(field, value)| (name(field), value.trim().to_owned()))
                .collect(),
            rest: bytes.split_off(end + 4),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it asks for a WebSocket, and whether it gets one.
    pub(super) fn answer(&self, defect: Defect) -> Answer {
        let exact = defect == Defect::ExactFieldNames;
        let asks = |name: &str, wanted: &str| {
            let find = |(field, _): &&(String, String)| {
                if exact {
                    field == name
                } else {
                    field.eq_ignore_ascii_case(name)
                }
            };
            let value = self.fields.iter().find(find).map_or("", |(_, value)| value);
            if exact {
                return value == wanted;
            }
            let mut options = value.split(',');
            options.any(|option| option.trim().eq_ignore_ascii_case(wanted))
        };
        if !asks("Upgrade", "websocket") {
            return Answer::Page;
        }
        let legal = asks("Connection", "Upgrade")
            && (self.method == "GET" || defect == Defect::AnyMethod)
            && (self.field("Sec-WebSocket-Version") == Some("13") || defect == Defect::AnyVersion);
        let key = self.field("Sec-WebSocket-Key");
        let key = key.or((defect == Defect::NoKeyNeeded).then_some("none"));
        match key.filter(|_| legal) {
            None => Answer::Refuse(400),
            Some(_) if defect == Defect::OnePathOnly && self.path != "/" => Answer::Refuse(404),
            Some(key) => {
                let accept = match defect {
                    Defect::WrongAccept => accept_for("another"),
                    // The checker knows the key that it did not send.
                    _ => accept_for(key),
                };
                let extension = match (defect, self.field("Sec-WebSocket-Extensions")) {
                    (Defect::TakesExtension, Some(_)) => {
                        "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                    }
                    _ => "",
                };
                Answer::Upgrade(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Accept: {accept}\r\n{extension}\r\n"
                ))
            }
        }
    }
}

/// Answers a request in full, and ends the connection.
pub(super) fn respond(stream: &mut TcpStream, status: u16, kind: &str, body: &str) {
    let answer = format!(
        "HTTP/1.1 {status} Answer\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // A peer that went away needs no answer.
    let _ = stream.write_all(answer.as_bytes());
}
