//! What is known while a command runs: events go in, [`Live`] comes out. No clock, no I/O.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_core::latency::{LatencySet, Series, quantile_us};
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{
    Live, LiveBracket, LiveCommand, LiveEnded, LiveGate, LivePhases, LiveTrial, LoadUnit, Phase,
    SCHEMA_VERSION, Second,
};
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_lab::campaign::TrialBegins;

/// About how long starting and stopping a trial takes, in seconds.
const BETWEEN_TRIALS_S: f64 = 2.0;

/// What stays the same for a command from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) command: LiveCommand,
    /// Names of all targets that it measures.
    pub(crate) targets: Vec<String>,
    /// RFC 3339 in UTC.
    pub(crate) started_at: String,
    pub(crate) pid: u32,
}

/// What is measured, and how.
#[derive(Debug, Clone)]
pub(crate) struct Measuring {
    pub(crate) target: String,
    pub(crate) slo: Slo,
    pub(crate) profile: Profile,
    /// `None` if Plimsoll did not start the target.
    pub(crate) vcpu: Option<f64>,
    /// What loads count.
    pub(crate) load_unit: LoadUnit,
}

/// What is known while a command runs.
#[derive(Debug)]
pub(crate) struct LiveState {
    facts: Facts,
    measuring: Option<Measuring>,
    trial: Option<LiveTrial>,
    /// Of the running trial, or of the last one.
    seconds: VecDeque<Second>,
    counts: Counts,
    /// Values of the gates on latencies, as of the last second.
    latencies: BTreeMap<Metric, Option<f64>>,
    trials: Vec<LiveEnded>,
    brackets: BTreeMap<String, LiveBracket>,
    trials_left: u32,
    ended: bool,
}

/// Counts of the trial so far.
#[derive(Debug, Default)]
struct Counts {
    partials: u64,
    /// Errors and protocol faults.
    errors: u64,
    sessions_lost: u64,
    /// Whether a second of the window, or of the grace after it, is over.
    measured: bool,
}

impl LiveState {
    pub(crate) fn new(facts: Facts) -> Self {
        Self {
            facts,
            measuring: None,
            trial: None,
            seconds: VecDeque::new(),
            counts: Counts::default(),
            latencies: BTreeMap::new(),
            trials: Vec::new(),
            brackets: BTreeMap::new(),
            trials_left: 0,
            ended: false,
        }
    }

    /// Sets what is measured from now on.
    pub(crate) fn measuring(&mut self, measuring: Measuring) {
        self.forget_seconds();
        self.trial = None;
        self.measuring = Some(measuring);
    }

    pub(crate) fn trial_begins(&mut self, begins: &TrialBegins<'_>) {
        self.forget_seconds();
        if let Some(measuring) = &mut self.measuring
            && !begins.target.is_empty()
        {
            begins.target.clone_into(&mut measuring.target);
        }
        // In any case, the trial that begins is left.
        self.trials_left = begins.trials_left.max(1);
        self.trial = Some(LiveTrial {
            number: begins.number,
            sessions: begins.sessions,
            why: begins.why.to_owned(),
            phase: Phase::Starting,
            at_s: 0,
            errors: 0,
            sessions_lost: 0,
        });
    }

    /// A second of the trial is over; `latency` holds the latencies of its answers.
    pub(crate) fn second(&mut self, second: &Second, latency: &LatencySet) {
        let live = *second;
        self.counts.add(&live);
        if let Some(trial) = &mut self.trial {
            trial.phase = live.phase;
            trial.at_s = live.at_s;
            trial.errors = self.counts.errors;
            trial.sessions_lost = self.counts.sessions_lost;
        }
        if let Some(measuring) = &self.measuring {
            for gate in &measuring.slo.gates {
                if let Some(observed) = latency_of(gate.metric, &live, latency) {
                    self.latencies.insert(gate.metric, observed);
                }
            }
        }
        if self.seconds.len() == Live::SECONDS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(live);
    }

    /// The number of the running trial, and its target.
    pub(crate) fn running(&self) -> Option<(u32, &str)> {
        let measuring = self.measuring.as_ref()?;
        Some((self.trial.as_ref()?.number, &measuring.target))
    }

    /// A trial is over, or one of an earlier call is known. An interrupted trial does not change the bracket.
    pub(crate) fn trial_ends(&mut self, ended: LiveEnded, interrupted: bool) {
        if self.trial.take().is_some() {
            self.trials_left = self.trials_left.saturating_sub(1);
        }
        if !interrupted {
            let bracket = self.brackets.entry(ended.target.clone()).or_default();
            bracket.add(ended.sessions, ended.verdict);
        }
        self.trials.push(ended);
    }

    /// The command is over.
    pub(crate) fn ends(&mut self) {
        self.trial = None;
        self.ended = true;
    }

    /// A snapshot for that time of day, RFC 3339 in UTC. `None` until it is known what is measured.
    pub(crate) fn live(&self, updated_at: String) -> Option<Live> {
        let Measuring {
            target,
            slo,
            profile,
            vcpu,
            load_unit,
        } = self.measuring.as_ref()?;
        let phases = LivePhases::of(profile);
        let at_s = self.trial.as_ref().map_or(0, |trial| trial.at_s);
        Some(Live {
            schema_version: SCHEMA_VERSION,
            command: self.facts.command,
            target: target.clone(),
            targets: self.facts.targets.clone(),
            slo: slo.name.clone(),
            profile: profile.name.clone(),
            started_at: self.facts.started_at.clone(),
            updated_at,
            pid: self.facts.pid,
            vcpu: *vcpu,
            phases,
            load_unit: *load_unit,
            trial: self.trial.clone(),
            gates: self.gates(slo),
            seconds: self.seconds.iter().copied().collect(),
            trials: self.trials.clone(),
            bracket: self.brackets.get(target).copied().unwrap_or_default(),
            trials_left: self.trials_left,
            time_left_s: time_left_s(&phases, at_s, self.trials_left),
            ended: self.ended,
        })
    }

    fn gates(&self, slo: &Slo) -> Vec<LiveGate> {
        let gates = slo.gates.iter();
        gates
            .map(|gate| LiveGate {
                name: gate.metric.name(),
                threshold: gate.threshold,
                observed: match self.latencies.get(&gate.metric) {
                    Some(latency) => *latency,
                    None => self.counts.of(gate.metric),
                },
            })
            .collect()
    }

    fn forget_seconds(&mut self) {
        self.seconds.clear();
        self.latencies.clear();
        self.counts = Counts::default();
    }
}

impl Counts {
    fn add(&mut self, second: &Second) {
        self.partials += second.partials;
        self.errors += second.errors + second.protocol_faults;
        self.sessions_lost += second.sessions_lost;
        self.measured |= matches!(second.phase, Phase::Measured | Phase::Grace);
    }

    /// The value of a gate on a count. Lost frames and a slope are known only at the end. A second does not say whether lost
    /// sessions failed or died.
    #[expect(
        clippy::cast_precision_loss,
        reason = "errors and partials of a trial are far below 2^53"
    )]
    fn of(&self, metric: Metric) -> Option<f64> {
        if !self.measured {
            return None;
        }
        match metric {
            Metric::ErrorRate if self.partials + self.errors > 0 => {
                Some(self.errors as f64 / self.partials.max(1) as f64)
            }
            Metric::SessionsFailed | Metric::SessionsDied if self.sessions_lost == 0 => Some(0.0),
            _ => None,
        }
    }
}

/// The value of a gate on a latency, by one second's answers; `None` for any other gate.
fn latency_of(metric: Metric, second: &Second, latency: &LatencySet) -> Option<Option<f64>> {
    let at = |series, percentile| {
        let us = quantile_us(latency.histogram(series), quantile(percentile))?;
        Some(us / 1e3)
    };
    // The row already has the usual ones.
    match metric {
        Metric::Newest(Percentile::P50) => Some(second.newest_p50_ms),
        Metric::Newest(Percentile::P95) => Some(second.newest_p95_ms),
        Metric::Newest(Percentile::P99) | Metric::WorstSecond => Some(second.newest_p99_ms),
        Metric::Newest(Percentile::Max) => Some(second.newest_max_ms),
        Metric::Oldest(Percentile::P50) => Some(second.oldest_p50_ms),
        Metric::Oldest(Percentile::P95) => Some(second.oldest_p95_ms),
        Metric::Newest(percentile) => Some(at(Series::NewestFromSchedule, percentile)),
        Metric::Oldest(percentile) => Some(at(Series::OldestFromSchedule, percentile)),
        Metric::Confirm(percentile) => Some(at(Series::ConfirmFromSchedule, percentile)),
        _ => None,
    }
}

fn quantile(percentile: Percentile) -> f64 {
    match percentile {
        Percentile::P50 => 0.5,
        Percentile::P90 => 0.9,
        Percentile::P95 => 0.95,
        Percentile::P99 => 0.99,
        Percentile::P999 => 0.999,
        Percentile::Max => 1.0,
    }
}

/// About how long it will still take: the rest of this trial, and the others. `trials_left` includes this one.
#[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
pub(crate) fn time_left_s(phases: &LivePhases, at_s: u64, trials_left: u32) -> f64 {
    let trial_s = phases.to_window_end_s();
    let this_s = if trials_left == 0 {
        0.0
    } else {
        (trial_s - at_s as f64).max(0.0)
    };
    let others = f64::from(trials_left.saturating_sub(1));
    this_s + others * (trial_s + BETWEEN_TRIALS_S)
}

/// A trial that ended, for tests.
#[cfg(test)]
pub(crate) fn ended(
    number: u32,
    sessions: u32,
    verdict: plimsoll_core::record::Verdict,
) -> LiveEnded {
    LiveEnded {
        number,
        target: "rust-axum".to_owned(),
        sessions,
        verdict,
        newest_p50_ms: Some(120.0),
        newest_p95_ms: Some(180.0),
        cpu_us_per_session_second: Some(333.0),
        goodput: None,
        broke_first: None,
    }
}
