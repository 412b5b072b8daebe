//! The streaming speech-to-text gateway on Tokio, axum and hyper.
//!
//! From the outside in:
//!
//! - [`config`]: the environment, checked.
//! - [`gateway`]: what sessions share, and how they end together.
//! - [`http`]: the routes, and who is let in.
//! - [`connection`]: one task per session, around
//! - [`session`]: the rules of a session, without I/O and with a simulated clock in its tests.
//! - [`websocket`] and [`inference`]: the two ends of a session, as the network sees them.
//! - [`messages`], [`failure`]: the JSON, and the error table.
//! - [`metrics`], [`limit`]: what is counted, and what is bounded.

pub mod config;
pub mod connection;
pub mod failure;
pub mod gateway;
pub mod http;
pub mod inference;
pub mod limit;
pub mod messages;
pub mod metrics;
pub mod session;
pub mod versions;
pub mod websocket;

use std::io;
use std::sync::Arc;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use gateway::Gateway;

/// Accepts and serves connections until the future is dropped.
///
/// # Errors
/// None in practice: accept errors are retried.
pub async fn serve(listener: TcpListener, gateway: Arc<Gateway>) -> io::Result<()> {
    let listener = listener.tap_io(|socket| {
        // Fails only on a socket that is already dead, which the next read will tell.
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, http::router(gateway)).await
}
