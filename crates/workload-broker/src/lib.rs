//! Workload `broker`: how many messages a second a message broker carries. So far its protocols only; no command uses
//! this crate.
//!
//! - [`dialect`]: what a protocol is to a writer or a reader;
//! - [`fibril`]: Fibril's protocol, which our own log broker speaks as well.

#[expect(
    missing_docs,
    reason = "the fields' names say what they are; the variants have the words"
)]
pub mod dialect;
pub mod fibril;
mod login;

pub use login::Login;
