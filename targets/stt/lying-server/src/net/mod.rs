//! Sockets, HTTP and WebSocket: the rim. Only [`server`] does I/O, and the client of `foreign_load`.

pub mod connection;
mod foreign;
pub mod http;
pub mod metrics;
pub mod server;
pub mod websocket;
