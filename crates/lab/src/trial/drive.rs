//! The client: drives a trial's work with the engine, in this process or in several.

use std::ops::ControlFlow;

use plimsoll_core::session::Endpoint;
use plimsoll_engine::Report;
use plimsoll_workload::Findings;
use plimsoll_workload::drive::Seconds;

use super::Asked;
use super::processes::{ClientProcesses, Order, shares};
use super::subject::TargetUrl;
use super::work::Work;
use crate::error::Result;

/// The client with its work: this process, or several processes that are ready.
pub(super) struct Client {
    work: Work,
    processes: Option<ClientProcesses>,
}

impl Client {
    /// Gets the client ready for the requested load.
    pub(super) fn start(asked: &Asked<'_>, url: &TargetUrl) -> Result<Self> {
        let work = Work::of(asked.conditions, asked.load, url)?;
        Self::with(work, asked, "client")
    }

    /// The logs of its processes are named after `name`.
    fn with(work: Work, asked: &Asked<'_>, name: &str) -> Result<Self> {
        let mut processes = None;
        if asked.processes > 1 {
            let shares = shares(asked.options, asked.processes).into_iter();
            let order = |options| Order {
                options,
                work: work.clone(),
            };
            let orders: Vec<Order> = shares.map(order).collect();
            let conditions = asked.conditions;
            processes = Some(ClientProcesses::start(
                &orders,
                &conditions.log_folder,
                name,
                &conditions.placement.client_cpus,
                asked.stop,
            )?);
        }
        Ok(Self { work, processes })
    }

    /// Where its sessions go.
    pub(super) fn endpoint(&self) -> &Endpoint {
        self.work.endpoint()
    }

    /// The client's processes besides ours.
    pub(super) fn others(&self) -> Vec<i32> {
        let processes = self.processes.as_ref();
        processes.map_or_else(Vec::new, ClientProcesses::pids)
    }

    /// Drives the load.
    pub(super) fn drive(
        self,
        asked: &Asked<'_>,
        on_second: Seconds<'_>,
    ) -> Result<(Report, Findings)> {
        let plan = &*asked.conditions.plan;
        let machines = self.work.machines(plan, &asked.options.profile)?;
        let report = match self.processes {
            Some(processes) => machines.settle(processes.run(asked.stop, on_second)?)?,
            None => machines.run(asked.options, &asked.stop.flag(), on_second)?,
        };
        Ok((report, machines.findings()))
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
    let (report, findings) = client.drive(&asked, &mut |_| ControlFlow::Continue(()))?;
    let told_all = !report.interrupted && report.client_faults.is_empty();
    Ok(told_all.then_some(findings))
}
