//! The marks of section 4 of the contract. An honest gateway carries them and reads none. The liar reads them to know what
//! to forge, and writes them to forge.

use rustix::time::{ClockId, clock_gettime};

/// 20 ms of a caller's audio.
pub const CALLER_BLOCK_BYTES: usize = 640;
/// The mark at its head.
pub const CALLER_MARK_BYTES: usize = 16;
/// 20 ms of a reply's audio.
pub const REPLY_BLOCK_BYTES: usize = 960;
/// The mark at its head.
pub const REPLY_MARK_BYTES: usize = 40;

/// What a block of a caller's audio begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerMark {
    /// The caller.
    pub caller: u32,
    /// The number of the block, from 1.
    pub block: u32,
    /// Whether the caller speaks in it.
    pub speech: bool,
    /// Whether an utterance ends with it.
    pub last: bool,
}

impl CallerMark {
    /// Reads it; `None` if none is there.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let mark = block.first_chunk::<CALLER_MARK_BYTES>()?;
        (mark[..4] == *b"PVU1").then(|| Self {
            caller: u32_at(mark, 4),
            block: u32_at(mark, 8),
            speech: mark[12] & 1 != 0,
            last: mark[12] & 2 != 0,
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; CALLER_MARK_BYTES] {
        let mut bytes = [0; CALLER_MARK_BYTES];
        bytes[..4].copy_from_slice(b"PVU1");
        bytes[4..8].copy_from_slice(&self.caller.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.block.to_le_bytes());
        bytes[12] = u8::from(self.speech) + 2 * u8::from(self.last);
        bytes
    }
}

/// What a block of a reply begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyMark {
    /// The caller that it is for.
    pub caller: u32,
    /// The turn that it answers.
    pub turn: u32,
    /// How often the provider had been asked for it.
    pub request: u32,
    /// The number of the block, from 1.
    pub block: u32,
    /// How many the reply has.
    pub blocks: u32,
    /// When the provider had read the request.
    pub read_ns: u64,
    /// When it handed the block over.
    pub handed_ns: u64,
}

impl ReplyMark {
    /// Reads it; `None` if none is there.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let mark = block.first_chunk::<REPLY_MARK_BYTES>()?;
        (mark[..4] == *b"PVD1").then(|| Self {
            caller: u32_at(mark, 4),
            turn: u32_at(mark, 8),
            request: u32_at(mark, 12),
            block: u32_at(mark, 16),
            blocks: u32_at(mark, 20),
            read_ns: u64_at(mark, 24),
            handed_ns: u64_at(mark, 32),
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; REPLY_MARK_BYTES] {
        let mut bytes = [0; REPLY_MARK_BYTES];
        bytes[..4].copy_from_slice(b"PVD1");
        let numbers = [self.caller, self.turn, self.request, self.block, self.blocks];
        for (place, number) in bytes[4..24].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&self.read_ns.to_le_bytes());
        bytes[32..].copy_from_slice(&self.handed_ns.to_le_bytes());
        bytes
    }
}

/// The caller and the turn that a text to be spoken names; `None` if it names none.
#[must_use]
pub fn speak_mark(text: &str) -> Option<(u32, u32)> {
    let (mark, _) = text.strip_prefix('#')?.split_once(' ')?;
    let (caller, turn) = mark.split_once('.')?;
    Some((caller.parse().ok()?, turn.parse().ok()?))
}

/// What a transcript of these blocks begins with.
#[must_use]
pub fn transcript_mark(caller: u32, from: u32, to: u32, read_ns: u64, handed_ns: u64) -> String {
    format!("#{caller} {from}-{to} {read_ns} {handed_ns} ")
}

/// The time of the marks: `CLOCK_MONOTONIC`.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn cases() -> Vec<Value> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/marks.json");
        let vectors: Value = serde_json::from_str(&std::fs::read_to_string(file).expect(file)).expect("JSON");
        vectors["cases"].as_array().expect("cases").clone()
    }

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn marks_are_those_of_the_vectors() {
        let mut seen = 0;
        for case in cases() {
            let number = |name: &str| case[name].as_u64().unwrap_or_else(|| panic!("{name} in {case}"));
            let small = |name: &str| u32::try_from(number(name)).expect("u32");
            match case["id"].as_str().expect("id") {
                "caller" | "caller-silent" => {
                    let (speech, last) = (case["speech"] == true, case["last"] == true);
                    let mark = CallerMark { caller: small("vu"), block: small("block"), speech, last };
                    assert_eq!(case["bytes"], hexadecimal(&mark.bytes()));
                    assert_eq!(CallerMark::read(&mark.bytes()), Some(mark));
                }
                "reply" => {
                    let mark = ReplyMark {
                        caller: small("vu"),
                        turn: small("turn"),
                        request: small("request"),
                        block: small("block"),
                        blocks: small("blocks"),
                        read_ns: number("read_ns"),
                        handed_ns: number("handed_ns"),
                    };
                    assert_eq!(case["bytes"], hexadecimal(&mark.bytes()));
                    assert_eq!(ReplyMark::read(&mark.bytes()), Some(mark));
                }
                "speak" => {
                    let text = format!("{}hello", case["text"].as_str().expect("text"));
                    assert_eq!(speak_mark(&text), Some((small("vu"), small("turn"))));
                }
                "transcript" => {
                    let blocks = (small("from"), small("to"));
                    let mark = transcript_mark(small("vu"), blocks.0, blocks.1, number("read_ns"), number("handed_ns"));
                    assert_eq!(case["text"], mark);
                }
                other => panic!("a case that this test does not know: {other}"),
            }
            seen += 1;
        }
        assert!(seen >= 5, "{seen}");
    }

    #[test]
    fn what_is_no_mark_is_none() {
        assert_eq!(CallerMark::read(&[0; CALLER_BLOCK_BYTES]), None);
        assert_eq!(ReplyMark::read(&[0; REPLY_BLOCK_BYTES]), None);
        assert_eq!(CallerMark::read(b"PVU1"), None, "too short");
        for text in ["", "#", "#1 x", "1.2 x", "#1.x y"] {
            assert_eq!(speak_mark(text), None, "{text}");
        }
    }
}
