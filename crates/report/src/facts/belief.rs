//! Whether you can believe a search: what casts doubt on it, and what was checked.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::record::{Bracket, LoadUnit, Verdict};

use crate::folder::StoredTrial;
use crate::words::{self, count, maybe, ms, percent, us};

/// A caveat raised in several trials, listed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedCaveat<'a> {
    /// The stable name of the caveat.
    pub id: &'a str,
    /// Whether it makes the trials `invalid` in which it was raised.
    pub blocking: bool,
    /// The number of trials in which it was raised.
    pub times: usize,
    /// The number of all trials.
    pub of: usize,
    /// The highest load at which it was raised.
    pub highest: u32,
    /// What the loads count.
    pub unit: LoadUnit,
    /// What was seen at that load, and what to do about it.
    pub text: &'a str,
}

impl RaisedCaveat<'_> {
    /// Where it was raised, in words: `blocking: those trials are invalid; 3 of 13 trials, the highest at 6,000
    /// sessions`.
    #[must_use]
    pub fn raised(&self) -> String {
        let blocking = if self.blocking {
            "blocking: those trials are invalid; "
        } else {
            ""
        };
        format!(
            "{blocking}{} of {} trials, the highest at {}",
            self.times,
            self.of,
            words::load(self.highest, self.unit)
        )
    }
}

/// Every caveat once, sorted by name: where it was raised, and its text at the highest of these loads.
#[must_use]
pub fn caveats<'a>(trials: &[&'a StoredTrial]) -> Vec<RaisedCaveat<'a>> {
    let mut found: BTreeMap<&str, RaisedCaveat<'a>> = BTreeMap::new();
    for stored in trials {
        let sessions = stored.trial.sessions;
        for caveat in &stored.trial.caveats {
            let entry = found.entry(&caveat.id).or_insert(RaisedCaveat {
                id: &caveat.id,
                blocking: false,
                times: 0,
                of: trials.len(),
                highest: 0,
                unit: stored.trial.load_unit,
                text: &caveat.text,
            });
            entry.times += 1;
            entry.blocking |= caveat.blocking;
            if sessions >= entry.highest {
                entry.highest = sessions;
                entry.text = &caveat.text;
            }
        }
    }
    found.into_values().collect()
}

/// The sentence for results without a caveat.
#[must_use]
pub fn no_caveat(trials: usize) -> String {
    let trials = match trials {
        1 => "the trial".to_owned(),
        many => format!("any of the {many} trials"),
    };
    format!("No caveat in {trials}: nothing casts doubt on the result.")
}

/// Why the answer is "at least", in a sentence; `None` when the load line is not just a lower bound.
#[must_use]
pub fn lower_bound(bracket: &Bracket) -> Option<String> {
    bracket.lower_bound_only.then(|| {
        format!(
            "The answer is a lower bound: {}, so the target may carry more.",
            words::lower_bound_because(bracket)
        )
    })
}

/// How much room the client had left in the trials that count.
#[must_use]
pub fn client_room(trials: &[&StoredTrial]) -> Option<String> {
    let counting = || {
        trials
            .iter()
            .filter(|s| s.trial.verdict != Verdict::Invalid)
    };
    let busiest = counting()
        .map(|s| s.trial.client.cpu_share)
        .reduce(f64::max)?;
    let lag = counting()
        .filter_map(|s| s.trial.client.send_lag.p999_us)
        .reduce(f64::max);
    Some(format!(
        "Client: in the trials that count, its busiest engine thread used at most {} of its core, and its send lag p99.9 was at most {}.",
        percent(busiest),
        maybe(lag, us)
    ))
}

/// How many answers the audit recomputed.
#[must_use]
pub fn audit(trials: &[&StoredTrial]) -> Option<String> {
    let checked: u64 = trials.iter().map(|s| s.trial.ledger.content_checked).sum();
    let wrong: u64 = trials.iter().map(|s| s.trial.ledger.content_wrong).sum();
    (checked > 0).then(|| {
        format!(
            "Content: {} answers were recomputed, {} of them were wrong.",
            count(checked),
            count(wrong)
        )
    })
}

/// The latencies from both starting points in the trials at the load line. Their difference is the client's own
/// lateness and the target's back-pressure.
#[must_use]
pub fn both_clocks(bracket: &Bracket, trials: &[&StoredTrial]) -> Option<String> {
    let load = bracket.confirmed?;
    let at_line = trials.iter().filter(|s| s.trial.sessions == load);
    let pairs: Vec<_> = at_line
        .filter_map(|stored| {
            let oldest = &stored.trial.latency.oldest;
            let (schedule, write) = (oldest.from_schedule.p95_ms?, oldest.from_write.p95_ms?);
            Some(format!("{} and {}", ms(schedule), ms(write)))
        })
        .collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "Oldest p95 at {} from the schedule and from the write: {}.",
            words::load(load, bracket.load_unit),
            pairs.join("; ")
        )
    })
}

/// Accounts kept twice, over several trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounts<'a> {
    /// The name of each account, once.
    pub names: BTreeSet<&'a str>,
    /// How many comparisons were made.
    pub compared: u64,
}

/// The accounts kept twice; `None` when there are none.
#[must_use]
pub fn accounts<'a>(trials: &[&'a StoredTrial]) -> Option<Accounts<'a>> {
    let checks = || trials.iter().flat_map(|stored| &stored.trial.sanity);
    let compared = checks().count() as u64;
    (compared > 0).then(|| Accounts {
        names: checks().map(|check| check.name.as_str()).collect(),
        compared,
    })
}
