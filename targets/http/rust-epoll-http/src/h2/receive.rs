//! The receiving half of a connection, frame by frame.

use super::frame::{self, Code, HEADER_BYTES, Header, flag, kind, setting};
use super::request::{self, Head, Read};
use super::{
    Block, CONNECTION_CREDIT_BYTES, Connection, Context, DEFAULT_FRAME_BYTES, Lost, Receiving, STREAM_CREDIT_BYTES,
    STREAMS_MAX, WINDOW_BYTES_MAX, reset, without_body,
};
use crate::answer::Status;
use crate::call::{Call, Method, Summing};

/// Longest header block that is taken.
const BLOCK_BYTES_MAX: usize = 32 * 1024;

type Received = Result<(), Lost>;

fn lost(code: Code, cause: &'static str) -> Received {
    Err(Lost { code, cause })
}

impl Connection {
    /// Takes whole frames from the input, as long as there is room for what answers them. Whether it stopped for want of
    /// room, and not of input.
    ///
    /// # Errors
    /// When the client broke the protocol; then the connection must be closed.
    pub fn receive(&mut self, input: &mut &[u8], context: &mut Context<'_>) -> Result<bool, Lost> {
        while let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::read(header);
            if header.length > DEFAULT_FRAME_BYTES {
                return Err(Lost { code: Code::FrameSize, cause: "a frame longer than allowed" });
            }
            let Some((payload, rest)) = rest.split_at_checked(header.length) else { break };
            if !context.output.has_room() {
                return Ok(true);
            }
            self.receive_frame(header, payload, context)?;
            *input = rest;
        }
        Ok(false)
    }

    fn receive_frame(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
        if !self.peer.has_spoken && header.kind != kind::SETTINGS {
            return lost(Code::Protocol, "no settings at first");
        }
        if self.block.is_some() != (header.kind == kind::CONTINUATION) {
            return lost(Code::Protocol, "a header block torn, or continued out of nothing");
        }
        match header.kind {
            kind::DATA => self.receive_data(header, payload, context),
            kind::HEADERS => self.receive_headers(header, payload, context),
            kind::CONTINUATION => self.receive_continuation(header, payload, context),
            kind::RST_STREAM if payload.len() != 4 => lost(Code::FrameSize, "a reset of a wrong size"),
            kind::RST_STREAM => {
                self.known(header.stream)?;
                self.receiving.retain(|stream| stream.id != header.stream);
                self.sending.retain(|stream| stream.id != header.stream);
                Ok(())
            }
            kind::SETTINGS => self.receive_settings(header, payload, context),
            kind::PUSH_PROMISE => lost(Code::Protocol, "a push of a client"),
            kind::PING if payload.len() != 8 => lost(Code::FrameSize, "a ping of a wrong size"),
            kind::PING if header.stream != 0 => lost(Code::Protocol, "a ping on a stream"),
            kind::PING => {
                if !header.has(flag::ACK) {
                    context.output.make(|bytes| {
                        Header { flags: flag::ACK, ..header }.write(bytes);
                        bytes.extend_from_slice(payload);
                    });
                }
                Ok(())
            }
            kind::WINDOW_UPDATE => self.receive_window_update(header, payload, context),
            kind::PRIORITY if payload.len() != 5 => {
                reset(context.output, header.stream, Code::FrameSize);
                Ok(())
            }
            // The client's goodbye says nothing to a server that pushes nothing, and unknown kinds are to be ignored.
            _ => Ok(()),
        }
    }

    /// A stream that was never opened cannot be spoken of.
    fn known(&self, stream: u32) -> Received {
        if stream.is_multiple_of(2) || stream > self.last {
            return lost(Code::Protocol, "a frame on a stream that was not opened");
        }
        Ok(())
    }

    fn receive_data(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
        self.known(header.stream)?;
        let Some(data) = header.unpadded(payload) else { return lost(Code::Protocol, "more padding than payload") };
        // Counts whether or not anybody still wants it. A client can use no more than it has, because all of it is
        // renewed before it is used up; one that tries sends what is not answered any sooner.
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.used_credit += bytes;
        if self.used_credit >= CONNECTION_CREDIT_BYTES / 2 {
            let credit = std::mem::take(&mut self.used_credit);
            context.output.make(|bytes| frame::write_number(bytes, kind::WINDOW_UPDATE, 0, credit));
        }
        let Some(at) = self.receiving.iter().position(|stream| stream.id == header.stream) else {
            // One that was answered before its end, or reset: what still comes is dropped.
            return Ok(());
        };
        let stream = &mut self.receiving[at];
        if stream.summing.update(data).is_err() {
            self.receiving.swap_remove(at);
            self.refuse(header.stream, Status::TOO_LARGE, context);
            reset(context.output, header.stream, Code::No);
            return Ok(());
        }
        if header.has(flag::END_STREAM) {
            self.finish(at, context);
            return Ok(());
        }
        stream.used_credit += bytes;
        if stream.used_credit >= STREAM_CREDIT_BYTES / 2 {
            let credit = std::mem::take(&mut stream.used_credit);
            context.output.make(|bytes| frame::write_number(bytes, kind::WINDOW_UPDATE, header.stream, credit));
        }
        Ok(())
    }

    /// A body has ended.
    fn finish(&mut self, at: usize, context: &mut Context<'_>) {
        let stream = self.receiving.swap_remove(at);
        if stream.expected_length.is_some_and(|length| length != stream.summing.length()) {
            return reset(context.output, stream.id, Code::Protocol);
        }
        self.answer(stream.id, stream.send_window, stream.summing.finish(), stream.is_head, context);
    }

    fn receive_headers(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
        if header.stream.is_multiple_of(2) {
            return lost(Code::Protocol, "a stream that a client cannot open");
        }
        let Some(mut bytes) = header.unpadded(payload) else {
            return lost(Code::Protocol, "more padding than payload");
        };
        if header.has(flag::PRIORITY) {
            let Some(rest) = bytes.get(5..) else { return lost(Code::FrameSize, "a priority cut short") };
            bytes = rest;
        }
        let ends_stream = header.has(flag::END_STREAM);
        if header.has(flag::END_HEADERS) {
            return self.receive_block(header.stream, ends_stream, bytes, context);
        }
        self.block = Some(Block { stream: header.stream, ends_stream, bytes: bytes.to_vec() });
        Ok(())
    }

    fn receive_continuation(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
        let Some(mut block) = self.block.take() else { return lost(Code::Protocol, "a continuation of nothing") };
        if block.stream != header.stream {
            return lost(Code::Protocol, "a continuation of another stream");
        }
        // An empty one costs the client nine bytes, and so it does here.
        if block.bytes.len() + payload.len() > BLOCK_BYTES_MAX || (payload.is_empty() && !header.has(flag::END_HEADERS))
        {
            return lost(Code::EnhanceYourCalm, "a header block without end");
        }
        block.bytes.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.receive_block(block.stream, block.ends_stream, &block.bytes, context);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A whole header block: a request's beginning, or its trailers.
    fn receive_block(&mut self, id: u32, ends_stream: bool, block: &[u8], context: &mut Context<'_>) -> Received {
        let Ok(read) = request::read(&mut self.hpack, block) else {
            return lost(Code::Compression, "a broken header block");
        };
        if id <= self.last {
            let Some(at) = self.receiving.iter().position(|stream| stream.id == id) else {
                // Trailers of a stream that was reset, or a number used twice.
                return if read == Read::Trailers { Ok(()) } else { lost(Code::StreamClosed, "a stream opened twice") };
            };
            if read == Read::Trailers && ends_stream {
                self.finish(at, context);
            } else {
                self.receiving.swap_remove(at);
                reset(context.output, id, Code::Protocol);
            }
            return Ok(());
        }
        if self.has_said_goodbye {
            // Not looked at, as the goodbye has said.
            return Ok(());
        }
        self.last = id;
        match read {
            Read::Request(_) if self.open_streams() >= STREAMS_MAX => reset(context.output, id, Code::RefusedStream),
            Read::Request(head) => self.open(id, ends_stream, head, context),
            Read::Trailers | Read::Malformed => reset(context.output, id, Code::Protocol),
        }
        Ok(())
    }

    /// A request.
    fn open(&mut self, id: u32, ends_stream: bool, head: Head, context: &mut Context<'_>) {
        let window = i64::from(self.peer.initial_window);
        let call = Call::new(head.method, head.resource);
        let is_head = head.method == Method::Head;
        let refusal = match head.length {
            _ if head.is_too_long => Some(Status::HEAD_TOO_LARGE),
            Some(length) if length > context.body_bytes_max => Some(Status::TOO_LARGE),
            _ => None,
        };
        if let Some(status) = refusal {
            self.refuse(id, status, context);
            if !ends_stream {
                // The rest is not wanted (section 8.1).
                reset(context.output, id, Code::No);
            }
        } else if !ends_stream {
            self.receiving.push(Receiving {
                id,
                summing: Summing::new(call, context.body_bytes_max),
                is_head,
                expected_length: head.length,
                used_credit: 0,
                send_window: window,
            });
        } else if head.length.is_some_and(|length| length > 0) {
            reset(context.output, id, Code::Protocol);
        } else {
            self.answer(id, window, without_body(call), is_head, context);
        }
    }

    fn receive_settings(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
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
                // None is used, but a table that becomes smaller must be acknowledged (RFC 7541, section 4.2).
                setting::HEADER_TABLE_SIZE => self.owes_table_size |= value < 4096,
                setting::INITIAL_WINDOW_SIZE => self.set_initial_window(value)?,
                setting::MAX_FRAME_SIZE if (16_384..1 << 24).contains(&value) => {
                    self.peer.frame_bytes_max = value as usize;
                }
                setting::MAX_FRAME_SIZE => return lost(Code::Protocol, "a frame size out of bounds"),
                _ => {}
            }
        }
        context.output.make(|bytes| {
            Header { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(bytes);
        });
        self.pump(context);
        Ok(())
    }

    /// Applies to the streams that are there, too; a window may become negative by that (section 6.9.2).
    fn set_initial_window(&mut self, bytes: u32) -> Received {
        if i64::from(bytes) > WINDOW_BYTES_MAX {
            return lost(Code::FlowControl, "a window too large");
        }
        let change = i64::from(bytes) - i64::from(self.peer.initial_window);
        self.peer.initial_window = bytes;
        let receiving = self.receiving.iter_mut().map(|stream| &mut stream.send_window);
        for window in receiving.chain(self.sending.iter_mut().map(|stream| &mut stream.window)) {
            *window += change;
            if *window > WINDOW_BYTES_MAX {
                return lost(Code::FlowControl, "a window too large");
            }
        }
        Ok(())
    }

    fn receive_window_update(&mut self, header: Header, payload: &[u8], context: &mut Context<'_>) -> Received {
        let Some(more) = frame::u31(payload).filter(|_| payload.len() == 4) else {
            return lost(Code::FrameSize, "a window update of a wrong size");
        };
        let more = i64::from(more);
        if header.stream == 0 {
            self.send_window += more;
            if more == 0 || self.send_window > WINDOW_BYTES_MAX {
                return lost(Code::FlowControl, "a window update out of bounds");
            }
            self.pump(context);
            return Ok(());
        }
        self.known(header.stream)?;
        let receiving = self.receiving.iter_mut().map(|stream| (stream.id, &mut stream.send_window));
        let sending = self.sending.iter_mut().map(|stream| (stream.id, &mut stream.window));
        let Some((id, window)) = receiving.chain(sending).find(|(id, _)| *id == header.stream) else { return Ok(()) };
        *window += more;
        if more == 0 || *window > WINDOW_BYTES_MAX {
            reset(context.output, id, if more == 0 { Code::Protocol } else { Code::FlowControl });
            self.receiving.retain(|stream| stream.id != id);
            self.sending.retain(|stream| stream.id != id);
        }
        self.pump(context);
        Ok(())
    }
}
