//! Real speech servers, each in its own dialect of streaming speech-to-text.
//!
//! [`dialect`] has one module per dialect: what a client says, and what the server's messages mean. Nothing there does
//! I/O or reads a clock. [`host`] tells a public server from a private one. The rest is the load: streams of speech of known
//! words, and what became of them. [`check`] tries a server without load.
//!
//! | module | what it is |
//! |---|---|
//! | `choices`, `corpus`, `parameters`, `plan` | what a user chooses, and the plan that follows |
//! | `script`, `frames` | what each session says and when, and its bytes |
//! | `session`, `link`, `stream`, `hearing`, `book` | the session machine: connection, stream, words, frames |
//! | `machines`, `tally`, `crossed` | what all sessions come to |
//! | `outcome`, `tell` | the record and its words |
//! | `speaker` | whether a target is ready |
//! | `calibrate` | what a stream costs the client |

mod book;
mod calibrate;
pub mod check;
mod choices;
mod corpus;
mod crossed;
pub mod dialect;
mod frames;
mod hearing;
pub mod host;
mod link;
mod machines;
mod outcome;
mod parameters;
mod plan;
mod script;
mod session;
mod speaker;
mod stream;
mod tally;
mod tell;

pub use plan::SttReal;
