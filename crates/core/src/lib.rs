//! The pure core of Plimsoll.
//!
//! Nothing here does I/O, spawns a thread or reads a clock. Time comes in as nanoseconds since the trial began,
//! randomness as a seed. So every part is tested with a simulated clock, and every run can be repeated from its seed.
//!
//! How the parts fit together, in the order in which a trial uses them:
//!
//! - [`profile`] says how long a trial ramps, warms up, measures and waits; [`schedule`] gives each session its
//!   absolute plan;
//! - [`session`] is the interface between the load engine and a workload: a session state machine without I/O;
//!   [`speaker`] is its counterpart, the server that a calibration plays;
//! - [`ledger`] accounts for every frame that was due; [`latency`] records how long the answers took; [`recorder`]
//!   holds both for one engine thread; [`tls_cost`] is what TLS costs that thread;
//! - [`slo`] turns them into gates, [`caveat`] into reasons for doubt, and both together into a [`record::Verdict`];
//! - [`outright`] names the failures that no SLO has to name;
//! - [`goals`] compares what was measured with what a user wanted before;
//! - [`drift`] shows what changed over a trial's window, and when that is a leak;
//! - [`ranking`] chooses the load at which several targets are compared, and ranks them;
//! - [`search`] decides which load to try next; [`broken_gate`] and [`bottleneck`] say what gave way there and what ran
//!   out;
//! - [`stats`] and [`comparison`] compare results; [`record`] is what a result folder holds;
//! - [`sock_diag`] is how the kernel is asked about sockets, and what it answers, as bytes;
//! - [`secret`] keeps headers, tokens and passwords out of all of it;
//! - [`words`] puts lists into sentences.

pub mod bottleneck;
pub mod broken_gate;
pub mod caveat;
pub mod comparison;
pub mod cost;
pub mod drift;
pub mod durations;
pub mod goals;
pub mod latency;
pub mod least_load;
pub mod ledger;
pub mod outright;
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
pub mod sock_diag;
pub mod speaker;
pub mod stats;
pub mod tls_cost;
pub mod words;
