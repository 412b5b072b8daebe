//! What reason codes mean (section 2.4). Codes from 0x80 on are failures.

/// The first failure.
pub(super) const FAILURE: u8 = 0x80;

/// The message went to nobody, because nobody subscribes to its topic.
pub(super) const NO_MATCHING_SUBSCRIBERS: u8 = 0x10;

/// There is no exchange with this packet identifier.
pub(super) const PACKET_ID_NOT_FOUND: u8 = 0x92;

/// A reason in words, with its code.
pub(super) fn words(reason: u8) -> &'static str {
    match reason {
        0x00 => "success (0x00)",
        NO_MATCHING_SUBSCRIBERS => "no matching subscribers (0x10)",
        0x80 => "unspecified error (0x80)",
        0x81 => "malformed packet (0x81)",
        0x82 => "protocol error (0x82)",
        0x83 => "implementation specific error (0x83)",
        0x84 => "unsupported protocol version (0x84)",
        0x85 => "client identifier not valid (0x85)",
        0x86 => "bad user name or password (0x86)",
        0x87 => "not authorized (0x87)",
        0x88 => "server unavailable (0x88)",
        0x89 => "server busy (0x89)",
        0x8A => "banned (0x8A)",
        0x8B => "server shutting down (0x8B)",
        0x8C => "bad authentication method (0x8C)",
        0x8D => "keep alive timeout (0x8D)",
        0x8E => "session taken over (0x8E)",
        0x8F => "topic filter invalid (0x8F)",
        0x90 => "topic name invalid (0x90)",
        0x91 => "packet identifier in use (0x91)",
        PACKET_ID_NOT_FOUND => "packet identifier not found (0x92)",
        0x93 => "receive maximum exceeded (0x93)",
        0x94 => "topic alias invalid (0x94)",
        0x95 => "packet too large (0x95)",
        0x96 => "message rate too high (0x96)",
        0x97 => "quota exceeded (0x97)",
        0x98 => "administrative action (0x98)",
        0x99 => "payload format invalid (0x99)",
        0x9A => "retain not supported (0x9A)",
        0x9B => "QoS not supported (0x9B)",
        0x9C => "use another server (0x9C)",
        0x9D => "server moved (0x9D)",
        0x9E => "shared subscriptions not supported (0x9E)",
        0x9F => "connection rate exceeded (0x9F)",
        0xA0 => "maximum connect time (0xA0)",
        0xA1 => "subscription identifiers not supported (0xA1)",
        0xA2 => "wildcard subscriptions not supported (0xA2)",
        _ => "a reason that the standard does not have",
    }
}
