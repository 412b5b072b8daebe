//! The streaming speech-to-text gateway on axum and reqwest.

pub mod audio;
pub mod config;
pub mod connection;
pub mod failure;
pub mod gateway;
pub mod http;
pub mod inference;
pub mod limit;
pub mod messages;
pub mod metrics;
pub mod outbox;
pub mod session;
pub mod versions;
