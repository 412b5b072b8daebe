//! Workload `http`: how many requests a second an HTTP server answers inside its gates, when they come by the clock.
//!
//! - [`schedule`]: when each request of the trial is due;
//! - [`arrivals`]: hands requests to connections that are [`free`];
//! - [`session`]: a connection of HTTP/1.1, with [`h1`], its codec; [`h2_session`] and [`h2`]: the same for HTTP/2;
//! - `ask`, `expect`: what requests ask, and what their answers must be;
//! - `account`, [`outcome`]: what becomes of a request;
//! - `load`, `plan`, `parameters`: what a user can choose, and what follows from it;
//! - [`record`], `outcome_record`: what a trial's record says of it; `tell`: the same in words;
//! - [`posts`]: the same sessions, with what another workload asks;
//! - [`check`]: the cases of the contract.

pub mod account;
pub mod arrivals;
mod ask;
mod calibrate;
pub mod check;
mod expect;
pub mod free;
pub mod h1;
pub mod h2;
pub mod h2_session;
#[cfg(test)]
mod h2_session_tests;
pub mod load;
pub mod machines;
mod manifest;
pub mod outcome;
mod outcome_record;
mod parameters;
mod plan;
pub mod posts;
pub mod record;
#[cfg(test)]
mod rig;
pub mod schedule;
pub mod session;
#[cfg(test)]
mod session_tests;
mod tell;

use std::sync::Arc;

use plimsoll_conformance::Check;
use plimsoll_document::Tell;
use plimsoll_workload::{
    About, Checked, Key, Manifest, Parameter, Plan, Refusal, Rule, Values, Work, Workload,
};

use calibrate::WORKS;
use check::{HttpSuite, Offer};
use parameters::PARAMETERS;
use plan::HttpPlan;

/// The workload.
#[derive(Debug)]
pub struct Http;

impl Workload for Http {
    fn about(&self) -> &'static About {
        &About {
            name: "http",
            line: "HTTP servers: requests by the clock, see --test",
            floor: Some("rust-epoll-http"),
            contract: Some(1),
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Http)
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(HttpPlan::new(values)?))
    }

    fn manifest_keys(&self) -> &'static [Key] {
        &manifest::KEYS
    }

    fn manifest_rule(&self) -> Rule {
        manifest::rule
    }

    fn variables(&self) -> &'static [&'static str] {
        &["DRAIN_TIMEOUT_MS", "MAX_BODY_BYTES", manifest::H2_PORT]
    }

    fn suite(&self, _values: &Values, target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        let offer = target.map_or_else(Offer::default, |target| manifest::offer(target.manifest));
        Some(Box::new(HttpSuite::new(offer)))
    }

    fn case_ids(&self, _values: &Values, manifest: &Manifest) -> Vec<String> {
        HttpSuite::new(manifest::offer(manifest)).case_ids()
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &WORKS
    }
}
