//! A speech-to-text gateway that lies on demand.
//!
//! It exists to test Plimsoll: a tool that measures servers must be seen to catch every way in which a server can fail it. The
//! environment variable `LIE` switches on one fault; without it the server is honest. The README says what a sound tool must
//! report for each.
//!
//! - [`honest`]: what the contract asks: the session machine, its messages, the reference computation. It knows of no lie.
//! - [`lies`]: the faults. Each is one arm of one small transformation: of what is said ([`lies::outgoing`]), of what is read
//!   ([`lies::incoming`]), or of what the process does ([`lies::process`]).
//! - [`net`]: one thread, readiness of sockets, one state machine without I/O per connection. The only place where honest
//!   behaviour and lies meet is [`net::connection`].
//!
//! All times are microseconds since the process began, handed in by the caller, so that tests run on a simulated clock.

pub mod config;
pub mod honest;
pub mod lies;
pub mod net;
