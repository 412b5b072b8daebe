//! A WebSocket echo on Tokio and tokio-tungstenite.
//!
//! From the outside in:
//!
//! - [`config`]: the environment, checked.
//! - [`server`]: what connections share, the HTTP surface, the upgrade.
//! - [`connection`]: one task per WebSocket.
//! - [`hub`]: what `/fanout` passes on.
//! - [`drain`]: the end, as connections see it.
//! - [`metrics`]: what is counted.

pub mod config;
pub mod connection;
pub mod drain;
pub mod hub;
pub mod metrics;
pub mod server;
pub mod versions;
