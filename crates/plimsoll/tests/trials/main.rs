//! The command's trials, searches and comparisons, with the real binary over real sockets. They are one program, so
//! that all of them take their turns at the machine from one queue ([`support::turns`]): a short trial runs beside the
//! others of any file, and no file waits for the last trial of the one before.
//!
//! Each call that may start or sweep away something has a turn, even one that is refused: `run`, `find`, `compare` and
//! `check` begin with killing what a killed run left behind, and two tests look at that.
//!
//! `cargo test -p plimsoll --test trials resume::` runs the tests of one file.

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod broker;
mod calibrate;
mod catalogue;
mod client_processes;
mod compare;
mod echo_servers;
mod every_workload;
mod goals;
mod honest_trials;
mod http;
mod lifecycle;
mod live;
mod network;
mod resume;
mod robustness;
mod search;
mod secrets;
mod several_slos;
mod stt_real;
mod tls;
mod voice;
mod ws;
