//! A message broker on log segments and bare epoll: queues and streams in the protocol of Fibril.
//!
//! Without I/O, and tested without sockets or files: [`wire`], [`frame`], [`answer`] (the protocol), [`record`], [`arena`], [`segment`],
//! [`recovery`] (the log), [`channel`], [`tier`], [`broker`] (what is kept, confirmed, delivered), [`http`]. With I/O:
//! [`disk`], [`flusher`], [`edge`]. [`conduct`] is where `lying-broker` lies.

pub mod answer;
pub mod arena;
pub mod broker;
pub mod channel;
pub mod conduct;
pub mod config;
pub mod disk;
pub mod edge;
pub mod flusher;
pub mod frame;
pub mod http;
#[cfg(test)]
pub mod memory_disk;
pub mod record;
pub mod recovery;
pub mod run;
pub mod segment;
pub mod tier;
pub mod wire;
