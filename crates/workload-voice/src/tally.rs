//! What all turns of a trial come to: percentiles of the time that the gateway added, and shares.
//!
//! All values are kept, so a percentile is a value that occurred (nearest rank). What never came counts with the time that
//! we waited, a lower bound.

use std::collections::BTreeMap;

use plimsoll_core::durations::{Collected, Durations};
use plimsoll_core::profile::{NS_PER_MS, Window};
use plimsoll_core::record::Goodput;
use plimsoll_core::slo::{OwnMetric, Percentile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::{Claim, Heard};
use crate::load::Test;
use crate::rest::{Kind, RequestRecord};
use crate::slow::SlowRecord;
use crate::turns::{self, Leg};

/// One way there and back, of all turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegRecord {
    /// From the schedule to the answer.
    pub end_to_end: Durations,
    /// What the provider took, by its marks.
    pub provider: Durations,
    /// The difference of both in each turn: what gateway and network added.
    pub overhead: Durations,
    /// Of the overhead, the way in: from the schedule until the provider had read the request, by its mark.
    #[serde(default)]
    pub to_provider: Durations,
    /// Of the overhead, the way out: from the provider's handing over, by its mark, to the arrival.
    #[serde(default)]
    pub from_provider: Durations,
}

/// All measured turns of a trial. It is the section `voice` of the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Turns that were due.
    pub turns: u64,
    /// Of these, complete.
    pub complete: u64,
    /// Of these, complete and with at most 250 ms added to each leg.
    pub good: u64,
    /// Turns in which a player would have run dry.
    pub with_gap: u64,
    /// Turns that the caller interrupted.
    pub interrupted: u64,
    /// Errors of the gateway in measured turns, by kind.
    pub errors: BTreeMap<String, u64>,
    /// The final result of the utterance.
    pub result: LegRecord,
    /// The first byte of the reply.
    pub first_audio: LegRecord,
    /// What the gateway and the network added to both legs together.
    #[serde(default)]
    pub overhead: Durations,
    /// From the schedule of a connection to the answer to its upgrade, of all sessions.
    #[serde(default)]
    pub connect: Durations,
    /// From `config` to `ready`, of all sessions.
    pub ready: Durations,
    /// From the interruption to the last stale byte.
    pub barge_in: Durations,
    /// From the end of a spike or an outage until 99 % of all later turns were good; `None` if the test has neither, or if it
    /// never was so.
    pub recovery_s: Option<f64>,
    /// The requests of REST clients, each kind for itself; none of them is a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestRecord>,
    /// What all sessions wrote and heard, measured or not.
    pub heard: Heard,
    /// Callers who read slowly, if the test has any. Nothing else above is of their turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowRecord>,
}

/// The share of later turns that must be good after a recovery.
const RECOVERED_SHARE: f64 = 0.99;

/// The most that a gateway may add to a leg of a good turn, or to a good answer.
pub(crate) const GOOD_NS: u64 = 250 * NS_PER_MS;

/// The metrics that only this workload computes.
pub(crate) const METRICS: [OwnMetric; 19] = [
    OwnMetric::percentile("result_overhead_p95_ms", Percentile::P95),
    OwnMetric::percentile("result_overhead_p99_ms", Percentile::P99),
    OwnMetric::percentile("first_audio_overhead_p95_ms", Percentile::P95),
    OwnMetric::percentile("result_p95_ms", Percentile::P95),
    OwnMetric::percentile("first_audio_p95_ms", Percentile::P95),
    OwnMetric::percentile("ready_p95_ms", Percentile::P95),
    OwnMetric::percentile("barge_in_p95_ms", Percentile::P95),
    OwnMetric::counted("turns_with_gap"),
    OwnMetric::counted("recovery_s"),
    OwnMetric::percentile("root_p95_ms", Percentile::P95),
    OwnMetric::percentile("root_p99_ms", Percentile::P99),
    OwnMetric::percentile("voices_p95_ms", Percentile::P95),
    OwnMetric::percentile("speak_overhead_p95_ms", Percentile::P95),
    OwnMetric::counted("replies_with_gap"),
    OwnMetric::counted("requests_failed"),
    OwnMetric::counted("blocks_lost"),
    OwnMetric::counted("blocks_doubled"),
    OwnMetric::counted("blocks_out_of_order"),
    OwnMetric::counted("blocks_damaged"),
];

impl Tally {
    /// How many turns were done, right and in time. Where no caller is, it is requests. `missed` turns more were due, of
    /// callers who were never let in: a gateway that shuts them out has failed them.
    #[expect(clippy::cast_precision_loss, reason = "turns of a trial")]
    pub(crate) fn goodput(&self, test: Test, window: &Window, missed: u64) -> Goodput {
        let (due, done, good) = if test.is_of_requests() {
            (
                self.of_requests(|kind| kind.due),
                self.of_requests(|kind| kind.right),
                self.of_requests(|kind| kind.good),
            )
        } else {
            (self.turns + missed, self.complete, self.good)
        };
        Goodput {
            due_per_s: window.per_second(due),
            good_per_s: window.per_second(good),
            failed_share: (due - done) as f64 / due.max(1) as f64,
        }
    }

    /// A count of all requests of REST clients.
    pub(crate) fn of_requests(&self, count: fn(&RequestRecord) -> u64) -> u64 {
        self.requests.iter().map(count).sum()
    }

    /// Of what the sessions claim. `trouble_end_ns` is the end of a spike or an outage.
    #[must_use]
    pub fn of(claims: &[Claim], trouble_end_ns: Option<u64>) -> Self {
        let mut tally = Self::default();
        let mut legs = [LegCollected::default(), LegCollected::default()];
        let [mut overhead, mut connect, mut ready, mut barge_in] =
            [(); 4].map(|()| Collected::default());
        // The newest is the last.
        let late: BTreeMap<(u32, u32), u64> = claims
            .iter()
            .filter_map(|claim| match claim {
                Claim::LateAudio(late) => Some(((late.vu, late.turn), late.after_ns)),
                _ => None,
            })
            .collect();
        for claim in claims {
            match claim {
                Claim::Ready {
                    connect_ns,
                    after_ns,
                } => {
                    connect.came(*connect_ns);
                    ready.came(*after_ns);
                }
                Claim::Session(heard) => tally.heard.add(heard),
                // Above, and below, each kind for itself.
                Claim::LateAudio(_) | Claim::Request(_) => {}
                Claim::SlowTurn(turn) => tally.slow.get_or_insert_default().turn(turn),
                Claim::SlowSession(session) => {
                    tally.slow.get_or_insert_default().session(session);
                }
                Claim::Turn(turn) => {
                    tally.count(turn);
                    legs[0].add(turn.result, turn.waited_ns);
                    legs[1].add(turn.first_audio, turn.waited_ns);
                    let both = turn.result.is_some() && turn.first_audio.is_some();
                    match turn.overhead_ns() {
                        Some(ns) => overhead.came(ns),
                        None if !both => overhead.missing(turn.waited_ns),
                        // Without a mark nobody knows what the provider took.
                        None => {}
                    }
                    if let Some(ns) = turn.barge_in_ns {
                        let late_ns = late.get(&(turn.vu, turn.turn));
                        barge_in.came(late_ns.copied().unwrap_or(ns));
                    }
                }
            }
        }
        let [result, first_audio] = legs.map(LegCollected::record);
        tally.result = result;
        tally.first_audio = first_audio;
        let requests = claims.iter().filter_map(|claim| match claim {
            Claim::Request(request) => Some(request),
            _ => None,
        });
        tally.requests = RequestRecord::all_of(requests);
        // What is missing says nothing of the overhead if no turn does.
        if tally.result.overhead.samples > 0 {
            tally.overhead = overhead.durations();
        }
        tally.connect = connect.durations();
        tally.ready = ready.durations();
        tally.barge_in = barge_in.durations();
        tally.recovery_s = trouble_end_ns.and_then(|end_ns| recovery_s(claims, end_ns));
        tally
    }

    /// As the session machines found it out; `None` if they were not settled.
    #[must_use]
    pub fn of_findings(findings: &Value) -> Option<Self> {
        serde_json::from_value(findings.clone()).ok()?
    }

    fn count(&mut self, turn: &turns::Claim) {
        self.turns += 1;
        self.complete += u64::from(turn.complete);
        self.good += u64::from(is_good(turn));
        self.with_gap += u64::from(turn.gap);
        self.interrupted += u64::from(turn.barge_in_ns.is_some());
        if let Some(kind) = &turn.error {
            *self.errors.entry(kind.clone()).or_default() += 1;
        }
    }

    /// The values of the workload's own metrics. What was not observed has none.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let of = |kind| self.requests.iter().find(|record| record.request == kind);
        let [root, voices, speak] = [Kind::Root, Kind::Voices, Kind::Speak].map(of);
        let due = self.of_requests(|kind| kind.due);
        let values = [
            self.result.overhead.p95_ms,
            self.result.overhead.p99_ms,
            self.first_audio.overhead.p95_ms,
            self.result.end_to_end.p95_ms,
            self.first_audio.end_to_end.p95_ms,
            self.ready.p95_ms,
            // Nobody interrupted: no byte was stale.
            self.barge_in.p95_ms.or((self.turns > 0).then_some(0.0)),
            share(self.with_gap, self.turns),
            self.recovery_s,
            root.and_then(|root| root.answer.end_to_end.p95_ms),
            root.and_then(|root| root.answer.end_to_end.p99_ms),
            voices.and_then(|voices| voices.answer.end_to_end.p95_ms),
            speak.and_then(|speak| speak.answer.overhead.p95_ms),
            speak.and_then(|speak| share(speak.with_gap, speak.due)),
            share(due - self.of_requests(|kind| kind.right), due),
        ];
        // Only the providers know the rest.
        let named = METRICS.iter().zip(values);
        named
            .filter_map(|(metric, value)| Some((metric.name.to_owned(), value?)))
            .collect()
    }
}

/// Whether a turn is complete, and nothing took long that the gateway is to blame for.
pub(crate) fn is_good(turn: &turns::Claim) -> bool {
    let quick = |leg: Option<Leg>| {
        let added_ns = leg.map(|leg| leg.overhead_ns().unwrap_or(leg.end_to_end_ns));
        added_ns.is_some_and(|ns| ns <= GOOD_NS)
    };
    turn.complete && quick(turn.result) && quick(turn.first_audio)
}

/// How long after `end_ns` turns were due of which, with all later ones, 99 % are good. `None` if no turn is.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and turns of a trial"
)]
fn recovery_s(claims: &[Claim], end_ns: u64) -> Option<f64> {
    let mut later: Vec<(u64, bool)> = claims
        .iter()
        .filter_map(|claim| match claim {
            Claim::Turn(turn) if turn.due_ns >= end_ns => Some((turn.due_ns, is_good(turn))),
            _ => None,
        })
        .collect();
    later.sort_unstable();
    let (mut good, mut since_ns) = (0_usize, None);
    for (number, (due_ns, is_good)) in later.iter().rev().enumerate() {
        good += usize::from(*is_good);
        if good as f64 >= RECOVERED_SHARE * (number + 1) as f64 {
            since_ns = Some(*due_ns);
        }
    }
    // If all are good, nothing had to recover.
    let since_ns = if good == later.len() && good > 0 {
        Some(end_ns)
    } else {
        since_ns
    };
    since_ns.map(|ns| (ns - end_ns) as f64 / 1e9)
}

#[expect(clippy::cast_precision_loss, reason = "counts of turns")]
fn share(of: u64, among: u64) -> Option<f64> {
    (among > 0).then(|| of as f64 / among as f64)
}

/// One way there and back, of which the durations are still collected.
#[derive(Debug, Default)]
pub(crate) struct LegCollected {
    end_to_end: Collected,
    provider: Collected,
    overhead: Collected,
}

impl LegCollected {
    pub(crate) fn add(&mut self, leg: Option<Leg>, waited_ns: u64) {
        let Some(leg) = leg else {
            self.end_to_end.missing(waited_ns);
            self.overhead.missing(waited_ns);
            return;
        };
        self.end_to_end.came(leg.end_to_end_ns);
        if let Some((provider_ns, overhead_ns)) = leg.provider_ns.zip(leg.overhead_ns()) {
            self.provider.came(provider_ns);
            self.overhead.came(overhead_ns);
        }
    }

    pub(crate) fn record(self) -> LegRecord {
        // Without any mark nobody knows what the provider took, and what is missing says nothing about it.
        let marked = !self.provider.is_empty();
        LegRecord {
            end_to_end: self.end_to_end.durations(),
            provider: self.provider.durations(),
            overhead: if marked {
                self.overhead.durations()
            } else {
                Durations::default()
            },
            ..LegRecord::default()
        }
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
mod tests;
