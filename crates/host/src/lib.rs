//! The machine that Plimsoll runs on: it touches the operating system, and knows no workload and no target's manifest.
//!
//! Each decision and each parser is nevertheless a plain function of text and values, with its tests next to it. So only
//! a thin layer needs a real machine.
//!
//! - [`isolation`]: decides which CPUs the target and the client get, and enforces it with a control group; gives a
//!   target its own network.
//! - [`process`]: starts a child where it belongs, waits until it is ready, and ends it with everything that it
//!   started.
//! - [`data_folder`]: a fresh folder for what a target writes, removed after its end.
//! - [`state`]: where Plimsoll keeps what it needs from one call to the next.
//! - [`secret_variables`]: the variables that no child gets.
//! - [`resources`]: what a target, Plimsoll itself or the whole machine uses: CPU, memory, waiting, throttling.
//! - [`disk`]: the disk below a folder: its file system, how fast it flushes, what it wrote, and a power cut.
//! - [`machine`]: facts about this machine for the result, its limits, and the check before a trial that they are
//!   enough.
//! - [`doctor`]: finds what is wrong with this machine, and says how to fix it.
//! - [`http`]: one HTTP request with a timeout, and the Prometheus text format.
//! - [`talk`]: one connection to a server, for a talk that ends in time.
//! - [`timestamp`]: the time of day, in the format of records.
//! - [`signals`]: turns Ctrl-C into a value that callers pass down.

pub mod data_folder;
pub mod disk;
pub mod doctor;
pub mod error;
pub mod http;
pub mod isolation;
pub mod machine;
mod maker;
pub mod process;
pub mod resources;
pub mod secret_variables;
pub mod signals;
pub mod state;
mod talk;
pub mod timestamp;

pub use error::{Error, Result};
pub use talk::talk;
