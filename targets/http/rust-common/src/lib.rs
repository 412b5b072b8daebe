//! What the HTTP servers in Rust have in common: everything that is not about serving, so that they differ in that alone.
//!
//! - [`config`]: the environment, checked.
//! - [`routes`]: the numbers in paths, and the bytes of `/bytes/N`.
//! - [`metrics`]: what is counted.
//! - [`versions`]: what a program is made of, for the line that it prints on start.
//! - `contract` (feature `contract`): tests of the contract, which each server runs against itself.

pub mod config;
#[cfg(feature = "contract")]
pub mod contract;
pub mod metrics;
pub mod routes;
pub mod versions;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A connection is a descriptor: takes as many as are allowed.
pub fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused the old limit stands, and running into it is reported when it happens.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
