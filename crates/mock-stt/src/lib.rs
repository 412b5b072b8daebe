//! A mock speech-to-text server in nine dialects, for trials of workload `stt-real`.
//!
//! It knows the clips of the corpus, so its words are true and at their true times: a client that measures it finds a word error
//! rate of 0, and every fault that it was asked for. It is a part of the measurement, so it shows when it is the bottleneck: how busy its loop
//! is, and how late its results are.
//!
//! From the pure to the wet: [`audio`] is bytes to samples; [`ear`] hears which clip they are of, [`recogniser`] which words, and when an
//! utterance is over; [`scribe`] writes it down, truly or with a fault; [`dialect`] has the messages; [`session`] puts them together, without
//! I/O; [`server`] has the sockets. One thread does everything.

pub mod audio;
pub mod config;
pub mod corpus;
pub mod dialect;
pub mod ear;
pub mod faults;
pub mod recogniser;
pub mod scribe;
pub mod server;
pub mod session;
pub mod stats;
#[cfg(test)]
mod toy;
