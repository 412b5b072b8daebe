//! What a trial shows besides its ledger and its latencies: all turns, and the providers' account beside the callers'.

use std::collections::BTreeMap;

use plimsoll_core::bottleneck::UPGRADE_REFUSED;
use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::{SanityCheck, Sections};
use plimsoll_core::slo::Percentile;
use plimsoll_workload::{Outcome, Seen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Heard;
use crate::load::{Test, VoiceLoad};
use crate::marks::REPLY_BLOCK_BYTES;
use crate::requests;
use crate::rest::RequestRecord;
use crate::tally::Tally;

/// Its name in a record.
pub(crate) const SECTION: &str = "voice";

/// What a trial's record has of this workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VoiceRecord {
    /// What the callers did.
    pub test: String,
    /// What failed, by name, if something was to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// All measured turns.
    #[serde(flatten)]
    pub tally: Tally,
    /// What each mock provider counted over the whole trial; empty if none was asked, or if they did not answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, Counts>,
}

/// The counts of one mock provider since it started. `crates/providers` writes them.
///
/// `requests` is always the sum of the ways to end and `in_flight`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counts {
    /// Replies that were asked for; utterances that were over.
    pub requests: u64,
    /// Answered wholly.
    pub completed: u64,
    /// Answered with an error, as a fault asked for, or because the provider does not understand it.
    pub failed: u64,
    /// Not answered, as a fault asked for.
    pub timed_out: u64,
    /// Reset, as a fault asked for.
    pub dropped: u64,
    /// Answered with 429, as a fault asked for.
    pub rate_limited: u64,
    /// Not answered beyond the first block, as a fault asked for.
    pub stalled: u64,
    /// The gateway left before the end.
    pub cancelled: u64,
    /// Requests that have not ended.
    pub in_flight: u64,
    /// Of the failed ones, requests that the provider does not understand: 400.
    pub bad_requests: u64,
    /// Sessions of speech recognition that were opened.
    pub sessions: u64,
    /// Sessions that were not: a bad request, or a provider that is out.
    pub sessions_refused: u64,
    /// Blocks of callers' audio that came.
    pub blocks_read: u64,
    /// Blocks that were missing when a later one came, and have not come since.
    pub blocks_lost: u64,
    /// Blocks that came after a later one, for the first time.
    pub blocks_reordered: u64,
    /// Blocks that came again.
    pub blocks_doubled: u64,
    /// Blocks of another caller, or without a mark.
    pub blocks_foreign: u64,
    /// Results handed over.
    pub results: u64,
    /// Of these, final.
    pub finals: u64,
    /// Blocks of the utterances that final results cover.
    pub blocks_covered: u64,
    /// Bytes of replies' audio that were handed over.
    pub bytes_out: u64,
    /// Of these, bytes that the socket took.
    pub bytes_accepted: u64,
    /// Requests whose first block, or final result, was handed over.
    pub answered: u64,
    /// What these took, in ns: handed less read, as their marks say. Of a reply its first block counts.
    pub provider_ns: u64,
}

impl Counts {
    /// Requests that a gateway may have made again.
    fn unanswered(&self) -> u64 {
        self.failed + self.timed_out + self.dropped + self.rate_limited + self.stalled
    }

    /// How its requests ended.
    fn ends(&self) -> u64 {
        let ends = [
            self.completed,
            self.failed,
            self.timed_out,
            self.dropped,
            self.rate_limited,
            self.stalled,
            self.cancelled,
            self.in_flight,
        ];
        ends.iter().sum()
    }
}

/// What the trial showed.
pub(crate) fn outcome(load: &VoiceLoad, seen: &Seen<'_>) -> Outcome {
    // Null where the trial ended before it was settled.
    let Some(mut tally) = Tally::of_findings(seen.findings) else {
        return Outcome::default();
    };
    // Null for a server that runs already, whose providers nobody here knows.
    let started = !seen.companion.is_null();
    let providers = providers(seen);
    let checks = if started {
        let mut checks = accounts(&tally.heard, &providers);
        checks.extend(tally.slow.map(|slow| slow.check()));
        let they_fail = load.fault.is_some();
        checks.extend(requests::compared(seen.by_label, &providers, they_fail));
        checks
    } else {
        tally.forget_ways();
        Vec::new()
    };
    let limited = admission_limited(&seen.report.ledger.reasons);
    let caveats = disagree(&checks).into_iter().chain(limited);
    let unchecked = (!started && !load.test.is_of_requests()).then(audio_unchecked);
    let alone = (load.test == Test::Rest).then(no_conversation);
    let few = (load.test == Test::Mixed)
        .then(|| few_requests(&tally.requests))
        .flatten();
    let missed = load.turns_missed(seen.report.ledger.sessions_failed, &seen.window);
    let goodput =
        (!seen.report.interrupted).then(|| tally.goodput(load.test, &seen.window, missed));
    let record = VoiceRecord {
        test: load.test.name().to_owned(),
        fault: load.fault.clone(),
        tally,
        providers,
    };
    Outcome {
        sections: Sections::of(SECTION, &record),
        caveats: caveats.chain(unchecked).chain(alone).chain(few).collect(),
        metrics: blocks(&record.providers),
        goodput,
        checks,
        ..Outcome::default()
    }
}

fn providers(seen: &Seen<'_>) -> BTreeMap<String, Counts> {
    let all: BTreeMap<String, Counts> =
        serde_json::from_value(seen.companion.clone()).unwrap_or_default();
    let asked = |counts: &Counts| counts.requests + counts.sessions > 0;
    all.into_iter()
        .filter(|(_, counts)| asked(counts))
        .collect()
}

/// Compares what the providers counted with what the callers wrote and heard. The bounds are exact: what a gateway still
/// has, or dropped as it may, makes a sum less and never more.
fn accounts(heard: &Heard, providers: &BTreeMap<String, Counts>) -> Vec<SanityCheck> {
    let of = |leg: &str, count: fn(&Counts) -> u64| -> u64 {
        let those = providers.iter().filter(|(name, _)| name.ends_with(leg));
        those.map(|(_, counts)| count(counts)).sum()
    };
    let all_ends: u64 = of("", Counts::ends);
    let check = |name: &str, low: u64, high: u64, observed: u64| {
        SanityCheck::of(name, real(low), real(high), real(observed))
    };
    let requests = of("", |counts| counts.requests);
    let finals = of("_stt", |counts| counts.finals);
    let replies = of("_tts", |counts| counts.requests);
    let bytes_out = of("_tts", |counts| counts.bytes_out);
    let blocks_read = of("_stt", |counts| counts.blocks_read);
    vec![
        check("provider_requests", requests, requests, all_ends),
        check(
            "provider_blocks",
            0,
            // What the gateway sent twice is a gate's business.
            heard.blocks_written + of("_stt", |counts| counts.blocks_doubled),
            blocks_read,
        ),
        check("provider_finals", 0, finals, heard.finals),
        // A request that failed is asked once more.
        check(
            "provider_speaks",
            heard.replies,
            heard.speaks + of("_tts", Counts::unanswered),
            replies,
        ),
        check(
            "provider_audio_bytes",
            0,
            bytes_out,
            heard.reply_blocks * REPLY_BLOCK_BYTES as u64 + heard.dropped_bytes,
        ),
        check(
            "provider_time_ns",
            heard.finals_provider_ns + heard.replies_provider_ns,
            u64::MAX,
            of("", |counts| counts.provider_ns),
        ),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

fn disagree(checks: &[SanityCheck]) -> Option<Caveat> {
    let broken = checks.iter().filter(|check| !check.holds).map(|check| {
        format!(
            "{} is {}, between {} and {} is possible",
            check.name, check.observed, check.low, check.high
        )
    });
    let broken: Vec<String> = broken.collect();
    (!broken.is_empty()).then(|| Caveat {
        id: "providers-disagree".to_owned(),
        blocking: true,
        text: format!(
            "the mock providers, the callers and the gateway's own count of its requests disagree: {}; the gateway answers without its providers, asks for more than it needs or counts wrongly, or something else asks them",
            broken.join("; ")
        ),
    })
}

/// A gateway that was told to take no more says nothing about its speed.
fn admission_limited(reasons: &BTreeMap<String, u64>) -> Option<Caveat> {
    let refused = reasons.get(&format!("{UPGRADE_REFUSED}429"))?;
    Some(Caveat {
        id: "admission-limited".to_owned(),
        blocking: true,
        text: format!(
            "the gateway refused {refused} upgrades with status 429, as MAX_SESSIONS_PER_ADDRESS or RATE_LIMIT_RPS told it; raise them, or leave them out"
        ),
    })
}

fn audio_unchecked() -> Caveat {
    Caveat {
        id: "audio-unchecked".to_owned(),
        blocking: false,
        text: "nobody here counted the audio that reached speech recognition, because the server runs already: the gates blocks_lost, blocks_doubled, blocks_out_of_order and blocks_damaged say nothing".to_owned(),
    }
}

fn no_conversation() -> Caveat {
    Caveat {
        id: "no-conversation".to_owned(),
        blocking: false,
        text: "GET / asks no provider: how many of them a gateway answers says nothing about how many callers it carries; use --test talk for that".to_owned(),
    }
}

/// Of test `mixed`. What samples a trial needs is counted in turns, and there are fewer requests of a kind.
fn few_requests(requests: &[RequestRecord]) -> Option<Caveat> {
    let needed = Percentile::P95.samples_needed();
    let few = requests.iter().filter(|kind| kind.due < needed);
    let few: Vec<String> = few
        .map(|kind| format!("{} {}", kind.due, kind.request.name()))
        .collect();
    (!few.is_empty()).then(|| Caveat {
        id: "few-requests".to_owned(),
        blocking: false,
        text: format!(
            "the p95 of a kind of request needs {needed}, and there were {}: its gate says little; use more arrivals, or a longer --measured",
            few.join(", ")
        ),
    })
}

/// What became of the callers' audio on its way to speech recognition, as metrics.
fn blocks(providers: &BTreeMap<String, Counts>) -> BTreeMap<String, f64> {
    let sum = |count: fn(&Counts) -> u64| real(providers.values().map(count).sum());
    let values = [
        ("blocks_lost", sum(|counts| counts.blocks_lost)),
        ("blocks_doubled", sum(|counts| counts.blocks_doubled)),
        ("blocks_out_of_order", sum(|counts| counts.blocks_reordered)),
        ("blocks_damaged", sum(|counts| counts.blocks_foreign)),
    ];
    values
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn honest() -> (Heard, BTreeMap<String, Counts>) {
        let heard = Heard {
            blocks_written: 1_000,
            finals: 10,
            finals_provider_ns: 500,
            speaks: 10,
            replies: 9,
            replies_provider_ns: 700,
            reply_blocks: 90,
            dropped_bytes: 0,
        };
        let stt = Counts {
            requests: 10,
            completed: 10,
            blocks_read: 990,
            finals: 10,
            provider_ns: 500,
            ..Counts::default()
        };
        let tts = Counts {
            requests: 10,
            completed: 9,
            cancelled: 1,
            bytes_out: 96_000,
            provider_ns: 780,
            ..Counts::default()
        };
        let all = [
            ("deepgram_stt".to_owned(), stt),
            ("deepgram_tts".to_owned(), tts),
        ];
        (heard, all.into())
    }

    fn broken(change: impl FnOnce(&mut Heard, &mut BTreeMap<String, Counts>)) -> Vec<String> {
        let (mut heard, mut providers) = honest();
        change(&mut heard, &mut providers);
        let checks = accounts(&heard, &providers).into_iter();
        let broken = checks.filter(|check| !check.holds);
        broken.map(|check| check.name).collect()
    }

    #[test]
    fn honest_accounts_agree() {
        assert_eq!(broken(|_, _| {}), [""; 0]);
    }

    /// Fault of a report: nobody asked the mocks.
    #[test]
    fn answers_that_no_provider_gave_are_seen() {
        assert_eq!(broken(|heard, _| heard.finals = 11), ["provider_finals"]);
        assert_eq!(broken(|heard, _| heard.replies = 11), ["provider_speaks"]);
        // And asked more than it should have.
        assert_eq!(broken(|heard, _| heard.speaks = 9), ["provider_speaks"]);
        assert_eq!(
            broken(|heard, _| heard.reply_blocks = 101),
            ["provider_audio_bytes"]
        );
        // What a gateway says that it dropped must have come from somewhere.
        assert_eq!(
            broken(|heard, _| heard.dropped_bytes = 9_601),
            ["provider_audio_bytes"]
        );
        assert_eq!(
            broken(|heard, _| heard.finals_provider_ns = 581),
            ["provider_time_ns"]
        );
    }

    #[test]
    fn what_the_providers_count_must_add_up() {
        let more = |providers: &mut BTreeMap<String, Counts>| {
            if let Some(stt) = providers.get_mut("deepgram_stt") {
                stt.completed += 1;
                stt.blocks_read = 1_001;
            }
        };
        assert_eq!(
            broken(|_, providers| more(providers)),
            ["provider_requests", "provider_blocks"]
        );
    }

    #[test]
    fn audio_that_did_not_arrive_whole_is_a_metric() {
        let (_, mut providers) = honest();
        assert!(blocks(&providers).values().all(|value| *value == 0.0));
        if let Some(stt) = providers.get_mut("deepgram_stt") {
            stt.blocks_lost = 3;
        }
        assert_eq!(blocks(&providers)["blocks_lost"], 3.0);
    }

    #[test]
    fn the_pages_have_the_caveats_of_rest_clients() {
        let kinds = |due| {
            let claims = vec![crate::rest::Claim::RIGHT; due];
            RequestRecord::all_of(claims.iter())
        };
        let few = few_requests(&kinds(199)).expect("a caveat");
        assert!(few.text.contains("199 GET /"), "{}", few.text);
        assert_eq!(few_requests(&kinds(200)), None);
        let page = include_str!("../../../docs/reference/caveats.md");
        for caveat in [few, no_conversation()] {
            assert!(!caveat.blocking);
            assert!(page.contains(&format!("\n### `{}`\n", caveat.id)));
        }
    }

    /// A gateway that forges marks asks nobody.
    #[test]
    fn no_provider_at_all_is_no_agreement() {
        assert_eq!(
            broken(|_, providers| providers.clear()),
            [
                "provider_finals",
                "provider_speaks",
                "provider_audio_bytes",
                "provider_time_ns"
            ]
        );
    }
}
