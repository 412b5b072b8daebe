//! The workloads that this program knows.

use plimsoll_document::Tellers;
use plimsoll_workload_ws::Ws;

/// Those who tell what only their workload has. A result of another workload has what every trial has.
pub(crate) const TELLERS: Tellers = Tellers::new(&[&Ws]);
