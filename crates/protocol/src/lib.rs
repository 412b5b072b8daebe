//! WebSocket without I/O, for the workloads that speak it.
//!
//! | module | what it is |
//! |---|---|
//! | [`paced`] | a session that sends frames at a fixed pace and accounts for each |
//! | [`life`] | how far a session has come, and how it ends |
//! | [`connection`] | a WebSocket client connection |
//! | [`websocket`] | the codec |
//! | [`server`] | the server's side of a connection, for the sink of a calibration |

pub mod connection;
pub mod life;
pub mod paced;
pub mod server;
pub mod websocket;
