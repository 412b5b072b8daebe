//! The voice gateway on Tokio, axum and hyper.
//!
//! From the outside in:
//!
//! - [`config`]: the environment, checked.
//! - [`gateway`]: what sessions share.
//! - [`http`], [`admission`]: the routes, and who is let in.
//! - [`session`]: one task per caller, around
//! - [`recognizer`] (speech-to-text) and [`reply`] (text-to-speech), which reach providers through [`upstream`];
//!   [`providers`] says what each is asked.
//! - [`messages`], [`problem`], [`limits`]: the JSON, the kinds of errors, the fixed numbers.
//! - [`metrics`]: what is counted.
//!
//! Admission limits, drain, variables, the WebSocket and the program around it are those of the speech gateway,
//! `rust_axum`.

pub mod admission;
pub mod config;
pub mod gateway;
pub mod http;
mod json;
pub mod limits;
pub mod messages;
pub mod metrics;
pub mod problem;
pub mod providers;
pub mod recognizer;
pub mod reply;
pub mod session;
pub mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use gateway::Gateway;

/// What the kernel may hold back of what is written to a client, in bytes (it doubles them). Little: what it holds cannot
/// be taken back by a `clear`, and a socket that holds much tells too seldom that a slow reader has taken something.
pub const SEND_BUFFER_BYTES: u32 = 32 * 1024;

/// Accepts and serves connections until the future is dropped.
///
/// # Errors
/// None in practice: accept errors are retried.
pub async fn serve(tcp: TcpListener, gateway: Arc<Gateway>) -> io::Result<()> {
    let service = http::router(gateway).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(rust_axum::listener(tcp), service).await
}
