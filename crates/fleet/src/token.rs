//! The token that coordinator and agents share, and the proof that one has it.

use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use rustls::crypto::ring;
use sha2::Sha256;

/// The length of a token.
const BYTES: usize = 32;

/// 32 random bytes. It shows itself nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Token([redacted])")
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It holds something else.
    #[error("it does not hold 64 hex digits; remove it, and the coordinator makes a new one")]
    NotOne,
}

/// Who proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prover {
    /// The command that coordinates.
    Coordinator,
    /// The agent.
    Agent,
}

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; BYTES];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .map_err(|_| std::io::Error::other("this system has no random bytes"))?;
        Ok(Self(bytes))
    }

    /// The token as its file holds it: 64 hex digits.
    #[must_use]
    pub fn digits(&self) -> String {
        hex(&self.0)
    }

    /// Reads the token of a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn read(file: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(file)?;
        let bytes = from_hex(text.trim()).ok_or(TokenError::NotOne)?;
        Ok(Self(bytes))
    }

    /// Reads the token of a file, or makes both if there is no such file. Then only its owner may read it.
    /// Returns whether it was made.
    ///
    /// # Errors
    /// The file cannot be read or made, or holds something else.
    pub fn read_or_make(file: &Path) -> Result<(Self, bool), TokenError> {
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file);
        match made {
            Ok(mut made) => {
                let token = Self::random()?;
                writeln!(made, "{}", token.digits())?;
                Ok((token, true))
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Ok((Self::read(file)?, false))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn mac(&self, prover: Prover, exported: &[u8]) -> Option<Hmac<Sha256>> {
        let who: &[u8] = match prover {
            Prover::Coordinator => b"plimsoll coordinator ",
            Prover::Agent => b"plimsoll agent ",
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(who);
        mac.update(exported);
        Some(mac)
    }

    /// The proof that this side has the token, for the connection of which TLS exported this.
    #[must_use]
    pub fn proof(&self, prover: Prover, exported: &[u8]) -> String {
        let mac = self.mac(prover, exported);
        mac.map_or_else(String::new, |mac| hex(&mac.finalize().into_bytes()))
    }

    /// Whether the other side has it. Takes as long for a wrong proof as for a right one.
    #[must_use]
    pub fn is_proven(&self, prover: Prover, exported: &[u8], proof: &str) -> bool {
        let (Some(mac), Some(proof)) = (self.mac(prover, exported), from_hex::<BYTES>(proof))
        else {
            return false;
        };
        mac.verify_slice(&proof).is_ok()
    }
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly so many bytes from hex digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_the_owners() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let (token, made) = Token::read_or_make(&file).expect("made");
        assert!(made);
        let mode = std::fs::metadata(&file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            Token::read_or_make(&file).expect("read"),
            (token.clone(), false)
        );
        assert_eq!(Token::read(&file).expect("read"), token);
        assert!(!format!("{token:?}").contains(&token.digits()));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        for text in [
            "",
            "00ff",
            &"0".repeat(63),
            &"g".repeat(64),
            &"ä".repeat(32),
            "+f".repeat(32).as_str(),
        ] {
            std::fs::write(&file, text).expect("written");
            let refused = Token::read_or_make(&file).expect_err(text).to_string();
            assert!(refused.contains("64 hex digits"), "{refused}");
        }
        assert!(Token::read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_proof_is_of_one_token_one_side_and_one_connection() {
        let (token, other) = (Token([7; BYTES]), Token([8; BYTES]));
        let proof = token.proof(Prover::Agent, b"exported");
        assert!(token.is_proven(Prover::Agent, b"exported", &proof));
        assert!(!other.is_proven(Prover::Agent, b"exported", &proof));
        assert!(!token.is_proven(Prover::Coordinator, b"exported", &proof));
        assert!(!token.is_proven(Prover::Agent, b"another", &proof));
        for wrong in ["", "00", &proof[2..], &proof.replace(&proof[..1], "g")] {
            assert!(!token.is_proven(Prover::Agent, b"exported", wrong));
        }
    }
}
