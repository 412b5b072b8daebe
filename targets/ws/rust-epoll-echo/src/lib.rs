//! A WebSocket echo on bare epoll: one event loop per core, frames echoed within the buffer that they were read into.
//!
//! [`frame`], [`mask`], [`decoder`], [`intake`] and [`http`] are free of I/O: bytes go in and come out, so that they are
//! tested without a socket. [`outbox`] and [`worker`] touch sockets; [`hub`] and [`metrics`] are what workers share.

pub mod config;
pub mod decoder;
pub mod frame;
pub mod http;
pub mod hub;
pub mod intake;
pub mod mask;
pub mod metrics;
pub mod outbox;
pub mod pool;
pub mod server;
pub mod versions;
pub mod worker;
