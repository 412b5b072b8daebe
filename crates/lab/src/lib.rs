//! The laboratory: targets, isolation, resource sampling, trials.
//!
//! Everything here touches the operating system; every decision and every parser is a plain function of text and values
//! with its tests beside it, so that what runs only on a real machine stays thin.
//!
//! - [`manifest`]: `target.toml`, where targets are found, and whether this machine can build and run one.
//! - [`build`]: brings a target up to date, with a log.
//! - [`check`]: the conformance of a gateway to its contract, case by case.
//! - [`isolation`]: which CPUs the target and the client get, and the control group that enforces it.
//! - [`process`]: starts a child in its place, waits until it is ready, and ends it with everything that it started.
//! - [`simulator`]: the inference simulator as such a child, with its control surface.
//! - [`resources`]: what a target (or ourselves, or the whole machine) spends: CPU, memory, waiting, throttling.
//! - [`machine`]: facts of this machine for the result, its limits, and the check before a trial that they suffice.
//! - [`doctor`]: what is wrong with this machine and the line that mends it.
//! - [`trial`]: one run at one load, from a fresh target to a judged record.
//! - [`find`]: trials at the loads that the search asks for, until the edge is known.
//! - [`compare`]: trials of two targets that take turns, and what they come to.
//! - [`common_load`]: rounds of trials of several targets at one load.
//! - [`source_lines`]: how long a target's source is.
//! - [`calibrate`]: what this machine's client can honestly generate.
//! - [`http`]: one request with a time-out, and the Prometheus text format.
//! - [`timestamp`]: the time of day as records carry it.
//! - [`signals`]: Ctrl-C as a value that is passed down.

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
