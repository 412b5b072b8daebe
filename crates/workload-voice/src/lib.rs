//! Workload `voice`: callers in conversation with a gateway between speech providers.
//!
//! A virtual user keeps a WebSocket, speaks, waits for the result, asks for a reply and listens to it, by a script that
//! nothing moves. The providers behind the gateway are mocks, and mark what they hand over. So the time that the gateway adds
//! is known for each turn, whatever gateway it is.
//!
//! From the pure to the wet: [`marks`] and [`script`] say what is said; [`reply`] and [`turns`] what became of it;
//! [`session`] drives a connection, [`rest`] those of REST clients; [`tally`] puts the turns of a trial together. [`check`] has the cases of the gateways' contract.

mod back;
mod calibrate;
mod caller;
pub mod check;
pub mod companion;
mod entry;
mod load;
mod machines;
pub mod marks;
mod mixed;
pub mod outcome;
mod parameters;
mod plan;
mod progress;
pub mod reply;
mod requests;
pub mod rest;
pub mod script;
mod session;
mod sides;
pub mod slow;
mod stages;
pub mod tally;
mod tell;
pub mod toy;
pub mod turns;
mod ways;
pub mod wire;

pub use caller::{Claim, Heard};
pub use machines::Callers;
pub use plan::Voice;
pub use session::CallerSession;
