//! Section 3 of the contract: messages that break it, and what each brings.

use std::time::Duration;

use plimsoll_conformance::socket::SOCKET_LIMIT;
use plimsoll_protocol::websocket::{Opcode, RawFrame, client_header};
use serde_json::json;

use super::registry::{Case, Site, Verdict, case, open_case};
use super::session::{PATIENCE, Session};
use super::vectors::{self, Said, Vector, When};

/// Where nothing is due, nothing comes within this time.
const QUIET: Duration = Duration::from_millis(300);

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "bad-not-json",
            "A text that is not JSON, or no object, is a bad message",
            "section 3: `error` bad_message to each golden message, then the session goes on",
            |site| group(site, Group::NotJson),
        ),
        case(
            "bad-type",
            "An unknown type is a bad message",
            "section 3: `error` bad_message to each golden message, then the session goes on",
            |site| group(site, Group::Type),
        ),
        case(
            "bad-field",
            "A missing, wrong or too large field is refused, and the largest that may be is not",
            "section 3: `error` bad_message or too_large to each golden message, or nothing",
            |site| group(site, Group::Field),
        ),
        case(
            "bad-too-early",
            "Before `ready` only `config` may come",
            "section 3: `error` not_ready to each golden message, then the session goes on",
            |site| group(site, Group::TooEarly),
        ),
        open_case(
            "bad-close-codes",
            "What breaks RFC 6455, is too long or is not UTF-8 closes the session",
            "section 3: close 1009 once the length is declared, 1002, 1007; each hurts no other session",
            close_codes,
        ),
    ]
}

/// Golden messages that are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    NotJson,
    Type,
    Field,
    TooEarly,
    Closed,
    /// Those of the cases of `config`.
    Config,
}

fn group_of(vector: &Vector) -> Group {
    let text = match vector.said() {
        Ok(Said::Text(text)) => Some(text),
        _ => None,
    };
    let json: Option<serde_json::Value> = text
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let known = ["speak", "clear", "config"];
    match (vector.when, &json) {
        _ if vector.close.is_some() => Group::Closed,
        _ if vector.is_config() && vector.when == When::First => Group::Config,
        (When::WithoutAudio, _) => Group::Config,
        _ if vector.kind() == "not_ready" => Group::TooEarly,
        (_, None) if text.is_some() => Group::NotJson,
        (_, Some(json)) if !json.is_object() => Group::NotJson,
        (_, Some(json)) if !known.iter().any(|known| json["type"] == *known) => Group::Type,
        _ => Group::Field,
    }
}

fn of_group(group: Group) -> Result<Vec<Vector>, String> {
    let vectors = vectors::all()?.into_iter();
    Ok(vectors.filter(|vector| group_of(vector) == group).collect())
}

fn tell(session: &mut Session, vector: &Vector) -> Result<(), String> {
    match vector.said()? {
        Said::Text(text) => session.say(Opcode::Text, text.as_bytes()),
        Said::Binary(bytes) => session.hear(&vec![0; bytes]),
        Said::Declared(_) => Err("it only declares a length".to_owned()),
    }
}

/// Says each golden message of a group, and passes when what is due comes, and nothing else.
fn group(site: &Site<'_>, group: Group) -> Verdict {
    let vectors = of_group(group)?;
    let scene = site.scene()?;
    let mut sessions = [site.connect()?, site.session(&scene)?];
    for vector in &vectors {
        let session = &mut sessions[usize::from(vector.when == When::Ready)];
        let told = |seen| format!("{}: {seen}", vector.id);
        tell(session, vector).map_err(told)?;
        if vector.kind.is_some() {
            session
                .expect_error(vector.kind(), PATIENCE)
                .map_err(told)?;
        } else {
            nothing_but_audio(session).map_err(told)?;
        }
        session.expect_alive().map_err(told)?;
    }
    Ok(format!("{} messages as they should be", vectors.len()))
}

/// A text that may be spoken is spoken.
fn nothing_but_audio(session: &mut Session) -> Result<(), String> {
    use super::messages::Message;
    loop {
        match session.message(QUIET)? {
            None => return Ok(()),
            Some((_, Message::Audio(_) | Message::Complete(_))) => {}
            Some((_, other)) => return Err(format!("{}, though it is allowed", other.describe())),
        }
    }
}

/// What closes a session: its name, the bytes and the code.
fn violations() -> Result<Vec<(String, Vec<u8>, u16)>, String> {
    let mut all = Vec::new();
    for vector in of_group(Group::Closed)? {
        let (opcode, len) = match vector.said()? {
            Said::Binary(len) => (Opcode::Binary, len),
            Said::Declared(len) => (Opcode::Text, len),
            Said::Text(_) => return Err(format!("{} is whole", vector.id)),
        };
        let (header, header_len) = client_header(true, opcode, len as u64, [1, 2, 3, 4]);
        let code = vector.close.unwrap_or_default();
        all.push((vector.id.clone(), header[..header_len].to_vec(), code));
    }
    let text = b"{}".as_slice();
    let frame = |frame: RawFrame<'_>| frame.to_vec();
    let cut = RawFrame {
        fin: false,
        ..RawFrame::new(Opcode::Text, b"{")
    };
    let broken: [(&str, Vec<u8>, u16); 7] = [
        (
            "a frame without a mask",
            frame(RawFrame {
                mask: None,
                ..RawFrame::new(Opcode::Text, text)
            }),
            1002,
        ),
        (
            "a reserved bit",
            frame(RawFrame {
                reserved_bits: 4,
                ..RawFrame::new(Opcode::Text, text)
            }),
            1002,
        ),
        (
            "an unknown opcode",
            frame(RawFrame {
                opcode_bits: 3,
                ..RawFrame::new(Opcode::Text, text)
            }),
            1002,
        ),
        (
            "a ping of 126 bytes",
            frame(RawFrame::new(Opcode::Ping, &[0; 126])),
            1002,
        ),
        (
            "a continuation of nothing",
            frame(RawFrame::new(Opcode::Continuation, text)),
            1002,
        ),
        (
            "a message inside another",
            [frame(cut), frame(RawFrame::new(Opcode::Text, text))].concat(),
            1002,
        ),
        (
            "a text that is not UTF-8",
            frame(RawFrame::new(Opcode::Text, b"{\"type\":\"\xC0\xAF\"}")),
            1007,
        ),
    ];
    all.extend(broken.map(|(name, bytes, code)| (name.to_owned(), bytes, code)));
    Ok(all)
}

fn close_codes(site: &Site<'_>) -> Verdict {
    let violations = violations()?;
    let mut bystander = site.session_without_audio()?;
    for (name, bytes, code) in &violations {
        let told = |seen| format!("{name}: {seen} instead of close {code}");
        let mut session = site.session_without_audio()?;
        session.send_what_may_be_refused(bytes);
        session.expect_close(&[*code], SOCKET_LIMIT).map_err(told)?;
    }
    bystander.tell(&json!({"type": "clear"}))?;
    let alive = bystander.expect_error("not_ready", PATIENCE);
    alive.map_err(|seen| format!("another session: {seen}"))?;
    Ok(format!("{} closes with their codes", violations.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_golden_message_is_tried_by_a_case() {
        let count = |group| of_group(group).expect("golden messages").len();
        let groups = [
            Group::NotJson,
            Group::Type,
            Group::Field,
            Group::TooEarly,
            Group::Closed,
            Group::Config,
        ];
        for group in groups {
            assert!(count(group) >= 2, "{group:?}: {}", count(group));
        }
        let configs = [false, true].map(|bad| {
            super::super::config::first_configs(bad)
                .expect("golden")
                .len()
        });
        let without_audio = vectors::all().expect("golden messages").into_iter();
        let without_audio = without_audio
            .filter(|vector| vector.when == When::WithoutAudio)
            .count();
        assert_eq!(
            configs.iter().sum::<usize>() + without_audio,
            count(Group::Config)
        );
        let all = vectors::all().expect("golden messages").len();
        assert_eq!(groups.map(count).iter().sum::<usize>(), all);
    }
}
