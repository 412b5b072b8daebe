//! The sending half of a connection: answers, as far as the windows allow.

use super::frame::{Header, flag, kind};
use super::hpack::{self, index};
use super::{Connection, Context, Rest, Sending, signed};
use crate::answer::{self, Answer, Body, Status};
use crate::call::Call;

impl Connection {
    /// Answers a stream on which `window` bytes may be sent.
    pub(super) fn answer(&mut self, id: u32, window: i64, call: Call, is_head: bool, context: &mut Context<'_>) {
        context.counters.request();
        let mut scratch = std::mem::take(context.scratch);
        let server = context.server;
        let answer = answer::answer(call, &mut scratch, |text| text.extend(server.sums().render().bytes()));
        self.write_answer(id, window, &answer, is_head, context);
        *context.scratch = scratch;
    }

    /// Answers a stream with a status alone.
    pub(super) fn refuse(&mut self, id: u32, status: Status, context: &mut Context<'_>) {
        context.counters.request();
        self.write_answer(id, 0, &Answer::status(status), false, context);
    }

    fn write_answer(&mut self, id: u32, window: i64, answer: &Answer<'_>, is_head: bool, context: &mut Context<'_>) {
        let length = answer.body.length();
        let has_body = length > 0 && !is_head;
        let owes_table_size = std::mem::take(&mut self.owes_table_size);
        context.output.make(|bytes| {
            let at = bytes.len();
            let flags = flag::END_HEADERS | if has_body { 0 } else { flag::END_STREAM };
            Header { length: 0, kind: kind::HEADERS, flags, stream: id }.write(bytes);
            if owes_table_size {
                bytes.push(hpack::NO_TABLE);
            }
            match answer.status {
                Status::OK => hpack::indexed(bytes, index::STATUS_200),
                Status::NOT_FOUND => hpack::indexed(bytes, index::STATUS_404),
                status => hpack::literal(bytes, index::STATUS, status.digits()),
            }
            for (name, value) in [(index::CONTENT_TYPE, answer.content_type), (index::ALLOW, answer.allow)] {
                if !value.is_empty() {
                    hpack::literal(bytes, name, value.as_bytes());
                }
            }
            hpack::literal(bytes, index::DATE, context.date.text());
            hpack::decimal(bytes, index::CONTENT_LENGTH, length);
            // Known only now. A block of this kind is far below any frame size that a client may ask for.
            let [.., l1, l2] = (bytes.len() - at - super::frame::HEADER_BYTES).to_be_bytes();
            bytes[at + 1..at + 3].copy_from_slice(&[l1, l2]);
        });
        if !has_body {
            return;
        }
        match answer.body {
            // The usual case: it fits, and nothing has to be remembered.
            Body::Own(body)
                if signed(length) <= self.send_window.min(window) && length <= self.peer.frame_bytes_max =>
            {
                self.send_window -= signed(length);
                context.output.make(|bytes| {
                    Header { length, kind: kind::DATA, flags: flag::END_STREAM, stream: id }.write(bytes);
                    bytes.extend_from_slice(body);
                });
            }
            Body::Own(body) => {
                let body = Rest::Own { bytes: body.to_vec(), from: 0 };
                self.sending.push_back(Sending { id, window, body });
            }
            Body::Pattern(left) => {
                self.sending.push_back(Sending { id, window, body: Rest::Pattern { from: 0, left } });
                self.pump(context);
            }
        }
    }

    /// Sends what the windows allow and the output has room for: a frame of each stream in its turn. Whether there is
    /// more that only lacks room.
    pub fn pump(&mut self, context: &mut Context<'_>) -> bool {
        let mut held_up = 0;
        while held_up < self.sending.len() {
            if !context.output.has_room() {
                return self.send_window > 0;
            }
            let Some(mut stream) = self.sending.pop_front() else { return false };
            let window = usize::try_from(self.send_window.min(stream.window)).unwrap_or(0);
            let length = stream.body.left().min(window).min(self.peer.frame_bytes_max).min(super::DEFAULT_FRAME_BYTES);
            if length > 0 {
                held_up = 0;
                self.send_window -= signed(length);
                stream.send(length, context);
            } else {
                held_up += 1;
            }
            if stream.body.left() > 0 {
                self.sending.push_back(stream);
            }
        }
        false
    }
}

impl Sending {
    fn send(&mut self, length: usize, context: &mut Context<'_>) {
        self.window -= signed(length);
        let flags = if length == self.body.left() { flag::END_STREAM } else { 0 };
        let header = Header { length, kind: kind::DATA, flags, stream: self.id };
        context.output.make(|bytes| header.write(bytes));
        match &mut self.body {
            Rest::Pattern { from, left } => {
                context.output.pattern(context.pattern, *from, length);
                *from += length;
                *left -= length;
            }
            Rest::Own { bytes, from } => {
                context.output.make(|output| output.extend_from_slice(&bytes[*from..*from + length]));
                *from += length;
            }
        }
    }
}
