//! The server's side of Fibril's protocol, for the sink of a calibration. It costs as little as possible: it confirms at
//! once what is published and keeps nothing of it. It trusts the client: it checks no rule that our own writers and readers
//! keep.

use super::frame::{Flaw, Frame, FrameReader, VERSION};
use super::wire::{
    Fields, Malformed, op, put_frame, put_header, put_length, put_optional_text, put_text,
};

/// The number of the subscription of each connection.
const SUBSCRIPTION: u64 = 1;

/// What a client writes is not what our writers and readers write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotOurs;

/// The server's side of one connection, without I/O.
#[derive(Debug, Default)]
pub(crate) struct Server {
    frames: FrameReader,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    /// Messages of this connection that were published.
    published: u64,
    reader: Option<Reader>,
}

/// The client reads.
#[derive(Debug)]
struct Reader {
    /// Topic, group and partition, as a delivery has them.
    name: Vec<u8>,
    /// How many more messages it takes before it settles some.
    room: u64,
    delivered: u64,
}

impl Server {
    /// Takes what the client wrote, in any pieces, and appends the answers.
    ///
    /// # Errors
    /// The client is not one of ours.
    pub(crate) fn received(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), NotOurs> {
        let mut rest = bytes;
        while let Some((used, frame)) = self.frames.next(rest)? {
            self.state.answer(&frame, out)?;
            rest = &rest[used..];
        }
        Ok(())
    }

    /// How many messages the client takes now; 0 if it does not read.
    pub(crate) fn room(&self) -> u64 {
        self.state.reader.as_ref().map_or(0, |reader| reader.room)
    }

    /// Appends a message for the client, which must have room for it.
    pub(crate) fn deliver(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        let Some(reader) = &mut self.state.reader else {
            return;
        };
        // Subscription, offset, tag and two times; content type and number of headers; the payload's length.
        let length = 4 + 8 + reader.name.len() + 4 * 8 + 1 + 4 + 4 + payload.len();
        put_header(out, op::DELIVER, 0, length);
        out.extend_from_slice(b"FDL1");
        out.extend_from_slice(&SUBSCRIPTION.to_be_bytes());
        out.extend_from_slice(&reader.name);
        for _offset_and_tag in 0..2 {
            out.extend_from_slice(&reader.delivered.to_be_bytes());
        }
        out.extend_from_slice(&[0; 2 * 8 + 1 + 4]);
        put_length(out, payload.len());
        out.extend_from_slice(payload);
        reader.delivered += 1;
        reader.room = reader.room.saturating_sub(1);
    }
}

impl State {
    #[inline]
    fn answer(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), NotOurs> {
        let request = frame.request;
        match frame.op {
            op::PUBLISH => {
                put_header(out, op::PUBLISH_OK, request, 4 + 8);
                out.extend_from_slice(b"FPO1");
                out.extend_from_slice(&self.published.to_be_bytes());
                self.published += 1;
            }
            op::ACK => {
                let settled = read_ack(frame.payload)?;
                let reader = self.reader.as_mut().ok_or(NotOurs)?;
                reader.room += u64::from(settled);
            }
            op::HELLO => put_frame(out, op::HELLO_OK, request, |out| {
                out.extend_from_slice(b"FHO1");
                out.extend_from_slice(&VERSION.to_be_bytes());
                // Ids of node, session and client; nothing was resumed.
                out.extend_from_slice(&[0; 24 + 8 + 16 + 1]);
                put_text(out, "sink");
                put_text(out, "");
            }),
            op::AUTH => put_header(out, op::AUTH_OK, request, 0),
            op::DECLARE_QUEUE => put_frame(out, op::DECLARE_QUEUE_OK, request, |out| {
                out.extend_from_slice(b"FDK1");
                put_text(out, "created");
                out.extend_from_slice(&1_u32.to_be_bytes());
            }),
            op::SUBSCRIBE => self.subscribe(request, frame.payload, out)?,
            _ => return Err(NotOurs),
        }
        Ok(())
    }

    fn subscribe(
        &mut self,
        request: u64,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), NotOurs> {
        let mut fields = Fields::new(payload);
        fields.magic(b"FSB1")?;
        let topic = fields.text()?;
        let partition = fields.u32()?;
        let group = fields.optional(Fields::text)?;
        let prefetch = fields.u32()?;
        put_frame(out, op::SUBSCRIBE_OK, request, |out| {
            out.extend_from_slice(b"FSO1");
            out.extend_from_slice(&SUBSCRIPTION.to_be_bytes());
            put_text(out, topic);
            out.extend_from_slice(&partition.to_be_bytes());
            put_optional_text(out, group);
            out.extend_from_slice(&prefetch.to_be_bytes());
            // No group of consumers, no target, no member.
            out.extend_from_slice(&[0; 3]);
        });
        let mut name = Vec::new();
        put_text(&mut name, topic);
        put_optional_text(&mut name, group);
        name.extend_from_slice(&partition.to_be_bytes());
        self.reader = Some(Reader {
            name,
            room: prefetch.into(),
            delivered: 0,
        });
        Ok(())
    }
}

/// Reads how many messages an ACK names.
fn read_ack(payload: &[u8]) -> Result<u32, Malformed> {
    let mut fields = Fields::new(payload);
    fields.magic(b"FAK1")?;
    fields.bytes()?;
    fields.optional(Fields::bytes)?;
    let _partition = fields.u32()?;
    fields.u32()
}

impl From<Flaw> for NotOurs {
    fn from(_: Flaw) -> Self {
        Self
    }
}

impl From<Malformed> for NotOurs {
    fn from(_: Malformed) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Login;
    use crate::dialect::{Dialect, Heard, Shape};
    use crate::fibril::{self, Settling, Setup, Tier};

    fn setup() -> Setup {
        Setup {
            topic: "a queue".to_owned(),
            group: None,
            partition: 0,
            partitions: 1,
            shape: Shape::Queue,
            tier: Tier::Durable,
            login: Login {
                user: "fibril".to_owned(),
                password: "fibril".to_owned(),
            },
        }
    }

    /// What a machine hears that must live longer than the bytes.
    #[derive(Debug, PartialEq)]
    enum Event {
        Ready,
        Confirmed(u64),
        Delivered(Vec<u8>, u64),
    }

    /// Carries bytes between both, in pieces, until neither has anything to say.
    fn talk(machine: &mut dyn Dialect, server: &mut Server, out: &mut Vec<u8>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut answers = Vec::new();
        while !out.is_empty() || !answers.is_empty() {
            for piece in std::mem::take(out).chunks(7) {
                server.received(piece, &mut answers).expect("ours");
            }
            for piece in std::mem::take(&mut answers).chunks(11) {
                hear(machine, piece, out, &mut events);
            }
        }
        events
    }

    fn hear(machine: &mut dyn Dialect, bytes: &[u8], out: &mut Vec<u8>, events: &mut Vec<Event>) {
        let mut heard = |heard: Heard<'_>| {
            events.push(match heard {
                Heard::Ready => Event::Ready,
                Heard::Confirmed { tag, up_to: false } => Event::Confirmed(tag),
                Heard::Delivered {
                    payload,
                    handle,
                    redelivered: false,
                } => Event::Delivered(payload.to_vec(), handle),
                other => panic!("{other:?}"),
            });
        };
        machine.received(bytes, out, &mut heard).expect("no fault");
    }

    #[test]
    fn what_is_published_is_confirmed_by_its_tag() {
        let mut writer = fibril::Writer::new(setup(), true).expect("good");
        let (mut server, mut out) = (Server::default(), Vec::new());
        writer.open(&mut out);
        assert_eq!(talk(&mut writer, &mut server, &mut out), [Event::Ready]);
        for tag in [0, 1, 500] {
            writer.publish(&mut out, &[7; 100], tag);
        }
        let confirmed = [0, 1, 500].map(Event::Confirmed);
        assert_eq!(talk(&mut writer, &mut server, &mut out), confirmed);
        assert_eq!(server.room(), 0);
        // A writer gets nothing.
        server.deliver(b"x", &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_reader_has_room_for_what_it_has_settled() {
        let mut reader = fibril::Reader::new(setup(), Settling::Each, 3).expect("good");
        let (mut server, mut out) = (Server::default(), Vec::new());
        assert_eq!(server.room(), 0);
        reader.open(&mut out);
        assert_eq!(talk(&mut reader, &mut server, &mut out), [Event::Ready]);
        assert_eq!(server.room(), 3);
        let mut delivered = Vec::new();
        for payload in [&b"one"[..], b"two", b"three"] {
            server.deliver(payload, &mut delivered);
        }
        assert_eq!(server.room(), 0);
        let mut events = Vec::new();
        for piece in delivered.chunks(5) {
            hear(&mut reader, piece, &mut out, &mut events);
        }
        let expected = [(&b"one"[..], 0), (b"two", 1), (b"three", 2)]
            .map(|(payload, handle)| Event::Delivered(payload.to_vec(), handle));
        assert_eq!(events, expected);
        reader.settle(&mut out, &[0, 2]);
        assert_eq!(talk(&mut reader, &mut server, &mut out), []);
        assert_eq!(server.room(), 2);
    }

    #[test]
    fn others_are_sent_away() {
        let mut out = Vec::new();
        let http = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        assert_eq!(Server::default().received(http, &mut out), Err(NotOurs));
        // A reader that settles before it has subscribed.
        let mut reader = fibril::Reader::new(setup(), Settling::Each, 3).expect("good");
        let mut ack = Vec::new();
        reader.settle(&mut ack, &[0]);
        assert_eq!(Server::default().received(&ack, &mut out), Err(NotOurs));
        assert!(out.is_empty());
    }
}
