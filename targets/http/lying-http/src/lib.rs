//! An HTTP server that is honest until `FAULT` names a fault; then it has that one and no other.

pub mod fault;
pub mod lie;
pub mod peer;
pub mod server;
