//! What a workload brings to a check: its cases, and what they need around them.

use super::case::Case;
use super::location::Form;
use super::runner::{self, Options};
use super::setup::Setup;
use super::subject::{Environment, Subject};
use super::{CaseResult, CheckReport};

/// The cases of one workload.
pub trait Suite: Sized + Send + Sync + 'static {
    /// What runs beside a server for its cases, such as the back end that it asks; `()` where nothing does. Dropped, it
    /// ends.
    type Companion: Send + Sync;

    /// What a companion is called in texts; `None` where there is none.
    const COMPANION: Option<&'static str>;

    /// Every case, in the order of the contract.
    fn cases(&self) -> Vec<Case<Self>>;

    /// What is assumed of a server that is known by its URL only: the contract's defaults.
    fn defaults(&self) -> &'static Setup;

    /// Starts what runs beside the server of a setup.
    ///
    /// # Errors
    /// It did not become ready.
    fn start_companion(&self, setup: &'static Setup) -> Result<Self::Companion, String>;

    /// A companion's process, if it has one here: the checker then sees whether it was kept from its core.
    fn companion_process(&self, _companion: &Self::Companion) -> Option<i32> {
        None
    }

    /// The variables that the server of a setup is started with.
    fn environment(&self, setup: &'static Setup, companion: &Self::Companion) -> Environment;
}

/// What the companion of a suite is called.
pub(super) fn companion_name<S: Suite>() -> &'static str {
    S::COMPANION.unwrap_or("companion")
}

/// A [`Suite`] whose companion does not matter to the caller, so that one place can choose among the workloads.
pub trait Check: Send + Sync {
    /// The ids of all cases, in the order of the contract.
    fn case_ids(&self) -> Vec<String>;

    /// How the URL of a server begins that these cases can be tried on.
    fn form(&self) -> Form {
        Form::Http
    }

    /// Runs every case, hands each result to `on_case` as it comes, and reports all in the order of the contract.
    ///
    /// A case whose server or companion does not start counts as failed; one that the subject does not allow as skipped.
    fn run(
        &self,
        subject: &Subject<'_>,
        options: &Options<'_>,
        on_case: &mut dyn FnMut(&CaseResult),
    ) -> CheckReport;
}

impl<S: Suite> Check for S {
    fn case_ids(&self) -> Vec<String> {
        let cases = self.cases().into_iter();
        cases.map(|case| case.id.into_owned()).collect()
    }

    fn run(
        &self,
        subject: &Subject<'_>,
        options: &Options<'_>,
        on_case: &mut dyn FnMut(&CaseResult),
    ) -> CheckReport {
        runner::run(self, subject, options, on_case)
    }
}
