//! One result in brief, made from the records of its folder.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::record::{
    Bracket, Calibration, ClientCosts, Comparison, CostPoint, Edge, EndedBy, FleetCalibration,
    InferenceCalibration, LoadUnit, MedianProbe, Probe, RankedTarget, Ranking, Trial, Verdict,
};
use plimsoll_document::Tellers;
use serde::{Deserialize, Serialize};

use crate::check::{CaseOutcome, Check};
use crate::facts::{client_cost, fleet, inference};
use crate::folder::{CHECK, Results, SearchView};
use crate::words::{self, count, plain, sessions};

/// What kind of result it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The load line of a target.
    Find,
    /// One trial at one load.
    Run,
    /// The comparison of two targets, or of two results.
    Compare,
    /// The ranking of several targets.
    Ranking,
    /// What a machine's client can generate.
    Calibrate,
    /// A conformance check.
    Check,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Find,
        Self::Run,
        Self::Compare,
        Self::Ranking,
        Self::Calibrate,
        Self::Check,
    ];

    /// The word for this kind in results, on terminals and in `--kind`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Run => "run",
            Self::Compare => "compare",
            Self::Ranking => "ranking",
            Self::Calibrate => "calibrate",
            Self::Check => "check",
        }
    }

    /// The kind with this word, if there is one.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// One result. A folder can have several: a search with two SLOs has two load lines. Trials next to a search, such as
/// those at the common load of a ranking, are not separate results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The result's folder, relative to the folder of results, with `/` as separator.
    pub folder: String,
    /// What kind of result it is.
    pub kind: Kind,
    /// Names of the targets: one, two for a comparison, several for a ranking, none for a calibration.
    pub targets: Vec<String>,
    /// Name of the workload; empty where there is none.
    pub workload: String,
    /// Name of the profile; empty where there is none.
    pub profile: String,
    /// Name of the SLO; empty where there is none.
    pub slo: String,
    /// What each target was given, in vCPU; `null` when Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// When it began, RFC 3339 in UTC; for a check, when its record was written.
    pub started_at: String,
    /// The outcome in one word, for a trial, a comparison or a check.
    pub verdict: Option<String>,
    /// The answer in a sentence. Text from outside in it is on one line.
    pub claim: String,
    /// What the loads count.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// Which test, if the workload has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The load of a trial.
    pub sessions: Option<u32>,
    /// The load line of a search; for a calibration, the load that the client can drive.
    pub load_line: Option<u32>,
    /// The edge of a search.
    pub edge: Option<Edge>,
    /// The client or the machine ran out before the target did, so the load line is "at least".
    pub lower_bound_only: bool,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// The cost of a session: for a trial at its load; for a search at its load line, or at the highest load below it
    /// with a known cost.
    pub cost: Option<CostPoint>,
    /// The machine's processor model; empty when unknown.
    pub cpu_model: String,
    /// The number of the machine's cores; empty when unknown.
    pub cores: String,
    /// What the machine took for small work before the trials: the median of each figure; `null` where it was not
    /// probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The number of trials behind the result.
    pub trials: usize,
}

impl Entry {
    /// The targets' names in one line, unchanged: this is text from outside.
    #[must_use]
    pub fn target(&self) -> String {
        self.targets.join(", ")
    }

    /// When it began; `None` when the time cannot be read.
    #[must_use]
    pub fn began(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339_weak(&self.started_at).ok()
    }

    /// The answer in a few words, for a column: `1,650 sessions`, `pass at 500`, `worse`. A load that does not count
    /// sessions names its unit.
    #[must_use]
    pub fn in_short(&self) -> String {
        match self.kind {
            Kind::Find | Kind::Calibrate => match (self.load_line, self.lower_bound_only) {
                (Some(load), false) => words::load(load, self.load_unit),
                (Some(load), true) => {
                    format!("at least {}", words::load(load, self.load_unit))
                }
                (None, _) => "no load line".to_owned(),
            },
            Kind::Run => format!(
                "{} at {}",
                self.verdict.as_deref().unwrap_or("?"),
                self.sessions
                    .map_or_else(|| "?".to_owned(), |load| self.load_in_short(load))
            ),
            Kind::Ranking => words::counted(self.targets.len() as u64, "target"),
            Kind::Compare | Kind::Check => self.verdict.clone().unwrap_or_default(),
        }
    }

    fn load_in_short(&self, load: u32) -> String {
        match self.load_unit {
            LoadUnit::SESSIONS => count(load.into()),
            unit => words::load(load, unit),
        }
    }
}

/// The results of a folder.
#[must_use]
pub fn of(folder: &str, results: &Results) -> Vec<Entry> {
    let tellers = results.tellers;
    let blank = blank(folder, results);
    let mut entries = Vec::new();
    entries.extend(results.ranking.iter().map(|it| of_ranking(&blank, it)));
    entries.extend(
        results
            .comparison
            .iter()
            .map(|it| of_comparison(&blank, it, results)),
    );
    let searches = results.searches();
    entries.extend(searches.iter().map(|view| of_search(&blank, view)));
    if searches.is_empty() {
        let trials = results.other_trials();
        entries.extend(trials.map(|stored| of_trial(&blank, &stored.trial, tellers)));
    }
    entries.extend(results.check.iter().map(|it| of_check(&blank, results, it)));
    entries.extend(
        results
            .calibration
            .iter()
            .map(|it| of_calibration(&blank, it)),
    );
    entries.extend(
        results
            .client_costs
            .iter()
            .map(|it| of_client_costs(&blank, it)),
    );
    let fleet = results.fleet.iter();
    entries.extend(fleet.map(|it| of_fleet(&blank, it)));
    let inference = results.inference.iter();
    entries.extend(inference.map(|it| of_inference(&blank, it)));
    entries
}

/// What all results of a folder have in common.
fn blank(folder: &str, results: &Results) -> Entry {
    let trial = results.trials.first().map(|stored| &stored.trial);
    let fact = |name: &str| {
        let fact = trial.and_then(|trial| trial.environment.machine.get(name));
        fact.cloned().unwrap_or_default()
    };
    Entry {
        folder: folder.to_owned(),
        kind: Kind::Run,
        targets: Vec::new(),
        workload: String::new(),
        profile: String::new(),
        slo: String::new(),
        vcpu: None,
        started_at: String::new(),
        verdict: None,
        claim: String::new(),
        load_unit: LoadUnit::default(),
        test: None,
        sessions: None,
        load_line: None,
        edge: None,
        lower_bound_only: false,
        interrupted: false,
        cost: None,
        cpu_model: fact("cpu_model"),
        cores: fact("cores"),
        probe: MedianProbe::before(results.trials.iter().map(|stored| &stored.trial))
            .map(|probes| probes.median),
        trials: 0,
    }
}

fn of_search(blank: &Entry, view: &SearchView<'_>) -> Entry {
    let bracket = view.bracket;
    Entry {
        kind: Kind::Find,
        targets: vec![bracket.target.name.clone()],
        workload: bracket.workload.clone(),
        profile: bracket.profile.clone(),
        slo: bracket.slo.clone(),
        vcpu: bracket.vcpu,
        started_at: bracket.started_at.clone(),
        claim: words::headline(bracket, &view.trials).claim,
        load_unit: bracket.load_unit,
        test: view
            .of_search()
            .first()
            .and_then(|stored| test_of(&stored.trial)),
        load_line: bracket.confirmed,
        edge: bracket.edge,
        lower_bound_only: bracket.lower_bound_only,
        interrupted: bracket.interrupted,
        cost: cost_of(bracket),
        trials: bracket.trials.len(),
        ..blank.clone()
    }
}

/// The test that a trial ran, if its workload has several.
fn test_of(trial: &Trial) -> Option<String> {
    let test = trial.parameters.get("test")?;
    test.as_str().map(str::to_owned)
}

/// The cost at the load line, or at the highest load below it with a known cost.
fn cost_of(bracket: &Bracket) -> Option<CostPoint> {
    let line = bracket.confirmed?;
    let carried = bracket.cost_curve.iter().filter(|at| at.sessions <= line);
    carried.max_by_key(|at| at.sessions).cloned()
}

fn of_trial(blank: &Entry, trial: &Trial, tellers: Tellers) -> Entry {
    let resources = trial.target_resources.as_ref();
    let cost = resources.and_then(|used| used.cpu_us_per_session_second);
    Entry {
        kind: Kind::Run,
        targets: vec![trial.target.name.clone()],
        workload: trial.workload.clone(),
        profile: trial.profile.clone(),
        slo: trial.slo.clone(),
        vcpu: trial.vcpu,
        started_at: trial.started_at.clone(),
        verdict: Some(trial.verdict.word().to_owned()),
        claim: words::outcome(trial, tellers),
        load_unit: trial.load_unit,
        test: test_of(trial),
        sessions: Some(trial.sessions),
        interrupted: trial.interrupted,
        cost: cost.map(|cost| CostPoint {
            sessions: trial.sessions,
            cpu_us_per_session_second: cost,
            core_us_per_session_second: resources.and_then(|used| used.core_us_per_session_second),
            low: cost,
            high: cost,
            trials: 1,
            rss_bytes_per_session: resources.and_then(|used| used.rss_bytes_per_session),
        }),
        trials: 1,
        ..blank.clone()
    }
}

fn of_comparison(blank: &Entry, comparison: &Comparison, results: &Results) -> Entry {
    Entry {
        kind: Kind::Compare,
        targets: vec![comparison.a.name.clone(), comparison.b.name.clone()],
        workload: comparison.workload.clone(),
        profile: comparison.profile.clone(),
        vcpu: comparison.vcpu,
        started_at: comparison.started_at.clone(),
        verdict: Some(comparison.conclusion.word().to_owned()),
        claim: plain(&comparison.explanation),
        load_unit: comparison.load_unit,
        test: results
            .trials
            .first()
            .and_then(|stored| test_of(&stored.trial)),
        interrupted: comparison.interrupted,
        trials: comparison.a.trials.len() + comparison.b.trials.len(),
        ..blank.clone()
    }
}

fn of_ranking(blank: &Entry, ranking: &Ranking) -> Entry {
    let name = |row: &RankedTarget| row.bracket.target.name.clone();
    let first = ranking.rows.first().and_then(|row| {
        let load = row.bracket.confirmed?;
        let at_least = if row.bracket.lower_bound_only {
            "at least "
        } else {
            ""
        };
        let name = plain(&row.bracket.target.name);
        Some(format!(
            "; {name} has the highest load line, {at_least}{}",
            words::load(load, ranking.load_unit)
        ))
    });
    Entry {
        kind: Kind::Ranking,
        targets: ranking.rows.iter().map(name).collect(),
        workload: ranking.workload.clone(),
        profile: ranking.profile.clone(),
        slo: ranking.slo.clone(),
        vcpu: Some(ranking.vcpu),
        started_at: ranking.started_at.clone(),
        claim: format!(
            "{}{}",
            words::ranking::headline(ranking),
            first.unwrap_or_default()
        ),
        load_unit: ranking.load_unit,
        interrupted: ranking.interrupted,
        trials: ranking
            .rows
            .iter()
            .map(|row| row.bracket.trials.len())
            .sum(),
        ..blank.clone()
    }
}

fn of_check(blank: &Entry, results: &Results, check: &Check) -> Entry {
    let failed = check
        .cases
        .iter()
        .any(|it| it.outcome() == CaseOutcome::Failed);
    let passed = check
        .cases
        .iter()
        .any(|it| it.outcome() == CaseOutcome::Passed);
    let disturbed = check
        .cases
        .iter()
        .any(|it| it.outcome() == CaseOutcome::Disturbed && it.decides());
    let verdict = match (failed, passed && !disturbed) {
        (true, _) => Verdict::Fail,
        (false, true) => Verdict::Pass,
        (false, false) => Verdict::Invalid,
    };
    // The record does not have the time, but its file does.
    let written = fs::metadata(results.files().join(CHECK)).and_then(|file| file.modified());
    let written = written.map_or_else(|_| String::new(), rfc3339);
    Entry {
        kind: Kind::Check,
        targets: vec![check.target.clone()],
        started_at: written,
        verdict: Some(verdict.word().to_owned()),
        claim: format!("{}: {}", plain(&check.target), check.in_words()),
        ..blank.clone()
    }
}

/// Humantime cannot write times before 1970, and a file system may have any.
fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at.max(UNIX_EPOCH)).to_string()
}

fn of_calibration(blank: &Entry, calibration: &Calibration) -> Entry {
    Entry {
        kind: Kind::Calibrate,
        started_at: calibration.started_at.clone(),
        load_line: Some(calibration.max_sessions),
        claim: format!(
            "this client can drive {} on time",
            sessions(calibration.max_sessions)
        ),
        ..blank.clone()
    }
}

/// The first of its loads stands for all.
fn of_client_costs(blank: &Entry, costs: &ClientCosts) -> Entry {
    let first = costs.costs.first();
    Entry {
        kind: Kind::Calibrate,
        workload: costs.workload.clone(),
        started_at: costs.started_at.clone(),
        load_unit: first.map(|cost| cost.load_unit).unwrap_or_default(),
        load_line: first.and_then(|cost| cost.on_time_load),
        claim: client_cost::claim(costs),
        ..blank.clone()
    }
}

/// The first of its works stands for all.
fn of_fleet(blank: &Entry, calibration: &FleetCalibration) -> Entry {
    let first = calibration.works.first();
    Entry {
        kind: Kind::Calibrate,
        workload: calibration.workload.clone(),
        started_at: calibration.started_at.clone(),
        load_unit: first.map(|work| work.load_unit).unwrap_or_default(),
        load_line: first.and_then(|work| work.on_time_load),
        claim: fleet::claim(calibration),
        ..blank.clone()
    }
}

/// The load line is that of a server, in sessions of the gateways that ask it.
fn of_inference(blank: &Entry, calibration: &InferenceCalibration) -> Entry {
    Entry {
        kind: Kind::Calibrate,
        workload: calibration.workload.clone(),
        targets: vec![calibration.url.clone()],
        started_at: calibration.started_at.clone(),
        load_line: calibration.sessions,
        lower_bound_only: calibration.ended != EndedBy::Server,
        claim: inference::claim(calibration),
        ..blank.clone()
    }
}
