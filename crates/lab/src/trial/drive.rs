//! The client: drives a trial's work with the engine, in this process or in several.

use plimsoll_engine::Report;
use plimsoll_workload_ws::record::ClosedLoopRecord;

use super::Asked;
use super::machines::{Findings, Seconds};
use super::processes::{ClientProcesses, Order, shares};
use super::subject::TargetUrl;
use super::work::Work;
use crate::error::Result;

/// The shortest grace of a closed loop, in seconds. Its pings are given up after 5 s, and the grace must leave that
/// time to the last one.
const CLOSED_LOOP_GRACE_S: f64 = 6.0;

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
        let machines = self.work.machines(asked.options)?;
        let report = match self.processes {
            Some(processes) => machines.settle(processes.run(asked.stop, on_second)?)?,
            None => machines.run(asked.options, &asked.stop.flag(), on_second)?,
        };
        Ok((report, machines.findings()))
    }
}

/// What a closed loop shows of the same server at the same load, if one was asked for. Run this after everything that
/// counts has been measured and read.
///
/// Also `None` if the closed loop gave no result: it was interrupted, or the client's own machine ran out.
pub(super) fn closed_loop(asked: &Asked<'_>, url: &TargetUrl) -> Result<Option<ClosedLoopRecord>> {
    let Some(work) = Work::closed_loop(asked.conditions, url)? else {
        return Ok(None);
    };
    let mut options = asked.options.clone();
    let grace_s = &mut options.profile.grace_s;
    *grace_s = grace_s.max(CLOSED_LOOP_GRACE_S);
    let asked = Asked {
        options: &options,
        ..*asked
    };
    let client = Client::with(work, &asked, "closed-loop")?;
    let (report, findings) = client.drive(&asked, &mut |_| {})?;
    let told_all = !report.interrupted && report.client_faults.is_empty();
    Ok(findings.closed_loop.filter(|_| told_all))
}
