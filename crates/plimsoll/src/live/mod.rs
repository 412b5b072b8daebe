//! What is shown while a command measures: on a terminal, and in `live.json` for `plimsoll serve`.
//!
//! - [`state`] turns events into a snapshot, [`plimsoll_core::record::Live`];
//! - `view`, `axis` and `line` turn a snapshot into lines, and `terminal` turns these into what is written;
//! - [`shared`] stands between: the measuring thread only changes a value, and two separate threads on the client's
//!   CPUs take the latest one: `outlets`. A blocked terminal (Ctrl-S) or a slow disk misses snapshots and delays
//!   nobody;
//! - [`keeper`] shows and keeps trials, for every command that runs several.
//!
//! The engine's threads know nothing of all this: they send their seconds to a channel that never fills, and the thread
//! that merges them changes the value.

mod axis;
pub(crate) mod keeper;
mod line;
pub(crate) mod outlets;
pub(crate) mod shared;
pub(crate) mod state;
mod terminal;
mod view;

#[cfg(test)]
#[path = "../../tests/support/screen.rs"]
mod screen;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod view_tests;
