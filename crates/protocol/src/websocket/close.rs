//! Close codes and close payloads (RFC 6455, sections 5.5.1 and 7.4).

use super::CONTROL_PAYLOAD_MAX_BYTES;
use super::decoder::Violation;

/// The peer has done what it came for.
pub const NORMAL: u16 = 1000;
/// The endpoint goes away, as a server that shuts down.
pub const GOING_AWAY: u16 = 1001;
/// The peer broke the protocol.
pub const PROTOCOL_ERROR: u16 = 1002;
/// The peer sent a kind of data that the endpoint does not take.
pub const UNSUPPORTED_DATA: u16 = 1003;
/// The peer sent a message too big to process.
pub const MESSAGE_TOO_BIG: u16 = 1009;
/// The server is overloaded (IANA registry; named "try again later").
pub const TRY_AGAIN_LATER: u16 = 1013;

/// What a close frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseFrame<'a> {
    /// The close code; `None` when the frame was empty, which the RFC reads as 1005, "no status".
    pub code: Option<u16>,
    /// The reason; often empty.
    pub reason: &'a str,
}

impl<'a> CloseFrame<'a> {
    /// Reads a close frame's payload.
    ///
    /// # Errors
    /// The payload is one byte long, its code may not be sent, or its reason is not UTF-8.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Violation> {
        match payload {
            [] => Ok(Self {
                code: None,
                reason: "",
            }),
            [_] => Err(Violation::ClosePayloadOfOneByte),
            [high, low, reason @ ..] => {
                let code = u16::from_be_bytes([*high, *low]);
                if !may_be_sent(code) {
                    return Err(Violation::CloseCode(code));
                }
                let reason =
                    std::str::from_utf8(reason).map_err(|_| Violation::CloseReasonNotUtf8)?;
                Ok(Self {
                    code: Some(code),
                    reason,
                })
            }
        }
    }
}

/// Whether a close code may appear in a close frame.
///
/// 1004, 1005, 1006 and 1015 are reserved and must not be sent; 1012 to 1014 are in the IANA registry; the rest of
/// 1000 to 2999 is not defined; 3000 to 4999 belong to libraries and applications (RFC 6455, section 7.4.2).
#[must_use]
pub fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// The payload of a close frame. A reason too long for a control frame is cut at a character boundary.
#[must_use]
pub fn payload(code: u16, reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(CONTROL_PAYLOAD_MAX_BYTES - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = Vec::with_capacity(2 + end);
    bytes.extend_from_slice(&code.to_be_bytes());
    bytes.extend_from_slice(&reason.as_bytes()[..end]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_may_be_sent() {
        for code in [1000, 1001, 1002, 1003, 1007, 1011, 1012, 1014, 3000, 4999] {
            assert!(may_be_sent(code), "{code}");
        }
        for code in [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
            assert!(!may_be_sent(code), "{code}");
        }
    }

    #[test]
    fn payload_reads_back() {
        let bytes = payload(TRY_AGAIN_LATER, "über");
        let close = CloseFrame::parse(&bytes).expect("legal");
        assert_eq!(close.code, Some(1013));
        assert_eq!(close.reason, "über");
    }

    #[test]
    fn long_reason_is_cut_between_characters() {
        let bytes = payload(NORMAL, &"é".repeat(100));
        assert_eq!(bytes.len(), 124, "61 two-byte characters fit");
        assert!(CloseFrame::parse(&bytes).is_ok());
    }

    #[test]
    fn broken_payloads() {
        assert_eq!(CloseFrame::parse(&[]).map(|c| c.code), Ok(None));
        assert_eq!(
            CloseFrame::parse(&[3]),
            Err(Violation::ClosePayloadOfOneByte)
        );
        assert_eq!(
            CloseFrame::parse(&[0x03, 0xED]),
            Err(Violation::CloseCode(1005))
        );
        assert_eq!(
            CloseFrame::parse(&[0x03, 0xE8, 0xFF]),
            Err(Violation::CloseReasonNotUtf8)
        );
    }
}
