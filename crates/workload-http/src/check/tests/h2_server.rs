//! One connection of HTTP/2 of a server of these tests.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Defect;
use super::answers::answer;
use super::request::Request;
use super::server::Shared;
use crate::check::answer::{Asked, first};
use crate::check::h2_line::in_window;
use crate::h2::frame::{
    DEFAULT_WINDOW, FRAME_HEADER_BYTES, FRAME_MAX_BYTES, PREFACE, append_goaway, append_header,
    append_headers, append_ping, append_settings, append_settings_ack, append_window_update, flag,
    kind, setting,
};
use crate::h2::hpack::{Decoder, Encoder, FieldList, Indexing};
use crate::h2::{ErrorCode, settings};

/// Where the defect is that a window must be worth it: so much.
const WORTH_BYTES: i64 = 16;

/// For how long a client must be silent until a connection that is over is given up.
const LINGER: Duration = Duration::from_millis(300);

/// A request that comes in, or an answer that goes out.
#[derive(Default)]
struct Stream {
    request: Option<Request>,
    answer: Vec<u8>,
    window: i64,
    answered: bool,
}

struct Connection<'a> {
    stream: TcpStream,
    kept: Vec<u8>,
    out: Vec<u8>,
    encoder: Encoder,
    decoder: Decoder,
    block: Vec<u8>,
    block_flags: u8,
    streams: BTreeMap<u32, Stream>,
    last: u32,
    initial: i64,
    window: i64,
    said_goaway: bool,
    shared: &'a Shared,
}

/// Why it ends at once.
struct Broken(ErrorCode);

pub(super) fn serve(stream: TcpStream, kept: Vec<u8>, shared: &Shared) -> std::io::Result<()> {
    let mut connection = Connection {
        stream,
        kept,
        out: Vec::new(),
        encoder: Encoder::new(),
        decoder: Decoder::new(),
        block: Vec::new(),
        block_flags: 0,
        streams: BTreeMap::new(),
        last: 0,
        initial: DEFAULT_WINDOW.into(),
        window: DEFAULT_WINDOW.into(),
        said_goaway: false,
        shared,
    };
    let streams = if shared.rules.defect == Defect::H2TenStreams {
        10
    } else {
        200
    };
    append_settings(
        &mut connection.out,
        &[(setting::MAX_CONCURRENT_STREAMS, streams)],
    );
    connection.run()
}

impl Connection<'_> {
    fn run(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        let mut preface = PREFACE.len();
        loop {
            let taken = preface.min(self.kept.len());
            self.kept.drain(..taken);
            preface -= taken;
            while let Some(taken) = self.frame() {
                if let Err(Broken(code)) = taken {
                    append_goaway(&mut self.out, self.last, code);
                    return self.stream.write_all(&self.out);
                }
            }
            self.answer_all();
            self.say_goaway();
            self.stream.write_all(&self.out)?;
            self.out.clear();
            let (life, busy) = (&self.shared.life, !self.streams.is_empty());
            let said = self.said_goaway;
            let in_request = || busy && (said || !life.is_draining());
            match life.read(&mut self.stream, &mut buffer, in_request)? {
                // Before it closes, it says so.
                None if life.is_draining() && !said => {}
                None => return self.linger(),
                Some(0) => return Ok(()),
                Some(n) => self.kept.extend_from_slice(&buffer[..n]),
            }
        }
    }

    /// Closes its own side, and takes what the client still sends: closing both loses answers that are on their way.
    fn linger(&mut self) -> std::io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(LINGER))?;
        let mut buffer = [0; 4096];
        while matches!(self.stream.read(&mut buffer), Ok(1..)) {}
        Ok(())
    }

    fn say_goaway(&mut self) {
        if !self.shared.life.is_draining() || self.said_goaway {
            return;
        }
        self.said_goaway = true;
        if self.shared.rules.defect != Defect::H2NoGoaway {
            append_goaway(&mut self.out, self.last, ErrorCode::NO_ERROR);
        }
    }

    fn frame(&mut self) -> Option<Result<(), Broken>> {
        let header = *self.kept.first_chunk::<FRAME_HEADER_BYTES>()?;
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = header;
        let end = FRAME_HEADER_BYTES + u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let payload = self.kept.get(FRAME_HEADER_BYTES..end)?.to_vec();
        self.kept.drain(..end);
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        Some(self.take(kind, flags, stream, &payload))
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<(), Broken> {
        let defect = self.shared.rules.defect;
        match kind {
            kind::HEADERS => {
                self.block = payload.to_vec();
                self.block_flags = flags;
                self.end_block(flags, stream)
            }
            kind::CONTINUATION if defect == Defect::H2NoContinuation => {
                Err(Broken(ErrorCode::PROTOCOL_ERROR))
            }
            kind::CONTINUATION => {
                self.block.extend_from_slice(payload);
                self.end_block(flags, stream)
            }
            kind::DATA => {
                self.data(flags, stream, payload);
                Ok(())
            }
            kind::SETTINGS if flags & flag::ACK == 0 => {
                self.settings(payload);
                Ok(())
            }
            kind::PING if flags & flag::ACK == 0 => {
                let payload = payload.try_into().unwrap_or_default();
                let payload = if defect == Defect::H2PongOfZeros {
                    [0; 8]
                } else {
                    payload
                };
                append_ping(&mut self.out, payload, true);
                Ok(())
            }
            kind::RST_STREAM if defect == Defect::H2ResetEndsAll => Err(Broken(ErrorCode::CANCEL)),
            kind::RST_STREAM => {
                self.streams.remove(&stream);
                Ok(())
            }
            kind::WINDOW_UPDATE => {
                let more = i64::from(
                    payload
                        .first_chunk()
                        .map_or(0, |four| u32::from_be_bytes(*four)),
                );
                if stream == 0 {
                    self.window += more;
                } else if let Some(own) = self.streams.get_mut(&stream) {
                    own.window += more;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn settings(&mut self, payload: &[u8]) {
        for (id, value) in settings(payload) {
            match id {
                setting::HEADER_TABLE_SIZE if self.shared.rules.defect != Defect::H2KeepsTable => {
                    self.encoder.set_peer_limit(value);
                }
                setting::INITIAL_WINDOW_SIZE => self.initial = value.into(),
                _ => {}
            }
        }
        append_settings_ack(&mut self.out);
    }

    fn end_block(&mut self, flags: u8, stream: u32) -> Result<(), Broken> {
        if flags & flag::END_HEADERS == 0 {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let resizes = block.first().is_some_and(|first| first & 0xE0 == 0x20);
        if resizes && self.shared.rules.defect == Defect::H2KnowsNoResize {
            return Err(Broken(ErrorCode::COMPRESSION_ERROR));
        }
        let mut list = FieldList::new();
        let decoded = self.decoder.decode(&block, &mut list);
        decoded.map_err(|_| Broken(ErrorCode::COMPRESSION_ERROR))?;
        let text = |name: &str| {
            let value = list.get(name).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        };
        self.last = stream;
        let fresh = Stream {
            request: Some(Request {
                method: text(":method"),
                path: text(":path"),
                body: Vec::new(),
                head_len: 0,
                close: false,
                expects: false,
            }),
            window: self.initial,
            ..Stream::default()
        };
        self.streams.insert(stream, fresh);
        if self.block_flags & flag::END_STREAM != 0 {
            self.begin_answer(stream);
        }
        Ok(())
    }

    fn data(&mut self, flags: u8, stream: u32, payload: &[u8]) {
        let defect = self.shared.rules.defect;
        let mut bytes = payload;
        if flags & flag::PADDED != 0 && defect != Defect::H2PaddingIsData {
            let padding = usize::from(bytes[0]);
            bytes = &bytes[1..bytes.len() - padding];
        }
        if defect != Defect::H2OpensNoWindow && !payload.is_empty() {
            append_window_update(&mut self.out, 0, payload.len() as u32);
            append_window_update(&mut self.out, stream, payload.len() as u32);
        }
        let Some(own) = self.streams.get_mut(&stream) else {
            return;
        };
        if let Some(request) = &mut own.request {
            request.body.extend_from_slice(bytes);
        }
        if flags & flag::END_STREAM != 0 {
            self.begin_answer(stream);
        }
    }

    /// Sends the head of an answer, and keeps its body for when the windows allow it.
    fn begin_answer(&mut self, stream: u32) {
        let defect = self.shared.rules.defect;
        let Some(own) = self.streams.get_mut(&stream) else {
            return;
        };
        let Some(request) = own.request.take() else {
            return;
        };
        self.shared
            .counters
            .requests
            .fetch_add(1, Ordering::Relaxed);
        let asked = if request.method == "HEAD" {
            Asked::Head
        } else {
            Asked::Other
        };
        let bytes = answer(&request, self.shared);
        let Ok(Some((answer, _))) = first(&bytes, asked, true) else {
            return;
        };
        own.answer = answer.body;
        if asked == Asked::Head && defect == Defect::H2BodyToHead {
            own.answer = b"ok".to_vec();
        }
        own.answered = true;
        let ends = own.answer.is_empty();
        let encoder = &mut self.encoder;
        append_headers(&mut self.out, stream, ends, |block| {
            encoder.begin(block);
            let status = answer.status.to_string();
            encoder.field(b":status", status.as_bytes(), Indexing::Incremental, block);
            for (name, value) in &answer.fields {
                let name = name.to_ascii_lowercase();
                encoder.field(
                    name.as_bytes(),
                    value.as_bytes(),
                    Indexing::Incremental,
                    block,
                );
            }
        });
        if ends {
            self.streams.remove(&stream);
        }
    }

    fn answer_all(&mut self) {
        let defect = self.shared.rules.defect;
        let Self {
            streams,
            out,
            window,
            ..
        } = self;
        streams.retain(|id, own| {
            while own.answered && !own.answer.is_empty() {
                let room = if defect == Defect::H2IgnoresWindows {
                    i64::MAX
                } else {
                    own.window.min(*window)
                };
                let worth = if defect == Defect::H2WaitsForRoom {
                    WORTH_BYTES
                } else {
                    1
                };
                if room < worth.min(in_window(own.answer.len())) {
                    return true;
                }
                let room = usize::try_from(room).unwrap_or(usize::MAX);
                let len = own.answer.len().min(room).min(FRAME_MAX_BYTES);
                let flags = if len == own.answer.len() {
                    flag::END_STREAM
                } else {
                    0
                };
                append_header(out, len, kind::DATA, flags, *id);
                out.extend(own.answer.drain(..len));
                own.window -= in_window(len);
                *window -= in_window(len);
            }
            !own.answered
        });
    }
}
