//! As much of an MQTT broker as the tests need: it follows a client's steps, keeps what it publishes and settles, and
//! sends what a test tells it to.

use super::packets::{Packet, PacketReader};
use super::wire::{append_answer, append_text, append_varint, packet};

/// A broker with one connection.
#[derive(Default)]
pub(super) struct Server {
    pub(super) packets: PacketReader,
    /// Reason and properties of CONNACK.
    pub(super) connack: (u8, Vec<u8>),
    /// The reason of SUBACK, in place of the QoS that the client asks for.
    pub(super) suback: Option<u8>,
    /// The reason of PUBACK and PUBREC.
    pub(super) reason: u8,
    /// The client's packets, except for those of messages: first octet and fields.
    pub(super) control: Vec<(u8, Vec<u8>)>,
    /// First octet, topic, packet identifier, properties, body.
    pub(super) published: Vec<Published>,
    /// PUBACK, PUBREC, PUBCOMP: first octet and packet identifier.
    pub(super) answers: Vec<(u8, u16)>,
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) first: u8,
    pub(super) topic: Vec<u8>,
    pub(super) id: u16,
    pub(super) properties: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Server {
    /// Takes a client's bytes and appends the answers.
    pub(super) fn received(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut input = bytes;
        let mut packets = std::mem::take(&mut self.packets);
        while let Some(packet) = packets.next(&mut input).unwrap() {
            self.packet(packet, out);
        }
        self.packets = packets;
    }

    fn packet(&mut self, packet: Packet<'_>, out: &mut Vec<u8>) {
        let Packet { first, mut fields } = packet;
        match first {
            _ if first & 0xF0 == packet::PUBLISH => self.publish(packet, out),
            packet::PUBACK | packet::PUBREC | packet::PUBCOMP => {
                let id = fields.u16().unwrap();
                self.answers.push((first, id));
                if first == packet::PUBREC {
                    append_answer(out, packet::PUBREL, id);
                }
            }
            packet::PUBREL => append_answer(out, packet::PUBCOMP, fields.u16().unwrap()),
            _ => {
                self.control.push((first, fields.rest().to_vec()));
                self.control(packet, out);
            }
        }
    }

    fn control(&self, packet: Packet<'_>, out: &mut Vec<u8>) {
        let Packet { first, mut fields } = packet;
        match first {
            packet::CONNECT => append_connack(out, 0, self.connack.0, &self.connack.1),
            packet::SUBSCRIBE => {
                let id = fields.u16().unwrap();
                assert_eq!(fields.properties(), Some(&[][..]));
                fields.text().unwrap();
                let options = fields.u8().unwrap();
                fields.end().unwrap();
                let [high, low] = id.to_be_bytes();
                let reason = self.suback.unwrap_or(options & 3);
                out.extend_from_slice(&[packet::SUBACK, 4, high, low, 0, reason]);
            }
            packet::PINGREQ => out.extend_from_slice(&[packet::PINGRESP, 0]),
            _ => {}
        }
    }

    fn publish(&mut self, packet: Packet<'_>, out: &mut Vec<u8>) {
        let Packet { first, mut fields } = packet;
        let topic = fields.text().unwrap().to_vec();
        let qos = first >> 1 & 3;
        let id = if qos > 0 { fields.u16().unwrap() } else { 0 };
        let properties = fields.properties().unwrap().to_vec();
        let body = fields.rest().to_vec();
        match qos {
            0 => {}
            1 => append_reason(out, packet::PUBACK, id, self.reason),
            _ => append_reason(out, packet::PUBREC, id, self.reason),
        }
        self.published.push(Published {
            first,
            topic,
            id,
            properties,
            body,
        });
    }
}

pub(super) fn append_connack(out: &mut Vec<u8>, flags: u8, reason: u8, properties: &[u8]) {
    out.push(packet::CONNACK);
    append_varint(out, 3 + properties.len());
    out.extend_from_slice(&[flags, reason]);
    append_varint(out, properties.len());
    out.extend_from_slice(properties);
}

/// An answer to a message; success needs no byte.
pub(super) fn append_reason(out: &mut Vec<u8>, packet: u8, id: u16, reason: u8) {
    if reason == 0 {
        return append_answer(out, packet, id);
    }
    let [high, low] = id.to_be_bytes();
    out.extend_from_slice(&[packet, 3, high, low, reason]);
}

/// A message for the reader, with these flags.
pub(super) fn append_message(out: &mut Vec<u8>, flags: u8, id: u16, body: &[u8]) {
    let mut packet = Vec::new();
    append_text(&mut packet, "t");
    if flags & 6 != 0 {
        packet.extend_from_slice(&id.to_be_bytes());
    }
    // A subscription identifier, as an example of a property.
    packet.extend_from_slice(b"\x02\x0B\x05");
    packet.extend_from_slice(body);
    out.push(packet::PUBLISH | flags);
    append_varint(out, packet.len());
    out.extend_from_slice(&packet);
}
