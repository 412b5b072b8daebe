//! One module per kind of result, and parts that several of them share.

pub(super) mod calibration;
pub(super) mod check;
pub(super) mod comparison;
mod environment;
pub(super) mod ranking;
pub(super) mod search;
mod trial;
pub(super) mod trials;
mod ws;
