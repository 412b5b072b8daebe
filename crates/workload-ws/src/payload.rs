//! What the messages of a load contain: a small JSON object, and messages of a size that is exact to the byte.

use thiserror::Error;

use plimsoll_protocol::websocket::Opcode;

/// The object as JSON text: 175 bytes.
pub const TRADE_UPDATE: &str = concat!(
    r#"{"t":"trade_update","p":{"symbol":"ETH-USDC","side":"buy","price":3187.42,"qty":250,"ts":1700000000000,"#,
    r#""account":"bench-account-00007","tags":["algo","limit"],"score":0.8731}}"#,
);

/// A message that says nothing but its type and its padding: for sizes below the object's.
const SMALL: &str = r#"{"t":"trade_update","p":{"data":""}}"#;
/// What padding adds to the object.
const FIELD: &str = r#","data":"""#;

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// [`Opcode::Text`] or [`Opcode::Binary`].
    pub opcode: Opcode,
    /// Its bytes; UTF-8 if it is a text.
    pub bytes: Vec<u8>,
}

/// A size that no message of the kind can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a message of {bytes} bytes is too short; use at least {least}")]
pub struct TooSmall {
    /// What was asked for.
    pub bytes: usize,
    /// The least there is.
    pub least: usize,
}

impl Content {
    /// That object.
    #[must_use]
    pub fn trade_update() -> Self {
        Self::text(TRADE_UPDATE.to_owned())
    }

    /// A JSON message of exactly so many bytes: the object with padding, or padding alone where the object is too long.
    ///
    /// # Errors
    /// There is no such short message.
    pub fn json_of(bytes: usize) -> Result<Self, TooSmall> {
        let with_padding = TRADE_UPDATE.len() + FIELD.len();
        Ok(Self::text(if bytes == TRADE_UPDATE.len() {
            TRADE_UPDATE.to_owned()
        } else if bytes >= with_padding {
            let object = TRADE_UPDATE.trim_end_matches("}}");
            let padding = "x".repeat(bytes - with_padding);
            format!(r#"{object},"data":"{padding}"}}}}"#)
        } else if bytes >= SMALL.len() {
            let padding = "x".repeat(bytes - SMALL.len());
            format!(r#"{{"t":"trade_update","p":{{"data":"{padding}"}}}}"#)
        } else {
            return Err(TooSmall {
                bytes,
                least: SMALL.len(),
            });
        }))
    }

    /// A text of exactly so many bytes that no server has reason to read.
    #[must_use]
    pub fn filler(bytes: usize) -> Self {
        Self::text((b'a'..=b'z').cycle().take(bytes).map(char::from).collect())
    }

    fn text(text: String) -> Self {
        Self {
            opcode: Opcode::Text,
            bytes: text.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_object_has_the_public_suites_size_and_fields() {
        assert_eq!(TRADE_UPDATE.len(), 175);
        let object: serde_json::Value = serde_json::from_str(TRADE_UPDATE).unwrap();
        let fields = object["p"].as_object().unwrap();
        assert_eq!(fields.len(), 8);
        assert_eq!(object["p"]["tags"].as_array().unwrap().len(), 2);
    }

    /// Fault 6: a nominal 64 that is 54, 1024 that is 1014, and so on.
    #[test]
    fn sizes_are_exact() {
        for bytes in [64, 256, 1_024, 4_096, 16_384, 65_536] {
            assert_eq!(Content::json_of(bytes).unwrap().bytes.len(), bytes);
        }
        assert_eq!(
            Content::json_of(35).unwrap_err().to_string(),
            "a message of 35 bytes is too short; use at least 36"
        );
    }

    proptest! {
        #[test]
        fn every_size_is_exact_and_valid(bytes in 36_usize..2_000) {
            let content = Content::json_of(bytes).unwrap();
            prop_assert_eq!(content.bytes.len(), bytes);
            let value: serde_json::Value = serde_json::from_slice(&content.bytes).unwrap();
            prop_assert_eq!(&value["t"], "trade_update");
            prop_assert_eq!(Content::filler(bytes).bytes.len(), bytes);
        }
    }
}
