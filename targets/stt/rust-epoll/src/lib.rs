//! The streaming speech-to-text gateway on bare epoll: one event loop per core, sockets read at a pace.
//!
//! Everything but [`worker`], [`inference`] and the program itself is free of I/O: bytes, times and answers go in and come
//! out, so that it is tested without a socket and with a clock of its own.

pub mod config;
pub mod failure;
pub mod gateway;
pub mod h2;
pub mod http;
pub mod inference;
pub mod limit;
pub mod messages;
pub mod metrics;
pub mod session;
pub mod versions;
pub mod websocket;
pub mod wheel;
pub mod worker;
