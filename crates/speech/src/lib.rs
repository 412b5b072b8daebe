//! Speech of known words.
//!
//! What a session says to a speech server, and how well the server heard it. Nothing here knows a dialect, a socket or a
//! clock. Only [`corpus`] reads files.
//!
//! - [`corpus`] reads [`clip`]s with their words; [`plan`] is the order in which a session says them, frame by frame;
//! - [`words`] says what a word is; [`errors`] compares words: the word error rate and its interval;

pub mod clip;
pub mod corpus;
pub mod errors;
pub mod ledger;
pub mod plan;
pub mod words;
