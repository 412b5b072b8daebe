//! Workload `broker`: queues and streams of message brokers, by the clock.
//!
//! - [`dialect`]: a broker's protocol as a machine without I/O;
//! - [`schedule`]: when each message of a writer is due;
//! - [`message`]: what a message contains, and how a reader checks it;
//! - [`marks`]: which messages were written, confirmed, refused and delivered, and what follows from that;
//! - [`backlog`]: what the broker holds, and whether it grows;
//! - [`guarantee`]: what the broker promises, and which promises may be compared;
//! - [`word`]: the one word that sums a row up.

pub mod backlog;
#[expect(
    missing_docs,
    reason = "the types that all modules share, word for word until these are merged"
)]
pub mod dialect;
pub mod guarantee;
pub mod marks;
pub mod message;
pub mod schedule;
pub mod word;
