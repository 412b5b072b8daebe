//! Real speech servers, each in its own dialect of streaming speech-to-text.
//!
//! [`dialect`] has one module per dialect: what a client says, and what the server's messages mean. Nothing here does
//! I/O or reads a clock. [`host`] tells a public server from a private one.

pub mod dialect;
pub mod host;
