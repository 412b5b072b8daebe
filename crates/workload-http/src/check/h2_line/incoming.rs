//! What comes, frame by frame. What RFC 9113 forbids a server to send is an error.

use super::{Block, H2Line, in_window};
use crate::h2::frame::{
    DEFAULT_WINDOW, FRAME_HEADER_BYTES, FRAME_MAX_BYTES, append_ping, append_settings_ack, flag,
    kind, setting,
};
use crate::h2::hpack::FieldList;
use crate::h2::settings;

impl H2Line {
    /// Takes in the next frame; false if it is not whole.
    pub(super) fn frame(&mut self) -> Result<bool, String> {
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
