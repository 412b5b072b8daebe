//! The laboratory: targets, isolation, resource sampling, trials.
//!
//! This crate touches the operating system. Each decision and each parser is nevertheless a plain function of text and
//! values, with its tests next to it. So only a thin layer needs a real machine.
//!
//! - [`manifest`]: `target.toml`, where targets are found, and whether this machine can build and run one.
//! - [`build`]: brings a target up to date and logs the output.
//! - [`check`]: tests a gateway's conformance to its contract, case by case.
//! - [`isolation`]: decides which CPUs the target and the client get, and enforces it with a control group.
//! - [`process`]: starts a child where it belongs, waits until it is ready, and ends it with everything that it
//!   started.
//! - [`simulator`]: runs the inference simulator as such a child, and controls it.
//! - [`resources`]: what a target, Plimsoll itself or the whole machine uses: CPU, memory, waiting, throttling.
//! - [`machine`]: facts about this machine for the result, its limits, and the check before a trial that they are
//!   enough.
//! - [`doctor`]: finds what is wrong with this machine, and says how to fix it.
//! - [`trial`]: one run at one load, from a fresh target to a judged record.
//! - [`find`]: runs trials at the loads that the search asks for, until the edge is known.
//! - [`compare`]: runs trials of two targets in turns, and draws the conclusion.
//! - [`common_load`]: runs rounds of trials of several targets at one load.
//! - [`source_lines`]: counts a target's lines of code.
//! - [`calibrate`]: measures what this machine's client can generate soundly.
//! - [`http`]: one HTTP request with a timeout, and the Prometheus text format.
//! - [`timestamp`]: the time of day, in the format of records.
//! - [`signals`]: turns Ctrl-C into a value that callers pass down.

pub mod build;
pub mod calibrate;
pub mod check;
pub mod common_load;
pub mod compare;
pub mod contract;
pub mod doctor;
pub mod error;
pub mod find;
pub mod http;
pub mod isolation;
pub mod machine;
pub mod manifest;
pub mod process;
pub mod resources;
pub mod signals;
pub mod simulator;
pub mod source_lines;
pub mod timestamp;
pub mod trial;

pub use error::{Error, Result};
