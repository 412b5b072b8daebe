//! The inference simulator: the back end of the streaming speech-to-text workload.
//!
//! It answers `POST /infer` as `docs/stt/contract.md` (section 5) words it, over HTTP/2 prior knowledge and HTTP/1.1
//! keep-alive on one port, after a latency drawn from a seeded model. It is a part of the measurement, so it shows
//! when it is itself the bottleneck: how busy its loop is, how long requests queue, how late its answers are.
//!
//! The layout, from the pure to the wet:
//!
//! - [`config`]: flags and environment to a valid [`config::Config`]
//! - [`random`], [`latency`], [`faults`]: seeded draws
//! - [`compute`]: batches wait for company and are computed side by side, off their deadline
//! - [`stats`], [`recent`]: what is shown to those who ask
//! - [`server`]: sockets; its parts are the routes, the way of one inference request, and a stream that can abort
//!
//! One thread does everything. That is on purpose: one number, the share of time its loop is busy, then says whether
//! the simulator kept up.

pub mod compute;
pub mod config;
pub mod faults;
pub mod latency;
pub mod random;
pub mod recent;
pub mod server;
pub mod stats;
