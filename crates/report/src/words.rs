//! Results in words and numbers, so that every renderer says the same.

pub mod comparison;
mod escalation;
pub mod ranking;
mod unit;

use plimsoll_core::latency::{Latency, Quantiles};
use plimsoll_core::record::{
    Baseline, Bracket, GateResult, LoadEvidence, LoadUnit, MemoryAt, TargetResources, Trial,
    Verdict,
};
use plimsoll_document::Tellers;

use crate::folder::StoredTrial;
use crate::loads::Range;

pub use escalation::{collapse, knee};
pub use plimsoll_document::words::{
    UNKNOWN, bytes, bytes_finely, capital, count, counted, length, maybe, ms, ms_digits,
    near_whole, number, observed, percent, plain, target, us, whole_bytes, with_variant,
};
pub use unit::{
    carried, carries, cpu_cost, cpu_cost_by, cpu_cost_in_brief, holder, load, load_axis, load_of,
    per_one_and_second, per_second_and_one, rss_per_one, what_costs,
};

/// The two accounts of a target's CPU are both shown where they differ by more than this share.
const ACCOUNTS_DIFFER: f64 = 0.1;

/// What trials were compared with, and where it is: `unloaded run, 1 session (baseline/trial-001.json)`; or why with nothing.
#[must_use]
pub fn baseline(baseline: &Baseline, unit: LoadUnit) -> String {
    let Baseline {
        what,
        sessions,
        file,
        not_used,
    } = baseline;
    let which = format!("{what}, {} ({file})", load(*sessions, unit));
    match not_used {
        None => which,
        Some(why) => format!("nothing: {why}; it was the {which}"),
    }
}

/// What the core account has beyond the charged one, where that is more than a tenth of it.
#[must_use]
pub fn beyond_charged(resources: &TargetResources) -> Option<String> {
    let beyond = resources.beyond_charged()?;
    let writes_us = beyond.kernel_writes_us;
    let sum_us = beyond.others_us + writes_us + beyond.packets_and_wake_ups_us;
    let writes = if writes_us > 0.0 {
        format!("{} for what the kernel wrote to disk, ", us(writes_us))
    } else {
        String::new()
    };
    let differ = sum_us > ACCOUNTS_DIFFER * resources.cpu_us_per_session_second?;
    differ.then(|| {
        format!(
            "{} more for packets and wake-ups, {writes}{} for other programs",
            us(beyond.packets_and_wake_ups_us),
            us(beyond.others_us)
        )
    })
}

/// What a share of CPU time refers to: `1 vCPU`, or `one core` where no CPU was set aside for the target.
#[must_use]
pub fn given(vcpu: Option<f64>) -> String {
    vcpu.map_or_else(
        || "one core".to_owned(),
        |vcpu| format!("{} vCPU", number(vcpu)),
    )
}

/// The latency series with their names, in display order. Those of the confirmation only if there is one.
#[must_use]
pub fn latency_rows(latency: &Latency) -> Vec<(&'static str, &Quantiles)> {
    let Latency {
        newest,
        oldest,
        confirm,
        ..
    } = latency;
    let mut rows = vec![
        ("newest, from the schedule", &newest.from_schedule),
        ("newest, from the write", &newest.from_write),
        ("oldest, from the schedule", &oldest.from_schedule),
        ("oldest, from the write", &oldest.from_write),
    ];
    if let Some(confirm) = confirm {
        rows.push(("confirm, from the schedule", &confirm.from_schedule));
        rows.push(("confirm, from the write", &confirm.from_write));
    }
    rows
}

/// One value, or `low–high` where the trials of a load differ.
#[must_use]
pub fn range(range: Option<Range>, format: impl Fn(f64) -> String) -> String {
    let Some(Range { low, high }) = range else {
        return UNKNOWN.to_owned();
    };
    let (low, high) = (format(low), format(high));
    if low == high {
        return low;
    }
    // One unit is enough where both are the same.
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((digits, unit)), Some((_, other))) if unit == other => format!("{digits}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// `1 session`, `1,650 sessions`.
#[must_use]
pub fn sessions(sessions: u32) -> String {
    load(sessions, LoadUnit::SESSIONS)
}

/// ` on 1 vCPU`, or nothing where it is unknown.
#[must_use]
pub fn on_vcpu(vcpu: Option<f64>) -> String {
    vcpu.map_or_else(String::new, |vcpu| format!(" on {} vCPU", number(vcpu)))
}

/// The answer of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The load line in words.
    pub claim: String,
    /// What bounds it.
    pub bounds: String,
}

/// The load line in words, and what bounds it.
#[must_use]
pub fn headline(bracket: &Bracket, trials: &[StoredTrial]) -> Headline {
    let target = target(&bracket.target);
    let claim = match (bracket.confirmed, bracket.first_fail) {
        (Some(confirmed), _) => {
            let at_least = if bracket.lower_bound_only {
                "at least "
            } else {
                ""
            };
            let vcpu = on_vcpu(bracket.vcpu);
            let unit = bracket.load_unit;
            let line = load(confirmed, unit);
            format!("{target} {} {at_least}{line}{vcpu}", carries(unit))
        }
        (None, _) => format!("{target}: {}", without_a_line(bracket)),
    };
    let mut bounds = Vec::new();
    match bracket.first_fail {
        Some(_) => bounds.push(first_fail(bracket, trials)),
        None if bracket.confirmed.is_some() && !bracket.lower_bound_only => {
            bounds.push("no load failed".to_owned());
        }
        None => {}
    }
    if bracket.lower_bound_only {
        bounds.push(lower_bound_because(bracket).to_owned());
    }
    if bracket.interrupted {
        bounds.push("the search was interrupted".to_owned());
    }
    Headline {
        claim,
        bounds: bounds.join("; "),
    }
}

/// What there is to say of a search without a load line.
#[must_use]
pub fn without_a_line(bracket: &Bracket) -> &'static str {
    let any = |passed: fn(&LoadEvidence) -> u32| bracket.evidence.iter().any(|of| passed(of) > 0);
    if bracket.first_fail.is_none() {
        "no load could be judged"
    } else if any(|of| of.passed) {
        "no load surely passed"
    } else if any(|of| of.short_passed) {
        "no full trial passed"
    } else {
        "no load passed"
    }
}

/// Why the answer is "at least". Where nothing failed, the search names a bottleneck only when the client ran out.
#[must_use]
pub fn lower_bound_because(bracket: &Bracket) -> &'static str {
    if bracket.bottleneck.is_some() {
        "the client or the machine ran out before the target did"
    } else {
        "the search ended before any load failed"
    }
}

/// The trials that belong to this search. A folder can hold others.
pub fn of_search<'a>(
    bracket: &'a Bracket,
    trials: &'a [StoredTrial],
) -> impl Iterator<Item = &'a StoredTrial> {
    let of_search = |stored: &&StoredTrial| is_of_search(bracket, stored);
    trials.iter().filter(of_search)
}

/// Whether a trial belongs to this search.
#[must_use]
pub fn is_of_search(bracket: &Bracket, stored: &StoredTrial) -> bool {
    let mut files = bracket.trials.iter().map(|trial| &trial.file);
    files.any(|file| file.trim_end_matches(".json") == stored.stem)
}

/// The lowest load that failed, and by how much its worst trial did.
fn first_fail(bracket: &Bracket, trials: &[StoredTrial]) -> String {
    let Some(load) = bracket.first_fail else {
        return String::new();
    };
    let first = format!("first fail {}", count(u64::from(load)));
    let Some(name) = &bracket.failing_gate else {
        return first;
    };
    let failed = of_search(bracket, trials)
        .filter(|stored| stored.trial.sessions == load)
        .flat_map(|stored| &stored.trial.gates)
        .filter(|gate| gate.name == *name && !gate.pass);
    // A gate that was never observed is worse than any number.
    let badness = |gate: &GateResult| gate.observed.unwrap_or(f64::INFINITY);
    match failed.max_by(|a, b| badness(a).total_cmp(&badness(b))) {
        Some(gate) => format!("{first}: {}", against(gate)),
        None => format!("{first}: {}", plain(name)),
    }
}

/// A gate and the observed value: `oldest_p95_ms 1,702 against at most 1,650`.
#[must_use]
pub fn against(gate: &GateResult) -> String {
    let threshold = number(gate.threshold);
    format!(
        "{} {} against at most {threshold}",
        plain(&gate.name),
        observed(gate)
    )
}

/// Memory at a moment: `RSS 12 MiB, PSS 11 MiB`.
#[must_use]
pub fn memory(at: MemoryAt) -> String {
    let pss = at.pss_bytes.map_or_else(|| UNKNOWN.to_owned(), whole_bytes);
    format!("RSS {}, PSS {pss}", whole_bytes(at.rss_bytes))
}

/// The outcome of a trial in words, without its verdict.
#[must_use]
pub fn outcome(trial: &Trial, tellers: Tellers) -> String {
    let target = target(&trial.target);
    let load = format!("{}{}", load_of(trial, tellers), on_vcpu(trial.vcpu));
    let carried = |did| carried(trial.load_unit, did);
    match trial.verdict {
        Verdict::Pass => format!(
            "{target} {} {load}: all {} gates of the SLO {} held",
            carried(true),
            trial.gates.len(),
            plain(&trial.slo)
        ),
        Verdict::Fail => {
            let failed: Vec<_> = trial
                .gates
                .iter()
                .filter(|g| !g.pass)
                .map(against)
                .collect();
            let failed = failed.join("; ");
            format!("{target} {} {load}: {failed}", carried(false))
        }
        Verdict::Invalid => {
            let names = plain(&trial.blocking_names());
            format!(
                "no statement about {target} at {load}: the measurement itself is in doubt ({names})"
            )
        }
    }
}

/// Whether every due frame is accounted for, as the ledger requires. Returns the sentence to show when it is not.
#[must_use]
pub fn ledger_gap(trial: &Trial, tellers: Tellers) -> Option<String> {
    let ledger = &trial.ledger;
    let named = ledger.frames_answered + ledger.frames_errored + ledger.frames_lost;
    (!ledger.is_whole()).then(|| {
        format!(
            "the ledger does not add up: {} {} due, {} answered, errored or lost; do not trust this trial",
            count(ledger.frames_due),
            tellers.of(&trial.workload).nouns(trial).frames,
            count(named)
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use plimsoll_core::record::TrialSummary;

    use super::*;

    pub(crate) fn summary(sessions: u32) -> TrialSummary {
        TrialSummary {
            sessions,
            ..serde_json::from_value(serde_json::json!({
                "file": "trial-001.json", "sessions": 0, "verdict": "pass", "failed_gates": [], "caveats": [],
                "client_cpu_share": 0.4
            }))
            .unwrap()
        }
    }

    #[test]
    fn a_range_names_its_unit_once() {
        assert_eq!(sessions(1), "1 session");
        let of = |low, high| range(Some(Range { low, high }), ms);
        assert_eq!(of(1402.0, 1455.0), "1,402–1,455 ms");
        assert_eq!(of(1402.0, 1402.1), "1,402 ms");
        assert_eq!(
            range(
                Some(Range {
                    low: 900.0,
                    high: 1200.0
                }),
                us
            ),
            "900 µs–1.2 ms"
        );
        assert_eq!(range(None, ms), UNKNOWN);
    }
}
