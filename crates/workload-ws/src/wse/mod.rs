//! Dialect `wse`: the protocol of the WSE engine (PyPI `wse-server`), as a load client needs it (`docs/ws/contract.md`).
//!
//! A session is open when the server said `server_ready` and the client its hello. From then on the client must answer the
//! server's pings, or it is closed after a minute.

pub(super) mod messages;
mod pings;
mod stream;

pub use pings::{PingDialogue, WsePings};
pub use stream::{DecodeProof, Question, StreamDialogue, WseMessages};

use plimsoll_core::recorder::Recorder;

use super::formats::Format;
use super::jwt::Credentials;
use super::wire::append_message;
use messages::{Heard, hear};
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::paced::{Message, Opening};
use plimsoll_protocol::websocket::{KEPT_BUFFER_BYTES, Opcode};

/// The close code that follows a refused token.
pub const AUTH_CLOSE_CODE: u16 = 4401;

const CLIENT_HELLO: &str =
    r#"{"t":"client_hello","p":{"client_version":"plimsoll","protocol_version":1}}"#;
const PONG: &str = r#"{"c":"WSE","t":"PONG","p":{},"v":1}"#;

/// The path and query of a session. The server looks at the query only; only a session of MessagePack is asked for.
#[must_use]
pub fn path(format: Format) -> &'static str {
    match format {
        Format::Msgpack => "/wse?format=msgpack&protocol_version=1",
        Format::Json | Format::MsgpackPrefixed | Format::Zlib => {
            "/wse?compression=false&protocol_version=1"
        }
    }
}

/// The endpoint with a token in its request, issued at `now_s` (seconds since 1970). A Cookie or Authorization that the user gave goes before ours.
#[must_use]
pub fn with_token(mut endpoint: Endpoint, credentials: &Credentials, now_s: u64) -> Endpoint {
    let given = endpoint.headers.iter().any(|(name, _)| {
        name.eq_ignore_ascii_case("cookie") || name.eq_ignore_ascii_case("authorization")
    });
    if !given {
        let cookie = format!("access_token={}", credentials.token(now_s));
        endpoint.headers.push(("Cookie".to_owned(), cookie));
    }
    endpoint
}

/// What every session does beside its load: the hello, and answers to the server's pings.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Client frames to be written.
    pub(super) outbox: Vec<u8>,
    /// Where compressed messages are unpacked; stays empty where there are none.
    scratch: Vec<u8>,
}

impl Line {
    /// Takes a message before the session is open.
    pub(super) fn opening(&mut self, message: Message<'_>) -> Opening {
        let heard = hear(message, &mut self.scratch);
        self.scratch = Vec::new();
        match heard {
            Ok(Heard::Ready) => {
                self.say(Opcode::Text, CLIENT_HELLO.as_bytes());
                Opening::Open
            }
            Ok(Heard::Error(code)) => Opening::Refused(format!("refused by the target: {code}")),
            Ok(Heard::Ping) => {
                self.say(Opcode::Text, PONG.as_bytes());
                Opening::More
            }
            Ok(_) => Opening::More,
            Err(fault) => Opening::Refused(fault.to_owned()),
        }
    }

    /// Takes a message of an open session: what it is, its pings answered.
    ///
    /// # Errors
    /// The message cannot be read, or is the server's word that it could not read ours.
    pub(super) fn hear(&mut self, message: Message<'_>) -> Result<Heard, String> {
        let heard = hear(message, &mut self.scratch);
        if self.scratch.capacity() > KEPT_BUFFER_BYTES {
            // A message can unpack to a thousand times its size: that must not stay in every session.
            self.scratch = Vec::new();
        }
        let heard = heard?;
        match &heard {
            Heard::Ping => self.say(Opcode::Text, PONG.as_bytes()),
            Heard::Error(code) => return Err(format!("error message: {code}")),
            _ => {}
        }
        Ok(heard)
    }

    /// The same where only pongs matter: the number of the session's ping that is answered. What is wrong is a protocol fault.
    pub(super) fn pong<C>(
        &mut self,
        message: Message<'_>,
        ids: PingIds,
        recorder: &mut Recorder<C>,
    ) -> Option<u64> {
        match self.hear(message) {
            Ok(Heard::Pong(timestamp)) => {
                let number = ids.number(timestamp);
                if number.is_none() {
                    recorder.protocol_fault("pong for no ping of this session");
                }
                number
            }
            Ok(_) => None,
            Err(fault) => {
                recorder.protocol_fault(&fault);
                None
            }
        }
    }

    /// Adds a message to the outbox.
    pub(super) fn say(&mut self, opcode: Opcode, payload: &[u8]) {
        append_message(&mut self.outbox, opcode, payload);
    }
}

/// The timestamps by which a session's pings are told apart, from each other and from all other sessions': a pong that comes late answers the ping
/// that it is for, and no other.
///
/// All have 16 digits and fit in the 53 bits that any JSON reader keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct PingIds {
    base: u64,
}

impl PingIds {
    const FIRST: u64 = 1_000_000_000_000_000;
    /// Pings that a session may send.
    pub(super) const EACH: u64 = 100_000_000;
    /// The greatest number of a session, beyond which numbers would begin again.
    const SESSIONS: u64 = 10_000_000;

    pub(super) fn of(session: u32) -> Self {
        Self {
            base: Self::FIRST + u64::from(session) % Self::SESSIONS * Self::EACH,
        }
    }

    /// The timestamp of ping `number`, which is below [`PingIds::EACH`].
    pub(super) fn id(self, number: u64) -> u64 {
        self.base + number
    }

    /// The number of the ping that a pong is for; `None` when it is for none of this session.
    pub(super) fn number(self, timestamp: i64) -> Option<u64> {
        let number = u64::try_from(timestamp).ok()?.checked_sub(self.base)?;
        (number < Self::EACH).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::connection::Endpoint;

    #[test]
    fn ids_are_a_sessions_own_and_have_16_digits() {
        for session in [0, 7, 9_999_999] {
            let ids = PingIds::of(session);
            for number in [0, 1, PingIds::EACH - 1] {
                let id = ids.id(number);
                assert_eq!(id.to_string().len(), 16);
                assert!(id < 1 << 53);
                assert_eq!(ids.number(id.cast_signed()), Some(number));
                assert_eq!(
                    PingIds::of(session + 1).number(id.cast_signed()),
                    None,
                    "{id}"
                );
            }
        }
        for strange in [0, -1, i64::MIN, i64::MAX, 1_700_000_000_000] {
            assert_eq!(PingIds::of(0).number(strange), None);
        }
    }

    #[test]
    fn the_token_is_in_the_request_unless_the_user_gave_one() {
        let endpoint = |headers: &[(&str, &str)]| Endpoint {
            host: "h".to_owned(),
            path: path(Format::Json).to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let credentials = Credentials::default();
        let ours = with_token(endpoint(&[]), &credentials, 1);
        assert!(ours.headers[0].1.starts_with("access_token=eyJ"));
        plimsoll_protocol::connection::check(&ours).unwrap();
        let given = endpoint(&[("authorization", "Bearer mine")]);
        let kept = with_token(given.clone(), &credentials, 1);
        assert_eq!(kept.headers, given.headers);
    }
}
