//! What a trial shows besides its ledger and its latencies.

use std::collections::BTreeMap;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::Sections;
use plimsoll_workload::{Outcome, Seen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialect::Kind;
use crate::plan::SttRealPlan;
use crate::tally::Tally;

/// Its name in a record.
pub(crate) const SECTION: &str = "stt_real";

/// With a greater share of wrong words, a recogniser does not know the language, or hears nothing.
const UNFIT_FROM: f64 = 0.8;

/// What a trial's record has of this workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SttRealRecord {
    /// What the server speaks.
    pub(crate) dialect: String,
    /// How many clips there are.
    pub(crate) clips: u64,
    /// What tells these clips from others.
    pub(crate) clips_digest: String,
    /// Audio in one message, in ms.
    pub(crate) frame_ms: u32,
    /// What no gate can decide with this dialect, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) undecided: Vec<String>,
    /// The word error rate of the unloaded server, as a share; `null` if it is not known.
    pub(crate) unloaded_wer: Option<f64>,
    /// All sessions.
    #[serde(flatten)]
    pub(crate) tally: Tally,
}

/// What the trial showed.
pub(crate) fn outcome(plan: &SttRealPlan, seen: &Seen<'_>) -> Outcome {
    // Null where the trial ended before it was settled.
    let Some(tally) = Tally::of_findings(seen.findings) else {
        return Outcome::default();
    };
    let unloaded_wer = plan.unloaded_wer();
    let growth_unknown = tally.lag.samples > 0 && tally.lag_growth_ms_per_s.is_none();
    let caveats = [
        unloaded_wer.filter(|rate| *rate > UNFIT_FROM).map(unfit),
        time_limit(&seen.report.ledger.reasons),
        unloaded_wer.is_none().then(words_unchecked),
        growth_unknown.then(growth),
    ];
    Outcome {
        sections: Sections::of(SECTION, &plan.record(tally)),
        caveats: caveats.into_iter().flatten().collect(),
        ..Outcome::default()
    }
}

fn unfit(rate: f64) -> Caveat {
    Caveat {
        id: "recogniser-unfit".to_owned(),
        blocking: true,
        text: format!(
            "without load, the server gets {:.0} % of the words wrong, so nobody can tell garbage from words; check its model and --language",
            100.0 * rate
        ),
    }
}

/// A server that ends sessions by its own clock says nothing about its speed.
fn time_limit(reasons: &BTreeMap<String, u64>) -> Option<Caveat> {
    let limits =
        [Kind::Idle, Kind::TimeLimit].map(|kind| format!("ended by the server: {}", kind.name()));
    let ended: u64 = limits.iter().filter_map(|reason| reasons.get(reason)).sum();
    (ended > 0).then(|| Caveat {
        id: "server-time-limit".to_owned(),
        blocking: true,
        text: format!(
            "the server ended {ended} sessions because of how long they lasted; raise its limit, or give a shorter --measured"
        ),
    })
}

fn words_unchecked() -> Caveat {
    Caveat {
        id: "words-unchecked".to_owned(),
        blocking: false,
        text: "the word error rate has no gate, because that of the unloaded server is not known; find runs it first, or give --baseline with the record of a run with --sessions 1".to_owned(),
    }
}

fn growth() -> Caveat {
    Caveat {
        id: "lag-growth-unknown".to_owned(),
        blocking: false,
        text: "the window is too short to tell whether lag grew; give --measured 20 or more"
            .to_owned(),
    }
}
