//! The trials so far, and the brackets made from them.

use plimsoll_core::bottleneck::bottleneck;
use plimsoll_core::broken_gate::first_broken;
use plimsoll_core::caveat::{Caveat, CompanionTerms};
use plimsoll_core::cost::{TrialCost, cost_curve};
use plimsoll_core::record::{Bracket, Goals, SCHEMA_VERSION, Trial, TrialSummary, Verdict};
use plimsoll_core::search::SearchResult;

use super::FindPlan;
use crate::campaign;
use crate::error::Result;
use crate::trial::Conditions;

/// The trials so far, as needed for a bracket.
#[derive(Default)]
pub(super) struct Kept {
    trials: Vec<(String, Trial)>,
}

impl Kept {
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.trials.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().map(|(_, trial)| trial)
    }

    pub(super) fn add(&mut self, trial: &Trial, file: String) {
        self.trials.push((file, trial.clone()));
    }

    /// Checks that the target is still the same. A resumed search must not mix earlier trials, or its baseline, with trials
    /// of another build of the target.
    ///
    /// # Errors
    /// The target's start line names other versions than before.
    pub(super) fn must_be_the_same_target(
        &self,
        trial: &Trial,
        baseline: Option<&Trial>,
    ) -> Result<()> {
        let first = baseline.or_else(|| self.trials().next());
        first.map_or(Ok(()), |first| {
            campaign::must_be_the_same_target(first, trial)
        })
    }

    /// The bracket of the search by this SLO.
    pub(super) fn bracket(
        &self,
        conditions: &Conditions,
        slo: &str,
        outcome: &SearchResult,
        interrupted: bool,
        started_at: &str,
        plan: &FindPlan,
    ) -> Bracket {
        let last = self.trials.last().map(|(_, trial)| trial);
        let vcpu = last.and_then(|trial| trial.vcpu);
        let (failing_gate, bottleneck) =
            self.what_gave_way(&conditions.companion_terms(), slo, outcome);
        let cost = |trial: &Trial| {
            let resources = trial.target_resources.as_ref();
            TrialCost {
                sessions: trial.sessions,
                verdict: trial.verdict,
                cpu_us: resources.and_then(|used| used.cpu_us_per_session_second),
                core_us: resources.and_then(|used| used.core_us_per_session_second),
                rss_bytes: resources.and_then(|used| used.rss_bytes_per_session),
            }
        };
        Bracket {
            build: conditions.build.clone(),
            schema_version: SCHEMA_VERSION,
            target: last.map(|trial| trial.target.clone()).unwrap_or_default(),
            workload: conditions.plan.workload().about().name.to_owned(),
            profile: conditions.profile.name.clone(),
            slo: slo.to_owned(),
            vcpu,
            load_unit: conditions.plan.unit(),
            confirmed: outcome.confirmed,
            borderline: outcome.borderline.clone(),
            first_fail: outcome.first_fail,
            failing_gate,
            bottleneck,
            sessions_per_vcpu: outcome
                .confirmed
                .zip(vcpu)
                .map(|(confirmed, vcpu)| f64::from(confirmed) / vcpu),
            lower_bound_only: outcome.lower_bound_only,
            interrupted,
            conclusion: outcome.conclusion.clone(),
            edge: outcome.edge,
            evidence: outcome.evidence.clone(),
            cost_curve: cost_curve(self.trials.iter().map(|(_, trial)| cost(trial))),
            escalation: None,
            baseline: None,
            goals: None,
            seed: plan.settings.seed,
            started_at: started_at.to_owned(),
            trials: self
                .trials
                .iter()
                .filter_map(|(file, trial)| Some(TrialSummary::of(&trial.judged_by(slo)?, file)))
                .collect(),
        }
    }

    /// What became of the goals in the search of this bracket; `None` if none were set.
    pub(super) fn goals(&self, conditions: &Conditions, bracket: &Bracket) -> Option<Goals> {
        let goals = conditions.goals.as_ref()?;
        let judged: Vec<Trial> = self
            .trials()
            .filter_map(|trial| trial.judged_by(&bracket.slo))
            .collect();
        Some(goals.in_search(bracket, &judged))
    }

    /// The gate that gave way first at the lowest failing load, and what ran out there.
    fn what_gave_way(
        &self,
        companion: &CompanionTerms,
        slo: &str,
        outcome: &SearchResult,
    ) -> (Option<String>, Option<String>) {
        let at_the_edge = |load| {
            let of_load = self.trials.iter().filter(move |(_, t)| t.sessions == load);
            of_load
                .filter_map(|(_, trial)| trial.judged_by(slo))
                .rfind(|trial| trial.verdict == Verdict::Fail)
        };
        if let Some(trial) = outcome.first_fail.and_then(at_the_edge) {
            let gate = first_broken(&trial.gates).map(|gate| gate.name.clone());
            return (gate, bottleneck(&trial, companion));
        }
        // A search that was not allowed to try more also ends with a lower bound. That is nobody's bottleneck.
        if !outcome.lower_bound_only {
            return (None, None);
        }
        let who_ran_out = |(_, trial): &(String, Trial)| {
            let caveats = trial.judged_by(slo)?.caveats;
            if caveats.iter().any(Caveat::machine_ran_out) {
                return Some("machine");
            }
            let client = caveats.iter().any(Caveat::client_ran_out);
            client.then_some("client")
        };
        let who = self.trials.iter().rev().find_map(who_ran_out);
        let text = |who| format!("{who}: it ran out before the target did");
        (None, who.map(text))
    }
}
