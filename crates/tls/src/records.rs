//! How much of an unfinished record has come. Nothing of a record can be used before its last byte is there.

/// Type, version and length.
const HEADER_BYTES: usize = 5;

/// Follows the records of a stream by their headers.
#[derive(Debug, Default)]
pub(crate) struct Records {
    header: [u8; HEADER_BYTES],
    /// Bytes of the unfinished record; 0 between two records.
    seen: usize,
}

impl Records {
    /// These bytes came.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let wanted = match self.seen {
                seen if seen < HEADER_BYTES => HEADER_BYTES - seen,
                seen => HEADER_BYTES + self.body_bytes() - seen,
            };
            let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
            if self.seen < HEADER_BYTES {
                self.header[self.seen..][..taken.len()].copy_from_slice(taken);
            }
            self.seen += taken.len();
            if self.seen >= HEADER_BYTES && self.seen == HEADER_BYTES + self.body_bytes() {
                self.seen = 0;
            }
            bytes = rest;
        }
    }

    /// Bytes of the record that is not finished.
    pub(crate) fn unfinished(&self) -> usize {
        self.seen
    }

    fn body_bytes(&self) -> usize {
        usize::from(u16::from_be_bytes([self.header[3], self.header[4]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body_bytes: u16) -> Vec<u8> {
        let mut record = vec![23, 3, 3];
        record.extend(body_bytes.to_be_bytes());
        record.extend(vec![9; body_bytes.into()]);
        record
    }

    #[test]
    fn only_the_last_record_can_be_unfinished() {
        let stream = [record(0), record(3), record(700), record(1)].concat();
        let ends = [5, 13, 718, 724];
        for step in [1, 2, 5, 6, 300, 1000] {
            let mut records = Records::default();
            let mut passed = 0;
            for piece in stream.chunks(step) {
                records.pass(piece);
                passed += piece.len();
                let begun = ends.into_iter().rev().find(|end| *end <= passed);
                assert_eq!(records.unfinished(), passed - begun.unwrap_or(0));
            }
        }
    }
}
