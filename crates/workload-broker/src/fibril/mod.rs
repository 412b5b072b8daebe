//! Fibril's protocol without I/O, as a client speaks it. Our own broker `rust-log` speaks it as well.
//!
//! - [`FrameReader`] cuts bytes into frames; `wire` has the fields and the frames of the client.
//! - [`Writer`] publishes to a queue or a stream, confirmed or not. [`Reader`] gets messages of a queue that readers share,
//!   or all messages of a stream. Both declare what they use: a declaration creates it or finds it, so connections may come
//!   in any order.
//!
//! | the workload's column | here |
//! |---|---|
//! | queue, unconfirmed | [`Shape::Queue`], [`Writer::new`] without confirms; [`Reader`] with [`Settling::Each`] |
//! | queue, window W | the same with confirms; the caller keeps at most W messages open |
//! | durable, speculative, ephemeral | a stream: [`Tier`]. A queue: the broker's configuration |
//! | fan-out | [`Shape::Stream`]; [`Settling::None`], or [`Settling::Cursor`] with a name for each reader |
//!
//! Sources: the protocol crate of Fibril (github.com/Axmouth/fibril, `crates/protocol/src/v1/frame.rs`, `wire.rs`), its
//! vectors for clients (`clients/wire_vectors.json`) and its pages on streams and on semantics.
//!
//! [`Shape::Queue`]: crate::dialect::Shape::Queue
//! [`Shape::Stream`]: crate::dialect::Shape::Stream

mod frame;
mod greeting;
mod reader;
mod server;
mod setup;
mod wire;
mod writer;

pub use frame::{Flaw, Frame, FrameReader, MESSAGE_MAX_BYTES};
pub use reader::Reader;
pub(crate) use server::{NotOurs, Server};
pub use setup::{InvalidSetup, NAME_MAX_BYTES, PREFETCH_MAX, Settling, Setup, Tier};
pub use writer::Writer;

#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod toy;
