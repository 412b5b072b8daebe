//! What the requests of a trial come to, each kind for itself.

use plimsoll_core::durations::Durations;
use plimsoll_core::latency::{LatencySet, Series};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::NS_PER_US;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::request::Kind;
use crate::tally::{GOOD_NS, LegCollected, LegRecord};
use crate::turns::Leg;

/// A measured request that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What was asked.
    pub kind: Kind,
    /// The right answer to a GET; of a reply its first byte, whatever became of the rest. `None` if it never came.
    pub leg: Option<Leg>,
    /// Whether the answer was right and whole.
    pub right: bool,
    /// Whether no answer came in time. It then took `waited_ns` at least. Of another failure nobody knows how long an answer
    /// takes.
    pub lost: bool,
    /// Whether a player would have run dry.
    pub gap: bool,
    /// From the schedule until the request was over.
    pub waited_ns: u64,
}

impl Claim {
    /// A right answer to `GET /`, at once.
    #[cfg(test)]
    pub(crate) const RIGHT: Self = Self {
        kind: Kind::Root,
        leg: Some(Leg {
            end_to_end_ns: 0,
            due_ns: 0,
            read_ns: None,
            provider_ns: None,
        }),
        right: true,
        lost: false,
        gap: false,
        waited_ns: 0,
    };

    /// Whether it was answered rightly, and nothing took long that the gateway is to blame for.
    fn is_good(&self) -> bool {
        let added_ns = self
            .leg
            .map(|leg| leg.overhead_ns().unwrap_or(leg.end_to_end_ns));
        self.right && added_ns.is_some_and(|ns| ns <= GOOD_NS)
    }
}

/// All measured requests of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRecord {
    /// What was asked.
    pub request: Kind,
    /// Requests that were due.
    pub due: u64,
    /// Of these, answered rightly and in full.
    pub right: u64,
    /// Of these, right and with at most 250 ms added: to the provider's time where one is asked.
    pub good: u64,
    /// Replies in which a player would have run dry.
    pub with_gap: u64,
    /// The answer to a GET; of `POST /speak` the first byte of the reply.
    pub answer: LegRecord,
}

impl RequestRecord {
    /// Of what connections claim: the kinds that were asked, in their order.
    pub(crate) fn all_of<'a>(claims: impl Iterator<Item = &'a Claim> + Clone) -> Vec<Self> {
        let kinds = [Kind::Root, Kind::Voices, Kind::Speak];
        let all = kinds.map(|kind| Self::of(kind, claims.clone().filter(|one| one.kind == kind)));
        all.into_iter().filter(|record| record.due > 0).collect()
    }

    fn of<'a>(kind: Kind, claims: impl Iterator<Item = &'a Claim>) -> Self {
        let mut record = Self::none(kind);
        let mut legs = LegCollected::default();
        for claim in claims {
            record.due += 1;
            record.right += u64::from(claim.right);
            record.good += u64::from(claim.is_good());
            record.with_gap += u64::from(claim.gap);
            if claim.leg.is_some() || claim.lost {
                legs.add(claim.leg, claim.waited_ns);
            }
        }
        record.answer = legs.record();
        record
    }

    /// Of a trial whose frames are requests of this kind, and of which nothing else is kept.
    pub(crate) fn of_frames(kind: Kind, ledger: &Ledger, latency: &LatencySet) -> Self {
        let histogram = latency.histogram(Series::NewestFromSchedule);
        let newest = latency.summary().newest.from_schedule;
        let quick = histogram.count_between(0, GOOD_NS / NS_PER_US);
        Self {
            due: ledger.frames_due,
            right: ledger.frames_answered,
            good: quick.min(ledger.frames_answered),
            answer: LegRecord {
                end_to_end: Durations {
                    samples: newest.count,
                    unanswered: newest.censored,
                    p50_ms: newest.p50_ms,
                    p90_ms: newest.p90_ms,
                    p95_ms: newest.p95_ms,
                    p99_ms: newest.p99_ms,
                    p999_ms: newest.p999_ms,
                    max_ms: newest.max_ms,
                },
                ..LegRecord::default()
            },
            ..Self::none(kind)
        }
    }

    fn none(kind: Kind) -> Self {
        Self {
            request: kind,
            due: 0,
            right: 0,
            good: 0,
            with_gap: 0,
            answer: LegRecord::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::NS_PER_MS;

    fn claim(kind: Kind, end_to_end_ms: u64, provider_ms: Option<u64>) -> Claim {
        Claim {
            kind,
            leg: Some(Leg::of(
                0,
                end_to_end_ms * NS_PER_MS,
                provider_ms.map(|ms| (0, ms * NS_PER_MS)),
            )),
            ..Claim::RIGHT
        }
    }

    /// Fault of a report: everything was `GET /`, and its speed was told as the gateway's.
    #[test]
    fn each_kind_has_its_own_samples() {
        let mut claims = vec![claim(Kind::Root, 1, None); 9];
        claims.push(claim(Kind::Speak, 400, Some(100)));
        let all = RequestRecord::all_of(claims.iter());
        let [root, speak] = &all[..] else {
            panic!("{all:?}")
        };
        assert_eq!((root.due, root.good), (9, 9));
        assert_eq!(root.answer.end_to_end.max_ms, Some(1.0));
        assert_eq!(root.answer.overhead, Durations::default());
        assert_eq!(
            (speak.due, speak.right, speak.good),
            (1, 1, 0),
            "300 ms were added"
        );
        assert_eq!(speak.answer.overhead.p50_ms, Some(300.0));
    }

    #[test]
    fn what_never_came_is_in_the_percentiles_and_a_quick_refusal_is_not() {
        let failed = Claim {
            leg: None,
            right: false,
            waited_ns: 9_000 * NS_PER_MS,
            ..claim(Kind::Root, 0, None)
        };
        let lost = Claim {
            lost: true,
            ..failed
        };
        let claims = [claim(Kind::Root, 5, None), failed, lost];
        let all = RequestRecord::all_of(claims.iter());
        assert_eq!((all[0].due, all[0].right), (3, 1));
        let answer = all[0].answer.end_to_end;
        assert_eq!((answer.samples, answer.unanswered), (2, 1));
        assert_eq!((answer.p50_ms, answer.max_ms), (Some(5.0), Some(9_000.0)));
    }

    #[test]
    fn frames_are_counted_without_a_claim_each() {
        let mut latency = LatencySet::new();
        latency.record_ns(Series::NewestFromSchedule, 2 * NS_PER_MS);
        latency.record_ns(Series::NewestFromSchedule, 300 * NS_PER_MS);
        latency.record_unanswered(9_000 * NS_PER_MS, 9_000 * NS_PER_MS);
        let ledger = Ledger {
            frames_due: 3,
            frames_answered: 2,
            ..Ledger::default()
        };
        let record = RequestRecord::of_frames(Kind::Root, &ledger, &latency);
        assert_eq!((record.due, record.right, record.good), (3, 2, 1));
        assert_eq!(record.answer.end_to_end.unanswered, 1);
    }
}
