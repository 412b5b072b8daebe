//! Compares two targets. Their trials take turns, so that changes of the machine affect both alike.
//!
//! - `searches`: searches both load lines, one step at a time, in turns;
//! - `pairs`: runs trials of both at one load, one right after the other, for the cost.
//!
//! Only the pairs count for the cost. The searches' own trials would add to them, but do not count. The loads that a
//! search visits depend on what its trials showed, the two sides' trials at a load are not neighbours in time, and near
//! the edge the cost curve bends.

mod pairs;
mod searches;

use std::time::Duration;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::comparison::{
    conclude, costs_of_pairs, edge_of, findings_of_pairs, unanimous_pairs_needed,
};
use plimsoll_core::record::{
    Build, Carried, Comparison, Conclusion, CostAccount, LoadUnit, Pair, SCHEMA_VERSION, Side,
    TrialSummary, Verdict,
};
use plimsoll_core::search::{Settings, TrialVerdict};
use plimsoll_core::stats::Mean;
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;

use crate::campaign::{Campaign, Contender, KeptTrial, Observer, Wanted};
use crate::error::{Error, Result};
use crate::trial::Subject;

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The baseline.
    A,
    /// What is compared with it.
    B,
}

impl Which {
    /// Both, the baseline first.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Its letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// The load of the pairs.
#[derive(Debug, Clone)]
pub enum At {
    /// This load. No load line is searched.
    Load(u32),
    /// This share of the lower of the two load lines, which are searched first.
    ShareOfLoadLine {
        /// The settings of each search.
        settings: Settings,
        /// After this time, no further trial of the searches begins.
        time_budget: Option<Duration>,
        /// The share, between 0 and 1.
        share: f64,
    },
}

/// The plan of a comparison.
#[derive(Debug, Clone)]
pub struct ComparePlan {
    /// The load at which costs are compared.
    pub at: At,
    /// The number of pairs.
    pub pairs: u32,
    /// The confidence with which all intervals hold together.
    pub confidence: f64,
    /// The seed of everything drawn.
    pub seed: u64,
}

/// The outcome of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// The record of what is known.
    pub comparison: Comparison,
    /// The error that ended it early, unless that was a signal. The comparison is then marked `interrupted`.
    pub cut_short: Option<Error>,
}

/// Runs a comparison. The conditions of the two sides differ at most in the baseline that their trials are compared with.
///
/// # Errors
/// The errors of [`trial::run`] in the very first trial, or a trial could not be kept. A later error or signal ends the
/// comparison with what it knows, marked `interrupted`.
pub fn compare(
    contenders: [Contender<'_>; 2],
    plan: &ComparePlan,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Compared> {
    let started_at = timestamp::now();
    let conditions = contenders[0].conditions;
    let subjects = contenders.map(|contender| contender.subject);
    let names = subjects.map(Subject::name);
    let letters = [Which::A, Which::B].map(Which::letter);
    let mut bench = RealBench {
        campaign: Campaign::new(&contenders, stop, observer).of_sides(&letters),
        vcpu: None,
    };
    let mut known = Known {
        load_unit: conditions.plan.unit(),
        build: conditions.build.clone(),
        ..Known::default()
    };
    let ended = measure(&mut bench, plan, &mut known);
    let cut_short = match ended {
        Ok(()) => None,
        Err(error) if bench.campaign.trials() == 0 => return Err(error),
        Err(error) => Some(error),
    };
    let mut comparison = known.comparison(names, plan, cut_short.is_some(), started_at);
    comparison.workload = conditions.plan.workload().about().name.to_owned();
    comparison.profile.clone_from(&conditions.profile.name);
    comparison.vcpu = bench.vcpu;
    for (side, subject) in [&mut comparison.a, &mut comparison.b]
        .into_iter()
        .zip(subjects)
    {
        side.variant = subject.variant().map(str::to_owned);
    }
    Ok(Compared {
        comparison,
        cut_short: cut_short.filter(|error| !matches!(error, Error::Interrupted(_))),
    })
}

/// What a comparison needs to know about a trial.
#[derive(Debug, Clone)]
struct Ran {
    summary: TrialSummary,
    /// What it says to the search of its side.
    verdict: TrialVerdict,
    /// No further trial can be better.
    hopeless: bool,
}

/// Where trials run: on the machine, or from a table in tests.
trait Bench {
    /// Runs a trial. An interrupted trial is kept, then reported as an error.
    fn run(&mut self, wanted: &Wanted) -> Result<Ran>;
}

struct RealBench<'a> {
    campaign: Campaign<'a>,
    vcpu: Option<f64>,
}

impl Bench for RealBench<'_> {
    fn run(&mut self, wanted: &Wanted) -> Result<Ran> {
        let KeptTrial { trial, file } = self.campaign.run(wanted)?;
        self.vcpu = trial.vcpu;
        if trial.interrupted {
            return Err(Error::Interrupted("comparing".to_owned()));
        }
        Ok(Ran {
            verdict: TrialVerdict::of(&trial),
            hopeless: trial.caveats.iter().any(Caveat::hopeless),
            summary: TrialSummary::of(&trial, &file),
        })
    }
}

/// What is known so far.
#[derive(Debug, Default)]
struct Known {
    /// What the loads count.
    load_unit: LoadUnit,
    build: Build,
    sides: [Side; 2],
    /// Whether the load line of each side is only a lower bound.
    lower_bound_only: [bool; 2],
    pairs: Vec<Pair>,
    notes: Vec<String>,
}

fn measure(bench: &mut dyn Bench, plan: &ComparePlan, known: &mut Known) -> Result<()> {
    let load = match &plan.at {
        At::Load(load) => Some(*load),
        At::ShareOfLoadLine {
            settings,
            time_budget,
            share,
        } => {
            searches::search(bench, *settings, *time_budget, plan, known)?;
            // Below the lowest load of a search, no pair could count.
            load_of_pairs(known, *share).map(|load| load.max(settings.min))
        }
    };
    match load {
        Some(load) => pairs::run(bench, load, plan, known),
        None => {
            known.notes.push(
                "No load line is known for both, so there was no load at which to compare costs; give one with --sessions."
                    .to_owned(),
            );
            Ok(())
        }
    }
}

/// A share of the lower of the two load lines. Both sides carry it, and neither is near its edge, where the cost curve
/// bends.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a load, at least 1"
)]
fn load_of_pairs(known: &Known, share: f64) -> Option<u32> {
    let [a, b] = &known.sides;
    let lower = a.confirmed?.min(b.confirmed?);
    Some((f64::from(lower) * share).round().max(1.0) as u32)
}

impl Known {
    fn comparison(
        mut self,
        names: [&str; 2],
        plan: &ComparePlan,
        interrupted: bool,
        started_at: String,
    ) -> Comparison {
        let costs_by = |account| -> (Vec<f64>, Vec<f64>) {
            costs_of_pairs(&self.pairs, account).into_iter().unzip()
        };
        let charged = costs_by(CostAccount::Charged);
        let core = costs_by(CostAccount::Core);
        let edges = edge_of(&self.sides[0].evidence)
            .zip(edge_of(&self.sides[1].evidence))
            .filter(|_| self.lower_bound_only == [false, false]);
        let mut findings =
            findings_of_pairs(&self.pairs, edges.as_ref(), plan.confidence, plan.seed);
        findings.load_unit = self.load_unit;
        let judgement = conclude(names[0], names[1], &findings);
        self.note_what_is_missing(names, plan, charged.0.len());
        if let Some(carried) = &findings.carried {
            let note = what_carrying_does_not_show(carried, self.load_unit, plan.confidence);
            self.notes.extend(note);
        }
        let [mut a, mut b] = self.sides;
        let mean = |costs: &[f64]| Mean::of(costs).map(|mean| mean.value);
        let by_core = findings.account == CostAccount::Core;
        for (side, name, charged, core) in [
            (&mut a, names[0], charged.0, core.0),
            (&mut b, names[1], charged.1, core.1),
        ] {
            name.clone_into(&mut side.name);
            side.cpu_us_per_session_second = mean(&charged);
            side.core_us_per_session_second = mean(&core).filter(|_| by_core);
        }
        Comparison {
            build: self.build,
            schema_version: SCHEMA_VERSION,
            a,
            b,
            cost_ratio: findings.cost,
            cost_account: findings.account,
            load_line_ratio: findings.load_line,
            carried: findings.carried,
            confidence: plan.confidence,
            conclusion: judgement.conclusion,
            explanation: judgement.explanation,
            notes: self.notes,
            workload: String::new(),
            profile: String::new(),
            vcpu: None,
            load_unit: self.load_unit,
            pairs: self.pairs,
            loads: Vec::new(),
            interrupted,
            seed: plan.seed,
            started_at,
        }
    }

    fn note_what_is_missing(&mut self, names: [&str; 2], plan: &ComparePlan, counted: usize) {
        if matches!(plan.at, At::ShareOfLoadLine { .. }) {
            for which in Which::BOTH {
                let index = which.index();
                if self.lower_bound_only[index] {
                    self.notes.push(format!(
                        "The load line of {} ({}) is a lower bound only, so the load lines have no ratio.",
                        which.letter(),
                        names[index]
                    ));
                }
            }
        }
        if !self.pairs.is_empty() && counted < 3 {
            self.notes.push(format!(
                "{counted} pair{} of trials counted; an interval of the cost ratio needs at least three.",
                if counted == 1 { "" } else { "s" }
            ));
        }
    }
}

/// What to do about pairs in which the load was not carried, if they show nothing.
fn what_carrying_does_not_show(
    carried: &Carried,
    unit: LoadUnit,
    confidence: f64,
) -> Option<String> {
    let unit = unit.name();
    let &Carried {
        sessions,
        both,
        only_a,
        only_b,
        neither,
        ..
    } = carried;
    if carried.shows != Conclusion::NoDifferenceShown || only_a + only_b + neither == 0 {
        return None;
    }
    if both + only_a + only_b == 0 {
        return Some(format!(
            "Neither side carried {sessions} {unit} in any pair: compare them at a lower load."
        ));
    }
    let least = unanimous_pairs_needed(confidence);
    Some(format!(
        "{sessions} {unit} were not always carried (pairs of valid trials: both {both}, only A {only_a}, only B {only_b}, neither {neither}); \
         showing a difference at this load needs at least {least} pairs in which only one side carries it, and none in which only the other does: \
         run more pairs, or compare the cost at a lower load."
    ))
}

/// Why a trial does not count for the cost; `None` if it does.
fn does_not_count(which: Which, summary: &TrialSummary) -> Option<String> {
    let letter = which.letter();
    match summary.verdict {
        Verdict::Invalid => Some(format!(
            "the trial of {letter} was invalid ({})",
            summary.caveats.join(", ")
        )),
        Verdict::Fail => Some(format!(
            "{letter} did not carry this load ({}), so its cost is not the cost of carrying this load",
            summary.failed_gates.join(", ")
        )),
        Verdict::Pass if summary.cpu_us_per_session_second.is_none() => Some(format!(
            "the CPU time of {letter} is unknown ({})",
            summary.caveats.join(", ")
        )),
        Verdict::Pass => None,
    }
}

#[cfg(test)]
mod tests;
