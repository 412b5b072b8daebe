//! The server's side of HTTP/2 (RFC 9113) without I/O: bytes that came go in, bytes to be written come out.
//!
//! Prior knowledge, no TLS, no push, no priorities. A request is answered when its last byte has been read, so a stream
//! is only remembered while its body comes, or while its answer waits for a window.

pub mod frame;
pub mod hpack;
pub mod huffman;
mod receive;
mod request;
mod send;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::call::{Call, Summing};
use crate::date::Date;
use crate::output::Output;
use frame::{Code, Header, kind, setting};

/// Streams that a client may have open.
const STREAMS_MAX: usize = 128;

/// Credit of a stream, and of the connection; renewed when half of it is used. Nothing of a body is kept, so credit costs
/// no memory.
const STREAM_CREDIT_BYTES: u32 = 1024 * 1024;
const CONNECTION_CREDIT_BYTES: u32 = 16 * 1024 * 1024;

/// Windows and frame sizes before anybody has said anything.
const DEFAULT_WINDOW_BYTES: u32 = 65_535;
const DEFAULT_FRAME_BYTES: usize = 16_384;

/// A window that grows beyond this is an error.
const WINDOW_BYTES_MAX: i64 = 0x7FFF_FFFF;

/// The connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// What the client is told.
    pub code: Code,
    /// For people.
    pub cause: &'static str,
}

/// What the connection works with; the worker's.
#[derive(Debug)]
pub struct Context<'a> {
    /// Where answers go.
    pub output: &'a mut Output,
    /// What `/bytes/N` is the beginning of.
    pub pattern: &'a [u8],
    /// The date.
    pub date: &'a Date,
    /// Kept for its memory.
    pub scratch: &'a mut Vec<u8>,
    /// Longest body that is taken.
    pub body_bytes_max: usize,
    /// What is counted.
    pub server: &'a crate::server::Server,
    /// The worker's own counters.
    pub counters: &'a crate::server::Counters,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    hpack: hpack::Decoder,
    /// Streams whose body comes.
    receiving: Vec<Receiving>,
    /// Streams whose answer waits for a window or for room, in turns.
    sending: VecDeque<Sending>,
    /// The last stream that the client has opened.
    last: u32,
    peer: Peer,
    /// What may still be sent on all streams together.
    send_window: i64,
    /// What of the connection's credit has been used since it was last renewed.
    used_credit: u32,
    /// A header block that goes on in CONTINUATION frames.
    block: Option<Block>,
    /// The client's table for header fields must be said to be empty.
    owes_table_size: bool,
    has_said_goodbye: bool,
}

/// What the client has said of itself.
#[derive(Debug)]
struct Peer {
    has_spoken: bool,
    initial_window: u32,
    frame_bytes_max: usize,
}

#[derive(Debug)]
struct Receiving {
    id: u32,
    summing: Summing,
    is_head: bool,
    expected_length: Option<usize>,
    used_credit: u32,
    /// What may be sent on it: the client may open the window before it has sent its body.
    send_window: i64,
}

#[derive(Debug)]
struct Sending {
    id: u32,
    window: i64,
    body: Rest,
}

/// What of a body is to be sent.
#[derive(Debug)]
enum Rest {
    Pattern { from: usize, left: usize },
    Own { bytes: Vec<u8>, from: usize },
}

impl Rest {
    fn left(&self) -> usize {
        match self {
            Self::Pattern { left, .. } => *left,
            Self::Own { bytes, from } => bytes.len() - from,
        }
    }
}

#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

impl Connection {
    /// A new connection, whose preface has been read; writes its first words.
    pub fn new(output: &mut Output) -> Self {
        output.make(|bytes| {
            let settings = [
                (setting::MAX_CONCURRENT_STREAMS, 128),
                (setting::INITIAL_WINDOW_SIZE, STREAM_CREDIT_BYTES),
                (setting::MAX_HEADER_LIST_SIZE, 16_384),
            ];
            frame::write_settings(bytes, &settings);
            let more = CONNECTION_CREDIT_BYTES - DEFAULT_WINDOW_BYTES;
            frame::write_number(bytes, kind::WINDOW_UPDATE, 0, more);
        });
        Self {
            hpack: hpack::Decoder::default(),
            receiving: Vec::new(),
            sending: VecDeque::new(),
            last: 0,
            peer: Peer {
                has_spoken: false,
                initial_window: DEFAULT_WINDOW_BYTES,
                frame_bytes_max: DEFAULT_FRAME_BYTES,
            },
            send_window: i64::from(DEFAULT_WINDOW_BYTES),
            used_credit: 0,
            block: None,
            owes_table_size: false,
            has_said_goodbye: false,
        }
    }

    /// Whether no stream is open.
    pub fn is_idle(&self) -> bool {
        self.receiving.is_empty() && self.sending.is_empty() && self.block.is_none()
    }

    /// Says, once, that no more streams are taken. Those that are open will be answered.
    pub fn say_goodbye(&mut self, code: Code, output: &mut Output) {
        if std::mem::replace(&mut self.has_said_goodbye, true) {
            return;
        }
        output.make(|bytes| {
            Header { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(bytes);
            bytes.extend_from_slice(&self.last.to_be_bytes());
            bytes.extend_from_slice(&(code as u32).to_be_bytes());
        });
    }

    fn open_streams(&self) -> usize {
        self.receiving.len() + self.sending.len()
    }
}

/// A length as windows count, for they may be negative.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn reset(output: &mut Output, id: u32, code: Code) {
    output.make(|bytes| frame::write_number(bytes, kind::RST_STREAM, id, code as u32));
}

/// A call whose body has been read, or that has none.
fn without_body(call: Call) -> Call {
    Summing::new(call, 0).finish()
}
