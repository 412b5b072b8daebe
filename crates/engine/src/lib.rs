//! The load engine: runs session machines against sockets, one thread per core.
//!
//! The engine knows nothing about any workload. A session is a machine without I/O
//! ([`plimsoll_core::session::Session`]) with a plan that its workload made. The engine owns the sockets and the time,
//! and does the same few things for each session:
//!
//! - [`calendar`]: connects the session when its plan says so, and wakes it when its next frame is due. One entry per
//!   session, none per frame; no allocation, no lock.
//! - [`worker`]: asks the session what to write, and writes it with one vectored write. A full socket leaves the frame
//!   due, and never stops reading.
//! - [`readiness`]: waits for sockets, behind a trait.
//! - [`run`]: divides the sessions among threads, merges what they record each second, and reports. If there are
//!   several processes, each has its [`run::Part`] of the sessions and sends its seconds and its report (`wire`) to the
//!   process that merges them by the same [`report`] and [`seconds`]. [`company`] is what a process asks of the others.
//! - `unsettled`: what sessions claim, kept until all threads and processes are merged, because an account may span them.
//!
//! The engine keeps its own accounts twice where that costs nothing: it integrates unanswered frames over time
//! (`gauge`), and asks the kernel for the bytes at the end (`kernel_account`). What a target can make the client hold
//! is bounded (`held`), and what lies unread in its sockets is watched (`unread`).
//!
//! Every frame's lateness is split in two (`lateness`). **Send lag** is the client's own. **Send wait** is the time that a
//! due frame waited for the target: for room in a full socket, or for an answer without which the protocol does not
//! allow it. See [`worker`] for where the line is drawn.

pub mod calendar;
pub mod clock;
pub mod company;
mod gauge;
mod held;
mod kernel_account;
mod lateness;
mod meter;
mod pace;
mod precedence;
pub mod readiness;
pub mod report;
pub mod run;
pub mod seconds;
mod slot;
pub mod socket;
mod unread;
mod unsettled;
mod wire;
mod worker;

pub use company::{Alone, Company};
pub use precedence::{be_punctual, prefer_process};
pub use report::{CoreShares, EngineSecond, Report};
pub use run::{EngineError, Options, Part, run, run_in};
pub use seconds::Seconds;
pub use unread::Unread;
pub use unsettled::Unsettled;
