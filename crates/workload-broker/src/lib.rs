//! Workload `broker`: queues and streams of message brokers, by the clock.
//!
//! - [`dialect`]: a broker's protocol as a machine without I/O: [`amqp`], [`fibril`], [`kafka`], [`mqtt`], [`nats`],
//!   [`resp`];
//! - [`schedule`]: when each message of a writer is due;
//! - [`message`]: what a message contains, and how a reader checks it;
//! - [`marks`]: which messages were written, confirmed, refused and delivered, and what follows from that;
//! - [`backlog`]: what the broker holds, and whether it grows;
//! - [`guarantee`]: what the broker promises, and which promises may be compared;
//! - [`replay`]: what a trial shows in which the broker crashed;
//! - [`word`]: the one word that sums a trial up;
//! - `closed_loop`: what a load without a clock shows;
//! - `writer`, `reader`, `session`, `machines`: these together, as the engine drives them;
//! - `reopen`: a connection that opens again after the broker's crash;
//! - `calibrate`: what they cost.

pub mod amqp;
pub mod backlog;
mod calibrate;
mod closed_loop;
mod decimal;
pub mod dialect;
#[cfg(test)]
mod faults;
pub mod fibril;
pub mod guarantee;
pub mod kafka;
mod link;
pub mod load;
mod login;
mod machines;
mod manifest;
pub mod marks;
pub mod message;
pub mod mqtt;
pub mod nats;
mod outcome;
mod parameters;
pub mod pieces;
mod plan;
mod reader;
pub mod record;
mod reopen;
pub mod replay;
pub mod resp;
#[cfg(test)]
mod rig;
pub mod schedule;
mod session;
pub mod sets;
mod speaker;
mod tell;
mod unconfirmed;
pub mod word;
mod writer;

use std::sync::Arc;

use plimsoll_document::Tell;
use plimsoll_workload::{
    About, Key, Manifest, Parameter, Plan, Refusal, Rule, Values, Work, Workload,
};

pub use login::Login;

/// The workload.
#[derive(Debug)]
pub struct Broker;

impl Workload for Broker {
    fn about(&self) -> &'static About {
        &About {
            name: "broker",
            line: "Message brokers: queues and streams, what a confirmation is worth, see --test",
            floor: None,
            contract: Some(1),
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &parameters::PARAMETERS
    }

    fn manifest_keys(&self) -> &'static [Key] {
        &manifest::KEYS
    }

    fn manifest_rule(&self) -> Rule {
        manifest::rule
    }

    fn variables(&self) -> &'static [&'static str] {
        &["LEVEL", "DATA_DIR"]
    }

    fn offers(&self, manifest: &Manifest) -> Vec<String> {
        manifest::offers(manifest)
    }

    fn teller(&self) -> Option<&'static dyn Tell> {
        Some(&Broker)
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(plan::BrokerPlan::new(values)?))
    }

    fn works(&self) -> &'static [&'static dyn Work] {
        &calibrate::WORKS
    }
}
