//! What a header block says.

use super::hpack::{Decoder, FieldList, HpackFlaw};
use super::violation::Malformed;
use crate::h1::decimal;

/// A decoded block: its pseudo-header fields, and what frames the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// `:status`, from 100 to 599.
    pub(super) status: Option<u16>,
    pub(super) content_length: Option<u64>,
    /// Whether there is `:method`, `:path` and `:scheme`; only requests have them.
    pub(super) request_fields: u8,
    pub(super) malformed: Option<Malformed>,
}

/// All three that a request must have.
pub(super) const REQUEST_FIELDS: u8 = 0b111;

/// Decodes the blocks of a connection.
///
/// In a load, answers repeat themselves byte for byte. If a block is equal to the last one and neither changed the
/// table, its fields are the same too.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadDecoder {
    decoder: Decoder,
    fields: FieldList,
    facts: Facts,
    last_block: Vec<u8>,
    /// Whether `last_block` would mean the same again.
    is_repeatable: bool,
}

/// A block as long as this is not kept for comparison.
const LAST_BLOCK_MAX_BYTES: usize = 1024;

impl HeadDecoder {
    pub(super) fn held_bytes(&self) -> usize {
        self.decoder.held_bytes() + self.fields.held_bytes() + self.last_block.capacity()
    }

    #[inline]
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<(Facts, &FieldList), HpackFlaw> {
        if !self.is_repeatable || self.last_block != block {
            self.decode_anew(block)?;
        }
        Ok((self.facts, &self.fields))
    }

    fn decode_anew(&mut self, block: &[u8]) -> Result<(), HpackFlaw> {
        let before = self.decoder.generation();
        self.is_repeatable = false;
        self.decoder.decode(block, &mut self.fields)?;
        self.facts = facts(&self.fields);
        if self.decoder.generation() == before && block.len() <= LAST_BLOCK_MAX_BYTES {
            self.last_block.clear();
            self.last_block.extend_from_slice(block);
            self.is_repeatable = true;
        }
        Ok(())
    }
}

fn facts(fields: &FieldList) -> Facts {
    let mut facts = Facts::default();
    if let Err(malformed) = look_at(fields, &mut facts) {
        facts.malformed = Some(malformed);
    }
    facts
}

fn look_at(fields: &FieldList, facts: &mut Facts) -> Result<(), Malformed> {
    let mut is_behind_pseudo = false;
    let mut seen = 0u8;
    for (name, value) in fields.iter() {
        if let [b':', pseudo @ ..] = name {
            let bit = match pseudo {
                b"method" => 0b1,
                b"path" => 0b10,
                b"scheme" => 0b100,
                b"authority" => 0b1000,
                b"status" => 0b1_0000,
                _ => return Err(Malformed::PseudoFields),
            };
            if is_behind_pseudo || seen & bit != 0 {
                return Err(Malformed::PseudoFields);
            }
            seen |= bit;
            if pseudo == b"status" {
                facts.status = Some(status(value)?);
            }
            continue;
        }
        is_behind_pseudo = true;
        look_at_field(name, value, facts)?;
    }
    if seen & 0b1_0000 != 0 && seen & 0b1111 != 0 {
        return Err(Malformed::PseudoFields);
    }
    facts.request_fields = seen & REQUEST_FIELDS;
    Ok(())
}

fn status(value: &[u8]) -> Result<u16, Malformed> {
    let is_three_digits = value.len() == 3;
    decimal(value)
        .filter(|status| is_three_digits && (100..600).contains(status) && *status != 101)
        .map(|status| status as u16)
        .ok_or(Malformed::Status)
}

/// RFC 9113, section 8.2: names are in lower case, and nothing may smuggle a line into HTTP/1.1.
fn look_at_field(name: &[u8], value: &[u8], facts: &mut Facts) -> Result<(), Malformed> {
    let is_name_byte =
        |byte: &u8| matches!(byte, 0x21..=0x7E) && !byte.is_ascii_uppercase() && *byte != b':';
    let is_value_byte = |byte: &u8| !matches!(byte, b'\0' | b'\r' | b'\n');
    if name.is_empty() || !name.iter().all(is_name_byte) || !value.iter().all(is_value_byte) {
        return Err(Malformed::Field);
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err(Malformed::ConnectionField)
        }
        b"te" if value != b"trailers" => Err(Malformed::ConnectionField),
        b"content-length" => {
            let length = decimal(value).ok_or(Malformed::ContentLength)?;
            match facts.content_length.replace(length) {
                None => Ok(()),
                Some(_) => Err(Malformed::ContentLength),
            }
        }
        _ => Ok(()),
    }
}
