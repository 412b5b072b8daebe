//! An HTTP/2 client (RFC 9113) without I/O, for one kind of request: bytes that came go in, answers and bytes to be
//! written come out.
//!
//! Prior knowledge, no TLS, no push, no priorities. Bodies are sent from where they lie ([`output`]); an answer that came
//! in one piece is read from where it lies.

pub mod frame;
pub mod hpack;
pub mod huffman;
pub mod output;
mod receive;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use frame::{Code, Header, flag, kind, setting};
use hpack::index;
use output::Output;

/// Longest answer that is taken; a good one has some 150 bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Credit that the server gets for one answer: more than may be used, so that it never needs more.
const STREAM_CREDIT_BYTES: u32 = 2 * ANSWER_BYTES_MAX as u32;

/// Credit that the server gets for all answers together; renewed when half of it is used.
const CONNECTION_CREDIT_BYTES: u32 = 16 * 1024 * 1024;

/// Windows and frame sizes before anybody has said anything.
const DEFAULT_WINDOW_BYTES: u32 = 65_535;
const DEFAULT_FRAME_BYTES: usize = 16_384;

/// A window that grows beyond this is an error.
const WINDOW_BYTES_MAX: i64 = 0x7FFF_FFFF;

/// Nothing more is made ready for writing while this much waits: what is not ready yet can still be given up.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// The last stream that a client can open.
const STREAM_MAX: u32 = 0x7FFF_FFFF;

/// What became of a request. `tag` is the caller's.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An answer: its status, and for a 200 its body.
    Answer {
        /// The request's.
        tag: u32,
        /// HTTP status.
        status: u16,
        /// Empty unless the status is 200.
        body: &'a [u8],
    },
    /// An answer of over [`ANSWER_BYTES_MAX`].
    TooLong {
        /// The request's.
        tag: u32,
    },
    /// The server gave the request up, or is gone.
    Reset {
        /// The request's.
        tag: u32,
    },
}

/// The connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// What the server was told.
    pub code: Code,
    /// For people.
    pub cause: &'static str,
}

/// What every request has in common.
#[derive(Debug, Clone)]
pub struct Target {
    /// The beginning of the header block; the length follows.
    block: Vec<u8>,
}

impl Target {
    /// `POST http://{authority}{path}`.
    pub fn new(authority: &str, path: &str, cpu_passes: u32) -> Self {
        let mut block = Vec::new();
        hpack::indexed(&mut block, index::METHOD_POST);
        hpack::indexed(&mut block, index::SCHEME_HTTP);
        hpack::literal(&mut block, index::PATH, path.as_bytes());
        hpack::literal(&mut block, index::AUTHORITY, authority.as_bytes());
        hpack::literal(&mut block, index::CONTENT_TYPE, b"application/octet-stream");
        hpack::literal_with_name(&mut block, b"x-cpu-passes", cpu_passes.to_string().as_bytes());
        Self { block }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection<B> {
    target: Target,
    output: Output<B>,
    /// The beginning of a frame whose end has not come.
    input: Vec<u8>,
    hpack: hpack::Decoder,
    streams: HashMap<u32, Stream<B>>,
    /// Requests that have not been opened, in the order of their numbers.
    waiting: VecDeque<u32>,
    /// Requests that are open and whose bodies are not wholly in `output`.
    sending: VecDeque<u32>,
    /// Streams that count against `peer.streams_max`.
    open: usize,
    /// The number of the next request.
    next_stream: u32,
    /// The first number that has not been used on the wire.
    unopened: u32,
    peer: Peer,
    /// What may still be sent on all streams together.
    send_window: i64,
    /// What the server may still send, and what of it has been used since it was last renewed.
    receive_window: i64,
    used_credit: u32,
    /// A header block that goes on in CONTINUATION frames.
    block: Option<Block>,
    /// The server has said that it takes no more.
    going_away: bool,
}

/// What the server has said of itself.
#[derive(Debug)]
struct Peer {
    has_spoken: bool,
    initial_window: u32,
    frame_bytes_max: usize,
    streams_max: usize,
}

#[derive(Debug)]
struct Stream<B> {
    tag: u32,
    is_open: bool,
    send_window: i64,
    /// What of the body has not been handed to `output`; of the first piece, from `body_from` on.
    body: VecDeque<B>,
    body_from: usize,
    body_left: usize,
    /// Whether the final status has come, which then was 200: others end the request at once.
    has_status: bool,
    answer: Vec<u8>,
}

#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// A new connection, whose first words wait to be written.
    pub fn new(target: Target) -> Self {
        let mut output = Output::default();
        output.make(|bytes| {
            bytes.extend_from_slice(frame::PREFACE);
            let settings = [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, STREAM_CREDIT_BYTES)];
            frame::write_settings(bytes, &settings);
            let more = CONNECTION_CREDIT_BYTES - DEFAULT_WINDOW_BYTES;
            frame::write_number(bytes, kind::WINDOW_UPDATE, 0, more);
        });
        Self {
            target,
            output,
            input: Vec::new(),
            hpack: hpack::Decoder::default(),
            streams: HashMap::new(),
            waiting: VecDeque::new(),
            sending: VecDeque::new(),
            open: 0,
            next_stream: 1,
            unopened: 1,
            peer: Peer {
                has_spoken: false,
                initial_window: DEFAULT_WINDOW_BYTES,
                frame_bytes_max: DEFAULT_FRAME_BYTES,
                streams_max: usize::MAX,
            },
            send_window: i64::from(DEFAULT_WINDOW_BYTES),
            receive_window: i64::from(CONNECTION_CREDIT_BYTES),
            used_credit: 0,
            block: None,
            going_away: false,
        }
    }

    /// Whether it takes requests: the server has not said goodbye, and there are numbers left.
    pub fn takes_requests(&self) -> bool {
        !self.going_away && self.next_stream <= STREAM_MAX
    }

    /// Whether no request is on it.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Puts a request in the queue. Returns its number, for [`Self::cancel`].
    pub fn request(&mut self, tag: u32, body: VecDeque<B>) -> u32 {
        debug_assert!(self.takes_requests());
        let id = self.next_stream;
        self.next_stream += 2;
        let stream = Stream {
            tag,
            is_open: false,
            send_window: i64::from(self.peer.initial_window),
            body_left: body.iter().map(|piece| piece.as_ref().len()).sum(),
            body,
            body_from: 0,
            has_status: false,
            answer: Vec::new(),
        };
        self.streams.insert(id, stream);
        self.waiting.push_back(id);
        id
    }

    /// Gives a request up; nothing more will be heard of it. Its audio goes to `done`, unless it is on its way already.
    pub fn cancel(&mut self, id: u32, done: impl FnMut(B)) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.is_open {
            self.output.make(|bytes| frame::write_number(bytes, kind::RST_STREAM, id, Code::Cancel as u32));
        }
        self.forget(id, done);
    }

    /// Ends a stream on this side. Queues skip numbers that are gone.
    fn forget(&mut self, id: u32, done: impl FnMut(B)) -> Option<Stream<B>> {
        let mut stream = self.streams.remove(&id)?;
        self.open -= usize::from(stream.is_open);
        std::mem::take(&mut stream.body).into_iter().for_each(done);
        Some(stream)
    }

    /// The connection is lost, and all its requests with it.
    pub fn fail(mut self, mut event: impl FnMut(Event<'_>), mut done: impl FnMut(B)) {
        for (_, stream) in self.streams.drain() {
            stream.body.into_iter().for_each(&mut done);
            event(Event::Reset { tag: stream.tag });
        }
        let waiting = self.output.len();
        self.output.advance(waiting, done);
    }

    /// Makes ready for writing what may be written now, and shows it. Written bytes go to [`Output::advance`].
    pub fn output(&mut self) -> &mut Output<B> {
        // Open streams first: only they can make room for others.
        for _ in 0..self.sending.len() {
            if self.is_held_up() {
                return &mut self.output;
            }
            if let Some(id) = self.sending.pop_front() {
                self.send_body(id);
            }
        }
        while self.open < self.peer.streams_max
            && !self.is_held_up()
            && let Some(id) = self.waiting.pop_front()
        {
            self.open_stream(id);
        }
        &mut self.output
    }

    fn is_held_up(&self) -> bool {
        self.send_window <= 0 || self.output.len() >= OUTPUT_BYTES_MAX
    }

    fn open_stream(&mut self, id: u32) {
        let Self { streams, output, target, .. } = self;
        let Some(stream) = streams.get_mut(&id) else { return };
        stream.is_open = true;
        self.open += 1;
        self.unopened = id + 2;
        let mut digits = [0; 20];
        let length = decimal(stream.body_left, &mut digits);
        let ends = if stream.body_left == 0 { flag::END_STREAM } else { 0 };
        output.make(|bytes| {
            let at = bytes.len();
            let flags = flag::END_HEADERS | ends;
            Header { length: 0, kind: kind::HEADERS, flags, stream: id }.write(bytes);
            bytes.extend_from_slice(&target.block);
            hpack::literal(bytes, index::CONTENT_LENGTH, length);
            // Known only now. A block of this kind is far below any frame size that a server may ask for.
            let [.., l1, l2] = (bytes.len() - at - frame::HEADER_BYTES).to_be_bytes();
            bytes[at + 1..at + 3].copy_from_slice(&[l1, l2]);
        });
        self.send_body(id);
    }

    /// Hands on as much of a body as the windows allow.
    fn send_body(&mut self, id: u32) {
        let Self { streams, output, peer, send_window, sending, .. } = self;
        let Some(stream) = streams.get_mut(&id) else { return };
        while stream.body_left > 0 {
            let window = (*send_window).min(stream.send_window);
            let window = usize::try_from(window).unwrap_or(0);
            let length = stream.body_left.min(window).min(peer.frame_bytes_max);
            if length == 0 || output.len() >= OUTPUT_BYTES_MAX {
                return sending.push_back(id);
            }
            stream.body_left -= length;
            stream.send_window -= signed(length);
            *send_window -= signed(length);
            let flags = if stream.body_left == 0 { flag::END_STREAM } else { 0 };
            output.make(|bytes| Header { length, kind: kind::DATA, flags, stream: id }.write(bytes));
            stream.hand_on(length, output);
        }
    }
}

impl<B: AsRef<[u8]>> Stream<B> {
    /// Moves the next `left` bytes of the body: whole pieces as they are, of one that is cut by a window a copy.
    fn hand_on(&mut self, mut left: usize, output: &mut Output<B>) {
        while left > 0
            && let Some(piece) = self.body.pop_front()
        {
            let from = self.body_from;
            let length = piece.as_ref().len() - from;
            if length <= left {
                output.piece(piece, from);
                self.body_from = 0;
                left -= length;
            } else {
                output.make(|bytes| bytes.extend_from_slice(&piece.as_ref()[from..from + left]));
                self.body_from = from + left;
                self.body.push_front(piece);
                left = 0;
            }
        }
    }
}

/// A length as windows count, for they may be negative.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The digits of a number.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}
