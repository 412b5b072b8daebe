//! What all sessions of a trial come to: latencies of utterances, lag, speech that is missing, and words.

use std::collections::BTreeMap;

use plimsoll_core::drift::{Point, slope_per_hour};
use plimsoll_core::durations::{Collected, Durations};
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::slo::{OwnMetric, Percentile};
use plimsoll_core::stats::Bootstrap;
use plimsoll_speech::clip::Clip;
use plimsoll_speech::errors::WordErrors;
use plimsoll_speech::interval::{Interval, excess_points, rate_interval};
use plimsoll_speech::ledger::UtteranceOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::crossed;
use crate::dialect::{Cursor, Facts};
use crate::script::{Script, Scripts};
use crate::stream::Claim;

/// Of so many utterances the errors of each are kept in a record, so that a later trial can be compared with it.
const KEPT_UTTERANCES: usize = 1_000;
/// The draws of an interval of a word error rate.
const RESAMPLES: u32 = 1_000;
const CONFIDENCE: f64 = 0.95;

/// The metrics that only this workload computes.
pub(crate) const METRICS: [OwnMetric; 11] = [
    OwnMetric::percentile("first_result_p50_ms", Percentile::P50),
    OwnMetric::percentile("final_p50_ms", Percentile::P50),
    OwnMetric::counted("lag_p95_ms"),
    OwnMetric::counted("lag_growth_ms_per_s"),
    OwnMetric::counted("speech_uncovered_ms"),
    OwnMetric::counted("speech_duplicated_ms"),
    OwnMetric::counted("sessions_silent"),
    OwnMetric::counted("sessions_without_end"),
    OwnMetric::counted("crosstalk"),
    OwnMetric::counted("wer_percent"),
    OwnMetric::counted("wer_excess_points"),
];

/// The lag of all sessions in one second of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LagSecond {
    /// The second, since the trial began.
    pub(crate) at_s: u64,
    /// Median of the sessions, in ms.
    pub(crate) p50_ms: f64,
    /// The greatest, in ms.
    pub(crate) max_ms: f64,
}

/// All sessions of a trial. It is most of the section `stt_real` of the record. Utterances are those whose end was due in the
/// window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tally {
    /// Utterances.
    pub(crate) utterances: u64,
    /// Time to the first words of an utterance, from the schedule of its first frame.
    pub(crate) first_result: Durations,
    /// Time to the final that covers an utterance's end, from the schedule of its last frame. Endpointing is included.
    pub(crate) final_result: Durations,
    /// From the end of an utterance until the server said that speech had ended; no samples if it does not say so.
    pub(crate) endpoint: Durations,
    /// From a flush, or from the end of the audio, to the last final after it; no samples if none was asked for.
    pub(crate) finalisation: Durations,
    /// Audio due less the final cursor, one sample for each session and second.
    pub(crate) lag: Durations,
    /// How fast lag grew over the window, in ms per second: the lower end of the slope's 95 % interval, or the slope of the
    /// second half, if that is less. `null` if the window is too short to tell.
    pub(crate) lag_growth_ms_per_s: Option<f64>,
    /// Lag second by second.
    pub(crate) lag_seconds: Vec<LagSecond>,
    /// Speech that was due, in ms: all frames of utterances.
    pub(crate) speech_ms: u64,
    /// Of it, what no final covers.
    pub(crate) speech_uncovered_ms: u64,
    /// Speech that was covered again, each time counted.
    pub(crate) speech_duplicated_ms: u64,
    /// Frames of silence that nothing had to be said about.
    pub(crate) frames_silent: u64,
    /// Sessions in which an utterance was due and not one word came.
    pub(crate) sessions_silent: u64,
    /// Sessions that asked for the end and did not get it until the trial was over.
    pub(crate) sessions_without_end: u64,
    /// Finals with the words of another session.
    pub(crate) crosstalk: u64,
    /// Messages with words that were not final.
    pub(crate) interims: u64,
    /// Messages of types that the dialect does not know.
    pub(crate) unknown_messages: u64,
    /// What was said, and what was heard of it.
    pub(crate) words: WordErrors,
    /// Word error rate with its interval, as shares; `null` with fewer than two utterances.
    pub(crate) wer: Option<Interval>,
    /// By how many percentage points it is above that of the unloaded server; `null` if that is not known.
    pub(crate) wer_excess_points: Option<Interval>,
    /// Of each utterance, errors and words; empty if there are more than 1,000.
    pub(crate) word_errors: Vec<[u64; 2]>,
}

/// What was said in a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) scripts: &'a Scripts,
    pub(crate) profile: &'a Profile,
    pub(crate) seed: u64,
}

impl Reference<'_> {
    /// What the session of this claim said.
    pub(crate) fn script(&self, claim: &Claim) -> Script {
        let plan = self.scripts.plan(claim.id, self.profile, self.seed);
        self.scripts.of(&plan, claim.open_ns)
    }
}

impl Tally {
    /// What the sessions claim comes to.
    pub(crate) fn of(
        claims: &[Claim],
        reference: &Reference<'_>,
        facts: Facts,
        unloaded: Option<&[WordErrors]>,
    ) -> Self {
        let mut tally = Self::default();
        let [mut first, mut last, mut endpoint, mut finalisation] =
            [(); 4].map(|()| Collected::default());
        let mut errors = Vec::new();
        let said: Vec<(&Claim, Script)> = claims
            .iter()
            .map(|claim| (claim, reference.script(claim)))
            .collect();
        let clips = reference.scripts.clips();
        for (claim, script) in &said {
            tally.count(claim);
            errors.extend(word_errors(claim, script, clips));
            for outcome in &claim.account.utterances {
                came_or_not(&mut first, outcome.first_result_ns, outcome.waited_ns);
                came_or_not(&mut last, outcome.final_ns, outcome.waited_ns);
                if let Some(ns) = outcome.finalisation_ns {
                    finalisation.came(ns);
                }
                if let Some(ns) = endpoint_ns(claim, script, outcome) {
                    endpoint.came(ns);
                }
                let said = script.audio.utterances()[outcome.utterance];
                tally.speech_ms += (said.end_ns - said.onset_ns) / NS_PER_MS;
            }
        }
        tally.first_result = first.durations();
        tally.final_result = last.durations();
        tally.endpoint = endpoint.durations();
        tally.finalisation = finalisation.durations();
        // A turn's connection says nothing until the turn is over.
        if facts.cursor != Cursor::Turn {
            tally.lags(claims);
        }
        tally.crosstalk = crossed::count(&said, clips);
        tally.judge_words(&errors, unloaded);
        tally
    }

    fn count(&mut self, claim: &Claim) {
        let account = &claim.account;
        self.utterances += account.utterances.len() as u64;
        self.speech_uncovered_ms += account.speech_uncovered_ns / NS_PER_MS;
        self.speech_duplicated_ms += account.speech_duplicated_ns / NS_PER_MS;
        self.frames_silent += account.frames_silent;
        self.sessions_silent += u64::from(account.silent);
        self.sessions_without_end += u64::from(claim.waits_for_end);
        self.interims += claim.heard.interims;
        self.unknown_messages += claim.heard.unknown;
    }

    fn lags(&mut self, claims: &[Claim]) {
        let mut all = Collected::default();
        let mut seconds: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for lag in claims.iter().flat_map(|claim| &claim.account.lags) {
            all.came(lag.lag_ns);
            seconds
                .entry(lag.at_ns / NS_PER_S)
                .or_default()
                .push(lag.lag_ns);
        }
        self.lag = all.durations();
        let mut points = Vec::new();
        for (at_s, mut lags) in seconds {
            lags.sort_unstable();
            let mean_ms = ms(lags.iter().sum::<u64>()) / real(lags.len() as u64);
            points.push(Point {
                at_s: real(at_s),
                value: mean_ms,
            });
            self.lag_seconds.push(LagSecond {
                at_s,
                p50_ms: ms(lags[(lags.len() - 1) / 2]),
                max_ms: ms(lags[lags.len() - 1]),
            });
        }
        self.lag_growth_ms_per_s = growth_per_s(&points);
    }

    fn judge_words(&mut self, errors: &[WordErrors], unloaded: Option<&[WordErrors]>) {
        self.words = errors.iter().copied().sum();
        let bootstrap = Bootstrap {
            resamples: RESAMPLES,
            confidence: CONFIDENCE,
            seed: 1,
        };
        self.wer = rate_interval(errors, &bootstrap);
        self.wer_excess_points =
            unloaded.and_then(|unloaded| excess_points(errors, unloaded, &bootstrap));
        if errors.len() <= KEPT_UTTERANCES {
            let of_one = |one: &WordErrors| [one.total(), one.reference_words];
            self.word_errors = errors.iter().map(of_one).collect();
        }
    }

    /// As the session machines found it out; `None` if they were not settled.
    #[must_use]
    pub(crate) fn of_findings(findings: &Value) -> Option<Self> {
        serde_json::from_value(findings.clone()).ok()?
    }

    /// The errors of each utterance, as far as they are kept. Of what kind they were is not.
    pub(crate) fn errors(&self) -> Vec<WordErrors> {
        let of_one = |[errors, words]: &[u64; 2]| WordErrors {
            reference_words: *words,
            substitutions: *errors,
            ..WordErrors::default()
        };
        self.word_errors.iter().map(of_one).collect()
    }

    /// The values of the workload's own metrics. What was not observed has none. Growth that a window is too short to show is
    /// none that is certain.
    #[must_use]
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        let values = [
            self.first_result.p50_ms,
            self.final_result.p50_ms,
            self.lag.p95_ms,
            self.lag
                .p95_ms
                .map(|_| self.lag_growth_ms_per_s.unwrap_or(0.0).max(0.0)),
            Some(real(self.speech_uncovered_ms)),
            Some(real(self.speech_duplicated_ms)),
            Some(real(self.sessions_silent)),
            Some(real(self.sessions_without_end)),
            Some(real(self.crosstalk)),
            self.wer.map(|rate| 100.0 * rate.value),
            self.wer_excess_points.map(|excess| excess.low.max(0.0)),
        ];
        let named = METRICS.iter().zip(values);
        named
            .filter_map(|(metric, value)| Some((metric.name.to_owned(), value?)))
            .collect()
    }
}

fn came_or_not(collected: &mut Collected, came_ns: Option<u64>, waited_ns: u64) {
    match came_ns {
        Some(ns) => collected.came(ns),
        None => collected.missing(waited_ns),
    }
}

/// The errors of each measured utterance of a session. All its words are one text, so it does not matter how the server
/// divided them.
fn word_errors(claim: &Claim, script: &Script, clips: &[Clip]) -> Vec<WordErrors> {
    let spoken: Vec<&[String]> = script
        .audio
        .utterances()
        .iter()
        .map(|said| clips[said.clip].words.as_slice())
        .collect();
    let heard = crossed::words_of(&claim.heard.said);
    let errors = WordErrors::of_each(&spoken, &heard);
    let measured = claim.account.utterances.iter();
    measured.map(|outcome| errors[outcome.utterance]).collect()
}

/// From the schedule of an utterance's last frame until the server said that speech had ended: the first such message after it,
/// if it comes before the next utterance begins.
fn endpoint_ns(claim: &Claim, script: &Script, outcome: &UtteranceOutcome) -> Option<u64> {
    let utterances = script.audio.utterances();
    let end_ns = utterances[outcome.utterance].end_ns;
    let next_ns = utterances
        .get(outcome.utterance + 1)
        .map_or(u64::MAX, |next| next.onset_ns);
    let due_ns = script.due.first_ns + end_ns;
    // The server's time of the end may be early or late by half a pause; only its message's arrival is a time.
    let ends = claim.heard.ends.iter();
    let arrived = ends.filter(|(_, at_ns)| *at_ns + NS_PER_S >= end_ns && *at_ns < next_ns);
    let arrived = arrived.filter(|(now_ns, _)| *now_ns >= due_ns);
    arrived.map(|(now_ns, _)| now_ns - due_ns).min()
}

/// How fast values grew, per second: certain, and going on in the second half of the window.
fn growth_per_s(points: &[Point]) -> Option<f64> {
    const SECONDS_PER_HOUR: f64 = 3_600.0;
    let whole = slope_per_hour(points)?;
    let half = slope_per_hour(&points[points.len() / 2..]);
    let goes_on = half.map_or(whole.low, |half| half.value);
    Some(whole.low.min(goes_on) / SECONDS_PER_HOUR)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
fn real(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "hours in nanoseconds")]
fn ms(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS as f64
}
