//! Agreement with an independent codec, both ways.
//!
//! Where the RFC leaves a choice the two may differ, and the comparison stops: after a close frame (we call later bytes a
//! violation, tungstenite ignores them), lengths that are not in their shortest form (section 5.2 forbids them to the
//! sender; tungstenite accepts them), and text that is wrong before its message is complete (section 8.1 lets an endpoint
//! fail at once or at the end).

use std::io::{Cursor, Read, Write};
use std::ops::ControlFlow;

use proptest::prelude::*;
use tungstenite::error::Error;
use tungstenite::protocol::{Message, Role, WebSocket, WebSocketConfig};

use super::decoder::{Decoder, Event, Violation};
use super::frame::{Opcode, RawFrame, append_client_frame};
use super::handshake::{Handshake, Outcome, accept_for, key_text, upgrade_request};

/// A socket that gives fixed bytes and keeps what is written.
struct Pipe {
    input: Cursor<Vec<u8>>,
    output: Vec<u8>,
}

impl Pipe {
    fn new(input: Vec<u8>) -> Self {
        Self {
            input: Cursor::new(input),
            output: Vec::new(),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.input.read(buf)
    }
}

impl Write for Pipe {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.output.write(buf)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn socket(role: Role, input: Vec<u8>) -> WebSocket<Pipe> {
    let config = WebSocketConfig::default().max_message_size(Some(1 << 20));
    WebSocket::from_raw_socket(Pipe::new(input), role, Some(config))
}

/// An event of either codec, in one form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Message(Opcode, Vec<u8>),
    Close(Option<u16>, String),
}

/// How a stream ended for a codec.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Closed,
    Exhausted,
    Rejected(String),
}

/// What tungstenite makes of a stream, in the role of a client.
fn theirs(bytes: &[u8]) -> (Vec<Seen>, End) {
    let mut socket = socket(Role::Client, bytes.to_vec());
    let mut seen = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => {
                seen.push(Seen::Message(Opcode::Text, text.as_bytes().to_vec()));
            }
            Ok(Message::Binary(bytes)) => seen.push(Seen::Message(Opcode::Binary, bytes.to_vec())),
            Ok(Message::Ping(bytes)) => seen.push(Seen::Message(Opcode::Ping, bytes.to_vec())),
            Ok(Message::Pong(bytes)) => seen.push(Seen::Message(Opcode::Pong, bytes.to_vec())),
            Ok(Message::Close(frame)) => {
                let (code, reason) = frame.map_or((None, String::new()), |frame| {
                    (Some(u16::from(frame.code)), frame.reason.to_string())
                });
                // This is how it reports a close code that may not be sent.
                if (code, reason.as_str()) == (Some(1002), "Protocol violation") {
                    return (seen, End::Rejected(reason));
                }
                seen.push(Seen::Close(code, reason));
                return (seen, End::Closed);
            }
            Ok(Message::Frame(_)) => unreachable!("never given by read"),
            Err(Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => return (seen, End::Exhausted),
            Err(error) => return (seen, End::Rejected(error.to_string())),
        }
    }
}

/// What our decoder makes of it.
fn ours(bytes: &[u8]) -> (Vec<Seen>, End, Option<Violation>) {
    let mut decoder = Decoder::new(1 << 20);
    let mut seen = Vec::new();
    let result = decoder.decode(bytes, |event| {
        let (opcode, payload) = match event {
            Event::Text(text) => (Opcode::Text, text.as_bytes()),
            Event::Binary(bytes) => (Opcode::Binary, bytes),
            Event::Ping(bytes) => (Opcode::Ping, bytes),
            Event::Pong(bytes) => (Opcode::Pong, bytes),
            Event::Close(close) => {
                seen.push(Seen::Close(close.code, close.reason.to_owned()));
                return ControlFlow::Break(());
            }
        };
        seen.push(Seen::Message(opcode, payload.to_vec()));
        ControlFlow::Continue(())
    });
    match result {
        Ok(_) if decoder.is_closed() => (seen, End::Closed, None),
        Ok(_) => (seen, End::Exhausted, None),
        Err(violation) => (seen, End::Rejected(String::new()), Some(violation)),
    }
}

/// How many bytes the last frame lacks, by its declared length alone; a torn header lacks at least one.
fn bytes_lacking(bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    loop {
        let Some(second) = rest.get(1) else {
            return u64::from(!rest.is_empty());
        };
        let extended = match second & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        let Some(field) = rest.get(2..2 + extended) else {
            return 1;
        };
        let len = field
            .iter()
            .fold(0, |len, byte| len << 8 | u64::from(*byte));
        let len = if extended == 0 {
            u64::from(second & 0x7F)
        } else {
            len
        };
        let frame_len = (2 + extended + mask) as u64 + len.min(1 << 62);
        if frame_len > rest.len() as u64 {
            return frame_len - rest.len() as u64;
        }
        rest = &rest[usize::try_from(frame_len).expect("shorter than the rest")..];
    }
}

/// Whether the RFC lets the two codecs differ on such a stream.
fn rfc_leaves_a_choice(violation: Option<Violation>) -> bool {
    matches!(
        violation,
        Some(
            Violation::LengthNotMinimal(_)
                | Violation::TextNotUtf8
                // A control frame with a long form for a short length is both too long and not minimal.
                | Violation::OversizeControl
        )
    )
}

fn assert_agreement(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (our_events, our_end, violation) = ours(bytes);
    let (their_events, their_end) = theirs(bytes);
    if our_events.last() == Some(&Seen::Close(Some(1014), String::new())) {
        // In the IANA registry since 2012, unknown to tungstenite.
        prop_assert!(matches!(their_end, End::Rejected(_)), "{:?}", their_end);
        return Ok(());
    }
    if rfc_leaves_a_choice(violation) {
        prop_assert!(their_events.starts_with(&our_events));
        return Ok(());
    }
    prop_assert_eq!(&our_events, &their_events, "{:?}", violation);
    let lacking = bytes_lacking(bytes);
    if violation.is_some() && their_end == End::Exhausted && lacking > 0 {
        // We fail at the first wrong byte, it at the end of the frame: let it see the end, if that is not too far.
        let mut padded = bytes.to_vec();
        while (1..1 << 20).contains(&bytes_lacking(&padded)) {
            padded.resize(padded.len() + bytes_lacking(&padded) as usize, 0);
        }
        if bytes_lacking(&padded) == 0 {
            let (_, end) = theirs(&padded);
            prop_assert!(matches!(end, End::Rejected(_)), "{:?}", violation);
        }
        return Ok(());
    }
    let rejected = |end: &End| matches!(end, End::Rejected(_));
    prop_assert_eq!(
        rejected(&our_end),
        rejected(&their_end),
        "ours {:?} {:?}, theirs {:?}",
        our_end,
        violation,
        their_end
    );
    Ok(())
}

/// Payloads of every length form, cheap to make.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![0..700_usize, 65_000..70_000_usize];
    (len, any::<u8>())
        .prop_map(|(len, step)| (0..len).map(|i| (i as u8).wrapping_mul(step)).collect())
}

fn message() -> impl Strategy<Value = Message> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    prop_oneof![
        "\\PC{0,80}".prop_map(Message::text),
        payload().prop_map(Message::binary),
        bytes(126).prop_map(|b| Message::Ping(b.into())),
        bytes(126).prop_map(|b| Message::Pong(b.into())),
    ]
}

proptest! {
    #[test]
    fn we_read_what_it_writes(messages in prop::collection::vec(message(), 0..8)) {
        let mut server = socket(Role::Server, Vec::new());
        for message in &messages {
            server.send(message.clone()).expect("a pipe takes everything");
        }
        let expected: Vec<Seen> = messages
            .into_iter()
            .map(|message| {
                let opcode = match &message {
                    Message::Text(_) => Opcode::Text,
                    Message::Binary(_) => Opcode::Binary,
                    Message::Ping(_) => Opcode::Ping,
                    _ => Opcode::Pong,
                };
                Seen::Message(opcode, message.into_data().to_vec())
            })
            .collect();
        let (seen, end, _) = ours(&server.get_ref().output);
        prop_assert_eq!((seen, end), (expected, End::Exhausted));
    }

    #[test]
    fn it_reads_what_we_write(
        messages in prop::collection::vec((payload(), any::<[u8; 4]>()), 0..5),
    ) {
        let mut bytes = Vec::new();
        for (payload, mask) in &messages {
            let (head, tail) = payload.split_at(payload.len() / 2);
            append_client_frame(&mut bytes, false, Opcode::Binary, head, *mask);
            append_client_frame(&mut bytes, true, Opcode::Continuation, tail, *mask);
        }
        let mut server = socket(Role::Server, bytes);
        for (payload, _) in messages {
            prop_assert_eq!(server.read().expect("legal"), Message::binary(payload));
        }
        prop_assert!(server.read().is_err(), "nothing is left");
    }

    #[test]
    fn both_agree_on_streams_with_broken_rules(bytes in super::decoder::tests::stream()) {
        assert_agreement(&bytes)?;
    }

    #[test]
    fn both_agree_on_mutated_streams(
        bytes in super::decoder::tests::stream(),
        place in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let mut bytes = bytes;
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
        }
        assert_agreement(&bytes)?;
    }
}

#[test]
fn both_agree_on_each_close_code() {
    for code in 0..=u16::MAX {
        let frame = RawFrame::server(Opcode::Close, &code.to_be_bytes()).to_vec();
        assert!(assert_agreement(&frame).is_ok(), "close code {code}");
    }
}

#[test]
fn both_reject_an_oversize_control() {
    let frame = RawFrame::server(Opcode::Ping, &[0; 126]).to_vec();
    assert_eq!(ours(&frame).2, Some(Violation::OversizeControl));
    assert!(matches!(theirs(&frame).1, End::Rejected(_)));
}

#[test]
fn it_accepts_our_handshake_and_we_accept_its() {
    let key = [9; 16];
    let request = upgrade_request("127.0.0.1:3000", "/ws/stt", key, &[("X-Trace", "1")]);
    let pipe = Pipe::new(request.expect("legal"));
    let server = tungstenite::accept(pipe).expect("our request is accepted");
    let answer = &server.get_ref().output;
    assert!(String::from_utf8_lossy(answer).contains(&accept_for(&key_text(key))));
    assert_eq!(
        Handshake::new(key).feed(answer),
        Ok(Some(Outcome::Upgraded {
            leftover_offset: answer.len()
        }))
    );
}
