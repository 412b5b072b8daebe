//! A connection of HTTP/2, as cases use it: it reads strictly, and sends what it is asked to, frame by frame.

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
    DEFAULT_WINDOW, FRAME_HEADER_BYTES, FRAME_MAX_BYTES, PREFACE, append_header, append_ping,
    append_settings, append_settings_ack, append_window_update, flag, kind, setting,
};
use crate::h2::hpack::{Decoder, Encoder, FieldList, Indexing};
use crate::h2::settings;

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

    /// Takes in the next frame; false if it is not whole.
    fn frame(&mut self) -> Result<bool, String> {
        let Some(header) = self.kept.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(false);
        };
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *header;
        let len = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & 0x7FFF_FFFF;
        if len > FRAME_MAX_BYTES {
            return Err(format!("a frame of {len} bytes"));
        }
        let end = FRAME_HEADER_BYTES + len;
        if self.kept.len() < end {
            return Ok(false);
        }
        let payload = self.kept[FRAME_HEADER_BYTES..end].to_vec();
        self.kept.drain(..end);
        self.take(kind, flags, stream, &payload)?;
        Ok(true)
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<(), String> {
        let number = |at: usize| {
            let four = payload.get(at..).and_then(|rest| rest.first_chunk::<4>());
            four.map(|four| u32::from_be_bytes(*four))
                .ok_or_else(|| format!("a frame of kind {kind} with {} bytes", payload.len()))
        };
        if self.settings_seen == 0 && kind != kind::SETTINGS {
            return Err(format!("a frame of kind {kind} before SETTINGS"));
        }
        if self.block.is_some() && kind != kind::CONTINUATION {
            return Err(format!("a frame of kind {kind} within a header block"));
        }
        match kind {
            kind::DATA => self.take_data(flags, stream, payload),
            kind::HEADERS => {
                let bytes = unpadded(flags, payload)?;
                let priority = if flags & flag::PRIORITY != 0 { 5 } else { 0 };
                let bytes = bytes
                    .get(priority..)
                    .ok_or("HEADERS without its priority")?;
                let ends = flags & flag::END_STREAM != 0;
                let bytes = bytes.to_vec();
                self.block = Some(Block {
                    stream,
                    ends,
                    bytes,
                });
                self.end_block(flags)
            }
            kind::CONTINUATION => {
                let block = self.block.as_mut().filter(|block| block.stream == stream);
                let block = block.ok_or("CONTINUATION of nothing")?;
                block.bytes.extend_from_slice(payload);
                self.end_block(flags)
            }
            kind::RST_STREAM => {
                let code = number(0)?;
                if let Some(own) = self.streams.get_mut(&stream) {
                    (own.ended, own.reset) = (true, Some(code));
                }
                Ok(())
            }
            kind::SETTINGS if flags & flag::ACK != 0 => {
                self.settings_acks += 1;
                Ok(())
            }
            kind::SETTINGS => self.take_settings(payload),
            kind::PUSH_PROMISE => Err("a PUSH_PROMISE".to_owned()),
            kind::PING => {
                let payload = payload
                    .try_into()
                    .map_err(|_| "a PING that has not 8 bytes")?;
                if flags & flag::ACK != 0 {
                    self.pongs.push(payload);
                    return Ok(());
                }
                let mut frame = Vec::new();
                append_ping(&mut frame, payload, true);
                self.send(&frame)
            }
            kind::GOAWAY => {
                self.goaway = Some((number(0)? & 0x7FFF_FFFF, number(4)?));
                Ok(())
            }
            kind::WINDOW_UPDATE => {
                let increment = i64::from(number(0)? & 0x7FFF_FFFF);
                if stream == 0 {
                    self.send_window += increment;
                } else if let Some(own) = self.streams.get_mut(&stream) {
                    own.send_window += increment;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_settings(&mut self, payload: &[u8]) -> Result<(), String> {
        self.settings_seen += 1;
        for (id, value) in settings(payload) {
            let before = self.allowed.insert(id, value);
            match id {
                setting::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
                setting::INITIAL_WINDOW_SIZE => {
                    let before = before.unwrap_or(DEFAULT_WINDOW);
                    let more = i64::from(value) - i64::from(before);
                    self.streams
                        .values_mut()
                        .for_each(|own| own.send_window += more);
                }
                _ => {}
            }
        }
        let mut frame = Vec::new();
        append_settings_ack(&mut frame);
        self.send(&frame)
    }

    fn take_data(&mut self, flags: u8, stream: u32, payload: &[u8]) -> Result<(), String> {
        let flow = in_window(payload.len());
        self.window -= flow;
        let bytes = unpadded(flags, payload)?;
        let Some(own) = self.streams.get_mut(&stream) else {
            // One that was given up: what was on its way counts for the connection alone.
            return self.reopen(0, flow);
        };
        own.window -= flow;
        if own.status.is_none() {
            return Err("DATA before HEADERS".to_owned());
        }
        if own.window < 0 || self.window < 0 {
            let over = -own.window.min(self.window);
            return Err(format!("{over} bytes more than the window allows"));
        }
        own.body.extend_from_slice(bytes);
        own.ended |= flags & flag::END_STREAM != 0;
        let ended = own.ended;
        if !self.opens_windows {
            return Ok(());
        }
        self.reopen(0, flow)?;
        if ended {
            Ok(())
        } else {
            self.reopen(stream, flow)
        }
    }

    fn reopen(&mut self, stream: u32, bytes: i64) -> Result<(), String> {
        match u32::try_from(bytes) {
            Ok(bytes) if bytes > 0 && stream == 0 => self.open_connection(bytes),
            Ok(bytes) if bytes > 0 => self.open_window(stream, bytes),
            _ => Ok(()),
        }
    }

    fn end_block(&mut self, flags: u8) -> Result<(), String> {
        if flags & flag::END_HEADERS == 0 {
            return Ok(());
        }
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        if self.no_table
            && let Some(first) = block.bytes.first()
            && (0x21..0x40).contains(first)
        {
            return Err("a table of more than the 0 bytes that the settings allow".to_owned());
        }
        let mut list = FieldList::new();
        let decoded = self.decoder.decode(&block.bytes, &mut list);
        decoded.map_err(|flaw| format!("the fields cannot be decoded: {flaw}"))?;
        let Some(own) = self.streams.get_mut(&block.stream) else {
            return Ok(());
        };
        own.ended |= block.ends;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match list.get(":status").map(text) {
            Some(status) if status.starts_with('1') => {}
            Some(status) => {
                own.status = Some(status.parse().map_err(|_| format!("status {status:?}"))?);
                own.fields = list
                    .iter()
                    .map(|(name, value)| (text(name), text(value)))
                    .collect();
            }
            // Trailers.
            None if own.status.is_some() => {}
            None => return Err("HEADERS without a status".to_owned()),
        }
        Ok(())
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

/// What a frame carries, without its padding.
fn unpadded(flags: u8, payload: &[u8]) -> Result<&[u8], String> {
    if flags & flag::PADDED == 0 {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or("a frame without its padding")?;
    let len = rest.len().checked_sub(usize::from(*padding));
    len.map(|len| &rest[..len])
        .ok_or_else(|| "more padding than frame".to_owned())
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
