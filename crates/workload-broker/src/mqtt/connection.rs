//! One connection.

use super::config::MqttConfig;
use super::greeting::{Limits, append_connect, append_subscribe, connack, disconnect, suback};
use super::packets::{Packet, PacketReader};
use super::reader::Reading;
use super::wire::packet;
use super::writer::Writing;
use crate::dialect::{Dialect, Fault, Heard, Role};

/// A writer's or a reader's connection to an MQTT 5 broker.
///
/// - A message of QoS 0 has no answer. One of QoS 1 is confirmed by PUBACK, one of QoS 2 by PUBCOMP. A message that
///   reaches no subscriber is refused.
/// - Never publish beyond the window: it is a fault, reported by the next [`Dialect::received`].
/// - Settle messages in the order in which they came [MQTT-4.6.0-2], and each once.
/// - The protocol has no word for "wait": `Blocked` is not heard.
pub struct Mqtt {
    packets: PacketReader,
    core: Core,
}

/// All but the packet reader, so that packets can borrow from that.
struct Core {
    config: MqttConfig,
    stage: Stage,
    part: Part,
    limits: Option<Limits>,
    pings_answered: u64,
    fault: Option<Fault>,
}

enum Part {
    Writer(Writing),
    Reader(Reading),
}

/// What we wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is sent yet.
    Fresh,
    Connack,
    Suback,
    /// Messages.
    Open,
    Closed,
}

impl Mqtt {
    /// A new connection.
    ///
    /// # Errors
    /// What of the config MQTT cannot say, in words.
    pub fn new(config: MqttConfig) -> Result<Self, String> {
        config.check()?;
        let part = match config.role {
            Role::Writer => Part::Writer(Writing::new(&config)),
            Role::Reader => Part::Reader(Reading::new(&config)),
        };
        Ok(Self {
            packets: PacketReader::default(),
            core: Core {
                config,
                stage: Stage::Fresh,
                part,
                limits: None,
                pings_answered: 0,
                fault: None,
            },
        })
    }

    /// What the broker allows, once it has let us in.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.core.limits.as_ref()
    }

    /// Appends PINGREQ. The keep alive that [`Limits::keep_alive_s`] may demand is the caller's to keep.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[packet::PINGREQ, 0]);
    }

    /// How many pings the broker has answered.
    #[must_use]
    pub fn pings_answered(&self) -> u64 {
        self.core.pings_answered
    }
}

impl Dialect for Mqtt {
    fn open(&mut self, out: &mut Vec<u8>) {
        append_connect(out, &self.core.config);
        self.core.stage = Stage::Connack;
    }

    #[inline]
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        if let Part::Writer(writing) = &mut self.core.part {
            writing.append(out, body, tag);
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        if let Part::Reader(reading) = &mut self.core.part {
            reading.settle(out, handles);
        }
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        if let Some(fault) = &self.core.fault {
            return Err(fault.clone());
        }
        let mut input = bytes;
        loop {
            let taken = match self.packets.next(&mut input) {
                Ok(None) => return Ok(()),
                Ok(Some(packet)) => self.core.take(packet, out, heard),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = taken {
                self.core.fault = Some(fault.clone());
                return Err(fault);
            }
        }
    }

    /// DISCONNECT with reason 0, normal disconnection, which needs no byte (section 3.14.2.1).
    fn close(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[packet::DISCONNECT, 0]);
        self.core.stage = Stage::Closed;
    }

    /// The memory that it holds for torn packets and for the window.
    fn held_bytes(&self) -> usize {
        let of_window = match &self.core.part {
            Part::Writer(writing) => writing.held_bytes(),
            Part::Reader(_) => 0,
        };
        self.packets.held_bytes() + of_window
    }
}

impl Core {
    #[inline]
    fn take(
        &mut self,
        packet: Packet<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Packet { first, fields } = packet;
        // A broker may send messages before it answers a subscription (section 3.8.4).
        match (self.stage, &mut self.part) {
            (Stage::Open, Part::Writer(writing)) => {
                writing.check()?;
                match first {
                    packet::PUBACK => writing.acknowledged(fields, heard),
                    packet::PUBREC => writing.recorded(fields, out, heard),
                    packet::PUBCOMP => writing.completed(fields, heard),
                    _ => self.control(packet, out, heard),
                }
            }
            (Stage::Open | Stage::Suback, Part::Reader(reading)) => match first {
                _ if first & 0xF0 == packet::PUBLISH => reading.published(first, fields, heard),
                packet::PUBREL => reading.released(fields, out),
                _ => self.control(packet, out, heard),
            },
            // What was on its way when we closed.
            (Stage::Closed, _) => Ok(()),
            _ => self.control(packet, out, heard),
        }
    }

    /// All packets but those that come with each message.
    #[cold]
    fn control(
        &mut self,
        packet: Packet<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Packet { first, fields } = packet;
        match (first, self.stage) {
            (packet::CONNACK, Stage::Connack) => self.let_in(connack(fields, &self.config)?, out),
            (packet::SUBACK, Stage::Suback) => {
                suback(fields, &self.config)?;
                self.stage = Stage::Open;
            }
            (packet::PINGRESP, Stage::Open | Stage::Suback) => {
                self.pings_answered += 1;
                return Ok(());
            }
            (packet::DISCONNECT, _) => return Err(disconnect(fields)),
            (packet::AUTH, _) => {
                return Err(Fault(
                    "the broker asks for a further step of the login, which we have not".to_owned(),
                ));
            }
            _ => {
                return Err(Fault(format!(
                    "the broker sent a packet ({first:#04x}) that has no place here, or no MQTT 5"
                )));
            }
        }
        if self.stage == Stage::Open {
            heard(Heard::Ready);
        }
        Ok(())
    }

    fn let_in(&mut self, limits: Limits, out: &mut Vec<u8>) {
        match &mut self.part {
            Part::Writer(writing) => {
                if self.config.topic_alias && limits.topic_alias_max > 0 {
                    writing.use_alias();
                }
                self.stage = Stage::Open;
            }
            Part::Reader(_) => {
                append_subscribe(out, &self.config);
                self.stage = Stage::Suback;
            }
        }
        self.limits = Some(limits);
    }
}
