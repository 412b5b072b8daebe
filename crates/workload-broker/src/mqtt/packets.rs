//! Bytes to packets (section 2.1).
//!
//! A packet that lies whole inside what one read gave is handed on as a borrow of it. A torn one is gathered once, in a
//! buffer that is kept.

use super::wire::{Fields, varint};
use crate::dialect::Fault;

/// The longest message that a reader takes. It bounds what a hostile broker can make us hold.
pub const BODY_MAX_BYTES: usize = 8 << 20;

/// The longest packet that we accept: such a message, its topic, its properties. We tell the broker.
pub(super) const PACKET_MAX_BYTES: u32 = (8 << 20) + (128 << 10);

/// A packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Type and flags.
    pub(super) first: u8,
    /// All behind the fixed header.
    pub(super) fields: Fields<'a>,
}

/// Reads packets.
#[derive(Debug, Default)]
pub(super) struct PacketReader {
    /// The beginning of a torn packet.
    partial: Vec<u8>,
    /// The packet in `partial` was handed on.
    handed_on: bool,
}

/// A fixed header.
#[derive(Debug, Clone, Copy)]
struct Head {
    first: u8,
    /// Its own length.
    len: usize,
    /// The length of the packet, header included.
    whole: usize,
}

impl PacketReader {
    /// The memory that torn packets take.
    pub(super) fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Takes the next packet from the front of `input`. `None`: all of `input` is taken, and there is no more.
    #[inline]
    pub(super) fn next<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Packet<'p>>, Fault> {
        if self.handed_on {
            self.handed_on = false;
            self.partial.clear();
        }
        if !self.partial.is_empty() {
            return self.next_of_torn(input);
        }
        if let Some(head) = head(input)?
            && let Some((bytes, rest)) = input.split_at_checked(head.whole)
        {
            *input = rest;
            return Ok(Some(packet(head, bytes)));
        }
        self.partial.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    fn next_of_torn<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Packet<'p>>, Fault> {
        let head = loop {
            if let Some(head) = head(&self.partial)? {
                break head;
            }
            let Some((octet, rest)) = input.split_first() else {
                return Ok(None);
            };
            self.partial.push(*octet);
            *input = rest;
        };
        let missing = head.whole - self.partial.len();
        let (bytes, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(bytes);
        *input = rest;
        if self.partial.len() < head.whole {
            return Ok(None);
        }
        self.handed_on = true;
        Ok(Some(packet(head, &self.partial)))
    }
}

fn packet(head: Head, bytes: &[u8]) -> Packet<'_> {
    Packet {
        first: head.first,
        fields: Fields::new(&bytes[head.len..]),
    }
}

/// The fixed header at the front, or `None` if more must come.
#[inline]
fn head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let Some((first, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    match varint(rest) {
        Ok(None) => Ok(None),
        Ok(Some((len, used))) if u32::try_from(len).is_ok_and(|len| len < PACKET_MAX_BYTES) => {
            Ok(Some(Head {
                first: *first,
                len: 1 + used,
                whole: 1 + used + len,
            }))
        }
        _ => Err(Fault(format!(
            "the broker sent a packet ({first:#04x}) whose length is malformed or over {PACKET_MAX_BYTES} bytes"
        ))),
    }
}
