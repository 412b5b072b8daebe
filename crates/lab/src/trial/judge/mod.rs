//! Turns what was measured into a record with its verdict.
//!
//! - `resources`: what client, target and companion used;
//! - `drift`: how the target changed over the window, and the gates of a soak;
//! - `evidence`: what the trial shows about its own soundness;
//! - `bounds`: what the machine ran out of.

mod bounds;
mod drift;
mod evidence;
mod resources;

use plimsoll_core::bottleneck::bottleneck;
use plimsoll_core::caveat::{Caveat, Limits, doubts};
use plimsoll_core::latency::Latency;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::Length;
use plimsoll_core::record::{
    Environment, GateResult, SCHEMA_VERSION, Second, SloVerdict, Trial, Verdict,
};
use plimsoll_core::secret::Secrets;
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::How;
use plimsoll_workload::{Outcome, Seen};

use super::conditions::Conditions;
use super::stage::Staged;
use super::{FinishedTrial, Measured};
use evidence::Used;
pub(crate) use resources::process as process_resources;

pub(super) fn judge(
    conditions: &Conditions,
    stage: &Staged,
    load: u32,
    length: Length,
    started_at: String,
    mut measured: Measured,
) -> FinishedTrial {
    let Outcome {
        sections,
        opaque_format,
        caveats,
        checks,
        metrics,
        goodput,
    } = conditions.plan.outcome(&Seen {
        report: &measured.report,
        findings: &measured.findings,
        account: &measured.account,
        companion: &measured.companion_account,
        afterwards: measured.afterwards.as_ref(),
        processed: measured.soundness.processed,
        by_label: &measured.soundness.by_label,
        source_addresses: &stage.source_addresses(conditions),
        window: conditions.profile.window(),
        path: &stage.url.path,
        storage: measured.storage.as_ref(),
        crashed: measured.crashed.as_ref(),
    });
    measured.report.ledger.own.extend(metrics);
    let report = &measured.report;
    let mut latency = report.latency.summary();
    latency.worst_second_p99_ms = Second::worst_p99_ms(&measured.seconds);
    let target_resources = resources::target(conditions, stage, load, &measured);
    let client = resources::client(conditions, load, &measured);
    let companion = resources::companion(conditions, load, &measured);
    let used = Used {
        client: &client,
        target: target_resources.as_ref(),
        companion: companion.as_ref(),
    };
    let showed = Showed {
        measured: &measured,
        used,
        latency: &latency,
        opaque_format,
        caveats,
    };
    let by = |slo: &Slo| verdict(conditions, stage, &showed, slo);
    let primary = by(&conditions.slo);
    let further: Vec<Verdicts> = conditions.further_slos.iter().map(by).collect();
    let mut trial = Trial {
        schema_version: SCHEMA_VERSION,
        verdict: primary.verdict,
        gates: primary.gates,
        caveats: primary.caveats,
        workload: conditions.plan.workload().about().name.to_owned(),
        parameters: conditions.plan.values().recorded(),
        profile: conditions.profile.name.clone(),
        phases: conditions.profile.clone(),
        slo: conditions.slo.name.clone(),
        sessions: load,
        load_unit: conditions.plan.unit(),
        length,
        target: stage.target.clone(),
        start_ms: stage.ready_after().map(|ready| ready.as_secs_f64() * 1e3),
        vcpu: stage.group().map(|_| conditions.placement.vcpu),
        environment: environment(conditions, stage, &measured),
        baseline: conditions.baseline.as_ref().map(|known| known.file.clone()),
        seed: conditions.seed,
        started_at,
        interrupted: report.interrupted,
        ledger: scrubbed(&report.ledger, &stage.secrets),
        latency,
        goodput,
        client,
        target_resources,
        companion,
        bottleneck: None,
        sanity: [measured.soundness.checks.as_slice(), &checks].concat(),
        sections,
        drift: drift::drift(&measured),
        further_slos: further.into_iter().map(Verdicts::record).collect(),
        goals: None,
    };
    trial.bottleneck = bottleneck(&trial, &conditions.companion_terms());
    let closed_loop = conditions.plan.decides_nothing();
    let goals = conditions.goals.as_ref();
    trial.goals = goals.map(|goals| goals.in_trial(&trial, closed_loop.as_deref()));
    FinishedTrial {
        trial,
        seconds: measured.seconds,
    }
}

/// The ledger without secrets. A server chooses the words of its errors, and may repeat what it was sent.
fn scrubbed(ledger: &Ledger, secrets: &Secrets) -> Ledger {
    let mut scrubbed = ledger.clone();
    scrubbed.reasons.clear();
    for (reason, count) in &ledger.reasons {
        let reason = secrets.scrub(reason).into_owned();
        *scrubbed.reasons.entry(reason).or_default() += count;
    }
    scrubbed
}

/// A trial's verdict by one SLO.
struct Verdicts {
    slo: String,
    verdict: Verdict,
    gates: Vec<GateResult>,
    caveats: Vec<Caveat>,
}

impl Verdicts {
    fn record(self) -> SloVerdict {
        SloVerdict {
            slo: self.slo,
            verdict: self.verdict,
            gates: self.gates,
            caveats: self.caveats,
        }
    }
}

/// What a trial showed, before an SLO judges it.
struct Showed<'a> {
    measured: &'a Measured,
    used: Used<'a>,
    latency: &'a Latency,
    /// The format of the messages, if nothing shows that the target decodes it.
    opaque_format: Option<String>,
    /// The workload's own.
    caveats: Vec<Caveat>,
}

fn verdict(conditions: &Conditions, stage: &Staged, showed: &Showed<'_>, slo: &Slo) -> Verdicts {
    let measured = showed.measured;
    let mut gates = slo.judge(&measured.report.ledger, showed.latency);
    gates.extend(drift::gates(conditions, measured, slo));
    gates.extend(measured.outright.iter().map(|outright| outright.gate()));
    let evidence = evidence::evidence(conditions, stage, showed, slo, &gates);
    let found = doubts(&evidence, &Limits::for_verdict(slo.tightest_ms(), &gates));
    let terms = conditions.terms();
    let caveats: Vec<_> = found
        .iter()
        .map(|doubt| Caveat::of(doubt, &terms))
        .chain(showed.caveats.iter().cloned())
        .collect();
    Verdicts {
        slo: slo.name.clone(),
        verdict: Verdict::of(&gates, &caveats),
        gates,
        caveats,
    }
}

fn environment(conditions: &Conditions, stage: &Staged, measured: &Measured) -> Environment {
    let cpus = |list: &[u32]| list.iter().map(|cpu| *cpu as usize).collect();
    let placed = stage.group().is_some();
    let isolation = match stage.group().map(|group| group.means().cpus) {
        Some(How::CgroupV1) => "cgroup v1",
        Some(How::CgroupV2) => "cgroup v2",
        Some(_) => "affinity",
        None => "none",
    };
    Environment {
        machine: conditions.machine.facts(),
        client_cpus: cpus(conditions.placement.client_cpus.as_slice()),
        target_cpus: if placed {
            cpus(conditions.placement.target_cpus.as_slice())
        } else {
            Vec::new()
        },
        isolation: isolation.to_owned(),
        quota_period_ms: stage
            .group()
            .filter(|group| matches!(group.means().quota, How::CgroupV1 | How::CgroupV2))
            .map(|_| float(conditions.quota_period_us) / 1e3),
        plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
        build: conditions.build.clone(),
        engine_backend: measured.report.backend.clone(),
        engine_tick_us: conditions.tick_us,
        nodelay: conditions.nodelay,
        data_file_system: stage.data_file_system().map(|found| found.kind.clone()),
        network: stage.network_record(conditions),
        observer: measured.observed.as_ref().map(|seen| seen.by.clone()),
        // These are known to whoever runs the trial. The second probe is taken when nothing of this trial is left.
        tls: None,
        probes: None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds and bytes of a trial are far below 2^53"
)]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds and counts of a trial, not negative"
)]
pub(super) fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}
