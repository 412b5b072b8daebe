//! Child processes. Each starts where it belongs, is watched until it is ready, and is ended with everything that it
//! started.
//!
//! ```text
//! spawn  the launch: log, environment, group, affinity, and the thread that forks
//! child  a running child: ready, ended, killed
//! ready  what shows that a child is ready
//! log    the end of a log, and its first JSON line
//! cap    how long a log may become
//! ports  a free port, and whether one is taken
//! stop_signal  the signal that asks a process to stop
//! tree   the descendants of a process
//! listener  the process that listens on a port
//! kernel the threads of the kernel itself
//! ```

mod cap;
mod child;
pub(crate) mod kernel;
mod listener;
mod log;
mod ports;
mod ready;
mod spawn;
mod stop_signal;
mod tree;

pub use cap::LOG_MAX_BYTES;
pub use child::{Child, Ended};
pub use listener::listener_on;
pub use log::{first_json_line, last_lines};
pub use ports::{choose_port, port_taken};
pub use ready::{Ask, Ready};
pub use spawn::{Launch, Piped, program_path};
pub use stop_signal::StopSignal;
pub(crate) use tree::processes;
pub use tree::{descendants, start_time_ticks};
