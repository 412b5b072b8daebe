//! A WebSocket (RFC 6455) client codec without I/O.
//!
//! It is written for a load engine: thousands of sessions, small frames, and an answer that must be believed. So it is
//!
//! - **sans-IO**: bytes in, events out; sockets, clocks and randomness (the key, the masks) belong to the caller;
//! - **strict**: a server that breaks a rule of the RFC is reported with a typed [`Violation`], never tolerated;
//! - **cheap**: a frame that lies whole inside the bytes just read is handed on as a borrow of them, and a session
//!   that never sees a torn frame never allocates.
//!
//! | module | what it does |
//! |---|---|
//! | [`handshake`] | the upgrade request, and the incremental, bounded parser of its answer |
//! | [`frame`] | client frames: header, mask, and a builder that can also break every rule, for conformance checks |
//! | [`decoder`] | server frames: bytes to [`Event`]s |
//! | [`close`] | close codes and close payloads (RFC 6455, section 7.4) |
//!
//! Extensions and subprotocols are never offered, so an answer that names one is refused.

pub mod close;
pub mod decoder;
pub mod frame;
pub mod handshake;

pub use close::CloseFrame;
pub use decoder::KEPT_BUFFER_BYTES;
pub use decoder::{Decoder, Event, Violation};
pub use frame::{Opcode, RawFrame, append_client_frame, client_header, mask_in_place};
pub use handshake::{Handshake, HandshakeError, Outcome, upgrade_request};

/// The longest payload that a control frame may carry (RFC 6455, section 5.5).
pub const CONTROL_PAYLOAD_MAX_BYTES: usize = 125;

#[cfg(test)]
mod against_tungstenite;
