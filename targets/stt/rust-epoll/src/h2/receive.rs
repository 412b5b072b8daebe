//! The receiving half of a connection: frame by frame, whatever the cuts between reads.

use super::frame::{self, Code, HEADER_BYTES, Header, flag, kind, setting};
use super::{
    ANSWER_BYTES_MAX, Block, CONNECTION_CREDIT_BYTES, Connection, DEFAULT_FRAME_BYTES, Event, Lost, WINDOW_BYTES_MAX,
    signed,
};

/// Longest header block that is taken.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// A server that asks so much (pings, settings) without reading the replies is ill.
const REPLIES_BYTES_MAX: usize = 8 * 1024 * 1024;

type Received = Result<(), Lost>;

fn lost(code: Code, cause: &'static str) -> Received {
    Err(Lost { code, cause })
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes the next bytes from the server, and shows what became of requests.
    ///
    /// # Errors
    /// When the server broke the protocol; the connection must be given up, the requests on it by [`Self::fail`].
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        let mut input = std::mem::take(&mut self.input);
        while !input.is_empty() && !bytes.is_empty() {
            let wanted = match input.first_chunk() {
                None => HEADER_BYTES,
                Some(header) => HEADER_BYTES + self.checked(Header::read(header))?.length,
            };
            let (more, rest) = bytes.split_at((wanted - input.len()).min(bytes.len()));
            input.extend_from_slice(more);
            bytes = rest;
            if let Some((header, payload)) = input.split_first_chunk() {
                let header = self.checked(Header::read(header))?;
                if payload.len() == header.length {
                    self.receive_frame(header, payload, event, done)?;
                    input.clear();
                }
            }
        }
        while let Some((header, rest)) = bytes.split_first_chunk() {
            let header = self.checked(Header::read(header))?;
            let Some((payload, rest)) = rest.split_at_checked(header.length) else { break };
            self.receive_frame(header, payload, event, done)?;
            bytes = rest;
        }
        input.extend_from_slice(bytes);
        self.input = input;
        Ok(())
    }

    fn checked(&self, header: Header) -> Result<Header, Lost> {
        if header.length > DEFAULT_FRAME_BYTES {
            return Err(Lost { code: Code::FrameSize, cause: "a frame longer than allowed" });
        }
        Ok(header)
    }

    fn receive_frame(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        if !self.peer.has_spoken && header.kind != kind::SETTINGS {
            return lost(Code::Protocol, "no settings at first");
        }
        if self.block.is_some() != (header.kind == kind::CONTINUATION) {
            return lost(Code::Protocol, "a header block torn, or continued out of nothing");
        }
        if self.output.len() > REPLIES_BYTES_MAX {
            return lost(Code::EnhanceYourCalm, "too much to reply to");
        }
        match header.kind {
            kind::DATA => self.receive_data(header, payload, event, done),
            kind::HEADERS => self.receive_headers(header, payload, event, done),
            kind::CONTINUATION => self.receive_continuation(header, payload, event, done),
            kind::RST_STREAM => {
                if payload.len() != 4 {
                    return lost(Code::FrameSize, "a reset of a wrong size");
                }
                self.known(header.stream)?;
                if let Some(stream) = self.forget(header.stream, done) {
                    event(Event::Reset { tag: stream.tag });
                }
                Ok(())
            }
            kind::SETTINGS => self.receive_settings(header, payload),
            kind::PUSH_PROMISE => lost(Code::Protocol, "a push that was not allowed"),
            kind::PING if payload.len() != 8 => lost(Code::FrameSize, "a ping of a wrong size"),
            kind::PING if header.stream != 0 => lost(Code::Protocol, "a ping on a stream"),
            kind::PING => {
                if !header.has(flag::ACK) {
                    self.output.make(|bytes| {
                        Header { flags: flag::ACK, ..header }.write(bytes);
                        bytes.extend_from_slice(payload);
                    });
                }
                Ok(())
            }
            kind::GOAWAY => self.receive_goaway(header, payload, event, done),
            kind::WINDOW_UPDATE => self.receive_window_update(header, payload, event, done),
            // PRIORITY says nothing to a client, and unknown kinds are to be ignored.
            _ => Ok(()),
        }
    }

    /// A stream that was never opened cannot be spoken of.
    fn known(&self, stream: u32) -> Received {
        if stream.is_multiple_of(2) || stream >= self.unopened {
            return lost(Code::Protocol, "a frame on a stream that was not opened");
        }
        Ok(())
    }

    fn receive_data(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        self.known(header.stream)?;
        let Some(data) = header.unpadded(payload) else { return lost(Code::Protocol, "more padding than payload") };
        // Counts whether or not anybody still wants it.
        self.receive_window -= signed(payload.len());
        if self.receive_window < 0 {
            return lost(Code::FlowControl, "more data than credit");
        }
        self.used_credit += payload.len() as u32;
        if self.used_credit >= CONNECTION_CREDIT_BYTES / 2 {
            let credit = std::mem::take(&mut self.used_credit);
            self.receive_window += i64::from(credit);
            self.output.make(|bytes| frame::write_number(bytes, kind::WINDOW_UPDATE, 0, credit));
        }
        let id = header.stream;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let tag = stream.tag;
        if !stream.has_status {
            self.reset(id, Code::Protocol, done);
            event(Event::Reset { tag });
        } else if stream.answer.len() + data.len() > ANSWER_BYTES_MAX {
            self.reset(id, Code::Cancel, done);
            event(Event::TooLong { tag });
        } else if !header.has(flag::END_STREAM) {
            stream.answer.extend_from_slice(data);
        } else if stream.answer.is_empty() {
            // The usual case: the whole answer in one frame, read from where it was received.
            self.finish(id, done);
            event(Event::Answer { tag, status: 200, body: data });
        } else {
            stream.answer.extend_from_slice(data);
            if let Some(stream) = self.finish(id, done) {
                event(Event::Answer { tag, status: 200, body: &stream.answer });
            }
        }
        Ok(())
    }

    /// Ends a stream that the server has ended. If the body is not through, the server does not want it
    /// (RFC 9113, section 8.1).
    fn finish(&mut self, id: u32, done: &mut impl FnMut(B)) -> Option<super::Stream<B>> {
        if self.streams.get(&id)?.body_left > 0 {
            self.output.make(|bytes| frame::write_number(bytes, kind::RST_STREAM, id, Code::Cancel as u32));
        }
        self.forget(id, done)
    }

    fn reset(&mut self, id: u32, code: Code, done: &mut impl FnMut(B)) {
        self.output.make(|bytes| frame::write_number(bytes, kind::RST_STREAM, id, code as u32));
        self.forget(id, done);
    }

    fn receive_headers(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        self.known(header.stream)?;
        let Some(mut bytes) = header.unpadded(payload) else {
            return lost(Code::Protocol, "more padding than payload");
        };
        if header.has(flag::PRIORITY) {
            let Some(rest) = bytes.get(5..) else { return lost(Code::FrameSize, "a priority cut short") };
            bytes = rest;
        }
        let ends_stream = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.receive_block(header.stream, ends_stream, bytes, event, done);
        }
        self.block = Some(Block { stream: header.stream, ends_stream, bytes: bytes.to_vec() });
        Ok(())
    }

    fn receive_continuation(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        let Some(mut block) = self.block.take() else { return lost(Code::Protocol, "a continuation of nothing") };
        if block.stream != header.stream {
            return lost(Code::Protocol, "a continuation of another stream");
        }
        if block.bytes.len() + payload.len() > BLOCK_BYTES_MAX {
            return lost(Code::EnhanceYourCalm, "a header block without end");
        }
        block.bytes.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.receive_block(block.stream, block.ends_stream, &block.bytes, event, done);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A whole header block: an answer's beginning, or its trailers.
    fn receive_block(
        &mut self,
        id: u32,
        ends_stream: bool,
        block: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        let mut status = None;
        let read = self.hpack.decode(block, |name, value| {
            if name == b":status" {
                status = std::str::from_utf8(value).ok().and_then(|digits| digits.parse::<u16>().ok());
            }
        });
        if read.is_err() {
            return lost(Code::Compression, "a broken header block");
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let tag = stream.tag;
        match (stream.has_status, status) {
            // Trailers. A block behind the status that ends nothing is none.
            (true, None) if ends_stream => {
                if let Some(stream) = self.finish(id, done) {
                    event(Event::Answer { tag, status: 200, body: &stream.answer });
                }
            }
            // "Continue", "early hints": the answer follows.
            (false, Some(100..=199)) if !ends_stream => {}
            (false, Some(200)) if !ends_stream => stream.has_status = true,
            (false, Some(status @ 200..)) => {
                // The status says all that is asked, whatever body follows.
                if ends_stream {
                    self.finish(id, done);
                } else {
                    self.reset(id, Code::Cancel, done);
                }
                event(Event::Answer { tag, status, body: b"" });
            }
            _ => {
                self.reset(id, Code::Protocol, done);
                event(Event::Reset { tag });
            }
        }
        Ok(())
    }

    fn receive_settings(&mut self, header: Header, payload: &[u8]) -> Received {
        if header.stream != 0 {
            return lost(Code::Protocol, "settings of a stream");
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if header.has(flag::ACK) || !rest.is_empty() {
            let is_good = header.has(flag::ACK) && payload.is_empty();
            return if is_good { Ok(()) } else { lost(Code::FrameSize, "settings of a wrong size") };
        }
        self.peer.has_spoken = true;
        for [n0, n1, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*n0, *n1]) {
                setting::MAX_CONCURRENT_STREAMS => self.peer.streams_max = value as usize,
                setting::INITIAL_WINDOW_SIZE => self.set_initial_window(value)?,
                setting::MAX_FRAME_SIZE if (16_384..1 << 24).contains(&value) => {
                    self.peer.frame_bytes_max = value as usize;
                }
                setting::MAX_FRAME_SIZE => return lost(Code::Protocol, "a frame size out of bounds"),
                // The header table is not used, push not allowed, the list of headers short.
                _ => {}
            }
        }
        self.output.make(|bytes| {
            Header { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(bytes);
        });
        Ok(())
    }

    /// Applies to the streams that are there, too; a window may become negative by that (section 6.9.2).
    fn set_initial_window(&mut self, bytes: u32) -> Received {
        if i64::from(bytes) > WINDOW_BYTES_MAX {
            return lost(Code::FlowControl, "a window too large");
        }
        let change = i64::from(bytes) - i64::from(self.peer.initial_window);
        self.peer.initial_window = bytes;
        for stream in self.streams.values_mut() {
            stream.send_window += change;
            if stream.send_window > WINDOW_BYTES_MAX {
                return lost(Code::FlowControl, "a window too large");
            }
        }
        Ok(())
    }

    fn receive_window_update(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        let Some(more) = frame::u31(payload).filter(|_| payload.len() == 4) else {
            return lost(Code::FrameSize, "a window update of a wrong size");
        };
        if header.stream == 0 {
            self.send_window += i64::from(more);
            if more == 0 || self.send_window > WINDOW_BYTES_MAX {
                return lost(Code::FlowControl, "a window update out of bounds");
            }
            return Ok(());
        }
        self.known(header.stream)?;
        let Some(stream) = self.streams.get_mut(&header.stream) else { return Ok(()) };
        stream.send_window += i64::from(more);
        if more == 0 || stream.send_window > WINDOW_BYTES_MAX {
            let tag = stream.tag;
            self.reset(header.stream, Code::FlowControl, done);
            event(Event::Reset { tag });
        }
        Ok(())
    }

    /// Requests that the server will not look at have failed; the others are still answered.
    fn receive_goaway(
        &mut self,
        header: Header,
        payload: &[u8],
        event: &mut impl FnMut(Event<'_>),
        done: &mut impl FnMut(B),
    ) -> Received {
        let Some(last) = frame::u31(payload).filter(|_| payload.len() >= 8) else {
            return lost(Code::FrameSize, "a goodbye cut short");
        };
        if header.stream != 0 {
            return lost(Code::Protocol, "a goodbye of a stream");
        }
        self.going_away = true;
        let given_up: Vec<u32> = self.streams.keys().copied().filter(|id| *id > last).collect();
        for id in given_up {
            if let Some(stream) = self.forget(id, &mut *done) {
                event(Event::Reset { tag: stream.tag });
            }
        }
        Ok(())
    }
}
