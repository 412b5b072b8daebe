//! The chunked coding (RFC 9112, section 7.1), wherever it is cut. Line ends are CR LF and nothing else: a server that
//! takes others may see another end of a request than a proxy before it.

/// Most bytes of extensions, or of trailers.
const EXTRA_BYTES_MAX: usize = 16 * 1024;

/// Most digits of a chunk's size.
const DIGITS_MAX: u8 = 15;

/// Not the chunked coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// How far it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { value: usize, digits: u8 },
    Extension { value: usize },
    SizeLf { value: usize },
    Data { left: usize },
    DataCr,
    DataLf,
    TrailerBegin,
    Trailer { has_colon: bool },
    TrailerLf,
    EndLf,
    End,
}

const BEGIN: State = State::Size { value: 0, digits: 0 };

/// A body in chunks.
#[derive(Debug, Clone)]
pub struct Chunks {
    state: State,
    extra_bytes: usize,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { state: BEGIN, extra_bytes: 0 }
    }
}

impl Chunks {
    /// Whether the body has ended.
    pub fn has_ended(&self) -> bool {
        self.state == State::End
    }

    /// Takes from `input` up to the next piece of the body, which it returns; none at the end of the input or of the body.
    ///
    /// # Errors
    /// When it is not the chunked coding.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Broken> {
        while let Some((byte, rest)) = input.split_first() {
            match self.state {
                State::End => return Ok(None),
                State::Data { left } => {
                    let (piece, rest) = input.split_at(left.min(input.len()));
                    *input = rest;
                    let left = left - piece.len();
                    self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                    return Ok(Some(piece));
                }
                state => {
                    self.state = self.after(state, *byte)?;
                    *input = rest;
                }
            }
        }
        Ok(None)
    }

    fn after(&mut self, state: State, byte: u8) -> Result<State, Broken> {
        Ok(match (state, byte) {
            (State::Size { value, digits }, _) if byte.is_ascii_hexdigit() && digits < DIGITS_MAX => {
                let digit = char::from(byte).to_digit(16).ok_or(Broken)? as usize;
                State::Size { value: value << 4 | digit, digits: digits + 1 }
            }
            (State::Size { value, digits: 1.. }, b'\r') => State::SizeLf { value },
            (State::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => State::Extension { value },
            (State::Extension { value }, b'\r') => State::SizeLf { value },
            (State::Extension { .. }, b' '..=0x7E | b'\t' | 0x80..) => self.extra(state)?,
            (State::SizeLf { value: 0 }, b'\n') => State::TrailerBegin,
            (State::SizeLf { value }, b'\n') => State::Data { left: value },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => BEGIN,
            (State::TrailerBegin, b'\r') => State::EndLf,
            (State::TrailerBegin, _) if byte.is_ascii_alphanumeric() => {
                self.extra(State::Trailer { has_colon: false })?
            }
            (State::Trailer { has_colon: true }, b'\r') => State::TrailerLf,
            (State::Trailer { .. }, b':') => self.extra(State::Trailer { has_colon: true })?,
            (State::Trailer { has_colon: false }, b' ' | b'\t') => return Err(Broken),
            (State::Trailer { .. }, b' '..=0x7E | b'\t' | 0x80..) => self.extra(state)?,
            (State::TrailerLf, b'\n') => State::TrailerBegin,
            (State::EndLf, b'\n') => State::End,
            _ => return Err(Broken),
        })
    }

    /// Goes on within what carries nothing, unless there is too much of it.
    fn extra(&mut self, state: State) -> Result<State, Broken> {
        self.extra_bytes += 1;
        if self.extra_bytes > EXTRA_BYTES_MAX { Err(Broken) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The body, whether it has ended, and what is left of the input.
    fn read(bytes: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, bool, usize), Broken> {
        let (mut chunks, mut body, mut rest) = (Chunks::default(), Vec::new(), bytes);
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() && !chunks.has_ended() {
            let (mut now, later) = rest.split_at((*cuts.next().expect("a cut")).min(rest.len()));
            let before = now.len();
            while let Some(piece) = chunks.next(&mut now)? {
                body.extend_from_slice(piece);
            }
            assert!(now.is_empty() || chunks.has_ended());
            rest = &rest[before - now.len()..];
            let _ = later;
        }
        Ok((body, chunks.has_ended(), rest.len()))
    }

    #[test]
    fn bodies() {
        for (bytes, body, left) in [
            ("0\r\n\r\n", "", 0),
            ("5\r\nhello\r\n0\r\n\r\nGET /", "hello", 5),
            ("00a;x=\"y z\"\r\n0123456789\r\n1 ; q\r\n!\r\n0;z\r\n\r\n", "0123456789!", 0),
            ("1\r\na\r\n0\r\nName: value\r\nB:\r\n\r\n", "a", 0),
        ] {
            for cut in 1..bytes.len() {
                assert_eq!(read(bytes.as_bytes(), &[cut]), Ok((body.into(), true, left)), "{bytes:?} by {cut}");
            }
        }
        assert_eq!(read(b"5\r\nhel", &[99]), Ok((b"hel".to_vec(), false, 0)));
    }

    #[test]
    fn broken_bodies() {
        let endless = format!("1;{}", "x".repeat(20_000));
        for bytes in [
            "\r\n",
            ";\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            " 1\r\n",
            "1\na",
            "1\rx",
            "1\r\nab",
            "1\r\na\n",
            "1\r\na\rx",
            "0\r\n\n",
            "0\r\nname\r\n",
            "0\r\nna me: x\r\n",
            "0\r\n folded\r\n",
            "1000000000000000\r\n",
            "0\r\n\rx",
            "1;\0",
            &endless,
        ] {
            assert_eq!(read(bytes.as_bytes(), &[7]), Err(Broken), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_coded_is_read(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..10),
            cuts in prop::collection::vec(1..80_usize, 1..10),
        ) {
            let mut bytes = Vec::new();
            for piece in &pieces {
                bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\nmore");
            prop_assert_eq!(read(&bytes, &cuts), Ok((pieces.concat(), true, 4)));
        }

        #[test]
        fn no_input_is_too_strange(bytes in prop::collection::vec(prop::sample::select(b"01aF;\r\n: x\0".to_vec()), 0..60)) {
            let _ = read(&bytes, &[3]);
        }
    }
}
