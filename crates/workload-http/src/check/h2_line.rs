//! A connection of HTTP/2, as cases use it: it reads strictly (`incoming`), and sends what it is asked to, frame by frame.

mod incoming;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::connect;

use super::Site;
use super::answer::{Answer, Framing};
use super::exchange::Exchange;
use super::talk::PATIENCE;
use crate::h2::frame::{
    DEFAULT_WINDOW, FRAME_MAX_BYTES, PREFACE, append_header, append_ping, append_settings,
    append_window_update, flag, kind, setting,
};
use crate::h2::hpack::{Decoder, Encoder, FieldList, Indexing};

/// The variable of the port where a target speaks it, if not on the main one.
pub(super) const PORT: &str = "H2_PORT";

/// What a server sent on one stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) status: Option<u16>,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Nothing more comes.
    pub(super) ended: bool,
    /// The code of the RST_STREAM that ended it.
    pub(super) reset: Option<u32>,
    /// What the server may still send.
    window: i64,
    /// What we may still send.
    send_window: i64,
}

/// A header block under way.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct H2Line {
    tcp: TcpStream,
    kept: Vec<u8>,
    pub(super) over: bool,
    pub(super) encoder: Encoder,
    decoder: Decoder,
    block: Option<Block>,
    next_stream: u32,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// What the server's SETTINGS say, by id.
    pub(super) allowed: BTreeMap<u16, u32>,
    /// SETTINGS frames that came, and answers to ours.
    settings_seen: u32,
    settings_acks: u32,
    /// The payloads of answers to PING.
    pub(super) pongs: Vec<[u8; 8]>,
    /// The last stream and the code of the last GOAWAY.
    pub(super) goaway: Option<(u32, u32)>,
    /// The window of a new stream, as our settings say.
    initial: i64,
    window: i64,
    send_window: i64,
    /// Open windows again as soon as something is received.
    pub(super) opens_windows: bool,
    /// Our table for the server's fields has no room, since it answered the settings that say so.
    pub(super) no_table: bool,
}

impl H2Line {
    /// A connection with the usual settings, on which both sides have answered the other's.
    pub(super) fn open(site: &Site<'_>) -> Result<Self, String> {
        Self::open_with(site, &[])
    }

    /// The same with these settings.
    pub(super) fn open_with(site: &Site<'_>, ours: &[(u16, u32)]) -> Result<Self, String> {
        let initial = ours
            .iter()
            .find(|(id, _)| *id == setting::INITIAL_WINDOW_SIZE);
        let mut line = Self {
            tcp: connect(site.at(PORT), None)?,
            kept: Vec::new(),
            over: false,
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            block: None,
            next_stream: 1,
            streams: BTreeMap::new(),
            allowed: BTreeMap::new(),
            settings_seen: 0,
            settings_acks: 0,
            pongs: Vec::new(),
            goaway: None,
            initial: initial.map_or(DEFAULT_WINDOW, |(_, value)| *value).into(),
            window: DEFAULT_WINDOW.into(),
            send_window: DEFAULT_WINDOW.into(),
            opens_windows: true,
            no_table: false,
        };
        let mut hello = PREFACE.to_vec();
        append_settings(&mut hello, ours);
        line.send(&hello)?;
        line.until("its SETTINGS, and the answer to ours", |line| {
            line.settings_seen > 0 && line.settings_acks > 0
        })?;
        Ok(line)
    }

    /// Sends bytes as they are.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.tcp.write_all(bytes);
        sent.map_err(|error| format!("the target stopped reading: {error}"))
    }

    /// Sends settings, and waits until the server has answered them.
    pub(super) fn set(&mut self, ours: &[(u16, u32)]) -> Result<(), String> {
        let acks = self.settings_acks;
        let mut bytes = Vec::new();
        append_settings(&mut bytes, ours);
        self.send(&bytes)?;
        self.until("the answer to SETTINGS", |line| line.settings_acks > acks)
    }

    /// A new stream, and the block of this request's fields, which is to be sent on it.
    pub(super) fn begin(&mut self, exchange: &Exchange) -> (u32, Vec<u8>) {
        let stream = self.next_stream;
        self.next_stream += 2;
        let send_window = self.allowed.get(&setting::INITIAL_WINDOW_SIZE);
        let fresh = Stream {
            window: self.initial,
            send_window: send_window.map_or(DEFAULT_WINDOW, |value| *value).into(),
            ..Stream::default()
        };
        self.streams.insert(stream, fresh);
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields(exchange) {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder
                .field(name, value, Indexing::Incremental, &mut block);
        }
        (stream, block)
    }

    /// Sends the head of a request on a new stream; its body, if it has one, is to follow.
    pub(super) fn head(&mut self, exchange: &Exchange) -> Result<u32, String> {
        let (stream, block) = self.begin(exchange);
        let ends = if body(exchange).is_empty() {
            flag::END_STREAM
        } else {
            0
        };
        let mut bytes = Vec::new();
        append_header(
            &mut bytes,
            block.len(),
            kind::HEADERS,
            flag::END_HEADERS | ends,
            stream,
        );
        bytes.extend_from_slice(&block);
        self.send(&bytes).map(|()| stream)
    }

    /// Sends a part of a request's body, in as few frames as the windows allow.
    pub(super) fn data(&mut self, stream: u32, bytes: &[u8], ends: bool) -> Result<(), String> {
        let mut rest = bytes;
        loop {
            let room = |line: &Self| {
                let own = line.streams.get(&stream).map_or(0, |it| it.send_window);
                usize::try_from(own.min(line.send_window)).unwrap_or(0)
            };
            if !rest.is_empty() {
                self.until("a window for the body", |line| room(line) > 0)?;
            }
            let len = rest.len().min(room(self)).min(FRAME_MAX_BYTES);
            let (part, tail) = rest.split_at(len);
            rest = tail;
            self.data_frame(stream, part, None, ends && rest.is_empty())?;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends one DATA frame, with so much padding behind it.
    pub(super) fn data_frame(
        &mut self,
        stream: u32,
        bytes: &[u8],
        padding: Option<u8>,
        ends: bool,
    ) -> Result<(), String> {
        let mut flags = if ends { flag::END_STREAM } else { 0 };
        let mut payload = Vec::new();
        if let Some(padding) = padding {
            flags |= flag::PADDED;
            payload.push(padding);
        }
        payload.extend_from_slice(bytes);
        payload.resize(payload.len() + usize::from(padding.unwrap_or(0)), 0);
        let flow = in_window(payload.len());
        self.send_window -= flow;
        if let Some(own) = self.streams.get_mut(&stream) {
            own.send_window -= flow;
        }
        let mut frame = Vec::new();
        append_header(&mut frame, payload.len(), kind::DATA, flags, stream);
        frame.extend_from_slice(&payload);
        self.send(&frame)
    }

    /// Opens a stream's window by so much.
    pub(super) fn open_window(&mut self, stream: u32, bytes: u32) -> Result<(), String> {
        if let Some(own) = self.streams.get_mut(&stream) {
            own.window += i64::from(bytes);
        }
        let mut frame = Vec::new();
        append_window_update(&mut frame, stream, bytes);
        self.send(&frame)
    }

    /// Opens the window of the connection by so much.
    pub(super) fn open_connection(&mut self, bytes: u32) -> Result<(), String> {
        self.window += i64::from(bytes);
        self.open_window(0, bytes)
    }

    pub(super) fn ping(&mut self, payload: [u8; 8]) -> Result<(), String> {
        let mut frame = Vec::new();
        append_ping(&mut frame, payload, false);
        self.send(&frame)
    }

    /// Sends a whole request.
    pub(super) fn request(&mut self, exchange: &Exchange) -> Result<u32, String> {
        let stream = self.head(exchange)?;
        let body = body(exchange);
        if !body.is_empty() {
            self.data(stream, body, true)?;
        }
        Ok(stream)
    }

    /// Asks, and passes when the answer is the wanted one.
    pub(super) fn ask(&mut self, exchange: &Exchange) -> Result<(), String> {
        let stream = self.request(exchange)?;
        self.expect(stream, exchange)
    }

    /// Passes when the wanted answer comes on this stream.
    pub(super) fn expect(&mut self, stream: u32, exchange: &Exchange) -> Result<(), String> {
        let ended = self.until("an answer", |line| {
            line.streams.get(&stream).is_none_or(|stream| stream.ended)
        });
        ended.map_err(|seen| exchange.told(&seen))?;
        let got = self.streams.remove(&stream).unwrap_or_default();
        match (got.reset, got.status) {
            (Some(code), _) => Err(exchange.told(&format!("RST_STREAM with code {code}"))),
            (None, None) => Err(exchange.told("no status")),
            (None, Some(status)) => exchange.accept(&Answer {
                // Exchanges are written, and judged, as those of HTTP/1.1.
                version: "HTTP/1.1".to_owned(),
                status,
                fields: got.fields,
                framing: Framing::Length,
                body: got.body,
            }),
        }
    }

    /// Passes when this holds within [`PATIENCE`]. What comes until then is taken in.
    pub(super) fn until(
        &mut self,
        what: &str,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<(), String> {
        if self.holds_within(PATIENCE, holds)? {
            return Ok(());
        }
        match (self.over, self.goaway) {
            (true, Some((_, code))) => Err(format!(
                "the connection ended with GOAWAY, code {code}, instead of {what}"
            )),
            (true, None) => Err(format!("the connection ended instead of {what}")),
            (false, _) => Err(format!("not within {} s: {what}", PATIENCE.as_secs())),
        }
    }

    /// Takes in what comes until this holds, the connection ends or `limit` is over; whether it holds.
    pub(super) fn holds_within(
        &mut self,
        limit: Duration,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, String> {
        let deadline = Instant::now() + limit;
        loop {
            while self.frame()? {}
            if holds(self) {
                return Ok(true);
            }
            if self.over || !self.receive(deadline)? {
                return Ok(false);
            }
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<bool, String> {
        let mut buffer = [0; 64 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let timeout = self.tcp.set_read_timeout(Some(left));
            match timeout.and_then(|()| self.tcp.read(&mut buffer)) {
                Ok(0) => self.over = true,
                Ok(n) => self.kept.extend_from_slice(&buffer[..n]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => continue,
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(false),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.over = true,
                    _ => return Err(format!("reading failed: {error}")),
                },
            }
            return Ok(true);
        }
    }

    /// From now on the server's table has no room: an index into it is an error.
    pub(super) fn empty_table(&mut self) -> Result<(), String> {
        self.no_table = true;
        let emptied = self.decoder.decode(&[0x20], &mut FieldList::new());
        emptied.map_err(|flaw| flaw.to_string())
    }
}

/// So much of a window.
pub(super) fn in_window(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The fields of this request in HTTP/2: those that frame an HTTP/1.1 message are left out.
fn fields(exchange: &Exchange) -> Vec<(String, String)> {
    let bytes = exchange.request();
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let head = String::from_utf8_lossy(&bytes[..head.unwrap_or(bytes.len())]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut list = vec![
        (":method".to_owned(), method.to_owned()),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), path.to_owned()),
    ];
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        match name.to_ascii_lowercase().as_str() {
            "host" => list.insert(3, (":authority".to_owned(), value.to_owned())),
            name => list.push((name.to_owned(), value.to_owned())),
        }
    }
    list
}

/// The body of this request.
pub(super) fn body(exchange: &Exchange) -> &[u8] {
    let bytes = exchange.request();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    &bytes[end.map_or(bytes.len(), |end| end + 4)..]
}
