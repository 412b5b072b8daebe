//! Two sets of trials that were measured apart from each other, as stored in result folders.

use std::collections::BTreeMap;

use super::{
    CostsAtLoad, Difference, Findings, conclude, confidence_of_each, differences, edge_of,
    load_line_ratio, unpaired_cost_ratio,
};
use crate::profile::Length;
use crate::record::{
    Bracket, Build, Comparison, CostAccount, LoadClass, LoadCosts, LoadEvidence, MedianProbe,
    Probe, SCHEMA_VERSION, Side, Trial, TrialSummary, Verdict,
};

/// The measurements of one target.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The folder that holds them.
    pub folder: String,
    /// Its trials with the names of their files, in the order they ran.
    pub trials: Vec<(String, Trial)>,
    /// Its load line, if one was searched.
    pub bracket: Option<Bracket>,
}

/// Why two sets of trials cannot be compared: one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// The folder holds no trial.
    #[error("{0} holds no trial; name a result folder of `run`, `find` or `compare`")]
    NoTrial(String),
    /// The folder holds trials of several targets.
    #[error("{folder} holds trials of several targets ({}); name a folder with those of one", .targets.join(", "))]
    SeveralTargets {
        /// The folder.
        folder: String,
        /// The names of the targets.
        targets: Vec<String>,
    },
    /// The trials in a folder were not run under the same conditions.
    #[error("the trials in {folder} differ among themselves in {}; they cannot even be compared with each other", listed(.differences))]
    Mixed {
        /// The folder.
        folder: String,
        /// How the conditions differ.
        differences: Vec<Difference>,
    },
    /// The two sets were not measured under the same conditions.
    #[error("{a} and {b} were not measured under the same conditions: {}; measure one of them again under the other's conditions", listed(.differences))]
    Conditions {
        /// The first folder.
        a: String,
        /// The second folder.
        b: String,
        /// How the conditions differ.
        differences: Vec<Difference>,
    },
}

/// Notes for the case that the builds of Plimsoll behind the two results are not surely the same, or that one result
/// comes from several builds.
fn build_notes(a: &Measured, b: &Measured) -> Vec<String> {
    let builds = |measured: &Measured| {
        let mut builds: Vec<Build> = Vec::new();
        for (_, trial) in &measured.trials {
            if !builds.contains(&trial.environment.build) {
                builds.push(trial.environment.build.clone());
            }
        }
        builds
    };
    let (of_a, of_b) = (builds(a), builds(b));
    let mut notes = Vec::new();
    for (side, builds) in [(a, &of_a), (b, &of_b)] {
        if builds.len() > 1 {
            let all: Vec<String> = builds.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "{} has trials of {} builds of Plimsoll: {}",
                side.folder,
                all.len(),
                all.join("; ")
            ));
        }
    }
    let firsts = of_a.first().zip(of_b.first());
    notes.extend(firsts.and_then(|(of_a, of_b)| of_a.warning(&a.folder, of_b, &b.folder)));
    notes
}

/// A note for the case that the machine's times for the same small work changed between the two: then the ratios
/// compare machines too.
fn probe_note(a: &Measured, b: &Measured) -> Option<String> {
    let probe = |side: &Measured| MedianProbe::before(side.trials.iter().map(|(_, trial)| trial));
    let moved = probe(a)?.moved_to(&probe(b)?, Probe::MOVED)?;
    Some(format!(
        "The machine changed: its probe ({}) took {:.1} {unit} in {} and {:.1} {unit} in {}, so do not compare the costs; compare the targets themselves (`plimsoll compare A B`).",
        moved.from.name,
        moved.from.value,
        a.folder,
        moved.to,
        b.folder,
        unit = moved.from.unit
    ))
}

fn listed(differences: &[Difference]) -> String {
    let listed: Vec<String> = differences.iter().map(ToString::to_string).collect();
    listed.join(", ")
}

/// Compares two sets of trials. Cost: trials of equal length that pass, at loads that both sides were tried at. Load
/// line: from the evidence of the two searches.
///
/// # Errors
/// If their conditions differ, or if one set is not of one target under one set of conditions.
pub fn compare_measured(
    a: &Measured,
    b: &Measured,
    confidence: f64,
    seed: u64,
    started_at: String,
) -> Result<Comparison, Incomparable> {
    let (first_of_a, first_of_b) = (a.of_one_kind()?, b.of_one_kind()?);
    let differences = differences(first_of_a, first_of_b);
    if !differences.is_empty() {
        return Err(Incomparable::Conditions {
            a: a.folder.clone(),
            b: b.folder.clone(),
            differences,
        });
    }
    let loads = costs_in_common(a, b);
    let edges = edge_of(&a.evidence()).zip(edge_of(&b.evidence()));
    // With fewer than three trials more than loads there is no cost interval, so it cannot raise a false alarm.
    let intervals = 1 + u32::from(edges.is_some());
    let each = confidence_of_each(confidence, intervals);
    let account = account_of(&loads);
    let costs: Vec<CostsAtLoad> = loads
        .iter()
        .map(|load| {
            let (a, b) = load.costs(account);
            CostsAtLoad {
                a: a.to_vec(),
                b: b.to_vec(),
            }
        })
        .collect();
    let cost_ratio = unpaired_cost_ratio(&costs, each);
    let load_line_ratio = edges.and_then(|(of_a, of_b)| {
        load_line_ratio(|q| of_a.quantile(q), |q| of_b.quantile(q), each, seed)
    });
    let [mut side_a, mut side_b] = [a.side(), b.side()];
    let means = |account| {
        let (a, b): (Vec<_>, Vec<_>) = loads.iter().map(|load| load.costs(account)).unzip();
        (mean(&a.concat()), mean(&b.concat()))
    };
    (
        side_a.cpu_us_per_session_second,
        side_b.cpu_us_per_session_second,
    ) = means(CostAccount::Charged);
    if account == CostAccount::Core {
        (
            side_a.core_us_per_session_second,
            side_b.core_us_per_session_second,
        ) = means(CostAccount::Core);
    }
    let findings = Findings {
        cost: cost_ratio,
        account,
        load_line: load_line_ratio,
        carried: None,
        load_unit: first_of_a.load_unit,
    };
    let judgement = conclude(&side_a.name, &side_b.name, &findings);
    Ok(Comparison {
        build: Build::default(),
        schema_version: SCHEMA_VERSION,
        a: side_a,
        b: side_b,
        cost_ratio,
        cost_account: account,
        load_line_ratio,
        carried: None,
        confidence,
        conclusion: judgement.conclusion,
        explanation: judgement.explanation,
        notes: [
            notes(&loads, cost_ratio.is_some(), load_line_ratio.is_some()),
            build_notes(a, b),
            probe_note(a, b).into_iter().collect(),
        ]
        .concat(),
        workload: first_of_a.workload.clone(),
        profile: first_of_a.profile.clone(),
        vcpu: first_of_a.vcpu,
        load_unit: first_of_a.load_unit,
        pairs: Vec::new(),
        loads,
        interrupted: false,
        seed,
        started_at,
    })
}

fn notes(loads: &[LoadCosts], cost: bool, load_line: bool) -> Vec<String> {
    let mut notes = vec![
        "The two were measured at different times: what changed on the machine in between is in the ratios, but not in their intervals. Comparing the targets themselves (`plimsoll compare A B`) interleaves their trials.".to_owned(),
    ];
    if loads.is_empty() {
        notes.push("No load passed on both sides, so the costs were not compared.".to_owned());
    } else if !cost {
        notes.push(
            "The loads that both passed have too few trials for an interval of the cost ratio."
                .to_owned(),
        );
    }
    if !load_line {
        notes.push(
            "The load lines were not compared: that needs a search on both sides, with loads that pass and loads that fail."
                .to_owned(),
        );
    }
    notes
}

impl Measured {
    /// The first trial, if all trials are of one target under the same conditions.
    fn of_one_kind(&self) -> Result<&Trial, Incomparable> {
        let folder = || self.folder.clone();
        let Some((_, first)) = self.trials.first() else {
            return Err(Incomparable::NoTrial(folder()));
        };
        let mut targets: Vec<String> = self
            .trials
            .iter()
            .map(|(_, trial)| trial.target.name.clone())
            .collect();
        targets.sort();
        targets.dedup();
        if targets.len() > 1 {
            return Err(Incomparable::SeveralTargets {
                folder: folder(),
                targets,
            });
        }
        let mixed = self
            .trials
            .iter()
            .map(|(_, trial)| differences(first, trial))
            .find(|differences| !differences.is_empty());
        match mixed {
            Some(differences) => Err(Incomparable::Mixed {
                folder: folder(),
                differences,
            }),
            None => Ok(first),
        }
    }

    fn side(&self) -> Side {
        let bracket = self.bracket.as_ref();
        let target = self.trials.first().map(|(_, trial)| &trial.target);
        Side {
            name: target.map(|target| target.name.clone()).unwrap_or_default(),
            variant: target.and_then(|target| target.variant.clone()),
            folder: Some(self.folder.clone()),
            confirmed: bracket.and_then(|bracket| bracket.confirmed),
            first_fail: bracket.and_then(|bracket| bracket.first_fail),
            edge: bracket.and_then(|bracket| bracket.edge),
            cpu_us_per_session_second: None,
            core_us_per_session_second: None,
            search: bracket.map(|bracket| bracket.conclusion.clone()),
            evidence: self.evidence(),
            trials: self
                .trials
                .iter()
                .map(|(file, trial)| TrialSummary::of(trial, file))
                .collect(),
        }
    }

    /// What the search's trials show. In a folder older than this field, the list of trials shows it.
    fn evidence(&self) -> Vec<LoadEvidence> {
        let Some(bracket) = &self.bracket else {
            return Vec::new();
        };
        if !bracket.evidence.is_empty() {
            return bracket.evidence.clone();
        }
        let mut loads = BTreeMap::new();
        for trial in &bracket.trials {
            let load = loads.entry(trial.sessions).or_insert(LoadEvidence {
                sessions: trial.sessions,
                passed: 0,
                failed: 0,
                short_passed: 0,
                short_failed: 0,
                invalid: 0,
                class: LoadClass::Undecided,
            });
            *match (trial.verdict, trial.length) {
                (Verdict::Pass, Length::Full) => &mut load.passed,
                (Verdict::Pass, Length::Short) => &mut load.short_passed,
                (Verdict::Fail, Length::Full) => &mut load.failed,
                (Verdict::Fail, Length::Short) => &mut load.short_failed,
                (Verdict::Invalid, _) => &mut load.invalid,
            } += 1;
        }
        loads.into_values().collect()
    }

    /// Costs of passing trials, by load and length. What a target spends on a load that it does not carry is not the
    /// cost of carrying it.
    fn costs(&self) -> BTreeMap<(u32, bool), Costs> {
        let mut costs = BTreeMap::<_, Costs>::new();
        for (_, trial) in &self.trials {
            let resources = trial.target_resources.as_ref();
            let cost = resources.and_then(|used| used.cpu_us_per_session_second);
            if let (Verdict::Pass, Some(cost)) = (trial.verdict, cost) {
                let key = (trial.sessions, trial.length == Length::Short);
                let costs = costs.entry(key).or_default();
                costs.charged_us.push(cost);
                let core = resources.and_then(|used| used.core_us_per_session_second);
                costs.core_us.extend(core);
            }
        }
        costs
    }
}

/// Costs of the trials at one load that count.
#[derive(Default)]
struct Costs {
    charged_us: Vec<f64>,
    core_us: Vec<f64>,
}

/// The core account if every trial that counts has it; otherwise the charged account.
fn account_of(loads: &[LoadCosts]) -> CostAccount {
    let known = |load: &LoadCosts| {
        let (charged, core) = (
            load.costs(CostAccount::Charged),
            load.costs(CostAccount::Core),
        );
        charged.0.len() == core.0.len() && charged.1.len() == core.1.len()
    };
    if !loads.is_empty() && loads.iter().all(known) {
        CostAccount::Core
    } else {
        CostAccount::Charged
    }
}

fn costs_in_common(a: &Measured, b: &Measured) -> Vec<LoadCosts> {
    let mut of_b = b.costs();
    let in_common = |((sessions, short), of_a): ((u32, bool), Costs)| {
        let of_b = of_b.remove(&(sessions, short))?;
        Some(LoadCosts {
            sessions,
            length: if short { Length::Short } else { Length::Full },
            a_cpu_us_per_session_second: of_a.charged_us,
            b_cpu_us_per_session_second: of_b.charged_us,
            a_core_us_per_session_second: of_a.core_us,
            b_core_us_per_session_second: of_b.core_us,
        })
    };
    a.costs().into_iter().filter_map(in_common).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    crate::stats::Mean::of(values).map(|mean| mean.value)
}
