//! What a find rests on: caveats, checks of the measurement, one row per load, the machine, the command.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Bracket, GateResult, Trial, Verdict};

use super::{Page, Table, code, escape};
use crate::facts;
use crate::folder::StoredTrial;
use crate::loads::Load;
use crate::words::{self, count, maybe, ms, number, percent, range, us};

/// Whether the answer can be believed: caveats with their remedies, and what was checked.
pub(super) fn belief(page: &mut Page, bracket: &Bracket, trials: &[&StoredTrial]) {
    page.heading(2, "Can it be believed?");
    let caveats = caveats(trials);
    if caveats.is_empty() {
        let trials = match trials.len() {
            1 => "the trial".to_owned(),
            many => format!("any of the {many} trials"),
        };
        page.paragraph(&format!(
            "Nothing speaks against it: no caveat in {trials}."
        ));
    } else {
        page.paragraph("What speaks against it, with the remedy:");
        page.list(&caveats);
    }
    if bracket.lower_bound_only {
        page.paragraph(&format!(
            "The answer is a lower bound: {}, so the target may carry more.",
            words::lower_bound_because(bracket)
        ));
    }
    let mut checked = Vec::new();
    checked.extend(client_room(trials));
    checked.extend(audit(trials));
    checked.extend(both_clocks(bracket, trials));
    checked.extend(sanity(trials));
    checked.extend(trials.iter().filter_map(|stored| {
        words::ledger_gap(&stored.trial).map(|gap| format!("**{}: {gap}.**", stored.stem))
    }));
    if !checked.is_empty() {
        page.paragraph("What was checked:");
        page.list(&checked);
    }
}

/// Every caveat once: where it was raised, and its text at the highest of these loads.
pub(crate) fn caveats(trials: &[&StoredTrial]) -> Vec<String> {
    struct Found<'a> {
        blocking: bool,
        times: usize,
        highest: u32,
        text: &'a str,
    }
    let mut found: BTreeMap<&str, Found<'_>> = BTreeMap::new();
    for stored in trials {
        for caveat in &stored.trial.caveats {
            let entry = found.entry(&caveat.id).or_insert(Found {
                blocking: false,
                times: 0,
                highest: 0,
                text: &caveat.text,
            });
            entry.times += 1;
            entry.blocking |= caveat.blocking;
            if stored.trial.sessions >= entry.highest {
                entry.highest = stored.trial.sessions;
                entry.text = &caveat.text;
            }
        }
    }
    found
        .into_iter()
        .map(|(id, found)| {
            let blocking = if found.blocking {
                "blocking: those trials are invalid; "
            } else {
                ""
            };
            format!(
                "**{}** ({blocking}{} of {} trials, the highest at {}): {}",
                escape(id),
                found.times,
                trials.len(),
                words::sessions(found.highest),
                escape(found.text)
            )
        })
        .collect()
}

/// How much room the client had left in the trials that count.
fn client_room(trials: &[&StoredTrial]) -> Option<String> {
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

/// How many answers were recomputed.
fn audit(trials: &[&StoredTrial]) -> Option<String> {
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

/// Accounts that were kept twice.
fn sanity(trials: &[&StoredTrial]) -> Option<String> {
    let checks = || trials.iter().flat_map(|stored| &stored.trial.sanity);
    let total = checks().count();
    let broken: Vec<_> = trials
        .iter()
        .flat_map(|stored| {
            let broken = disagreeing(&stored.trial);
            broken.map(|what| format!("{} {what}", stored.stem))
        })
        .collect();
    let names: BTreeSet<_> = checks().map(|check| check.name.as_str()).collect();
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("`{}`", code(name)))
        .collect();
    let outcome = if broken.is_empty() {
        "all agree".to_owned()
    } else {
        format!("**some do not agree**: {}", broken.join("; "))
    };
    (total > 0).then(|| {
        format!(
            "Accounts that were kept twice ({}): {} comparisons, {outcome}.",
            names.join(", "),
            count(total as u64)
        )
    })
}

/// The accounts of a trial that do not agree, each with its numbers.
pub(crate) fn disagreeing(trial: &Trial) -> impl Iterator<Item = String> {
    facts::disagreeing(trial).map(|check| {
        let name = code(&check.name);
        format!("**`{name}` does not agree**: {}", facts::sanity(check))
    })
}

/// The two clocks side by side in the trials at the load line: their distance is the client's own lateness and the target's back-pressure.
fn both_clocks(bracket: &Bracket, trials: &[&StoredTrial]) -> Option<String> {
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
            words::sessions(load),
            pairs.join("; ")
        )
    })
}

/// What the verdicts mean: every gate with its threshold.
pub(super) fn gates(page: &mut Page, trial: &Trial) {
    let gate = |gate: &GateResult| format!("`{}` ≤ {}", code(&gate.name), number(gate.threshold));
    let gates: Vec<_> = trial.gates.iter().map(gate).collect();
    page.paragraph(&format!(
        "A trial passes when every gate holds: {}.",
        gates.join(", ")
    ));
}

/// One row per load.
pub(super) fn table(page: &mut Page, loads: &[Load]) {
    let mut table = Table::new(&[
        ">sessions",
        "verdict",
        ">newest p50",
        ">newest p95",
        ">oldest p50",
        ">oldest p95",
        ">CPU per session-second",
        ">target CPU",
        ">client CPU",
        ">send lag p99.9",
        "what spoke against it",
    ]);
    for load in loads {
        let against: Vec<_> = load.what_failed().iter().map(|name| escape(name)).collect();
        table.row([
            count(u64::from(load.sessions)),
            load.verdicts(),
            range(load.range(|t| t.newest_p50_ms), ms),
            range(load.range(|t| t.newest_p95_ms), ms),
            range(load.range(|t| t.oldest_p50_ms), ms),
            range(load.range(|t| t.oldest_p95_ms), ms),
            range(load.range(|t| t.cpu_us_per_session_second), us),
            range(load.range(|t| t.target_cpu_share), percent),
            range(load.range(|t| Some(t.client_cpu_share)), percent),
            range(load.range(|t| t.send_lag_p999_us), us),
            against.join(", "),
        ]);
    }
    page.table(&table);
}

/// The machine, the placement, the versions.
pub(super) fn environment(page: &mut Page, trial: &Trial) {
    let environment = &trial.environment;
    let mut table = Table::new(&["what", "value"]);
    let mut row = |name: &str, value: &str| table.row([&escape(name), &escape(value)]);
    for (name, value) in &environment.machine {
        row(name, value);
    }
    row("client cores", &cores(&environment.client_cpus));
    row("target cores", &cores(&environment.target_cpus));
    row("isolation of the target", &environment.isolation);
    let vcpu = words::maybe(trial.vcpu, number);
    row("vCPU of the target", &vcpu);
    row("target tier", &trial.target.tier);
    for (name, version) in &trial.target.versions {
        row(&format!("target: {name}"), version);
    }
    row("plimsoll", &environment.plimsoll_version);
    row(
        "engine",
        &format!(
            "{}, tick {} µs",
            environment.engine_backend, environment.engine_tick_us
        ),
    );
    let nodelay = if environment.nodelay { "yes" } else { "no" };
    row("TCP_NODELAY at the client", nodelay);
    page.table(&table);
}

fn cores(cores: &[usize]) -> String {
    let cores: Vec<_> = cores.iter().map(usize::to_string).collect();
    match cores.len() {
        0 => "not placed".to_owned(),
        _ => cores.join(","),
    }
}

/// The trial that shows the conditions of a search: one that ran the whole profile, where there is one.
pub(super) fn exemplar<'a>(trials: &[&'a StoredTrial]) -> Option<&'a Trial> {
    let whole = trials.iter().find(|s| s.trial.length == Length::Full);
    whole.or(trials.first()).map(|stored| &stored.trial)
}

/// The command that measures the same again, and what it needs beside itself.
pub(super) fn repeat(page: &mut Page, trial: &Trial, verb: &str, sessions: Option<u32>, seed: u64) {
    let mut words = vec!["plimsoll".to_owned(), verb.to_owned()];
    if trial.target.tier == "url" {
        words.push("--url".to_owned());
    }
    words.push(quoted(&trial.target.name));
    let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), quoted(&value)]);
    if let Some(sessions) = sessions {
        flag("sessions", sessions.to_string());
    }
    flag("workload", trial.workload.clone());
    let named = plimsoll_core::profile::Profile::by_name(&trial.profile);
    if named.is_some() {
        flag("profile", trial.profile.clone());
    }
    if let Some(vcpu) = trial.vcpu {
        flag("vcpu", vcpu.to_string());
    }
    for (name, cpus) in [
        ("target-cpus", &trial.environment.target_cpus),
        ("client-cpus", &trial.environment.client_cpus),
    ] {
        if !cpus.is_empty() {
            flag(name, cores(cpus));
        }
    }
    flag("seed", seed.to_string());
    page.code_block(&words.join(" "));
    let phases = &trial.phases;
    let as_named = named.map(|profile| profile.of_length(trial.length));
    if as_named.as_ref() != Some(phases) {
        page.paragraph(&format!(
            "with the profile changed by hand: ramp {} s, warm-up {} s, measured {} s, grace {} s, start spread {} ms.",
            number(phases.ramp_s),
            number(phases.warm_up_s),
            number(phases.measured_s),
            number(phases.grace_s),
            number(phases.session_start_spread_ms)
        ));
    }
    if trial.slo != trial.workload {
        let gates: Vec<_> = trial
            .gates
            .iter()
            .map(|gate| format!("`{} = {}`", code(&gate.name), gate.threshold))
            .collect();
        page.paragraph(&format!(
            "with `--slo` and a file that has under `[gates]`: {}.",
            gates.join(", ")
        ));
    }
}

/// A word as a shell takes it: in single quotes unless it is plain.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,".contains(c);
    let word = words::plain(word);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_sees_one_word() {
        assert_eq!(quoted("ws://host:3000/ws/stt"), "ws://host:3000/ws/stt");
        assert_eq!(quoted("ws://h/x?a=1&b=2"), "'ws://h/x?a=1&b=2'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
