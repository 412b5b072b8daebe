//! The load of REST clients: `GET /`, `GET /voices` and `POST /speak` over HTTP/1.1.
//!
//! [`request`] says what is asked, `answer` what is made of the answer, [`account`] where it is entered, and [`session`]
//! drives a connection. Tests `rest` and `speak` have a [`pool`] of them, and [`arrivals`] hands it requests. A visitor of test
//! `mixed` has a schedule and a connection of its own ([`visit`]). [`record`] puts the requests of a trial together.

pub(crate) mod account;
mod answer;
pub(crate) mod arrivals;
pub(crate) mod pool;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod tell;
pub(crate) mod visit;

pub use record::{Claim, RequestRecord};
pub use request::Kind;
pub use session::RestSession;
