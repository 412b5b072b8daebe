//! Sessions over TLS: without a network, where every split of bytes and every fault can be tried, and with the engine
//! over real sockets.

mod cost;
mod engine;
mod failures;
mod pki;
mod rig;
mod speaker;
mod stream;
mod toy;
