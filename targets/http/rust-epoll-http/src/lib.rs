//! HTTP/1.1 and HTTP/2 on bare epoll: one event loop per core.
//!
//! [`call`], [`h1`], [`h2`], [`answer`] and [`date`] are free of I/O: bytes go in and come out, so that they are tested
//! without a socket. [`output`] and [`worker`] touch sockets; [`server`] is what workers share.

pub mod answer;
pub mod call;
pub mod date;
pub mod h1;
pub mod h2;
pub mod output;
pub mod server;
pub mod worker;
