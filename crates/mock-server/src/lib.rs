//! What the mock servers of trials share, so that each has only what it mocks.
//!
//! [`settings`] reads flags and variables, [`program`] is a program around an event loop of one thread. [`http`] serves a connection
//! request by request, as [`request`] reads them; [`frames`] are what a WebSocket client says after the upgrade.

pub mod frames;
pub mod http;
pub mod program;
pub mod request;
pub mod settings;
