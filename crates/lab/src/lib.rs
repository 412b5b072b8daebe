//! The laboratory: trials of targets, and what is made of them.
//!
//! It measures targets on the machine that `plimsoll_host` isolates and observes. Each decision is nevertheless a plain
//! function of values, with its tests next to it. So only a thin layer needs a real machine.
//!
//! - [`manifest`], [`build`], [`source_lines`]: what a target is (`plimsoll_targets`).
//! - [`doctor`]: finds what is missing to measure the targets here, and says how to fix it.
//! - [`trial`]: one run at one load, from a fresh target to a judged record.
//! - [`contract`]: the variables of all contracts.
//! - [`campaign`]: runs trials one after the other, and has each shown and kept.
//! - [`baseline`]: runs the trial that the trials of a search are compared with.
//! - [`find`]: runs trials at the loads that the search asks for, until the edge is known.
//! - [`compare`]: runs trials of two targets in turns, and draws the conclusion.
//! - [`common_load`]: runs rounds of trials of several targets at one load.
//! - [`fleet`]: agents on other machines that carry parts of a load.
//! - [`calibrate`]: measures what this machine's client can generate soundly.

pub mod baseline;
pub mod calibrate;
pub mod campaign;
pub mod common_load;
pub mod compare;
pub mod contract;
pub mod doctor;
pub mod error;
pub mod find;
pub mod fleet;
pub mod trial;

pub use error::{Error, Result};
pub use plimsoll_targets::{build, manifest, source_lines};
