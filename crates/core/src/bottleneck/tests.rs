//! Each rule, on a record that shows only its evidence, and the order of the rules.

use super::*;
use crate::caveat::{Doubt, Terms};
use crate::latency::Latency;
use crate::ledger::Ledger;
use crate::profile::{Length, Profile};
use crate::record::{
    Client, CompanionWindow, Environment, LoadUnit, SCHEMA_VERSION, SocketResources, Target,
};

fn gate(name: &str, pass: bool) -> GateResult {
    GateResult {
        name: name.to_owned(),
        threshold: 200.0,
        observed: Some(if pass { 100.0 } else { 300.0 }),
        pass,
    }
}

/// A trial that failed although the target used half of its vCPU.
fn failed() -> Trial {
    Trial {
        schema_version: SCHEMA_VERSION,
        verdict: Verdict::Fail,
        gates: vec![gate("frames_lost", true), gate("newest_p95_ms", false)],
        caveats: Vec::new(),
        workload: "stt".to_owned(),
        parameters: crate::record::Parameters::new(),
        profile: "quick".to_owned(),
        phases: Profile::quick(),
        slo: "stt".to_owned(),
        sessions: 100,
        load_unit: LoadUnit::default(),
        length: Length::Full,
        target: Target::default(),
        start_ms: None,
        vcpu: Some(2.0),
        environment: Environment::default(),
        baseline: None,
        seed: 1,
        started_at: String::new(),
        interrupted: false,
        ledger: Ledger::default(),
        latency: Latency::default(),
        client: Client::default(),
        target_resources: Some(TargetResources {
            cpu_share: 0.5,
            cpus_busy: Some(1.0),
            rss_peak_bytes: 50 << 20,
            ..TargetResources::default()
        }),
        companion: None,
        bottleneck: None,
        sanity: Vec::new(),
        sections: crate::record::Sections::default(),
        drift: None,
        further_slos: Vec::new(),
        goals: None,
        goodput: None,
    }
}

fn failed_with(change: impl FnOnce(&mut TargetResources)) -> Trial {
    let mut trial = failed();
    change(trial.target_resources.as_mut().expect("there"));
    trial
}

/// What a made-up workload says of its companion.
const MODEL: CompanionTerms = CompanionTerms {
    id: "model",
    name: "the model",
    more_cores: "give the client more cores (--client-cpus) or run the model elsewhere",
    log: "the result folder's logs/",
    more_places: "raise MODEL_PLACES",
    frame_bytes: None,
    error_stages: &["model_request", "model_answer"],
    bottleneck: Bottleneck::BackEnd,
};

fn diagnose(trial: &Trial) -> Option<(Bottleneck, String)> {
    super::diagnose(trial, &MODEL)
}

fn bottleneck(trial: &Trial) -> Option<String> {
    super::bottleneck(trial, &MODEL)
}

fn told(trial: &Trial) -> (Bottleneck, String) {
    diagnose(trial).expect("a bottleneck")
}

fn with_doubt(doubt: &Doubt) -> Trial {
    let mut trial = failed();
    trial.verdict = Verdict::Invalid;
    trial.caveats = vec![Caveat::from(&Doubt::SharedCores), Caveat::from(doubt)];
    trial
}

#[test]
fn a_trial_that_passed_has_none() {
    let mut trial = failed();
    trial.verdict = Verdict::Pass;
    trial.gates.truncate(1);
    assert_eq!(diagnose(&trial), None);
    // Invalid for a reason that is no limit, and every gate held.
    trial.verdict = Verdict::Invalid;
    trial.caveats = vec![Caveat::from(&Doubt::TooFewSamples(
        crate::caveat::GateSamples {
            gate: "newest_p95_ms".to_owned(),
            samples: 1,
            needed: 200,
        },
    ))];
    assert_eq!(diagnose(&trial), None);
}

#[test]
fn a_client_that_ran_out_is_the_bottleneck_whatever_the_target_did() {
    let lag = Doubt::SendLag {
        p999_us: 30e3,
        limit_us: 10e3,
        others: Vec::new(),
    };
    let mut trial = with_doubt(&lag);
    trial.target_resources = Some(TargetResources {
        cpu_share: 1.0,
        throttled_share: Some(1.0),
        ..TargetResources::default()
    });
    let (kind, evidence) = told(&trial);
    assert_eq!((kind, evidence), (Bottleneck::Client, lag.text()));
    // Also if the gates held: the client limited the measurement.
    trial.gates.truncate(1);
    assert_eq!(told(&trial).0, Bottleneck::Client);
    assert!(bottleneck(&trial).expect("told").starts_with("client: "));
}

#[test]
fn every_doubt_that_the_client_ran_out_is_told_as_client_or_back_end() {
    let share = (0.99, 0.9);
    let doubts = [
        Doubt::SendLag {
            p999_us: 30e3,
            limit_us: 10e3,
            others: Vec::new(),
        },
        Doubt::ClientBusy {
            share: share.0,
            limit: share.1,
        },
        Doubt::ClientFault {
            what: "EMFILE".to_owned(),
            count: 1,
        },
        Doubt::CompanionSaturated {
            lateness_p99_ms: 11.0,
            limit_ms: 10.0,
        },
        Doubt::CompanionQueued {
            wait_p99_ms: 11.0,
            limit_ms: 10.0,
        },
        Doubt::CompanionGone,
    ];
    for doubt in doubts {
        // Whichever workload's companion it is, also of one that is unknown here.
        for companion in [MODEL, CompanionTerms::default()] {
            let terms = Terms {
                companion,
                ..Terms::default()
            };
            let caveat = Caveat::of(&doubt, &terms);
            let expected = if caveat.id.starts_with(companion.id) {
                Bottleneck::BackEnd
            } else {
                Bottleneck::Client
            };
            let mut trial = with_doubt(&doubt);
            trial.caveats[1] = caveat.clone();
            assert_eq!(told(&trial), (expected, caveat.text));
        }
    }
}

#[test]
fn a_machine_that_ran_out_is_named_before_the_client_that_felt_it() {
    let bound = Doubt::MachineBound {
        what: "open files".to_owned(),
    };
    let mut trial = with_doubt(&Doubt::ClientFault {
        what: "EMFILE".to_owned(),
        count: 1,
    });
    trial.caveats.push(Caveat::from(&bound));
    assert_eq!(told(&trial), (Bottleneck::Machine, bound.text()));
    assert!(bottleneck(&trial).expect("told").starts_with("machine: "));
    // To a search it makes no difference: higher loads cannot be tried here.
    assert!(trial.caveats.iter().any(Caveat::client_ran_out));
}

#[test]
fn a_starved_target_lacked_what_the_machine_did_not_have() {
    let starved = Doubt::TargetStarved {
        taken_share: 0.4,
        wait_share: 0.5,
        limit: 0.05,
    };
    assert_eq!(
        told(&with_doubt(&starved)),
        (Bottleneck::Machine, starved.text())
    );
}

#[test]
fn a_caveat_that_does_not_block_is_no_bottleneck() {
    let mut trial = failed();
    trial.caveats = vec![Caveat {
        id: "send-lag".to_owned(),
        blocking: false,
        text: String::new(),
    }];
    assert_eq!(told(&trial).0, Bottleneck::LatencyWithoutCpu);
}

#[test]
fn providers_are_a_back_end_with_its_own_name() {
    let providers = CompanionTerms {
        id: "providers",
        error_stages: &["tts_failed"],
        bottleneck: Bottleneck::Provider,
        ..MODEL
    };
    let told = |trial: &Trial| super::bottleneck(trial, &providers).expect("told");
    let mut trial = failed();
    trial.gates.push(gate("shortfall", false));
    (trial.ledger.errors, trial.ledger.frames_errored) = (100, 100);
    let reasons = &mut trial.ledger.reasons;
    reasons.insert("error tts_failed".to_owned(), 80);
    assert_eq!(
        told(&trial),
        "provider: 80 errors of the target name its back end, 80 of them tts_failed"
    );
    // More was lost than failed.
    trial.ledger.frames_lost = 101;
    assert!(told(&trial).starts_with("latency without cpu: "));
    // They were late themselves.
    trial.verdict = Verdict::Invalid;
    trial.caveats = vec![Caveat {
        id: "providers-saturated".to_owned(),
        blocking: true,
        text: "late".to_owned(),
    }];
    assert_eq!(told(&trial), "provider: late");
}

#[test]
fn a_target_that_takes_no_more_sessions_is_limited_by_its_admission() {
    let mut trial = failed();
    trial.gates.push(gate("sessions_failed", false));
    trial.ledger.sessions_failed = 10;
    let reasons = &mut trial.ledger.reasons;
    reasons.insert("upgrade refused with status 503".to_owned(), 8);
    reasons.insert("connection refused".to_owned(), 2);
    assert_eq!(
        bottleneck(&trial).as_deref(),
        Some("admission: the target refused 8 of the 10 sessions that failed with status 503")
    );
    // It needs no resources to be said.
    trial.target_resources = None;
    assert_eq!(told(&trial).0, Bottleneck::Admission);
    // Most failed by something else.
    trial.ledger.sessions_failed = 20;
    assert_eq!(told(&trial).0, Bottleneck::Unknown);
}

#[test]
fn errors_that_name_the_back_end_are_the_back_ends() {
    let mut trial = failed();
    trial.gates.push(gate("error_rate", false));
    trial.ledger.errors = 100;
    let reasons = &mut trial.ledger.reasons;
    reasons.insert("error model_request/timeout".to_owned(), 60);
    reasons.insert("error model_answer/http_5xx".to_owned(), 5);
    reasons.insert("error input_buffer/overflow".to_owned(), 35);
    let (kind, evidence) = told(&trial);
    assert_eq!(kind, Bottleneck::BackEnd);
    assert_eq!(
        evidence,
        "65 errors of the target name its back end, 60 of them model_request/timeout"
    );
    // A target that has run out answers nobody in time. That its back end was in time is known only if that was asked.
    let busy = |companion: Option<CompanionWindow>| {
        let mut trial = trial.clone();
        trial.companion = companion;
        let resources = trial.target_resources.as_mut().expect("there");
        resources.cpu_share = 0.97;
        told(&trial)
    };
    assert_eq!(busy(None), (kind, evidence.clone()));
    let mut in_time = CompanionWindow::default();
    in_time.answer_lateness.p99_us = Some(1_500.0);
    let (of_target, told_of_it) = busy(Some(in_time));
    assert_eq!(of_target, Bottleneck::Cpu);
    assert_eq!(
        told_of_it,
        format!(
            "the target used 97 % of the CPU time it was given; {evidence}, but its answers were 1.5 ms late (p99)"
        )
    );
    // One that has time left gets no answer.
    trial.companion = Some(CompanionWindow::default());
    assert_eq!(told(&trial), (kind, evidence));
    // To a workload without a companion, these stages mean nothing.
    let (kind, _) = super::diagnose(&trial, &CompanionTerms::default()).expect("told");
    assert_eq!(kind, Bottleneck::LatencyWithoutCpu);
    // Most errors are the target's own.
    trial.ledger.errors = 1000;
    assert_eq!(told(&trial).0, Bottleneck::LatencyWithoutCpu);
    // A few errors, and no gate fails on them.
    trial.ledger.errors = 65;
    trial.gates.pop();
    assert_eq!(told(&trial).0, Bottleneck::LatencyWithoutCpu);
}

#[test]
fn a_core_that_its_packets_fill_is_the_targets_limit() {
    let with_core = |core_us: f64, others: f64| {
        failed_with(|r| {
            r.cpu_share = 0.64;
            r.cpu_us_per_session_second = Some(400.0);
            r.core_us_per_session_second = Some(core_us);
            r.others_cpu_share = Some(others);
        })
    };
    let (kind, evidence) = told(&with_core(600.0, 0.0));
    assert_eq!(kind, Bottleneck::Cpu);
    assert_eq!(
        evidence,
        "the target used 64 % of the CPU time it was given, and its packets and wake-ups took 32 %: its cores were busy for 96 % of the time"
    );
    assert_eq!(
        told(&with_core(500.0, 0.0)).0,
        Bottleneck::LatencyWithoutCpu
    );
    // Other programs took a part of that: the target was not at its own limit.
    assert_eq!(
        told(&with_core(600.0, 0.1)).0,
        Bottleneck::LatencyWithoutCpu
    );
}

#[test]
fn memory_is_a_limit_reached_events_or_an_empty_machine() {
    let limit = 50 << 20;
    let at_limit = failed_with(|r| {
        r.rss_peak_bytes = 49 << 20;
        r.memory_limit_bytes = Some(limit);
        r.throttled_share = Some(0.5);
    });
    let (kind, evidence) = told(&at_limit);
    assert_eq!(kind, Bottleneck::Memory, "before the quota");
    assert!(evidence.contains("49 MiB of the 50 MiB"), "{evidence}");
    let below = failed_with(|r| {
        r.rss_peak_bytes = 47 << 20;
        r.memory_limit_bytes = Some(limit);
        r.memory_pressure_events = Some(0);
        r.machine_memory_available_share = Some(0.06);
    });
    assert_eq!(told(&below).0, Bottleneck::LatencyWithoutCpu);
    let events = failed_with(|r| r.memory_pressure_events = Some(3));
    assert_eq!(told(&events).0, Bottleneck::Memory);
    assert!(told(&events).1.contains("3 times"));
    let machine = failed_with(|r| r.machine_memory_available_share = Some(0.04));
    assert_eq!(told(&machine).0, Bottleneck::Memory);
    assert!(
        told(&machine)
            .1
            .contains("only 4 % of the machine's memory")
    );
}

#[test]
fn a_throttled_target_is_limited_by_its_quota_even_if_busy() {
    let trial = failed_with(|r| {
        r.cpu_share = 0.97;
        r.throttled_share = Some(0.05);
    });
    assert_eq!(
        bottleneck(&trial).expect("told"),
        "quota throttling: throttled in 5 % of the quota's periods, and the target used 97 % of the CPU time it was given"
    );
    let seldom = failed_with(|r| {
        r.cpu_share = 0.97;
        r.throttled_share = Some(0.049);
    });
    assert_eq!(
        bottleneck(&seldom).expect("told"),
        "cpu: the target used 97 % of the CPU time it was given"
    );
}

#[test]
fn one_thread_at_its_core_is_cpu_too() {
    let trial = failed_with(|r| r.busiest_thread_share = Some(0.98));
    assert_eq!(
        bottleneck(&trial).expect("told"),
        "cpu: one thread used 98 % of a core, although the target used 50 % of the CPU time it was given"
    );
    let spread = failed_with(|r| r.busiest_thread_share = Some(0.4));
    assert_eq!(told(&spread).0, Bottleneck::LatencyWithoutCpu);
}

#[test]
fn a_target_that_was_not_placed_is_busy_when_the_machine_is() {
    let mut trial = failed_with(|r| {
        r.cpu_share = 2.5;
        r.cpus_busy = Some(2.5);
    });
    trial.vcpu = None;
    // 2.5 cores are no limit, neither of an unknown number of cores nor of 16.
    assert_eq!(told(&trial).0, Bottleneck::LatencyWithoutCpu);
    let machine = &mut trial.environment.machine;
    machine.insert("cores".to_owned(), "16".to_owned());
    let (kind, evidence) = told(&trial);
    assert_eq!(kind, Bottleneck::LatencyWithoutCpu);
    assert!(evidence.contains("250 % of one core, on a machine of 16"));
    let machine = &mut trial.environment.machine;
    machine.insert("cores".to_owned(), "2".to_owned());
    assert_eq!(told(&trial).0, Bottleneck::Cpu);
    // It may not run on all of them, or is on another machine.
    let resources = trial.target_resources.as_mut().expect("there");
    resources.cpus_allowed = Some(16.0);
    let (kind, evidence) = told(&trial);
    assert_eq!(kind, Bottleneck::LatencyWithoutCpu);
    assert!(evidence.contains("250 % of one core, and may use 16"));
}

#[test]
fn sessions_that_ended_come_before_latency() {
    let mut trial = failed();
    trial.ledger.sessions_failed = 2;
    trial.ledger.sessions_died = 1;
    assert_eq!(
        bottleneck(&trial).expect("told"),
        "sessions refused: 2 sessions failed and 1 died, although the target used 50 % of the CPU time it was given"
    );
}

#[test]
fn late_answers_with_cpu_to_spare_tell_what_lay_unread() {
    let trial = failed_with(|r| {
        r.sockets = Some(SocketResources {
            receive_queue_peak_bytes: 65_536,
            ..SocketResources::default()
        });
    });
    assert_eq!(
        bottleneck(&trial).expect("told"),
        "latency without cpu: newest_p95_ms did not hold, although the target used 50 % of the CPU time it was given; up to 64 KiB were unread in one connection"
    );
}

#[test]
fn without_resources_it_is_unknown() {
    let mut trial = failed();
    trial.target_resources = None;
    assert_eq!(told(&trial).0, Bottleneck::Unknown);
}

#[test]
fn what_fails_outright_is_named_before_all_that_follows_from_it() {
    let mut trial = failed();
    trial.target_resources = None;
    trial.gates.push(Outright::TargetDied.gate());
    let ended = "target died: the target ended during the trial";
    assert_eq!(bottleneck(&trial).as_deref(), Some(ended));
    trial
        .ledger
        .because("the target ended during the trial: exit status: 1");
    let ended = format!("{ended}: exit status: 1");
    assert_eq!(bottleneck(&trial), Some(ended));

    trial.gates[2] = Outright::TargetNotBack.gate();
    trial
        .ledger
        .because("the target did not come back after the crash: nothing answered");
    let not_back = "target died: the target did not come back after the crash: nothing answered";
    assert_eq!(bottleneck(&trial).as_deref(), Some(not_back));

    trial.gates[2] = Outright::WarmUpUnanswered.gate();
    trial.ledger.frames_sent_in_all = 7;
    let unanswered = bottleneck(&trial).expect("it failed");
    assert!(
        unanswered.starts_with("no answer: no request of the warm-up was answered (7"),
        "{unanswered}"
    );
}
