//! The client: drives a trial's work with the engine, in this process, in several, or in agents on other machines.

use std::ops::ControlFlow;

use plimsoll_core::record::Agent;
use plimsoll_core::session::Endpoint;
use plimsoll_engine::Report;
use plimsoll_workload::Findings;
use plimsoll_workload::drive::Seconds;

use super::Asked;
use super::parts::{Order, Parts, shares};
use super::subject::TargetUrl;
use super::work::Work;
use crate::error::Result;

/// The client with its work: this process, or several parts that are ready.
pub(super) struct Client {
    work: Work,
    parts: Option<Parts>,
}

/// What the client measured.
pub(super) struct Drove {
    pub(super) report: Report,
    /// What the session machines found out besides.
    pub(super) findings: Findings,
    /// The agents among its parts, each with its share.
    pub(super) agents: Vec<Agent>,
}

impl Client {
    /// Gets the client ready for the requested load.
    pub(super) fn start(asked: &Asked<'_>, url: &TargetUrl) -> Result<Self> {
        let work = Work::of(asked.conditions, asked.load, url)?;
        Self::with(work, asked, "client")
    }

    /// The logs of its processes are named after `name`.
    fn with(work: Work, asked: &Asked<'_>, name: &str) -> Result<Self> {
        let conditions = asked.conditions;
        let orders = |parts| -> Vec<Order> {
            let shares = shares(asked.options, parts).into_iter();
            let order = |options| Order {
                options,
                work: work.clone(),
            };
            shares.map(order).collect()
        };
        let parts = match conditions.agents() {
            Some(fleet) => Some(Parts::agents(fleet, orders(fleet.agents()), asked.stop)?),
            None if asked.processes > 1 => Some(Parts::processes(
                orders(asked.processes),
                &conditions.log_folder,
                name,
                &conditions.placement.client_cpus,
                asked.stop,
            )?),
            None => None,
        };
        Ok(Self { work, parts })
    }

    /// Where its sessions go.
    pub(super) fn endpoint(&self) -> &Endpoint {
        self.work.endpoint()
    }

    /// The client's processes besides ours.
    pub(super) fn others(&self) -> Vec<i32> {
        self.parts.as_ref().map_or_else(Vec::new, Parts::pids)
    }

    /// Drives the load.
    pub(super) fn drive(self, asked: &Asked<'_>, on_second: Seconds<'_>) -> Result<Drove> {
        let plan = &*asked.conditions.plan;
        let machines = self.work.machines(plan, &asked.options.profile)?;
        let mut agents = Vec::new();
        let report = match self.parts {
            Some(parts) => {
                let driven = parts.run(asked.stop, on_second)?;
                agents = driven.agents;
                machines.settle(driven.all, agents.is_empty())?
            }
            None => machines.run(asked.options, &asked.stop.flag(), on_second)?,
        };
        Ok(Drove {
            report,
            findings: machines.findings(),
            agents,
        })
    }
}

/// What the plan's work after a trial finds out about the same server at the same load, if there is any. Run this after
/// everything that counts has been measured and read.
///
/// Also `None` if it gave no result: it was interrupted, or the client's own machine ran out.
pub(super) fn afterwards(asked: &Asked<'_>, url: &TargetUrl) -> Result<Option<Findings>> {
    let Some(afterwards) = asked.conditions.plan.afterwards() else {
        return Ok(None);
    };
    let work = Work::of(asked.conditions, asked.load, url)?.afterwards();
    let mut options = asked.options.clone();
    let grace_s = &mut options.profile.grace_s;
    *grace_s = grace_s.max(afterwards.grace_min_s);
    let asked = Asked {
        options: &options,
        ..*asked
    };
    let client = Client::with(work, &asked, afterwards.name)?;
    let drove = client.drive(&asked, &mut |_| ControlFlow::Continue(()))?;
    let report = &drove.report;
    let lost = Agent::one_is_lost(&drove.agents);
    let told_all = !report.interrupted && !lost && report.client_faults.is_empty();
    Ok(told_all.then_some(drove.findings))
}
