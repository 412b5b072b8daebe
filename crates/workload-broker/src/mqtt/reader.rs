//! A reader's messages, and our answers to them (sections 3.3 to 3.7, 4.3).

use super::config::MqttConfig;
use super::reasons::PACKET_ID_NOT_FOUND;
use super::wire::{Fields, append_answer, malformed, packet};
use super::writer::answer;
use crate::dialect::{Fault, Heard};

/// How many words hold a bit for each packet identifier.
const WORDS: usize = 65_536 / 64;

/// One bit for each packet identifier.
type Set = Box<[u64; WORDS]>;

/// What of the messages of QoS 1 and 2 is not over: 16 KiB, whatever the broker does.
#[derive(Debug)]
pub(super) struct Reading {
    /// From PUBLISH to our PUBACK or PUBCOMP.
    open: Set,
    /// Of those of QoS 2: PUBREC is written.
    recorded: Set,
    open_count: u32,
    prefetch: u16,
}

impl Reading {
    pub(super) fn new(config: &MqttConfig) -> Self {
        Self {
            open: Box::new([0; WORDS]),
            recorded: Box::new([0; WORDS]),
            open_count: 0,
            prefetch: config.prefetch,
        }
    }

    /// PUBLISH. A handle is QoS and packet identifier, or 0 if there is nothing to settle.
    ///
    /// The topic is not looked at: the payload says whether it is ours. Its properties are skipped.
    #[inline]
    pub(super) fn published(
        &mut self,
        first: u8,
        mut fields: Fields<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let qos = first >> 1 & 3;
        let redelivered = first & 8 != 0;
        let mut parse = || {
            let topic = fields.text()?;
            let id = if qos > 0 { fields.u16()? } else { 0 };
            fields.properties()?;
            // Without aliases, which we do not allow, each message names its topic (section 3.3.2.1). No exchange has
            // identifier 0, and there is no QoS 3.
            let is_whole = !topic.is_empty() && qos < 3 && (qos == 0 || id != 0);
            is_whole.then_some(id)
        };
        let id = parse().ok_or_else(|| malformed("PUBLISH"))?;
        if qos > 0 {
            self.begin(id)?;
        }
        heard(Heard::Delivered {
            payload: fields.rest(),
            handle: u64::from(qos) << 16 | u64::from(id),
            redelivered,
        });
        Ok(())
    }

    /// Appends PUBACK or PUBREC for these, in their order. One that is settled already is skipped.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        for handle in handles {
            let Ok(id) = u16::try_from(handle & 0xFFFF) else {
                continue;
            };
            match handle >> 16 {
                1 if has(&self.open, id) => {
                    self.end(id);
                    append_answer(out, packet::PUBACK, id);
                }
                2 if has(&self.open, id) && !has(&self.recorded, id) => {
                    set(&mut self.recorded, id, true);
                    append_answer(out, packet::PUBREC, id);
                }
                _ => {}
            }
        }
    }

    /// PUBREL. One that we know nothing of belongs to an earlier connection of the session (section 3.7.2.1).
    pub(super) fn released(&mut self, fields: Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (id, _) = answer(fields, "PUBREL")?;
        if has(&self.recorded, id) {
            set(&mut self.recorded, id, false);
            self.end(id);
            append_answer(out, packet::PUBCOMP, id);
        } else if has(&self.open, id) {
            return Err(Fault(format!(
                "the broker releases packet {id} before we have it"
            )));
        } else {
            let [high, low] = id.to_be_bytes();
            out.extend_from_slice(&[packet::PUBCOMP, 3, high, low, PACKET_ID_NOT_FOUND]);
        }
        Ok(())
    }

    /// Within a connection a broker must send nothing twice [MQTT-4.4.0-1], and no more than we allow [MQTT-3.3.4-9].
    fn begin(&mut self, id: u16) -> Result<(), Fault> {
        if has(&self.open, id) {
            return Err(Fault(format!(
                "the broker uses packet identifier {id} for two messages at once"
            )));
        }
        if self.open_count == u32::from(self.prefetch) {
            return Err(Fault(format!(
                "the broker sends more than {} unsettled messages, which is what we allow",
                self.prefetch
            )));
        }
        set(&mut self.open, id, true);
        self.open_count += 1;
        Ok(())
    }

    fn end(&mut self, id: u16) {
        set(&mut self.open, id, false);
        self.open_count -= 1;
    }
}

fn place(id: u16) -> (usize, u64) {
    (usize::from(id >> 6), 1 << (id & 63))
}

fn has(ids: &Set, id: u16) -> bool {
    let (word, bit) = place(id);
    ids[word] & bit != 0
}

fn set(ids: &mut Set, id: u16, on: bool) {
    let (word, bit) = place(id);
    if on {
        ids[word] |= bit;
    } else {
        ids[word] &= !bit;
    }
}
