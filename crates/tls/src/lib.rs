//! TLS for session machines, without I/O.
//!
//! A [`TlsSession`] is a session machine around another one. It encrypts what the inner session writes and decrypts what
//! the inner session reads, so any workload can go to a server with TLS, and the engine knows nothing about it.
//! [`TlsMachines`] makes such sessions of the sessions of any machines.
//!
//! | module | what it is |
//! |---|---|
//! | [`client`] | whom the client believes, and what it offers: the same for all sessions of a trial |
//! | [`session`] | the session machine |
//! | [`machines`] | machines whose sessions use TLS |
//! | [`speaker`] | the server's side, for the sink of a calibration |
//! | `meter` | what TLS costs a session |
//! | `records` | how much of an unfinished record has come |
//! | `reason` | one plain reason for each way in which TLS fails |
//!
//! Every connection makes a full handshake: there are no session tickets, no early data and no renegotiation. A load of
//! many sessions stands for as many clients, and a client that comes for the first time has no ticket.

pub mod client;
pub mod machines;
mod meter;
mod reason;
mod records;
pub mod session;
pub mod speaker;

pub use client::{Client, GreetError, Settings, SetupError, Trust, is_host_name};
pub use machines::TlsMachines;
pub use meter::CpuClock;
pub use session::TlsSession;
pub use speaker::{OwnTls, TlsSpeaker};
