//! Kafka's protocol without I/O, as a client of one node speaks it.
//!
//! - [`AnswerReader`] cuts bytes into answers; `fields`, `requests` and `batch` have what is in them.
//! - [`Writer`] publishes to one partition. The messages of one write are one batch and one Produce request, as in any
//!   client of Kafka: a request for each message would measure something else.
//! - [`Reader`] gets the messages of some partitions, or of all. Readers of a group divide the partitions by their numbers;
//!   nobody coordinates them. What is settled becomes the group's offsets.
//! - [`Asker`] asks how much of a topic the group has not settled.
//!
//! Each of them creates the topic or finds it, so connections may come in any order.
//!
//! | the workload's column | here |
//! |---|---|
//! | queue, unconfirmed | [`Writer::new`] without confirms (`acks=0`); [`Reading::Shared`] |
//! | queue, window W | the same with confirms (`acks=all`); the caller keeps at most W messages open |
//! | durable | [`Setup::syncs_each`]: the topic has `flush.messages=1` |
//! | ephemeral | the same without: the broker leaves it to the kernel when a message reaches the disk |
//! | fan-out | [`Reading::Every`] |
//!
//! **What Kafka does and others do not.** A broker answers the requests of a connection one after the other, and a Fetch
//! waits for messages. So a commit goes out before the next Fetch, never behind it. A Fetch is limited by bytes, not by
//! messages: a reader may hold more than its prefetch, by one Fetch. A batch that is refused is refused whole.
//!
//! **Versions.** We speak the oldest version of each request that Kafka 4 still takes, or the last one before the flexible
//! encoding. All brokers from 2.1 on take them.
//!
//! Sources: the message schemas of Apache Kafka (`clients/src/main/resources/common/message`), its protocol guide and its
//! page on the record batch ("Message Format"), KIP-896 (versions that Kafka 4 takes). The tests check our bytes against
//! the crate `kafka-protocol`, which is made from these schemas. It is not in the client itself: its decoders reserve
//! memory for as many elements as the peer announces.

mod answer;
mod asker;
mod batch;
mod errors;
mod fields;
mod greeting;
mod reader;
mod requests;
mod setup;
mod writer;

pub use answer::{ANSWER_MAX_BYTES, Answer, AnswerReader, Flaw};
pub use asker::Asker;
pub use reader::{FETCH_MAX_BYTES, Reader};
pub use setup::{InvalidSetup, NAME_MAX_BYTES, PARTITIONS_MAX, PREFETCH_MAX, Reading, Setup};
pub use writer::Writer;

#[cfg(test)]
mod asker_tests;
#[cfg(test)]
mod greeting_tests;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod writer_tests;
