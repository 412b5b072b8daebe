//! Whether a trial can be believed, as far as the engine and the resources do not show it: where the target ran,
//! whether a clock jumped, and the accounts that are kept twice, compared by [`plimsoll_core::sanity`].

use plimsoll_core::caveat::{ClockJump, OtherProgram};
use plimsoll_core::record::SanityCheck;
use plimsoll_core::sanity::{self, ClientCounts};
use plimsoll_engine::Report;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::resources::Others;
use plimsoll_workload::{Counters, Findings};

use super::by_label::{ByLabel, Counted};
use super::clocks::Clocks;
use super::conditions::Conditions;
use super::metrics::{TargetAccount, TargetMetrics};
use super::stage::Staged;
use super::subject::Subject;

/// What the watch found.
#[derive(Debug)]
pub(super) struct Soundness {
    /// The cores that the target may use; `None` if nobody said which processes it has.
    pub(super) target_cpus: Option<CpuList>,
    /// A clock that jumped.
    pub(super) clock_jump: Option<ClockJump>,
    /// Accounts kept twice; empty if they could not be compared.
    pub(super) checks: Vec<SanityCheck>,
    /// Messages that the target's application was handed, if the load is messages and the target reports it.
    pub(super) processed: Option<u64>,
    /// Messages that the target is proven to have read, then messages that its application was handed, if the two could
    /// be compared.
    pub(super) read_and_processed: Option<(u64, u64)>,
    /// The target's counters that the plan compares itself; empty if they could not be compared.
    pub(super) by_label: Counted,
    /// The target's manifest says that it never asks its back end.
    pub(super) back_end_unchecked: bool,
    /// The busiest programs of others that may have run on the client's cores.
    pub(super) others: Vec<OtherProgram>,
}

/// Watches from before the first session to the trial's end.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    subject: &'a Subject,
    clocks: Clocks,
    metrics: Option<TargetMetrics>,
    by_label: Option<ByLabel>,
    target_cpus: Option<CpuList>,
    /// The programs of others; `None` if the client is on other machines.
    others: Option<Others>,
}

impl<'a> Watch<'a> {
    /// Begins, while target and companion run.
    pub(super) fn begin(conditions: &Conditions, subject: &'a Subject, stage: &Staged) -> Self {
        let counters = counters(conditions, stage);
        let named = counters.map_or::<&[&str], _>(&[], |_| conditions.plan.counters_by_label());
        Self {
            subject,
            metrics: TargetMetrics::before(&stage.http_host, counters),
            by_label: ByLabel::read(&stage.http_host, named),
            target_cpus: target_cpus(conditions, subject, stage),
            clocks: Clocks::start(),
            others: match conditions.agents() {
                Some(_) => None,
                None => Some(Others::look(&conditions.placement.client_cpus)),
            },
        }
    }

    /// Checks the clocks after each second.
    pub(super) fn second_over(&mut self) {
        self.clocks.look();
    }

    /// Ends, while target and companion still run.
    pub(super) fn end(
        mut self,
        conditions: &Conditions,
        stage: &Staged,
        report: &Report,
        findings: &Findings,
    ) -> Soundness {
        self.clocks.look();
        let asks_back_end = match self.subject {
            Subject::Started(manifest) => {
                let companions = conditions.plan.workload().companions();
                companions.is_none_or(|companions| companions.is_asked_by(manifest))
            }
            Subject::Running { .. } => true,
        };
        // Threads that started under load count, too.
        let now = target_cpus(conditions, self.subject, stage);
        let cpus = [self.target_cpus.as_ref(), now.as_ref()];
        let cpus = cpus.into_iter().flatten().flat_map(CpuList::as_slice);
        let target_cpus = CpuList::new(cpus.copied().collect());
        let comparable = can_be_compared(report);
        let asides = conditions.plan.asides(findings);
        let told = self.told(comparable, report, asides);
        let read = report.ledger.frames_answered_in_all;
        let by_label = self.by_label.filter(|_| comparable);
        Soundness {
            target_cpus,
            by_label: by_label
                .map(|counters| counters.grown())
                .unwrap_or_default(),
            clock_jump: self.clocks.jump(),
            processed: told.processed,
            read_and_processed: told
                .processed
                .filter(|_| comparable)
                .map(|processed| (read, processed)),
            checks: if comparable {
                checked(conditions, stage, asks_back_end, told.checks, report)
            } else {
                Vec::new()
            },
            back_end_unchecked: stage.companion.is_some() && !asks_back_end,
            others: self
                .others
                .as_ref()
                .map_or_else(Vec::new, Others::busiest_since),
        }
    }

    /// What the target itself counts.
    fn told(&self, comparable: bool, report: &Report, asides: u64) -> TargetAccount {
        match &self.metrics {
            None => TargetAccount::default(),
            Some(metrics) if comparable => metrics.held_against(&client_counts(report), asides),
            Some(metrics) => metrics.for_itself(),
        }
    }
}

/// The cores that the target may use now, on its machine. For a target that we started, these are the ones it was given.
/// For a target that already runs, they are the ones that the kernel allows to any of its threads. `None` if nobody said
/// which processes these are.
fn target_cpus(conditions: &Conditions, subject: &Subject, stage: &Staged) -> Option<CpuList> {
    match (stage.observer(), subject) {
        (Some(observer), _) => observer.cpus(),
        (None, Subject::Started(_)) => Some(conditions.placement.target_cpus.clone()),
        (None, Subject::Running { resources, .. }) => resources.as_ref()?.cpus(),
    }
}

/// The target's counters that have a meaning. Its metrics are read without TLS, and only from a target with HTTP.
fn counters(conditions: &Conditions, stage: &Staged) -> Option<Counters> {
    let has_http = !stage.url.secure && conditions.plan.speaker().is_none();
    conditions.plan.counters().filter(|_| has_http)
}

/// Whether accounts can be compared. They cannot if the trial was interrupted, if a session failed or died (its bytes
/// and its counters are gone with it, and the trial fails by that), or if the client's machine failed.
fn can_be_compared(report: &Report) -> bool {
    let ledger = &report.ledger;
    let all_lived = ledger.sessions_failed == 0 && ledger.sessions_died == 0;
    !report.interrupted && all_lived && report.client_faults.is_empty()
}

fn client_counts(report: &Report) -> ClientCounts {
    let ledger = &report.ledger;
    ClientCounts {
        frames_sent: ledger.frames_sent_in_all,
        frames_answered: ledger.frames_answered_in_all,
        partials: ledger.partials_in_all,
        sessions: ledger.sessions_started,
    }
}

/// How long a turn of the engine's loop may take without a tick, in µs: Little's law is kept once per turn.
const TURN_US: u64 = 100;

/// Compares all accounts of a trial. Call it while target and companion still run. `of_target` are the checks of the
/// target's own account, which is already compared.
fn checked(
    conditions: &Conditions,
    stage: &Staged,
    asks_back_end: bool,
    of_target: Vec<SanityCheck>,
    report: &Report,
) -> Vec<SanityCheck> {
    let ledger = &report.ledger;
    let window = conditions.profile.window();
    let mut checks = Vec::new();
    checks.extend(sanity::littles_law(
        &report.residence,
        ledger.frames_lost,
        window.end_ns - window.start_ns,
        conditions.tick_us.max(TURN_US) * 1000,
    ));
    if let Some(kernel) = &report.kernel_bytes {
        checks.extend(sanity::kernel_bytes(
            kernel,
            ledger.bytes_sent,
            ledger.bytes_received,
        ));
    }
    checks.extend(of_target);
    if asks_back_end
        && let Some(companion) = &stage.companion
        && let Ok(seen) = companion.seen()
    {
        let client = client_counts(report);
        let frame_bytes = conditions.companion_terms().frame_bytes;
        checks.extend(frame_bytes.map(|frame_bytes| {
            sanity::back_end_bytes(seen.request_bytes_in_all, frame_bytes, &client)
        }));
    }
    checks
}
