//! What a client says over a WebSocket: masked frames to messages (RFC 6455, section 5).
//!
//! A message that lies whole in what one `read` gave is handed on as a borrow of it, so a session that hears ordinary
//! audio keeps no buffer.

use plimsoll_protocol::websocket::{CONTROL_PAYLOAD_MAX_BYTES, Opcode, close, mask_in_place};

/// The longest message: more than any gateway may take from its caller.
const MESSAGE_MAX_BYTES: usize = 16 << 20;
/// A buffer that is larger is given back when its message was handed on.
const KEPT_BUFFER_BYTES: usize = 4 << 10;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A message of bytes.
    Binary(&'a [u8]),
    /// A message of text.
    Text(&'a str),
    /// To be answered with the same payload.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong,
    /// The end, with the payload that the answer repeats.
    Close(&'a [u8]),
}

/// The close code of a rule that the client broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation(pub u16);

const BROKEN: Violation = Violation(close::PROTOCOL_ERROR);
const NOT_UTF8: Violation = Violation(1007);
const TOO_BIG: Violation = Violation(close::MESSAGE_TOO_BIG);

/// The frames of one client.
#[derive(Debug, Default)]
pub struct Frames {
    /// The beginning of a frame that has not fully arrived.
    part: Vec<u8>,
    /// The kind and the fragments of a message that is not complete.
    fragments: Option<(Opcode, Vec<u8>)>,
}

/// What a header says.
#[derive(Debug, Clone, Copy)]
struct Header {
    fin: bool,
    opcode: Opcode,
    mask: [u8; 4],
    /// Where the payload begins and ends.
    begin: usize,
    end: usize,
}

impl Frames {
    /// Takes bytes and hands over each message that they complete.
    ///
    /// # Errors
    /// The first rule that was broken, or what `on_message` returned; nothing more may be taken then.
    pub fn take<E: From<Violation>>(
        &mut self,
        bytes: &mut [u8],
        mut on_message: impl FnMut(Message<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.part.is_empty() {
            let taken = self.each(bytes, &mut on_message)?;
            self.part.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut part = std::mem::take(&mut self.part);
        part.extend_from_slice(bytes);
        let taken = self.each(&mut part, &mut on_message)?;
        part.drain(..taken);
        if !part.is_empty() || part.capacity() <= KEPT_BUFFER_BYTES {
            self.part = part;
        }
        Ok(())
    }

    /// Hands over the message of each whole frame; returns how many bytes those took.
    fn each<E: From<Violation>>(
        &mut self,
        bytes: &mut [u8],
        on_message: &mut impl FnMut(Message<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut taken = 0;
        while let Some(header) = header(&bytes[taken..])? {
            let Some(payload) = bytes.get_mut(taken + header.begin..taken + header.end) else {
                break;
            };
            mask_in_place(payload, header.mask, 0);
            taken += header.end;
            self.frame(header, payload, on_message)?;
        }
        Ok(taken)
    }

    fn frame<E: From<Violation>>(
        &mut self,
        Header { fin, opcode, .. }: Header,
        payload: &[u8],
        on_message: &mut impl FnMut(Message<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match opcode {
            Opcode::Ping => return on_message(Message::Ping(payload)),
            Opcode::Pong => return on_message(Message::Pong),
            Opcode::Close => return on_message(Message::Close(payload)),
            Opcode::Continuation => {
                let Some((_, message)) = &mut self.fragments else {
                    return Err(BROKEN.into());
                };
                if message.len() + payload.len() > MESSAGE_MAX_BYTES {
                    return Err(TOO_BIG.into());
                }
                message.extend_from_slice(payload);
            }
            Opcode::Text | Opcode::Binary => {
                if self.fragments.is_some() {
                    return Err(BROKEN.into());
                }
                if fin {
                    return on_message(whole(opcode, payload)?);
                }
                self.fragments = Some((opcode, payload.to_vec()));
            }
        }
        match self.fragments.take_if(|_| fin) {
            Some((opcode, message)) => on_message(whole(opcode, &message)?),
            None => Ok(()),
        }
    }
}

fn whole(opcode: Opcode, payload: &[u8]) -> Result<Message<'_>, Violation> {
    match opcode {
        Opcode::Text => str::from_utf8(payload)
            .map(Message::Text)
            .map_err(|_| NOT_UTF8),
        _ => Ok(Message::Binary(payload)),
    }
}

/// Reads a header; `None` if it has not fully arrived. Its payload may still be missing.
fn header(bytes: &[u8]) -> Result<Option<Header>, Violation> {
    let &[first, second, ref rest @ ..] = bytes else {
        return Ok(None);
    };
    let opcode = Opcode::from_bits(first).ok_or(BROKEN)?;
    let (fin, reserved_bits, masked) = (first & 0x80 != 0, first & 0x70, second & 0x80 != 0);
    if reserved_bits != 0 || !masked {
        return Err(BROKEN);
    }
    let (length_bytes, length) = match second & 0x7F {
        126 => (
            2,
            rest.first_chunk()
                .map(|two| u16::from_be_bytes(*two).into()),
        ),
        127 => (
            8,
            rest.first_chunk().map(|eight| u64::from_be_bytes(*eight)),
        ),
        short => (0, Some(short.into())),
    };
    let Some(length) = length else {
        return Ok(None);
    };
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MESSAGE_MAX_BYTES)
        .ok_or(TOO_BIG)?;
    if opcode.is_control() && (!fin || length > CONTROL_PAYLOAD_MAX_BYTES) {
        return Err(BROKEN);
    }
    let Some(mask) = rest[length_bytes..].first_chunk() else {
        return Ok(None);
    };
    let begin = 2 + length_bytes + mask.len();
    Ok(Some(Header {
        fin,
        opcode,
        mask: *mask,
        begin,
        end: begin + length,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::websocket::{RawFrame, append_client_frame};
    use proptest::prelude::*;

    /// What is handed over of bytes in pieces of this size, and the code of a violation.
    fn taken(bytes: &[u8], piece: usize) -> (Vec<String>, Option<u16>) {
        let (mut frames, mut all) = (Frames::default(), Vec::new());
        for piece in bytes.to_vec().chunks_mut(piece) {
            let took = frames.take(piece, |message| {
                all.push(format!("{message:?}"));
                Ok::<(), Violation>(())
            });
            if let Err(Violation(code)) = took {
                return (all, Some(code));
            }
        }
        (all, None)
    }

    fn client(frames: &[(bool, Opcode, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (fin, opcode, payload) in frames {
            append_client_frame(&mut bytes, *fin, *opcode, payload, [1, 2, 3, 4]);
        }
        bytes
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let long = [7; 70_000];
        let bytes = client(&[
            (true, Opcode::Binary, &long[..200]),
            (false, Opcode::Text, "sch\u{f6}n".as_bytes().split_at(4).0),
            (true, Opcode::Ping, b"?"),
            (
                true,
                Opcode::Continuation,
                "sch\u{f6}n".as_bytes().split_at(4).1,
            ),
            (true, Opcode::Binary, &long),
            (true, Opcode::Pong, b""),
            (true, Opcode::Binary, b""),
            (true, Opcode::Close, &[3, 232]),
        ]);
        let (all, code) = taken(&bytes, 1 << 20);
        let expected = [
            format!("{:?}", Message::Binary(&long[..200])),
            "Ping([63])".to_owned(),
            "Text(\"sch\u{f6}n\")".to_owned(),
            format!("{:?}", Message::Binary(&long)),
            "Pong".to_owned(),
            "Binary([])".to_owned(),
            "Close([3, 232])".to_owned(),
        ];
        assert!(
            all == expected && code.is_none(),
            "{} messages, {code:?}",
            all.len()
        );
        for piece in [1, 2, 7, 1_000, 4_096] {
            assert!(
                taken(&bytes, piece) == (all.clone(), None),
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn each_broken_rule_has_its_code() {
        let audio = RawFrame::new(Opcode::Binary, b"xx");
        let ping = RawFrame::new(Opcode::Ping, b"xx");
        for (frame, code) in [
            (
                RawFrame {
                    mask: None,
                    ..audio
                },
                1002,
            ),
            (
                RawFrame {
                    reserved_bits: 4,
                    ..audio
                },
                1002,
            ),
            (
                RawFrame {
                    opcode_bits: 3,
                    ..audio
                },
                1002,
            ),
            (
                RawFrame {
                    opcode_bits: 0,
                    ..audio
                },
                1002,
            ),
            (RawFrame { fin: false, ..ping }, 1002),
            (
                RawFrame {
                    declared_len: Some(126),
                    ..ping
                },
                1002,
            ),
            (
                RawFrame {
                    declared_len: Some(MESSAGE_MAX_BYTES as u64 + 1),
                    ..audio
                },
                1009,
            ),
            (
                RawFrame {
                    declared_len: Some(u64::MAX),
                    ..audio
                },
                1009,
            ),
            (RawFrame::new(Opcode::Text, &[0xFF]), 1007),
        ] {
            assert_eq!(
                taken(&frame.to_vec(), 3),
                (Vec::new(), Some(code)),
                "{frame:?}"
            );
        }
        let interleaved = client(&[(false, Opcode::Text, b"a"), (true, Opcode::Text, b"b")]);
        assert_eq!(taken(&interleaved, 100), (Vec::new(), Some(1002)));
        let halves = vec![0; MESSAGE_MAX_BYTES / 2 + 1];
        let too_big = client(&[
            (false, Opcode::Binary, &halves),
            (true, Opcode::Continuation, &halves),
        ]);
        assert_eq!(taken(&too_big, 1 << 20), (Vec::new(), Some(1009)));
    }

    /// No buffer for what arrives whole, and none that stays after a long message.
    #[test]
    fn nothing_is_kept() {
        let mut frames = Frames::default();
        let mut ignore = |_: Message<'_>| Ok::<(), Violation>(());
        frames
            .take(
                &mut client(&[(true, Opcode::Binary, &[1; 3_200])]),
                &mut ignore,
            )
            .expect("legal");
        assert_eq!(frames.part.capacity(), 0);
        let mut long = client(&[(true, Opcode::Binary, &[1; 100_000])]);
        let (first, second) = long.split_at_mut(50_000);
        frames.take(first, &mut ignore).expect("legal");
        assert!(frames.part.capacity() >= 50_000);
        frames.take(second, &mut ignore).expect("legal");
        assert_eq!(frames.part.capacity(), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, piece in 1_usize..50) {
            let _ = taken(&bytes, piece);
        }
    }
}
