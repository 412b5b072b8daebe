//! Workload `broker`: queues and streams of message brokers, by the clock.
//!
//! - [`dialect`]: a broker's protocol as a machine without I/O: [`amqp`], [`fibril`], [`mqtt`], [`nats`], [`resp`];
//! - [`schedule`]: when each message of a writer is due;
//! - [`message`]: what a message contains, and how a reader checks it;
//! - [`marks`]: which messages were written, confirmed, refused and delivered, and what follows from that;
//! - [`backlog`]: what the broker holds, and whether it grows;
//! - [`guarantee`]: what the broker promises, and which promises may be compared;
//! - [`word`]: the one word that sums a row up.

pub mod amqp;
pub mod backlog;
mod decimal;
pub mod dialect;
pub mod fibril;
pub mod guarantee;
mod login;
pub mod marks;
pub mod message;
pub mod mqtt;
pub mod nats;
pub mod resp;
#[cfg(test)]
mod rig;
pub mod schedule;
pub mod word;

pub use login::Login;
