//! The search for the load line: trials at the loads that [`plimsoll_core::search`] asks for, until the edge is known.

use std::time::{Duration, Instant};

use plimsoll_core::bottleneck::bottleneck;
use plimsoll_core::record::{
    Bracket, GateResult, SCHEMA_VERSION, Second, Target, Trial, TrialSummary,
};
use plimsoll_core::schedule::mix;
use plimsoll_core::search::{self, Search, Settings, Step, TrialVerdict};

use crate::error::{Error, Result};
use crate::signals::Stop;
use crate::timestamp;
use crate::trial::{self, Conditions, Outcome, Subject};

/// What a search is told.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Of the search itself.
    pub settings: Settings,
    /// When this has passed, no further trial begins.
    pub time_budget: Option<Duration>,
}

/// What the caller is told while a search runs; each may be shown, and each trial must be kept.
pub trait Observer {
    /// A trial begins.
    fn trial_begins(&mut self, number: u32, sessions: u32, why: search::Why, trials_left: u32);
    /// A second of it is over.
    fn second(&mut self, second: &Second);
    /// It is over; returns the name under which it was kept.
    ///
    /// # Errors
    /// When it could not be kept.
    fn trial_ends(&mut self, outcome: Outcome) -> std::result::Result<String, String>;
}

/// What a search came to.
#[derive(Debug)]
pub struct Found {
    /// What is known.
    pub bracket: Bracket,
    /// What ended the search before its time, if something other than a signal did; the bracket is marked `interrupted` then.
    pub cut_short: Option<Error>,
}

/// Searches.
///
/// # Errors
/// As [`trial::run`] for the very first trial, or when a trial could not be kept. An error or a signal later on ends the search with what it knows, in a bracket
/// that is marked `interrupted`.
pub fn find(
    conditions: &Conditions,
    subject: &Subject,
    plan: &Plan,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Found> {
    let began = Instant::now();
    let started_at = timestamp::now();
    let mut search = Search::new(plan.settings).map_err(|error| Error::Usage(error.to_string()))?;
    let mut kept = Kept::default();
    let mut cut_short = None;
    let (outcome, interrupted) = loop {
        if plan
            .time_budget
            .is_some_and(|budget| began.elapsed() >= budget)
        {
            search.expire();
        }
        let (load, why) = match search.next() {
            Step::Done(outcome) => break (outcome, false),
            Step::Trial { load, why } => (load, why),
        };
        let left = search.remaining_trials_estimate();
        observer.trial_begins(kept.count() + 1, load, why, left);
        let ran = trial::run(
            &drawn_anew(conditions, &kept),
            subject,
            load,
            stop,
            &mut |second| {
                observer.second(second);
            },
        );
        let outcome = match ran {
            Ok(outcome) => outcome,
            // Nothing is known yet, so there is nothing to keep.
            Err(error) if kept.count() == 0 => return Err(error),
            Err(Error::Interrupted(_)) => break (ended_now(&mut search), true),
            Err(error) => {
                cut_short = Some(error);
                break (ended_now(&mut search), true);
            }
        };
        let verdict = TrialVerdict::of(outcome.trial.verdict, outcome.client_ran_out);
        let interrupted = outcome.trial.interrupted;
        kept.add(outcome, observer)?;
        if interrupted {
            break (ended_now(&mut search), true);
        }
        search.record(load, verdict);
    };
    Ok(Found {
        bracket: kept.bracket(conditions, &outcome, interrupted, started_at, plan),
        cut_short,
    })
}

/// The same conditions with a seed of this trial's own, so that repeats at one load are draws of their own. It fits the integers of every JSON reader.
fn drawn_anew(conditions: &Conditions, kept: &Kept) -> Conditions {
    let mut conditions = conditions.clone();
    conditions.seed = mix(conditions.seed ^ u64::from(kept.count())) >> 32;
    conditions
}

fn ended_now(search: &mut Search) -> search::Outcome {
    search.interrupt();
    match search.next() {
        Step::Done(outcome) => outcome,
        Step::Trial { .. } => unreachable!("an interrupted search asks for no trial"),
    }
}

/// The trials so far, as far as the bracket needs them.
#[derive(Default)]
struct Kept {
    summaries: Vec<TrialSummary>,
    target: Target,
    vcpu: Option<f64>,
    /// In some trial the client or the machine ran out.
    client_ran_out: bool,
    /// Of each failed trial: its load, the first gate that did not hold, what limited it.
    failures: Vec<(u32, String, Option<String>)>,
}

impl Kept {
    fn count(&self) -> u32 {
        u32::try_from(self.summaries.len()).unwrap_or(u32::MAX)
    }

    fn add(&mut self, outcome: Outcome, observer: &mut dyn Observer) -> Result<()> {
        let trial = &outcome.trial;
        self.target = trial.target.clone();
        self.vcpu = trial.vcpu;
        self.client_ran_out |= outcome.client_ran_out;
        if let Some(gate) = first_broken_gate(trial) {
            self.failures
                .push((trial.sessions, gate, bottleneck(trial)));
        }
        let mut summary = TrialSummary::of(trial, "");
        summary.file = observer.trial_ends(outcome).map_err(Error::Usage)?;
        self.summaries.push(summary);
        Ok(())
    }

    fn bracket(
        self,
        conditions: &Conditions,
        outcome: &search::Outcome,
        interrupted: bool,
        started_at: String,
        plan: &Plan,
    ) -> Bracket {
        let failure = outcome.first_fail.and_then(|load| {
            let mut of_load = self.failures.iter().filter(|(at, _, _)| *at == load);
            of_load.next_back().cloned()
        });
        let (failing_gate, bottleneck) = match failure {
            Some((_, gate, bottleneck)) => (Some(gate), bottleneck),
            // A lower bound also comes of a search that was not allowed to try more; that is no bottleneck of anybody.
            None if outcome.lower_bound_only && self.client_ran_out => (
                None,
                Some("client: it ran out before the target did".to_owned()),
            ),
            None => (None, None),
        };
        Bracket {
            schema_version: SCHEMA_VERSION,
            target: self.target,
            workload: conditions.load.name().to_owned(),
            profile: conditions.profile.name.clone(),
            slo: conditions.slo.name.clone(),
            vcpu: self.vcpu,
            confirmed: outcome.confirmed,
            borderline: outcome.borderline.clone(),
            first_fail: outcome.first_fail,
            failing_gate,
            bottleneck,
            sessions_per_vcpu: outcome
                .confirmed
                .zip(self.vcpu)
                .map(|(confirmed, vcpu)| f64::from(confirmed) / vcpu),
            lower_bound_only: outcome.lower_bound_only,
            interrupted,
            conclusion: outcome.conclusion.clone(),
            seed: plan.settings.seed,
            started_at,
            trials: self.summaries,
        }
    }
}

/// The gate that a failed trial broke first: of those on latency the one exceeded by the greatest factor, for they give way before anything is lost;
/// otherwise the first of the others.
fn first_broken_gate(trial: &Trial) -> Option<String> {
    let excess = |gate: &GateResult| match gate.observed {
        Some(value) if gate.threshold > 0.0 => value / gate.threshold,
        _ => f64::INFINITY,
    };
    let failed = || trial.gates.iter().filter(|gate| !gate.pass);
    failed()
        .filter(|gate| gate.name.ends_with("_ms"))
        .max_by(|a, b| excess(a).total_cmp(&excess(b)))
        .or_else(|| failed().next())
        .map(|gate| gate.name.clone())
}
