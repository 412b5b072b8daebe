//! HTTP/2 without I/O, as a client with prior knowledge speaks it over a plain connection (RFC 9113).
//!
//! - [`Template`] is a kind of request, made once. [`Client`] is a connection: it opens streams, sends bodies inside
//!   the windows, and reports what comes as [`Event`]s. In a load, requests and answers repeat themselves; so their
//!   header blocks are copied and compared, not encoded and decoded.
//! - [`Server`] is the other side, as far as a sink needs it.
//! - [`frame`], [`FrameReader`] and [`hpack`] are the parts, for connections that break rules.

mod client;
mod event;
pub mod frame;
mod head;
pub mod hpack;
mod reader;
mod server;
mod stream;
mod template;
mod violation;
mod windows;

pub use client::Client;
pub use event::Event;
pub use reader::{BLOCK_MAX_BYTES, Frame, FrameReader, settings};
pub use server::{Answer, RequestEvent, Server};
pub use template::Template;
pub use violation::{ErrorCode, Malformed, Violation};
pub use windows::{CONNECTION_WINDOW, STREAM_WINDOW};

#[cfg(test)]
mod against_h2;
#[cfg(test)]
mod server_tests;
