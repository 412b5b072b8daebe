//! This machine: the facts that a result must state, and the limits that a trial can hit.
//!
//! ```text
//! facts   what is read, and parsed, from /proc, /sys and /etc
//! probe   the same small work, timed before and after each trial
//! stops   how long the hypervisor stops a CPU while all are busy
//! limits  file descriptors and ports: raised, and checked before a trial
//! ```

mod facts;
mod limits;
mod probe;
mod stops;

pub use facts::{MachineFacts, ephemeral_ports};
pub use limits::{Limits, Need, Room, preflight, raise_fd_limit};
pub use probe::probe;
pub use stops::Stops;
