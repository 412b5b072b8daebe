//! A client's connection: requests to frames, frames to events.

use std::sync::Arc;

use super::event::Event;
use super::frame::{
    DEFAULT_WINDOW, PREFACE, append_goaway, append_headers, append_ping, append_reset,
    append_settings, append_settings_ack, append_window_update, setting,
};
use super::head::HeadDecoder;
use super::hpack::{CachedBlock, Encoder};
use super::reader::{Frame, FrameReader, check_setting, settings};
use super::stream::{Progress, Reaction, Stream, Streams};
use super::template::Template;
use super::violation::{ErrorCode, Malformed, Violation};
use super::windows::{
    CONNECTION_WINDOW, Outgoing, ReceiveWindow, STREAM_WINDOW, SendWindows, enlarge,
};
use crate::h1::decimal_digits;

/// Request bodies wait while so much of the output is not taken.
const OUTPUT_MAX_BYTES: usize = 256 * 1024;

/// How many streams are opened before the server says how many it allows. RFC 9113 recommends that it is no fewer.
const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// The last id of a client's stream.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    reader: FrameReader,
    core: Core,
}

/// All but the reader, so that frames can borrow from that.
#[derive(Debug)]
struct Core {
    templates: Arc<[Template]>,
    /// The header block of each template.
    blocks: Box<[CachedBlock]>,
    encoder: Encoder,
    heads: HeadDecoder,
    out: Vec<u8>,
    streams: Streams,
    next_stream: u32,
    send: SendWindows,
    receive: ReceiveWindow,
    max_streams: Option<u32>,
    saw_settings: bool,
    goaway: Option<u32>,
    violation: Option<Violation>,
}

impl Client {
    /// A new connection that will send requests of these kinds. Its output begins with the preface.
    #[must_use]
    pub fn new(templates: Arc<[Template]>) -> Self {
        let mut out = PREFACE.to_vec();
        append_settings(
            &mut out,
            &[
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            ],
        );
        append_window_update(&mut out, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
        let blocks = templates.iter().map(|_| CachedBlock::default()).collect();
        Self {
            reader: FrameReader::new(),
            core: Core {
                templates,
                blocks,
                encoder: Encoder::new(),
                heads: HeadDecoder::default(),
                out,
                streams: Streams::default(),
                next_stream: 1,
                send: SendWindows::default(),
                receive: ReceiveWindow::new(CONNECTION_WINDOW),
                max_streams: None,
                saw_settings: false,
                goaway: None,
                violation: None,
            },
        }
    }

    /// How many more streams the server allows now. None after GOAWAY, a violation, or when all ids are used: then the
    /// connection must be replaced ([`Client::is_ending`]).
    #[must_use]
    pub fn room(&self) -> u32 {
        if self.is_ending() {
            return 0;
        }
        let allowed = match (self.core.saw_settings, self.core.max_streams) {
            (false, _) => STREAMS_BEFORE_SETTINGS,
            (true, allowed) => allowed.unwrap_or(u32::MAX),
        };
        allowed.saturating_sub(self.core.streams.len())
    }

    /// Whether no stream can be opened any more. Open ones may still be answered.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        let core = &self.core;
        core.goaway.is_some() || core.violation.is_some() || core.next_stream > LAST_STREAM
    }

    /// Whether the server's settings have come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.core.saw_settings
    }

    /// How many streams are open.
    #[must_use]
    pub fn open_streams(&self) -> u32 {
        self.core.streams.len()
    }

    /// The memory that it takes by what the server sent or does not read.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let core = &self.core;
        self.reader.held_bytes()
            + core.heads.held_bytes()
            + core.encoder.held_bytes()
            + core.out.capacity()
    }

    /// Opens a stream with request `number` of template `kind`, and returns its id. `None` if there is no room.
    ///
    /// # Panics
    /// There is no such template.
    #[inline]
    pub fn open(&mut self, kind: usize, number: u64) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let core = &mut self.core;
        let stream = core.next_stream;
        core.next_stream += 2;
        let template = &core.templates[kind];
        let body_left = template.body_len();
        let (block, encoder) = (&mut core.blocks[kind], &mut core.encoder);
        append_headers(&mut core.out, stream, body_left == 0, |out| {
            let mut buffer = [0; 20];
            block.append(
                &template.parts,
                decimal_digits(number, &mut buffer),
                encoder,
                out,
            );
        });
        core.streams.push(Stream::new(
            stream,
            kind as u32,
            number,
            template.is_head,
            Outgoing {
                left: body_left,
                window: core.send.initial,
            },
        ));
        if body_left > 0 {
            core.send_bodies();
        }
        Some(stream)
    }

    /// How much of a request's body is not in the output yet; 0 for a stream that is gone.
    #[must_use]
    pub fn body_left(&self, stream: u32) -> usize {
        self.core
            .streams
            .get(stream)
            .map_or(0, |stream| stream.body.left)
    }

    /// Gives a stream up, for example when its answer is late. No event of it follows.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.core.streams.get(stream).is_some() {
            self.core.give_up(stream, code);
        }
    }

    /// Appends a PING with this payload. Its answer is no event.
    pub fn ping(&mut self, payload: [u8; 8]) {
        append_ping(&mut self.core.out, payload, false);
    }

    /// Says that no more will be asked, before the connection is closed.
    pub fn say_goaway(&mut self) {
        append_goaway(&mut self.core.out, 0, ErrorCode::NO_ERROR);
    }

    /// Whether there is something to write.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.core.out.is_empty()
    }

    /// Moves what is to be written into `into`, which is emptied before. The two buffers change places, so nothing is
    /// copied or allocated; what comes meanwhile enters the other one.
    pub fn take_output(&mut self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut self.core.out, into);
        self.core.send_bodies();
    }

    /// Takes the next bytes and calls `on_event` for each event that they complete. Answers to the server's settings
    /// and pings enter the output.
    ///
    /// # Errors
    /// The first rule that the server broke. A GOAWAY frame is in the output; every later call returns the same.
    pub fn received(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        if let Some(violation) = self.core.violation {
            return Err(violation);
        }
        let mut rest = bytes;
        let result = loop {
            let frame = match self.reader.next(rest) {
                Ok(None) => break Ok(()),
                Ok(Some((used, frame))) => {
                    rest = &rest[used..];
                    frame
                }
                Err(violation) => break Err(violation),
            };
            if let Err(violation) = self.core.frame(frame, &mut on_event) {
                break Err(violation);
            }
        };
        if let Err(violation) = result {
            self.core.violation = Some(violation);
            append_goaway(&mut self.core.out, 0, violation.code());
        } else {
            self.core.send_bodies();
        }
        result
    }

    /// The connection ended: tells which streams it took along.
    pub fn closed(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        self.core.goaway = Some(0);
        self.core.streams.drain(|stream| {
            on_event(Event::Closed {
                stream: stream.id,
                in_answer: stream.is_in_answer(),
            });
        });
    }
}

impl Core {
    #[inline]
    fn frame(
        &mut self,
        frame: Frame<'_>,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        if !self.saw_settings && !matches!(frame, Frame::Settings(_)) {
            // A part of the first frame says nothing yet.
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
                self.data_start(stream, flow_bytes, on_event)
            }
            Frame::Data {
                stream,
                bytes,
                ends,
            } => {
                if let Some(open) = self.streams.get_mut(stream) {
                    let (fitting, reaction) = open.data(bytes, ends);
                    if !fitting.is_empty() {
                        on_event(Event::Body {
                            stream,
                            bytes: fitting,
                        });
                    }
                    self.react(stream, reaction, on_event);
                }
                Ok(())
            }
            Frame::Reset { stream, code } => {
                self.check_not_idle(stream, "RST_STREAM")?;
                if self.streams.remove(stream).is_some() {
                    on_event(Event::Reset { stream, code });
                }
                Ok(())
            }
            Frame::Settings(payload) => self.settings(payload, on_event),
            Frame::Ping(payload) => {
                append_ping(&mut self.out, payload, true);
                Ok(())
            }
            Frame::Goaway { last_stream, code } => self.goaway(last_stream, code, on_event),
            Frame::WindowUpdate { stream, increment } => self.window_update(stream, increment),
            Frame::SettingsAck | Frame::Ignored | Frame::Part => Ok(()),
        }
    }

    fn check_not_idle(&self, stream: u32, kind: &'static str) -> Result<(), Violation> {
        let was_opened = stream % 2 == 1 && stream < self.next_stream;
        if was_opened {
            Ok(())
        } else {
            Err(Violation::IdleStream(kind))
        }
    }

    /// A frame of an answer on a stream that is gone: right only if we gave it up.
    #[cold]
    fn check_given_up(&self, stream: u32, kind: &'static str) -> Result<(), Violation> {
        self.check_not_idle(stream, kind)?;
        if self.streams.was_given_up(stream) {
            Ok(())
        } else {
            Err(Violation::ClosedStream(kind))
        }
    }

    #[inline]
    fn headers(
        &mut self,
        stream: u32,
        block: &[u8],
        ends: bool,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        // Decoded in any case, because it changes the table.
        let (facts, fields) = self.heads.decode(block)?;
        let Some(open) = self.streams.get_mut(stream) else {
            return self.check_given_up(stream, "HEADERS");
        };
        let was_waiting = open.progress == Progress::Waiting;
        let reaction = open.head(facts, ends);
        let is_final_head = was_waiting && open.progress != Progress::Waiting;
        if let (true, Some(status)) = (is_final_head, facts.status) {
            on_event(Event::Head {
                stream,
                status,
                content_length: facts.content_length,
                fields,
            });
        }
        self.react(stream, reaction, on_event);
        Ok(())
    }

    #[inline]
    fn data_start(
        &mut self,
        stream: u32,
        flow_bytes: u32,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        self.receive.take(flow_bytes)?;
        self.receive.open(0, &mut self.out);
        let Some(open) = self.streams.get_mut(stream) else {
            return self.check_given_up(stream, "DATA");
        };
        open.receive.take(flow_bytes)?;
        open.receive.open(stream, &mut self.out);
        if open.progress != Progress::Body {
            self.react(stream, Reaction::Malformed(Malformed::Data), on_event);
        }
        Ok(())
    }

    #[inline]
    fn react(&mut self, stream: u32, reaction: Reaction, on_event: &mut impl FnMut(Event<'_>)) {
        match reaction {
            Reaction::Nothing => {}
            Reaction::End => {
                let is_sent = self
                    .streams
                    .get(stream)
                    .is_none_or(|open| open.body.left == 0);
                if is_sent {
                    self.streams.remove(stream);
                } else {
                    // Answered before it had all: the rest is not wanted.
                    self.give_up(stream, ErrorCode::CANCEL);
                }
                on_event(Event::End { stream });
            }
            Reaction::Malformed(why) => {
                self.give_up(stream, ErrorCode::PROTOCOL_ERROR);
                on_event(Event::Malformed { stream, why });
            }
        }
    }

    fn give_up(&mut self, stream: u32, code: ErrorCode) {
        append_reset(&mut self.out, stream, code);
        self.streams.give_up(stream);
    }

    fn settings(
        &mut self,
        payload: &[u8],
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        for (id, value) in settings(payload) {
            match id {
                setting::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
                setting::MAX_CONCURRENT_STREAMS => self.max_streams = Some(value),
                setting::INITIAL_WINDOW_SIZE => self.streams.set_initial(&mut self.send, value)?,
                _ => check_setting(id, value, true)?,
            }
        }
        self.saw_settings = true;
        append_settings_ack(&mut self.out);
        on_event(Event::Settings {
            max_concurrent_streams: self.max_streams,
        });
        Ok(())
    }

    fn goaway(
        &mut self,
        last_stream: u32,
        code: ErrorCode,
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Violation> {
        if self.goaway.is_some_and(|earlier| last_stream > earlier) {
            return Err(Violation::GoawayRaised);
        }
        self.goaway = Some(last_stream);
        on_event(Event::Goaway { last_stream, code });
        while let Some(stream) = self.streams.first_above(last_stream) {
            self.streams.give_up(stream);
            on_event(Event::Dropped { stream });
        }
        Ok(())
    }

    fn window_update(&mut self, stream: u32, increment: u32) -> Result<(), Violation> {
        if stream == 0 {
            return enlarge(&mut self.send.connection, increment);
        }
        self.check_not_idle(stream, "WINDOW_UPDATE")?;
        match self.streams.get_mut(stream) {
            Some(open) => enlarge(&mut open.body.window, increment),
            None => Ok(()),
        }
    }

    /// Puts as much of the request bodies into the output as windows and the output's limit allow.
    #[inline]
    fn send_bodies(&mut self) {
        if self.streams.sending == 0 {
            return;
        }
        let Self {
            streams,
            out,
            send,
            templates,
            ..
        } = self;
        let mut finished = 0;
        for stream in streams.iter_mut().filter(|stream| stream.body.left > 0) {
            let (template, number) = (&templates[stream.kind as usize], stream.number);
            let append = |left, len, out: &mut Vec<u8>| {
                template.append_body(number, template.body_len() - left, len, out);
            };
            let window = &mut send.connection;
            stream
                .body
                .send(stream.id, window, OUTPUT_MAX_BYTES, out, append);
            finished += u32::from(stream.body.left == 0);
        }
        streams.sending -= finished;
    }
}

#[cfg(test)]
#[path = "client_tests/mod.rs"]
mod tests;
