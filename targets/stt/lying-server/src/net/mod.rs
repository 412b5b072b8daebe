//! Sockets, HTTP and WebSocket: the rim. Only [`server`] does I/O.

pub mod connection;
pub mod http;
pub mod metrics;
pub mod server;
pub mod websocket;
