//! Speech of known words.
//!
//! What a session says to a speech server, and how well the server heard it. Nothing here knows a dialect, a socket or a
//! clock. Only [`corpus`] reads files.
//!
//! - [`corpus`] reads [`clip`]s with their words; [`plan`] is the order in which a session says them, frame by frame;
//! - [`resample`] and [`encode`] make of samples what a server takes;
//! - [`ledger`] accounts for each frame by the audio times of a server's results; [`follow`] finds audio times for text that
//!   comes without;
//! - [`words`] says what a word is; [`errors`] compares words, and [`interval`] says how sure a word error rate is;
//!   [`crosstalk`] finds text that belongs to another session.

pub mod clip;
pub mod corpus;
pub mod crosstalk;
pub mod encode;
pub mod errors;
pub mod follow;
pub mod interval;
pub mod ledger;
pub mod plan;
pub mod resample;
pub mod words;
