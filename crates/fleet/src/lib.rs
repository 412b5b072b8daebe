//! The control connection between a command that coordinates a load and its agents on other machines.
//!
//! Agents dial the coordinator, so they need no open port. The connection is TLS 1.3 with a certificate made for the run.
//! Both sides prove that they have the same token: an HMAC over what TLS exports for this very connection. So nobody in
//! between can pass a proof on, and the token itself is never sent. Whoever wants to may pin the certificate as well.
//!
//! This crate knows neither trials nor workloads: what the two sides say to each other is JSON of the caller's types.
//!
//! - [`frame`]: the bytes of a message, without I/O;
//! - [`exchange`]: how far apart two clocks are, without I/O;
//! - [`token`]: the token and its proof;
//! - [`tls`]: the certificate of a run, and whom an agent believes;
//! - [`greeting`]: from a TCP connection to two sides that know each other;
//! - [`connection`]: messages both ways, probes of the clock, and the end of silence;
//! - [`allow`]: which addresses an agent lets itself be sent to.

pub mod allow;
pub mod connection;
pub mod exchange;
pub mod frame;
pub mod greeting;
pub mod tls;
pub mod token;

pub use allow::Allowed;
pub use connection::{Connection, Event, Side};
pub use exchange::{ClockOffset, Exchange};
pub use greeting::{Channel, GreetError, Refusal, greet_agent, greet_coordinator};
pub use tls::{Fingerprint, Identity};
pub use token::Token;
