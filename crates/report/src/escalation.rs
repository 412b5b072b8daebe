//! An escalation: what a target does at each load, up to its load line and beyond. A search has one, and so have trials
//! at several loads without a search.

use plimsoll_core::broken_gate::first_broken;
use plimsoll_core::record::{Escalation, Goodput, LoadUnit, Trial, Verdict};
use plimsoll_core::search::escalation::{Escalator, Settings, Shown, Step};
use plimsoll_core::stats::median;

use crate::folder::{SearchView, StoredTrial};
use crate::loads;

/// What the trials of one load show: medians over the valid ones. If none is valid, over all of them, so that it is seen
/// what they counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rung {
    pub(crate) load: u32,
    /// Their verdicts, in the order in which they ran.
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) goodput: Goodput,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// The gate that gave way first in the first trial that failed.
    pub(crate) first_broken: Option<String>,
}

/// All loads, lowest first, and the three loads that matter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Escalated {
    pub(crate) target: String,
    pub(crate) workload: String,
    pub(crate) unit: LoadUnit,
    pub(crate) rungs: Vec<Rung>,
    /// The highest load at which every gate holds.
    pub(crate) slo_limit: Option<u32>,
    /// Knee and collapse; `None` if nobody looked for them.
    pub(crate) beyond: Option<Escalation>,
}

impl Escalated {
    /// That of a search. `None` if its workload does not say what goodput is.
    pub(crate) fn of_search(view: &SearchView<'_>) -> Option<Self> {
        let bracket = view.bracket;
        Some(Self {
            slo_limit: bracket.confirmed,
            beyond: bracket.escalation.clone(),
            ..Self::of(&view.of_search())?
        })
    }

    /// That of trials at several loads without a search. `None` if they differ in anything else, or if their workload does
    /// not say what goodput is.
    pub(crate) fn of_trials(trials: &[&StoredTrial]) -> Option<Self> {
        let name = |stored: &StoredTrial| stored.trial.target.name.clone();
        let alike = trials.windows(2).all(|two| name(two[0]) == name(two[1]));
        if !alike || !loads::differ_by_load_only(trials) {
            return None;
        }
        let found = Self::of(trials)?;
        (found.rungs.len() > 1).then(|| Self {
            slo_limit: highest_passing(&found.rungs),
            beyond: beyond(trials),
            ..found
        })
    }

    fn of(trials: &[&StoredTrial]) -> Option<Self> {
        let first = &trials.first()?.trial;
        let mut loads: Vec<u32> = trials.iter().map(|stored| stored.trial.sessions).collect();
        loads.sort_unstable();
        loads.dedup();
        let rung = |load: u32| {
            let at_load = trials.iter().map(|stored| &stored.trial);
            let at_load: Vec<&Trial> = at_load.filter(|trial| trial.sessions == load).collect();
            Rung::of(load, &at_load)
        };
        let rungs: Vec<Rung> = loads.into_iter().filter_map(rung).collect();
        (!rungs.is_empty()).then(|| Self {
            target: first.target.name.clone(),
            workload: first.workload.clone(),
            unit: first.load_unit,
            rungs,
            slo_limit: None,
            beyond: None,
        })
    }
}

impl Rung {
    /// `None` if no trial says how much was done.
    fn of(load: u32, trials: &[&Trial]) -> Option<Self> {
        let valid = |trial: &&&Trial| trial.verdict != Verdict::Invalid;
        let mut counting: Vec<&Trial> = trials.iter().filter(valid).copied().collect();
        if counting.is_empty() {
            counting = trials.to_vec();
        }
        let middle = |value: &dyn Fn(&Trial) -> Option<f64>| {
            let values: Vec<f64> = counting.iter().filter_map(|trial| value(trial)).collect();
            median(&values)
        };
        let of_goodput = |value: fn(Goodput) -> f64| middle(&|trial| trial.goodput.map(value));
        let failed = trials
            .iter()
            .find(|trial| trial.verdict == Verdict::Fail)
            .and_then(|trial| first_broken(&trial.gates));
        Some(Self {
            load,
            verdicts: trials.iter().map(|trial| trial.verdict).collect(),
            goodput: Goodput {
                due_per_s: of_goodput(|it| it.due_per_s)?,
                good_per_s: of_goodput(|it| it.good_per_s)?,
                failed_share: of_goodput(|it| it.failed_share)?,
            },
            p50_ms: middle(&|trial| trial.latency.newest.from_schedule.p50_ms),
            p99_ms: middle(&|trial| trial.latency.newest.from_schedule.p99_ms),
            first_broken: failed.map(|gate| gate.name.clone()),
        })
    }

    /// Whether one of its trials says something about the target.
    pub(crate) fn is_valid(&self) -> bool {
        self.verdicts.iter().any(|it| *it != Verdict::Invalid)
    }

    fn any(&self, wanted: Verdict) -> bool {
        self.verdicts.contains(&wanted)
    }
}

/// The highest load that passed, below all that failed.
fn highest_passing(rungs: &[Rung]) -> Option<u32> {
    let below = rungs.iter().take_while(|rung| !rung.any(Verdict::Fail));
    let passed = below.filter(|rung| rung.any(Verdict::Pass));
    passed.last().map(|rung| rung.load)
}

/// Knee and collapse by the rules of the search beyond the load line, with these trials and no other. `None` if no trial
/// is valid.
fn beyond(trials: &[&StoredTrial]) -> Option<Escalation> {
    let most = trials.iter().map(|stored| stored.trial.sessions).max()?;
    let mut search = Escalator::new(Settings {
        limit: most,
        min: most,
        max: most,
        max_trials: 0,
    });
    for stored in trials {
        search.know(stored.trial.sessions, &Shown::of(&stored.trial));
    }
    match search.next() {
        Step::Done(found) if found.knee.is_some() || found.collapse.is_some() => Some(found),
        _ => None,
    }
}
