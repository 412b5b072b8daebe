//! NATS and its JetStream without I/O, as a client of a server from 2.12 on speaks it.
//!
//! - [`FrameReader`] cuts bytes into commands, and [`write`] has those of the client. Both are the core protocol
//!   ("Client Protocol" of the NATS documentation). [`Headers`] reads header blocks.
//! - [`Writer`] publishes to a stream, confirmed or not. [`Reader`] gets messages by pull requests from a durable
//!   consumer that readers share, or from an ordered one of its own. Both create what they need; the same request
//!   creates a thing or finds it, so connections may come in any order.
//! - [`Asker`] asks how full the stream is.
//!
//! | the workload's column | here |
//! |---|---|
//! | queue, unconfirmed | [`Shape::Queue`], [`Writer::new`] without confirms, [`Reading::Shared`] |
//! | queue, window W | the same with confirms; the caller keeps at most W messages open |
//! | durable, ephemeral | the same; the server's `sync_interval` and [`Keeping`] decide |
//! | fan-out | [`Shape::Stream`], [`Reading::Ordered`]; with cursors, a [`Reading::Shared`] of its own for each reader |
//!
//! [`Shape::Queue`]: crate::dialect::Shape::Queue
//! [`Shape::Stream`]: crate::dialect::Shape::Stream

mod ack;
mod api;
mod asker;
mod frame;
mod headers;
mod link;
mod reader;
mod setup;
mod unsettled;
pub mod write;
mod writer;

pub use ack::{ACK_SUBJECT_MAX_BYTES, AckSubject};
pub use asker::{Asker, ConsumerDepth, Question, StreamDepth, Told};
pub use frame::{Flaw, Frame, FrameReader, MESSAGE_MAX_BYTES, Message};
pub use headers::Headers;
pub use reader::Reader;
pub use setup::{InvalidSetup, Keeping, NAME_MAX_BYTES, Reading, Setup};
pub use unsettled::UNSETTLED_MAX;
pub use writer::Writer;

#[cfg(test)]
mod asker_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod writer_tests;
