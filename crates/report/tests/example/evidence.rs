//! Results with everything that a trial and a search can show besides the verdict.

use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::record::{
    Bracket, CostPoint, Drift, Edge, GateResult, LoadClass, LoadEvidence, ProcessResources,
    SanityCheck, SloVerdict, Slope, SocketResources, Trial, TrialSummary, Verdict,
};

use super::{bracket, latency, trial};

/// A soak that leaks, with every reading of target, client and simulator, judged by two SLOs.
pub(crate) fn soak() -> Trial {
    let mut soak = trial(800, latency((96.0, 188.0), (1_020.0, 1_390.0)), &[]);
    soak.profile = "soak".to_owned();
    soak.phases = Profile::soak();
    soak.bottleneck = Some("memory: RSS rose by 1.1 GiB per hour".to_owned());
    soak.gates.push(GateResult {
        name: "rss_growth_bytes_per_session_hour".to_owned(),
        threshold: 65_536.0,
        observed: Some(1_476_395.0),
        pass: false,
    });
    soak.verdict = Verdict::of(&soak.gates, &soak.caveats);
    soak.sanity = sanity();
    soak.drift = Some(drift());
    soak.client.achieved_share = Some(0.999_991);
    soak.client.run_queue_wait_share = Some(0.004);
    soak.client.resources = Some(process(1.31));
    let target = soak.target_resources.as_mut().unwrap();
    target.cpus_busy = Some(0.48);
    target.voluntary_switches_per_s = Some(5_210.0);
    target.involuntary_switches_per_s = Some(31.0);
    target.fds_peak = Some(823);
    target.threads_peak = Some(5);
    target.memory_limit_bytes = Some(2 << 30);
    target.memory_pressure_events = Some(0);
    target.sockets = Some(SocketResources {
        connections_peak: 800,
        retransmits: Some(3),
        receive_queue_peak_bytes: 9_216,
        receive_queue_mean_bytes: 41.5,
        send_queue_peak_bytes: 0,
        send_queue_mean_bytes: 0.0,
        accept_queue_peak: Some(12),
    });
    if let Some(inference) = &mut soak.companion {
        inference.resources = Some(process(0.22));
    }
    let gates = vec![GateResult {
        name: "newest_p95_ms".to_owned(),
        threshold: 150.0,
        observed: Some(188.0),
        pass: false,
    }];
    soak.further_slos = vec![SloVerdict {
        slo: "strict|er".to_owned(),
        verdict: Verdict::Fail,
        gates,
        caveats: Vec::new(),
    }];
    soak
}

fn sanity() -> Vec<SanityCheck> {
    vec![
        SanityCheck::of("littles_law", 776.0, 824.0, 801.2),
        SanityCheck::of("metrics_frames", 399_000.0, 401_000.0, 400_000.0),
        SanityCheck::of("kernel_bytes_sent", 5.1e8, 5.3e8, 4.9e8),
    ]
}

fn drift() -> Drift {
    let slope = |value: f64, half: f64| {
        Some(Slope {
            value,
            low: value - half,
            high: value + half,
            confidence: 0.95,
        })
    };
    Drift {
        newest_p95_ms_per_hour: slope(1.8, 4.1),
        rss_bytes_per_hour: slope(1.181e9, 2.1e7),
        rss_bytes_per_session_hour: slope(1_476_395.0, 26_214.0),
        cpu_cores_per_hour: slope(-0.002, 0.004),
    }
}

fn process(cpus_busy: f64) -> ProcessResources {
    ProcessResources {
        cpu_user_us: 900_000_000,
        cpu_system_us: 1_400_000_000,
        cpus_busy,
        rss_peak_bytes: 48_000_000,
        run_queue_wait_share: Some(0.01),
        voluntary_switches_per_s: Some(2_000.0),
        involuntary_switches_per_s: Some(4.5),
        fds_peak: Some(830),
        threads_peak: Some(4),
    }
}

/// A search with short trials, an invalid one, an edge with its interval and a cost curve, judged by two SLOs.
pub(crate) struct TwoSlos {
    pub(crate) trials: Vec<Trial>,
    pub(crate) relaxed: Bracket,
    pub(crate) strict: Bracket,
}

pub(crate) fn two_slos() -> TwoSlos {
    let lag = Doubt::SendLag {
        p999_us: 12_400.0,
        limit_us: 10_000.0,
        others: Vec::new(),
    };
    let at = |sessions: u32, length: Length, doubts: &[Doubt]| {
        let n = f64::from(sessions);
        let newest = (90.0 + n * 0.01, 140.0 + n * 0.05);
        let oldest = (600.0 + n * 0.02, 1_150.0 + n * 0.5);
        let mut trial = trial(sessions, latency(newest, oldest), doubts);
        trial.length = length;
        trial.phases = Profile::quick().of_length(length);
        trial.slo = "relaxed".to_owned();
        judge_strictly(&mut trial);
        trial
    };
    let (short, full) = (Length::Short, Length::Full);
    let trials = vec![
        at(250, short, &[]),
        at(500, short, &[]),
        at(1_000, short, &[]),
        at(2_000, short, &[]),
        at(980, full, &[]),
        at(980, full, &[lag]),
        at(980, full, &[]),
        at(1_020, full, &[]),
        at(1_020, full, &[]),
    ];
    let relaxed = relaxed(&trials);
    let strict = strict(&relaxed);
    TwoSlos {
        trials,
        relaxed,
        strict,
    }
}

/// The same trial by an SLO with one gate.
fn judge_strictly(trial: &mut Trial) {
    let observed = trial.latency.newest.from_schedule.p95_ms;
    let gates = vec![GateResult {
        name: "newest_p95_ms".to_owned(),
        threshold: 160.0,
        observed,
        pass: observed.is_some_and(|ms| ms <= 160.0),
    }];
    let caveats: Vec<Caveat> = trial.caveats.clone();
    trial.further_slos = vec![SloVerdict {
        slo: "strict".to_owned(),
        verdict: Verdict::of(&gates, &caveats),
        gates,
        caveats,
    }];
}

fn relaxed(trials: &[Trial]) -> Bracket {
    let load = |sessions, counts: [u32; 5], class| {
        let [passed, failed, short_passed, short_failed, invalid] = counts;
        LoadEvidence {
            sessions,
            passed,
            failed,
            short_passed,
            short_failed,
            invalid,
            class,
        }
    };
    Bracket {
        slo: "relaxed".to_owned(),
        confirmed: Some(980),
        first_fail: Some(1_020),
        failing_gate: Some("oldest_p95_ms".to_owned()),
        bottleneck: Some("cpu: the target used 99 % of what it was given".to_owned()),
        sessions_per_vcpu: Some(980.0),
        conclusion: "980 passes and 1020 fails, and the edge is known to 5 %.".to_owned(),
        edge: Some(Edge {
            value: 1_001.3,
            low: 978.0,
            high: Some(1_019.6),
            confidence: 0.95,
        }),
        evidence: vec![
            load(250, [0, 0, 1, 0, 0], LoadClass::Passing),
            load(500, [0, 0, 1, 0, 0], LoadClass::Passing),
            load(980, [2, 0, 0, 0, 1], LoadClass::Passing),
            load(1_000, [0, 0, 1, 0, 0], LoadClass::Undecided),
            load(1_020, [0, 2, 0, 0, 0], LoadClass::Failing),
            load(2_000, [0, 0, 0, 1, 0], LoadClass::Failing),
        ],
        cost_curve: [(250, 612.0), (500, 601.0), (980, 598.0), (1_020, 604.0)]
            .map(|(sessions, cost)| CostPoint {
                sessions,
                cpu_us_per_session_second: cost,
                core_us_per_session_second: None,
                low: cost - 9.0,
                high: cost + 14.0,
                trials: 2,
                rss_bytes_per_session: Some(48_200.0),
            })
            .to_vec(),
        ..bracket(trials)
    }
}

/// By the further SLO, a short trial at 250 passes and one at 500 does not.
fn strict(relaxed: &Bracket) -> Bracket {
    let mut strict = relaxed.clone();
    strict.slo = "strict".to_owned();
    strict.confirmed = Some(250);
    strict.first_fail = Some(500);
    strict.failing_gate = Some("newest_p95_ms".to_owned());
    strict.sessions_per_vcpu = Some(250.0);
    strict.conclusion = "the time budget is used up".to_owned();
    strict.edge = Some(Edge {
        value: 390.0,
        low: 251.0,
        high: Some(498.4),
        confidence: 0.95,
    });
    strict.evidence.clear();
    let by_strict = |summary: &mut TrialSummary| {
        let fails = summary.newest_p95_ms.is_some_and(|ms| ms > 160.0);
        if summary.verdict != Verdict::Invalid {
            summary.verdict = if fails { Verdict::Fail } else { Verdict::Pass };
            summary.failed_gates = vec!["newest_p95_ms".to_owned()];
        }
    };
    strict.trials.iter_mut().for_each(by_strict);
    strict
}
