//! HTTP/1.1 without I/O: what the client writes, and how it reads answers.
//!
//! - [`RequestSpec`] says what a kind of request is, for both protocols. [`Template`] is its bytes, made once.
//! - [`AnswerReader`] takes bytes as they arrive and reports heads, bodies and ends. It allocates only when a head is
//!   split between two reads.
//! - [`RequestReader`] and [`answer`] are the other side, as far as a sink needs it.

mod answer;
mod body;
mod fault;
mod head;
mod request;
mod scan;
mod server;
mod template;

pub use answer::{AnswerReader, Event, Head};
pub use body::Framing;
pub use fault::{Fault, Flaw};
pub use head::{Fields, HEAD_MAX_BYTES};
pub use request::{BROWSER_FIELDS, InvalidRequest, Method, Path, RequestSpec};
pub use scan::{decimal, decimal_digits};
pub use server::{RequestEvent, RequestHead, RequestReader, answer};
pub use template::{NUMBER_DIGITS, NumberedBody, Template};

#[cfg(test)]
mod answer_tests;
