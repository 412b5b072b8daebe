//! The steps from the first byte to a connection that carries messages.

use super::config::Declare;
use super::connection::{Core, Depth, Stage};
use super::requests::{
    append_confirm_select, append_declare, append_qos, append_start_ok, append_tune_ok_and_open,
};
use super::table::find_text;
use super::wire::{FRAME_MAX_BYTES, FRAME_MIN_BYTES, Fields, malformed, readable};
use crate::dialect::{Fault, Heard};

impl Core {
    pub(super) fn start(&mut self, mut fields: Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut parse = || {
            let version = (fields.u8()?, fields.u8()?);
            let properties = fields.long_text()?;
            let mechanisms = fields.long_text()?;
            fields.long_text()?; // locales
            let product_version = find_text(properties, b"version")?;
            Some((version, product_version, mechanisms))
        };
        let (version, product_version, mechanisms) =
            parse().ok_or_else(|| malformed("connection.start"))?;
        if version != (0, 9) {
            return Err(Fault(format!(
                "the broker speaks AMQP {}-{} and not 0-9",
                version.0, version.1
            )));
        }
        if !mechanisms
            .split(|octet| *octet == b' ')
            .any(|it| it == b"PLAIN")
        {
            return Err(Fault(format!(
                "the broker does not let PLAIN in, only {}",
                readable(mechanisms)
            )));
        }
        self.version = product_version.map(readable);
        append_start_ok(out, &self.config);
        self.stage = Stage::Tune;
        Ok(())
    }

    /// The lower limit of both sides holds; 0 is none (class reference, `connection.tune`).
    pub(super) fn tune(&mut self, mut fields: Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut parse = || {
            let _channel_max = fields.u16()?;
            let frame_max = fields.u32()?;
            let heartbeat_s = fields.u16()?;
            fields.end()?;
            Some((usize::try_from(frame_max).ok()?, heartbeat_s))
        };
        let (frame_max, heartbeat_s) = parse().ok_or_else(|| malformed("connection.tune"))?;
        if frame_max != 0 {
            if frame_max < FRAME_MIN_BYTES {
                return Err(Fault(format!(
                    "the broker allows frames of {frame_max} bytes: the least is {FRAME_MIN_BYTES}"
                )));
            }
            self.frame_max = frame_max.min(FRAME_MAX_BYTES);
        }
        self.publishing.set_frame_max(self.frame_max);
        // Ours decides whether there are heartbeats at all.
        let heartbeat_s = match (self.config.heartbeat_s, heartbeat_s) {
            (ours, 0) => ours,
            (ours, theirs) => ours.min(theirs),
        };
        let frame_max = u32::try_from(self.frame_max).unwrap_or(u32::MAX);
        append_tune_ok_and_open(out, frame_max, heartbeat_s, &self.config.vhost);
        self.stage = Stage::OpenOk;
        Ok(())
    }

    pub(super) fn declare(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) {
        if self.config.declare == Declare::Trust {
            return self.prepare(out, heard);
        }
        append_declare(out, &self.config, self.config.declare);
        self.stage = Stage::DeclareOk;
    }

    /// The queue is there.
    pub(super) fn prepare(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) {
        if !self.is_writer() {
            append_qos(out, self.config.prefetch);
            self.stage = Stage::QosOk;
        } else if self.config.confirms {
            append_confirm_select(out);
            self.stage = Stage::SelectOk;
        } else {
            self.ready(heard);
        }
    }

    pub(super) fn ready(&mut self, heard: &mut dyn FnMut(Heard<'_>)) {
        self.stage = Stage::Open;
        heard(Heard::Ready);
    }
}

/// The answer to `queue.declare`.
pub(super) fn depth(mut fields: Fields<'_>) -> Result<Depth, Fault> {
    let mut parse = || {
        fields.short_text()?; // the queue
        let (ready, consumers) = (fields.u32()?, fields.u32()?);
        fields.end()?;
        Some(Depth { ready, consumers })
    };
    parse().ok_or_else(|| malformed("queue.declare-ok"))
}
