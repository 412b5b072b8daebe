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
//!
//! What is of no session in particular is also the library of the voice gateway: [`program`], [`variables`], [`versions`],
//! [`drain`], [`limit`], [`exposition`], [`websocket`], the handshake and the token in [`http`], [`listener`].

pub mod config;
pub mod connection;
pub mod drain;
pub mod exposition;
pub mod failure;
pub mod gateway;
pub mod http;
pub mod inference;
pub mod limit;
pub mod messages;
pub mod metrics;
pub mod program;
pub mod session;
pub mod variables;
pub mod versions;
pub mod websocket;

use std::io;
use std::sync::Arc;

use axum::serve::{ListenerExt, TapIo};
use tokio::net::{TcpListener, TcpStream};

use gateway::Gateway;

/// Accepts and serves connections until the future is dropped.
///
/// # Errors
/// None in practice: accept errors are retried.
pub async fn serve(tcp: TcpListener, gateway: Arc<Gateway>) -> io::Result<()> {
    axum::serve(listener(tcp), http::router(gateway)).await
}

/// Accepts connections, with `TCP_NODELAY`.
pub fn listener(tcp: TcpListener) -> TapIo<TcpListener, fn(&mut TcpStream)> {
    tcp.tap_io(|socket| {
        // Fails only on a socket that is already dead, which the next read will tell.
        let _ = socket.set_nodelay(true);
    })
}
