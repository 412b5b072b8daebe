//! A target that we started: the process, its control group, and how it is started once more on the same data.

use std::time::Duration;

use plimsoll_core::secret::Secrets;
use plimsoll_host::isolation::{Cgroup, Layout, OwnNetwork};
use plimsoll_host::process::{Child, Launch, Ready};
use plimsoll_host::resources::Source;
use plimsoll_host::signals::Stop;

use super::conditions::Conditions;
use super::place::{Place, not_reached};
use crate::contract;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

/// A target that we started.
pub(super) struct Started {
    pub(super) child: Child,
    // Declared after the child, so that it is dropped later.
    pub(super) group: Cgroup,
    /// Time from its start until it showed that it is ready.
    pub(super) ready_after: Duration,
    /// How it was started, what shows that it is ready, and how long that may take.
    launch: Launch,
    ready: Ready,
    timeout: Duration,
}

impl Started {
    pub(super) fn start(
        conditions: &Conditions,
        manifest: &Manifest,
        at: &Place<'_>,
        told: Vec<(String, String)>,
        secrets: &Secrets,
        stop: &Stop,
    ) -> Result<Self> {
        if let Some(port) = at.taken() {
            return Err(Error::Usage(format!(
                "port {port} is taken; free it or run again"
            )));
        }
        let group = Cgroup::create(
            &conditions.placement,
            conditions.quota_period_us,
            &Layout::of_this_machine(),
        );
        let log = conditions.log_folder.join(format!("{}.log", manifest.name));
        let mut launch = Launch::new(
            &manifest.name,
            &manifest.run.command,
            manifest.folder(),
            &log,
        );
        launch.env_remove = contract::variables(conditions.plan.workload());
        launch.env = told;
        launch.cpus = Some(conditions.placement.target_cpus.clone());
        launch.secrets = secrets.clone();
        launch.stop_signal = manifest.run.stop_signal;
        launch.network = at.network.map(OwnNetwork::namespace);
        let mut child = launch.start(Some(&group))?;
        let ready = at.ready(&*conditions.plan);
        let timeout = manifest.start_timeout();
        let ready_after = child.wait_ready_unless(&ready, timeout, stop, &mut || {
            let only_inside = at.listens_inside_only(&ready);
            only_inside.then(|| not_reached(&manifest.name))
        })?;
        Ok(Self {
            child,
            group,
            ready_after,
            launch,
            ready,
            timeout,
        })
    }

    pub(super) fn source(&self) -> Source {
        let view = self.group.view();
        if view.is_empty() {
            Source::Tree(self.child.pid())
        } else {
            Source::Group(view.clone())
        }
    }

    /// Kills it and everything that it started, without asking.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        Ok(self.group.kill_all()?)
    }

    /// Starts it as before, in the same group, and waits until it is ready. It has a log of its own: the first one stays.
    pub(super) fn start_again(&mut self, stop: &Stop) -> Result<()> {
        let name = format!("{}-again.log", self.launch.name);
        self.launch.log = self.launch.log.with_file_name(name);
        self.child = self.launch.start(Some(&self.group))?;
        self.child.wait_ready(&self.ready, self.timeout, stop)?;
        Ok(())
    }
}
