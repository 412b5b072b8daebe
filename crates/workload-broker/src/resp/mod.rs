//! Streams of Redis and Valkey without I/O.
//!
//! - [`TokenReader`] cuts bytes into tokens of RESP 2 and 3, [`Walk`] says where in a reply they stand, and [`command()`]
//!   writes a command.
//! - [`Writer`] adds to a stream. [`Reader`] reads it, as part of a group or on its own. They create what they need, in
//!   any order.
//! - [`Asker`] asks how full the stream is.
//!
//! | the workload's column | here |
//! |---|---|
//! | queue, unconfirmed | [`Confirm::Never`], [`Reading::Group`] that deletes |
//! | queue, window W | [`Confirm::Reply`]; the caller keeps at most W messages open |
//! | durable, ephemeral | the same; the server's `appendfsync` and `appendonly` decide |
//! | speculative | [`Confirm::Fsync`] |
//! | fan-out | [`Reading::Own`]; with cursors, a [`Reading::Group`] of its own for each reader, that deletes nothing |

mod asker;
mod command;
mod id;
mod reader;
mod setup;
mod token;
mod walk;
mod writer;

use crate::dialect::Fault;

pub use asker::{Asker, GroupDepth, Question, Told};
pub use command::command;
pub use id::EntryId;
pub use reader::{BLOCK_MS, Reader};
pub use setup::{Confirm, InvalidSetup, NAME_MAX_BYTES, PREFETCH_MAX, Reading, Setup, Version};
pub use token::{BULK_MAX_BYTES, ELEMENTS_MAX, Flaw, Token, TokenReader};
pub use walk::{Seen, Walk};
pub use writer::Writer;

/// The one field of our entries. Its name is in each of them, so it is short.
const FIELD: &[u8] = b"b";

/// The end of the connection, in the server's words or in ours.
fn fault(why: &str) -> Fault {
    Fault(format!("Redis: {why}"))
}

/// The end of the connection by a rule of the protocol.
fn flaw(flaw: Flaw) -> Fault {
    fault(&flaw.to_string())
}

/// The words of an error.
fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or("an error whose text is not UTF-8")
}

#[cfg(test)]
mod asker_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod writer_tests;
