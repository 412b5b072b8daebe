//! Blocks of a kind of message, made once for each state of the table.

use super::encoder::append_string;
use super::{Encoder, Indexing, integer};

/// The index of a name `:path` in the static table.
const PATH_INDEX: usize = 4;

/// A part of a kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A field that is always the same; the name is in lower case.
    Field(Box<[u8]>, Box<[u8]>),
    /// `:path` with this beginning, and the number of the message behind it.
    NumberedPath(Box<[u8]>),
}

/// The header block of a kind of message on one connection.
///
/// Once all fields are in the tables, a block is a few bytes that are copied; only a numbered path is encoded anew.
#[derive(Debug, Clone, Default)]
pub struct CachedBlock {
    /// The state of the encoder's table for which the bytes hold.
    generation: Option<u32>,
    bytes: Vec<u8>,
    /// Where the numbered path stands between the bytes, if there is one.
    path_at: usize,
}

impl CachedBlock {
    /// Appends the block of a message; `number` is its number in decimal digits.
    #[inline]
    pub fn append(
        &mut self,
        parts: &[Part],
        number: &[u8],
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) {
        if self.generation != Some(encoder.generation()) {
            return self.encode(parts, number, encoder, out);
        }
        let path = parts.iter().find_map(|part| match part {
            Part::NumberedPath(start) => Some(start),
            Part::Field(..) => None,
        });
        if let Some(start) = path {
            out.extend_from_slice(&self.bytes[..self.path_at]);
            append_path(start, number, out);
            out.extend_from_slice(&self.bytes[self.path_at..]);
        } else {
            out.extend_from_slice(&self.bytes);
        }
    }

    #[cold]
    fn encode(&mut self, parts: &[Part], number: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
        encoder.begin(out);
        let generation = encoder.generation();
        self.bytes.clear();
        for part in parts {
            let start = out.len();
            match part {
                Part::Field(name, value) => {
                    encoder.field(name, value, Indexing::Incremental, out);
                    self.bytes.extend_from_slice(&out[start..]);
                }
                Part::NumberedPath(path) => {
                    self.path_at = self.bytes.len();
                    append_path(path, number, out);
                }
            }
        }
        // If fields entered the table, that has another generation now, and the next block is encoded anew.
        self.generation = Some(generation);
    }
}

fn append_path(start: &[u8], number: &[u8], out: &mut Vec<u8>) {
    integer::append(out, 0x00, 4, PATH_INDEX);
    append_string([start, number], out);
}
