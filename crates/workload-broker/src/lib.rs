//! Workload `broker`: how many messages a second a message broker carries. So far its protocols only; no command uses
//! this crate.
//!
//! - [`dialect`]: what a protocol is to a writer or a reader;
//! - [`nats`]: NATS with JetStream;
//! - [`resp`]: Redis and Valkey Streams.

mod decimal;
#[expect(
    missing_docs,
    reason = "the fields' names say what they are; the variants have the words"
)]
pub mod dialect;
mod login;
pub mod nats;
pub mod resp;
#[cfg(test)]
mod rig;

pub use login::Login;
