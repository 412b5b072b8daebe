//! The other side, as far as calibration's sink and tests need it: reads requests, writes answers made before.

use std::collections::HashMap;
use std::sync::Arc;

use super::frame::{
    DEFAULT_WINDOW, PREFACE, WINDOW_MAX, append_goaway, append_headers, append_ping, append_reset,
    append_settings, append_settings_ack, append_window_update, setting,
};
use super::head::{HeadDecoder, REQUEST_FIELDS};
use super::hpack::{CachedBlock, Encoder, FieldList, Part};
use super::reader::{Frame, FrameReader, check_setting, settings};
use super::template::field;
use super::violation::{ErrorCode, Violation};
use super::windows::{
    CONNECTION_WINDOW, Outgoing, ReceiveWindow, STREAM_WINDOW, SendWindows, enlarge,
};

/// How many streams a client may have open.
const MAX_STREAMS: u32 = 1000;

/// Bodies wait while so much of the output is not taken.
const OUTPUT_MAX_BYTES: usize = 1 << 20;

/// A kind of answer.
#[derive(Debug, Clone)]
pub struct Answer {
    parts: Vec<Part>,
    body: Arc<[u8]>,
}

impl Answer {
    /// An answer with Content-Length and these fields.
    #[must_use]
    pub fn new(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Self {
        let mut parts = vec![
            field(":status", &status.to_string()),
            field("content-length", &body.len().to_string()),
        ];
        parts.extend(fields.iter().map(|(name, value)| field(name, value)));
        Self {
            parts,
            body: body.into(),
        }
    }
}

/// What a client sent. Borrows live until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// The head of a request.
    Head {
        /// Its stream.
        stream: u32,
        /// `:method`.
        method: &'a [u8],
        /// `:path`.
        path: &'a [u8],
        /// All fields.
        fields: &'a FieldList,
    },
    /// Bytes of its body, never none.
    Body {
        /// Its stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The request is complete: it can be answered.
    End {
        /// Its stream.
        stream: u32,
    },
    /// The client gave it up.
    Reset {
        /// Its stream.
        stream: u32,
    },
}

/// One connection of a client.
#[derive(Debug)]
pub struct Server {
    /// How much of the preface has come.
    preface: usize,
    reader: FrameReader,
    core: Core,
}

#[derive(Debug)]
struct Core {
    answers: Arc<[Answer]>,
    blocks: Box<[CachedBlock]>,
    encoder: Encoder,
    heads: HeadDecoder,
    out: Vec<u8>,
    streams: HashMap<u32, Exchange>,
    /// Streams with a body to send, in the order of their answers.
    sending: Vec<u32>,
    last_stream: u32,
    send: SendWindows,
    receive: ReceiveWindow,
    saw_settings: bool,
    violation: Option<Violation>,
}

/// A request and its answer.
#[derive(Debug)]
struct Exchange {
    receive: ReceiveWindow,
    is_complete: bool,
    answer: Option<usize>,
    body: Outgoing,
}

impl Server {
    /// A new connection that will give answers of these kinds.
    #[must_use]
    pub fn new(answers: Arc<[Answer]>) -> Self {
        let mut out = Vec::new();
        append_settings(
            &mut out,
            &[
                (setting::MAX_CONCURRENT_STREAMS, MAX_STREAMS),
                (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            ],
        );
        append_window_update(&mut out, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
        let blocks = answers.iter().map(|_| CachedBlock::default()).collect();
        Self {
            preface: 0,
            reader: FrameReader::new(),
            core: Core {
                answers,
                blocks,
                encoder: Encoder::new(),
                heads: HeadDecoder::default(),
                out,
                streams: HashMap::new(),
                sending: Vec::new(),
                last_stream: 0,
                send: SendWindows::default(),
                receive: ReceiveWindow::new(CONNECTION_WINDOW),
                saw_settings: false,
                violation: None,
            },
        }
    }

    /// Whether there is something to write.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.core.out.is_empty()
    }

    /// Moves what is to be written into `into`, which is emptied before.
    pub fn take_output(&mut self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut self.core.out, into);
        self.core.send_bodies();
    }

    /// Answers a request with the answer `kind`; with its head alone if `is_head`. Nothing happens if the stream is gone.
    ///
    /// # Panics
    /// There is no such answer.
    pub fn answer(&mut self, stream: u32, kind: usize, is_head: bool) {
        let core = &mut self.core;
        let Some(exchange) = core.streams.get_mut(&stream) else {
            return;
        };
        let answer = &core.answers[kind];
        exchange.answer = Some(kind);
        exchange.body.left = if is_head { 0 } else { answer.body.len() };
        let (block, encoder) = (&mut core.blocks[kind], &mut core.encoder);
        append_headers(&mut core.out, stream, exchange.body.left == 0, |out| {
            block.append(&answer.parts, &[], encoder, out);
        });
        if exchange.body.left == 0 {
            core.streams.remove(&stream);
        } else {
            core.sending.push(stream);
            core.send_bodies();
        }
    }

    /// Ends a stream without an answer.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.core.streams.remove(&stream).is_some() {
            append_reset(&mut self.core.out, stream, code);
        }
    }

    /// Says that no later stream will be looked at.
    pub fn say_goaway(&mut self, last_stream: u32, code: ErrorCode) {
        append_goaway(&mut self.core.out, last_stream, code);
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete.
    ///
    /// # Errors
    /// The first rule that the client broke. A GOAWAY frame is in the output; every later call returns the same.
    pub fn received(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(RequestEvent<'_>),
    ) -> Result<(), Violation> {
        if let Some(violation) = self.core.violation {
            return Err(violation);
        }
        let result = self.read(bytes, &mut on_event);
        if let Err(violation) = result {
            self.core.violation = Some(violation);
            append_goaway(&mut self.core.out, self.core.last_stream, violation.code());
        } else {
            self.core.send_bodies();
        }
        result
    }

    fn read(
        &mut self,
        bytes: &[u8],
        on_event: &mut impl FnMut(RequestEvent<'_>),
    ) -> Result<(), Violation> {
        let missing = PREFACE.len() - self.preface;
        let (preface, mut rest) = bytes.split_at(missing.min(bytes.len()));
        if !PREFACE[self.preface..].starts_with(preface) {
            return Err(Violation::Preface);
        }
        self.preface += preface.len();
        while let Some((used, frame)) = self.reader.next(rest)? {
            rest = &rest[used..];
            self.core.frame(frame, on_event)?;
        }
        Ok(())
    }
}

impl Core {
    fn frame(
        &mut self,
        frame: Frame<'_>,
        on_event: &mut impl FnMut(RequestEvent<'_>),
    ) -> Result<(), Violation> {
        if !self.saw_settings && !matches!(frame, Frame::Settings(_)) {
            return if frame == Frame::Part {
                Ok(())
            } else {
                Err(Violation::NotSettingsFirst)
            };
        }
        match frame {
            Frame::Headers {
                stream,
                block,
                ends,
            } => self.headers(stream, block, ends, on_event),
            Frame::DataStart { stream, flow_bytes } => {
                self.receive.take(flow_bytes)?;
                self.receive.open(0, &mut self.out);
                self.check_not_idle(stream, "DATA")?;
                let Some(exchange) = self.streams.get_mut(&stream) else {
                    return Ok(());
                };
                if exchange.is_complete {
                    return Err(Violation::ClosedStream("DATA"));
                }
                exchange.receive.take(flow_bytes)?;
                exchange.receive.open(stream, &mut self.out);
                Ok(())
            }
            Frame::Data {
                stream,
                bytes,
                ends,
            } => {
                if let Some(exchange) = self.streams.get_mut(&stream) {
                    exchange.is_complete = ends;
                    if !bytes.is_empty() {
                        on_event(RequestEvent::Body { stream, bytes });
                    }
                    if ends {
                        on_event(RequestEvent::End { stream });
                    }
                }
                Ok(())
            }
            Frame::Reset { stream, .. } => {
                self.check_not_idle(stream, "RST_STREAM")?;
                if self.streams.remove(&stream).is_some() {
                    on_event(RequestEvent::Reset { stream });
                }
                Ok(())
            }
            Frame::Settings(payload) => self.settings(payload),
            Frame::Ping(payload) => {
                append_ping(&mut self.out, payload, true);
                Ok(())
            }
            Frame::WindowUpdate {
                stream: 0,
                increment,
            } => enlarge(&mut self.send.connection, increment),
            Frame::WindowUpdate { stream, increment } => {
                self.check_not_idle(stream, "WINDOW_UPDATE")?;
                self.streams.get_mut(&stream).map_or(Ok(()), |exchange| {
                    enlarge(&mut exchange.body.window, increment)
                })
            }
            Frame::Goaway { .. } | Frame::SettingsAck | Frame::Ignored | Frame::Part => Ok(()),
        }
    }

    fn check_not_idle(&self, stream: u32, kind: &'static str) -> Result<(), Violation> {
        let was_opened = stream % 2 == 1 && stream <= self.last_stream;
        if was_opened {
            Ok(())
        } else {
            Err(Violation::IdleStream(kind))
        }
    }

    fn headers(
        &mut self,
        stream: u32,
        block: &[u8],
        ends: bool,
        on_event: &mut impl FnMut(RequestEvent<'_>),
    ) -> Result<(), Violation> {
        let (facts, fields) = self.heads.decode(block)?;
        if let Some(exchange) = self.streams.get_mut(&stream) {
            // Trailers. They end the request, or are none.
            if exchange.is_complete || !ends {
                return Err(Violation::ClosedStream("HEADERS"));
            }
            exchange.is_complete = true;
            on_event(RequestEvent::End { stream });
            return Ok(());
        }
        if stream.is_multiple_of(2) || stream <= self.last_stream {
            return Err(Violation::StreamId);
        }
        self.last_stream = stream;
        let is_request = facts.malformed.is_none() && facts.request_fields == REQUEST_FIELDS;
        if !is_request || self.streams.len() >= MAX_STREAMS as usize {
            let code = if is_request {
                ErrorCode::REFUSED_STREAM
            } else {
                ErrorCode::PROTOCOL_ERROR
            };
            append_reset(&mut self.out, stream, code);
            return Ok(());
        }
        self.streams.insert(
            stream,
            Exchange {
                receive: ReceiveWindow::new(STREAM_WINDOW),
                is_complete: ends,
                answer: None,
                body: Outgoing {
                    left: 0,
                    window: self.send.initial,
                },
            },
        );
        let (method, path) = (fields.get(":method"), fields.get(":path"));
        on_event(RequestEvent::Head {
            stream,
            method: method.unwrap_or_default(),
            path: path.unwrap_or_default(),
            fields,
        });
        if ends {
            on_event(RequestEvent::End { stream });
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) -> Result<(), Violation> {
        for (id, value) in settings(payload) {
            match id {
                setting::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
                setting::INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                    return Err(Violation::WindowOverflow);
                }
                setting::INITIAL_WINDOW_SIZE => {
                    let difference = i64::from(value) - self.send.initial;
                    self.send.initial = i64::from(value);
                    for exchange in self.streams.values_mut() {
                        exchange.body.window += difference;
                    }
                }
                _ => check_setting(id, value, false)?,
            }
        }
        self.saw_settings = true;
        append_settings_ack(&mut self.out);
        Ok(())
    }

    fn send_bodies(&mut self) {
        if self.sending.is_empty() {
            return;
        }
        let Self {
            streams,
            out,
            send,
            answers,
            sending,
            ..
        } = self;
        sending.retain(|&stream| {
            let Some(exchange) = streams.get_mut(&stream) else {
                return false;
            };
            let body = exchange.answer.map_or(&[][..], |kind| &answers[kind].body);
            let append = |left: usize, len: usize, out: &mut Vec<u8>| {
                out.extend_from_slice(&body[body.len() - left..][..len]);
            };
            let window = &mut send.connection;
            exchange
                .body
                .send(stream, window, OUTPUT_MAX_BYTES, out, append);
            if exchange.body.left == 0 {
                streams.remove(&stream);
                return false;
            }
            true
        });
    }
}
