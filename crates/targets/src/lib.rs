//! Targets: the servers that Plimsoll measures, as their `target.toml` describes them.
//!
//! - [`manifest`]: `target.toml`, where targets are found, and whether this machine can build and run one.
//! - [`build`]: brings a target up to date and logs the output.
//! - [`source_lines`]: counts a target's lines of code.

pub mod build;
pub mod error;
pub mod manifest;
pub mod source_lines;

pub use error::{Error, Result};
