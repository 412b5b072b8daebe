//! Workload `http`: how many requests a second an HTTP server answers inside its gates, when they come by the clock.

pub mod check;
pub mod h1;
pub mod h2;
