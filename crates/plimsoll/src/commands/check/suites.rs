//! Which cases a workload has, and how its targets are started for them.

use std::path::{Path, PathBuf};

use plimsoll_conformance::{Check, Laboratory, Program};
use plimsoll_host::isolation::Placement;
use plimsoll_host::signals::Stop;
use plimsoll_lab::contract;
use plimsoll_lab::manifest::{self, Manifest};
use plimsoll_workload::{Checked, Values, Workload};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::setup::deviations;
use crate::workloads;

/// Where a target is checked.
pub(super) struct Place<'a> {
    pub(super) placement: &'a Placement,
    /// A folder for the logs of its processes.
    pub(super) logs: &'a Path,
    pub(super) stop: &'a Stop,
}

/// The cases that the user asks for.
pub(super) struct Suites {
    workload: &'static dyn Workload,
    /// What the user says about the target.
    given: Values,
    /// The program that runs beside the targets, if the workload has one and targets are started.
    companion: Option<PathBuf>,
}

impl Suites {
    /// Those of the user's workload. A companion is looked for only where one will be started.
    pub(super) fn of(args: &CheckArgs) -> Result<Self, Failure> {
        let workload = args.which.workload.0;
        let companions = workload.companions().filter(|_| args.which.url.is_none());
        let root = manifest::root_of_this_process(args.which.root.as_deref()).ok();
        let companion = companions.map(|companions| companions.find(root.as_deref()));
        let suites = Self {
            workload,
            given: args.properties.0.clone(),
            companion: companion.transpose()?,
        };
        suites.on_url()?;
        Ok(suites)
    }

    /// The cases for a server that is known by its URL only.
    pub(super) fn on_url(&self) -> Result<Box<dyn Check>, Failure> {
        let suite = self.workload.suite(&self.values(None)?, None);
        suite.ok_or_else(|| self.none())
    }

    /// Refuses a target whose manifest contradicts what the user says about it, or deviates from a case that there is
    /// not.
    pub(super) fn must_fit(&self, target: &Manifest) -> Result<(), Failure> {
        let values = self.values(Some(target))?;
        deviations::must_be_known(self.workload, &values, target)
    }

    fn values(&self, target: Option<&Manifest>) -> Result<Values, Failure> {
        let given = self.given.clone();
        Ok(given.settled(self.workload, workloads::ALL, target)?)
    }

    /// The cases for a target, and what starts it.
    pub(super) fn on_target(
        &self,
        target: &Manifest,
        place: &Place<'_>,
    ) -> Result<(Box<dyn Check>, Laboratory), Failure> {
        let checked = Checked {
            manifest: target,
            companion: self.companion.as_deref(),
            cpus: &place.placement.client_cpus,
            logs: place.logs,
            stop: place.stop,
        };
        let values = self.values(Some(target))?;
        let suite = self.workload.suite(&values, Some(&checked));
        let suite = suite.ok_or_else(|| self.none())?;
        let plan = self.workload.plan(values)?;
        let told = plan.told();
        let program = Program {
            name: target.name.clone(),
            command: target.run.command.clone(),
            folder: target.folder().to_owned(),
            environment: target.run.env.clone(),
            unset: contract::variables(self.workload),
            stop_signal: target.run.stop_signal,
            health_path: told.health_path,
            ask: plan.ask(),
            data: told.data,
            start_timeout: target.start_timeout(),
            ports: target.ports.clone(),
            http_port: manifest::METRICS_PORT,
        };
        let laboratory = Laboratory::new(program, place.logs, place.stop)
            .on_cpus(place.placement.target_cpus.clone());
        Ok((suite, laboratory))
    }

    fn none(&self) -> Failure {
        Failure::Usage(format!(
            "workload {} has no cases to check",
            self.workload.about().name
        ))
    }
}
