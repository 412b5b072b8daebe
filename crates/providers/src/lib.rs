//! Mock speech providers: what a voice gateway asks in a trial of workload `voice`.
//!
//! They speak the protocols of well-known providers, wait as long as a seeded profile says, and mark what they hand over.
//! They are a part of the measurement, so they show when they are the bottleneck: how busy their
//! loop is, and how late their answers are.
//!
//! From the pure to the wet: [`profile`] and [`faults`] are draws, [`ear`] hears utterances, [`stats`] counts; [`server`] has
//! the sockets. One thread does everything, so one number says whether they kept up: the share of time that its loop is busy.

pub mod config;
pub mod ear;
pub mod faults;
pub mod profile;
pub mod server;
pub mod stats;
