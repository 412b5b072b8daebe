//! What the sessions of a trial do, as data: a client process receives it in its order, and makes the same plan from it
//! as the command has.

use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::session::Endpoint;
use plimsoll_tls::Settings;
use plimsoll_workload::{Afterwards, Drive, Job, Plan, Values, Workload};
use serde::{Deserialize, Serialize};

use super::conditions::Conditions;
use super::subject::{TargetUrl, client};
use crate::error::{Error, Result};

/// The workloads that there are.
pub type Registry = &'static [&'static dyn Workload];

/// What the sessions do, and where they go. An endpoint has been let in already, so no client process needs a secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Work {
    workload: String,
    values: Values,
    /// Whether it is what comes after the trial.
    afterwards: bool,
    job: Job,
    /// How its connections use TLS; `None` if they do not.
    tls: Option<Settings>,
}

impl Work {
    /// The work of a trial at this load.
    ///
    /// # Errors
    /// No request can be made of what the user gave.
    pub(super) fn of(conditions: &Conditions, load: u32, url: &TargetUrl) -> Result<Self> {
        let plan = &conditions.plan;
        Ok(Self {
            workload: plan.workload().about().name.to_owned(),
            values: plan.values().without_secrets(),
            afterwards: false,
            job: Job {
                load,
                seed: conditions.seed,
                to: plan.let_in(conditions.endpoint(url))?,
                started: conditions.configured,
            },
            tls: url.tls(conditions),
        })
    }

    /// The name of a parameter whose value is a file, if there is one.
    pub(crate) fn file(&self) -> Option<&str> {
        self.values.names_a_file()
    }

    /// Where the sessions go.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.job.to
    }

    /// The work that comes after the trial.
    pub(super) fn afterwards(self) -> Self {
        Self {
            afterwards: true,
            ..self
        }
    }

    /// The machines that do this work by its plan.
    ///
    /// # Errors
    /// A file cannot be read, or a value cannot be used.
    pub(super) fn machines(&self, plan: &dyn Plan, profile: &Profile) -> Result<Box<dyn Drive>> {
        let mut machines = if self.afterwards {
            let Afterwards { plan, .. } = plan
                .afterwards()
                .ok_or_else(|| Error::Fault("nothing comes after this trial".to_owned()))?;
            plan.machines(&self.job, profile)?
        } else {
            plan.machines(&self.job, profile)?
        };
        if let Some(settings) = &self.tls {
            machines.use_tls(client(settings)?);
        }
        Ok(machines)
    }

    /// The plan of this work, where nobody has made it yet.
    ///
    /// # Errors
    /// There is no such workload, or its values cannot be used.
    pub(super) fn plan(&self, workloads: Registry) -> Result<Arc<dyn Plan>> {
        let named = |workload: &&&dyn Workload| workload.about().name == self.workload;
        let workload = workloads.iter().find(named).ok_or_else(|| {
            Error::Fault(format!(
                "a client process knows no workload {}",
                self.workload
            ))
        })?;
        Ok(workload.plan(self.values.clone())?)
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
pub(super) mod tests;
