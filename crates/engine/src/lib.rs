//! The load engine: runs session machines against sockets, a thread per core.
//!
//! It knows nothing of any workload. A session is a machine without I/O ([`plimsoll_core::session::Session`]) with a plan that its workload made; the engine
//! owns the sockets and the time, and does for each session the same few things:
//!
//! - [`calendar`]: connects it when its plan says so, and wakes it when its next frame is due. One entry per session, none per frame; no allocation, no
//!   lock.
//! - [`worker`]: asks it what to write, and writes that with one vectored write. A full socket leaves the frame due, and never stops reading.
//! - [`readiness`]: waits for sockets, behind a seam.
//! - [`run`]: divides the sessions among threads, merges what they record each second, and reports. Of several processes each has its [`run::Part`] of the
//!   sessions and tells its seconds and its report (`wire`) to the one that merges them by the same [`report`] and [`seconds`]; [`company`] is what it asks of the others.
//!
//! What it says of itself is kept twice where that costs nothing: unanswered frames are integrated over time (`gauge`), and the bytes are asked of the
//! kernel at the end (`kernel_account`). What a target can make the client hold is bounded (`held`).
//!
//! Every frame's lateness is split in two: **send lag**, the client's own, and **send wait**, the time that a due frame waited for a full
//! socket, which is the target's back-pressure. See [`worker`] for where the line is drawn.

pub mod calendar;
pub mod clock;
pub mod company;
mod gauge;
mod held;
mod kernel_account;
mod meter;
mod precedence;
pub mod readiness;
pub mod report;
pub mod run;
pub mod seconds;
mod slot;
pub mod socket;
mod wire;
mod worker;

pub use company::{Alone, Company};
pub use precedence::{be_punctual, prefer_process};
pub use report::{CoreShares, EngineSecond, Report};
pub use run::{EngineError, Options, Part, run, run_in};
pub use seconds::Seconds;
