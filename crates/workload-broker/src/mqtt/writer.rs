//! A writer's messages, and the broker's answers to them (sections 3.3 to 3.7, 4.3).

use std::collections::VecDeque;

use super::config::{MqttConfig, Qos};
use super::properties::property;
use super::reasons::{FAILURE, NO_MATCHING_SUBSCRIBERS, words};
use super::wire::{Fields, append_answer, append_text, append_varint, malformed, packet};
use crate::dialect::{Fault, Heard};

/// The only topic alias: there is one topic.
const ALIAS: u16 = 1;

/// Publishes to one topic. Its memory is what the window needs from the beginning.
#[derive(Debug)]
pub(super) struct Writing {
    qos: Qos,
    /// The topic as it stands in a packet.
    topic: Vec<u8>,
    alias: Alias,
    /// The message of each packet identifier; identifier 1 comes first. None for QoS 0.
    open: Box<[Exchange]>,
    /// Identifiers without a message. The one that is free for longest comes first, so that a late answer meets none.
    free: VecDeque<u16>,
    window: u16,
    /// More was published than the window allows.
    overrun: bool,
}

/// How the topic is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alias {
    /// In full.
    Unused,
    /// In full once more, with the alias.
    ToBeSaid,
    /// By its alias.
    Said,
}

/// The state of a packet identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Free,
    /// PUBLISH was written for this tag.
    Published(u64),
    /// PUBREC came and PUBREL was written. Whether it reaches anybody was said in PUBREC.
    Released(u64, u8),
}

impl Writing {
    pub(super) fn new(config: &MqttConfig) -> Self {
        let mut topic = Vec::new();
        append_text(&mut topic, &config.topic);
        let window = if config.qos == Qos::AtMostOnce {
            0
        } else {
            config.window
        };
        Self {
            qos: config.qos,
            topic,
            alias: Alias::Unused,
            open: vec![Exchange::Free; usize::from(window)].into(),
            free: (1..=window).collect(),
            window,
            overrun: false,
        }
    }

    /// The broker knows aliases, and we are to use one.
    pub(super) fn use_alias(&mut self) {
        self.alias = Alias::ToBeSaid;
    }

    /// The memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(&*self.open) + self.free.capacity() * size_of::<u16>()
    }

    /// Appends a message. If the window is full it appends nothing, and [`Writing::check`] reports that.
    #[inline]
    pub(super) fn append(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        let id = if self.qos == Qos::AtMostOnce {
            None
        } else {
            let Some(id) = self.free.pop_front() else {
                self.overrun = true;
                return;
            };
            self.open[usize::from(id) - 1] = Exchange::Published(tag);
            Some(id.to_be_bytes())
        };
        let topic: &[u8] = if self.alias == Alias::Said {
            &[0, 0]
        } else {
            &self.topic
        };
        let [alias_high, alias_low] = ALIAS.to_be_bytes();
        let with_alias = [3, property::TOPIC_ALIAS, alias_high, alias_low];
        let properties: &[u8] = if self.alias == Alias::Unused {
            &[0]
        } else {
            &with_alias
        };
        let id: &[u8] = id.as_ref().map_or(&[], |id| &id[..]);
        let len = topic.len() + id.len() + properties.len() + body.len();
        out.reserve(len + 5);
        out.push(packet::PUBLISH | self.qos.number() << 1);
        append_varint(out, len);
        out.extend_from_slice(topic);
        out.extend_from_slice(id);
        out.extend_from_slice(properties);
        out.extend_from_slice(body);
        if self.alias == Alias::ToBeSaid {
            self.alias = Alias::Said;
        }
    }

    /// Whether the caller kept to the window.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.overrun {
            return Err(Fault(format!(
                "more than {} messages are unconfirmed, which is the window",
                self.window
            )));
        }
        Ok(())
    }

    /// PUBACK: the end of an exchange of QoS 1.
    #[inline]
    pub(super) fn acknowledged(
        &mut self,
        fields: Fields<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let (id, reason) = answer(fields, "PUBACK")?;
        match (self.qos, self.exchange(id)) {
            (Qos::AtLeastOnce, Some(Exchange::Published(tag))) => {
                self.end(id);
                report(tag, reason, heard);
                Ok(())
            }
            _ => Err(unasked("PUBACK", id)),
        }
    }

    /// PUBREC: the broker has the message. A failure ends the exchange [MQTT-4.3.3-4]; else we release it.
    #[inline]
    pub(super) fn recorded(
        &mut self,
        fields: Fields<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let (id, reason) = answer(fields, "PUBREC")?;
        match (self.qos, self.exchange(id)) {
            (Qos::ExactlyOnce, Some(Exchange::Published(tag))) if reason >= FAILURE => {
                self.end(id);
                report(tag, reason, heard);
                Ok(())
            }
            (Qos::ExactlyOnce, Some(Exchange::Published(tag))) => {
                self.open[usize::from(id) - 1] = Exchange::Released(tag, reason);
                append_answer(out, packet::PUBREL, id);
                Ok(())
            }
            _ => Err(unasked("PUBREC", id)),
        }
    }

    /// PUBCOMP: the end of an exchange of QoS 2.
    #[inline]
    pub(super) fn completed(
        &mut self,
        fields: Fields<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let (id, reason) = answer(fields, "PUBCOMP")?;
        match self.exchange(id) {
            Some(Exchange::Released(tag, recorded)) => {
                self.end(id);
                let reason = if reason == 0 { recorded } else { reason };
                report(tag, reason, heard);
                Ok(())
            }
            _ => Err(unasked("PUBCOMP", id)),
        }
    }

    fn exchange(&self, id: u16) -> Option<Exchange> {
        let index = usize::from(id).checked_sub(1)?;
        self.open.get(index).copied()
    }

    fn end(&mut self, id: u16) {
        self.open[usize::from(id) - 1] = Exchange::Free;
        self.free.push_back(id);
    }
}

/// A message that reaches nobody counts as refused: MQTT calls it a success, but the broker has thrown it away.
#[inline]
fn report(tag: u64, reason: u8, heard: &mut dyn FnMut(Heard<'_>)) {
    if reason >= FAILURE || reason == NO_MATCHING_SUBSCRIBERS {
        heard(Heard::Refused {
            tag: Some(tag),
            why: words(reason),
        });
    } else {
        heard(Heard::Confirmed { tag, up_to: false });
    }
}

/// Packet identifier and reason. Both a reason of success and the properties may be missing (section 3.4.2).
#[inline]
pub(super) fn answer(mut fields: Fields<'_>, what: &str) -> Result<(u16, u8), Fault> {
    let mut parse = || {
        let id = fields.u16()?;
        if fields.is_empty() {
            return Some((id, 0));
        }
        let reason = fields.u8()?;
        if !fields.is_empty() {
            fields.properties()?;
            fields.end()?;
        }
        Some((id, reason))
    };
    parse().ok_or_else(|| malformed(what))
}

#[cold]
fn unasked(what: &str, id: u16) -> Fault {
    Fault(format!(
        "the broker sent {what} for packet {id}, which does not wait for it"
    ))
}
