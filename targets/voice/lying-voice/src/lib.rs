//! A voice gateway that lies on demand.
//!
//! It exists to test Plimsoll: a tool that measures gateways must be seen to catch every way in which one can fail it. The
//! environment variable `LIE` switches on one fault; without it the gateway is honest. The README lists them.
//!
//! - [`lies`]: the faults: what is done to blocks of audio, to replies, to results, to the process, and what is made up.
//! - [`marks`], [`messages`], [`metrics`], [`admission`], [`config`]: the contract, without sockets.
//! - [`server`]: listening. Behind it a task for each session, which has an ear (the connection to the provider that hears) and
//!   a mouth (the reply that plays, and those that wait).
//!
//! All of it runs on one thread.

pub mod admission;
pub mod config;
mod ear;
mod escape;
mod exact;
mod gateway;
mod http;
pub mod lies;
pub mod marks;
pub mod messages;
pub mod metrics;
mod mouth;
mod outgoing;
mod pool;
mod reply;
pub mod server;
mod session;
mod socket;
mod speak;
mod stt;
mod task;
mod tts;
mod voices;
