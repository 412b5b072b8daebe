//! The pure heart of Plimsoll.
//!
//! Nothing here does I/O, spawns a thread or reads a clock: time comes in as nanoseconds since the trial began, randomness as
//! a seed. So every piece is tested with a simulated clock, and every run can be repeated from its seed.
//!
//! How the pieces fit, in the order in which a trial meets them:
//!
//! - [`profile`] says how long a trial ramps, warms up, measures and waits; [`schedule`] gives each session its absolute plan;
//! - [`session`] is the seam between the load engine and a workload: a session machine without I/O;
//! - [`ledger`] accounts for every frame that was due; [`latency`] records how long the answers took; [`recorder`] holds both
//!   for one engine thread;
//! - [`slo`] turns them into gates, [`caveat`] into reasons for doubt, and both together into a [`record::Verdict`];
//! - [`drift`] tells what changed over a trial's window, and when that is a leak;
//! - [`ranking`] says at which load several targets are compared, and in which order they are ranked;
//! - [`search`] decides which load to try next; [`broken_gate`] and [`bottleneck`] tell what gave way there and what ran out;
//! - [`stats`] and [`comparison`] hold results against each other; [`record`] is what a result folder holds;
//! - [`secret`] keeps headers, tokens and passwords out of all of it.

pub mod bottleneck;
pub mod broken_gate;
pub mod caveat;
pub mod comparison;
pub mod cost;
pub mod drift;
pub mod latency;
pub mod ledger;
pub mod profile;
pub mod ranking;
pub mod record;
pub mod recorder;
pub mod sanity;
pub mod schedule;
pub mod search;
pub mod secret;
pub mod session;
pub mod slo;
pub mod stats;
