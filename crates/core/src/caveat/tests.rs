//! How doubts are told, and that each is.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::bottleneck::Bottleneck;
use crate::record::{LoadUnit, Probe};
use crate::sanity::MetricNames;

mod limits;

fn samples(gate: &str, samples: u64, needed: u64) -> GateSamples {
    GateSamples {
        gate: gate.to_owned(),
        samples,
        needed,
    }
}

fn other(name: &str, pid: i32, core_share: f64) -> OtherProgram {
    OtherProgram {
        name: name.to_owned(),
        pid,
        core_share,
    }
}

fn sound_driver() -> Driver {
    Driver {
        send_lag_p999_us: Some(900.0),
        busy_share: 0.6,
        wait_share: Some(0.1),
        opening_wait_share: Some(0.2),
        steal_share: Some(0.001),
        ..Driver::default()
    }
}

fn sound() -> Evidence {
    Evidence {
        drivers: vec![sound_driver()],
        achieved_share: Some(1.0),
        companion_lateness_p99_ms: Some(1.0),
        companion_queue_p99_ms: Some(0.0),
        target_steal_share: Some(0.001),
        sanity: vec![SanityCheck::of("metrics_frames", 1.0, 3.0, 2.0)],
        samples: vec![samples("newest_p95_ms", 5_000, 200)],
        ..Evidence::default()
    }
}

/// A workload whose companion has the ids that the reference page shows.
const TERMS: Terms = Terms {
    load_unit: LoadUnit::MESSAGES_PER_SECOND,
    metrics: MetricNames {
        frames: "messages_received_total",
        partials: "messages_sent_total",
        sessions: "connections_total",
    },
    companion: CompanionTerms {
        id: "inference",
        name: "the model",
        more_cores: "give the client more cores (--client-cpus) or run the model elsewhere",
        log: "the result folder's logs/",
        more_places: "raise MODEL_PLACES",
        frame_bytes: Some(640),
        error_stages: &[],
        bottleneck: Bottleneck::BackEnd,
    },
};

fn caveats(doubts: &[Doubt]) -> Vec<Caveat> {
    let caveats = doubts.iter().map(|doubt| Caveat::of(doubt, &TERMS));
    caveats.collect()
}

fn ids(evidence: &Evidence) -> Vec<String> {
    let found = doubts(evidence, &Limits::for_gate(Some(200.0)));
    caveats(&found)
        .into_iter()
        .map(|caveat| caveat.id)
        .collect()
}

/// Doubts of every kind.
fn one_of_each() -> Vec<Doubt> {
    let evidence = Evidence {
        drivers: vec![
            Driver {
                agent: None,
                send_lag_p999_us: Some(10_001.0),
                busy_share: 0.96,
                wait_share: Some(0.26),
                opening_wait_share: Some(0.26),
                steal_share: Some(0.06),
                faults: [("EMFILE".to_owned(), 2)].into(),
                clock_error_ms: Some(5.1),
                lost: None,
                others: vec![other("agent", 1, 0.0051), other("kdamond.0", 77, 0.5)],
            },
            Driver {
                agent: Some("1 (node-b)".to_owned()),
                lost: Some("no word for 3 s".to_owned()),
                ..sound_driver()
            },
        ],
        observer: Some(Watcher {
            host: "node-c".to_owned(),
            clock_error_ms: 5.1,
            lost: Some("it left".to_owned()),
        }),
        achieved_share: Some(0.9989),
        companion_gone: true,
        companion_lateness_p99_ms: Some(10.1),
        companion_queue_p99_ms: Some(10.1),
        target_steal_share: Some(0.07),
        target_starved: Some(Starved {
            taken_share: 0.06,
            wait_share: 0.07,
        }),
        clock_jump: Some(ClockJump {
            clock: clock_jump::Moved::WallClock,
            by_ms: -80.0,
        }),
        machine_bound: vec!["open files".to_owned()],
        shared_cores: true,
        sanity: vec![
            SanityCheck::of("metrics_frames", 90.0, 100.0, 110.0),
            SanityCheck::of("kernel_bytes_sent", 10.0, 10.0, 9.0),
            SanityCheck::of("back_end_bytes", 640.0, 1280.0, 0.0),
            SanityCheck::of("back_end_bytes", 640.0, 1280.0, 2000.0),
        ],
        read_and_processed: Some((1_000, 999)),
        opaque_format: Some("msgpack".to_owned()),
        back_end_unchecked: true,
        no_quota: Some((0.5, "read-only".to_owned())),
        on_loopback: Some("--network loopback".to_owned()),
        no_resources: true,
        interrupted: false,
        samples: vec![samples("newest_p95_ms", 199, 200)],
    };
    let mut found = doubts(&evidence, &Limits::for_gate(Some(200.0)));
    let account_wrong = Evidence {
        sanity: vec![SanityCheck::of("littles_law", 98.0, 102.0, 90.0)],
        ..sound()
    };
    found.extend(doubts(&account_wrong, &Limits::for_gate(Some(200.0))));
    found.push(Doubt::NearFloor {
        p50_ms: 0.19,
        floor: "rust-epoll-http".to_owned(),
        floor_ms: 0.1,
    });
    found.push(Doubt::Interrupted);
    found.push(Doubt::MachineMoved(Moved {
        from: Probe::default().figures()[3],
        to: 80.0,
    }));
    found
}

#[test]
fn every_doubt_names_a_remedy_on_one_line() {
    for doubt in one_of_each() {
        let text = doubt.text();
        let (seen, remedy) = text.split_once(';').unwrap_or_default();
        assert!(
            seen.len() > 20 && remedy.len() > 10 && !text.contains('\n'),
            "{text}"
        );
    }
}

#[test]
fn a_late_client_says_who_else_may_have_run_there() {
    let text = |id: &str, others: Vec<OtherProgram>| {
        let evidence = Evidence {
            drivers: vec![Driver {
                send_lag_p999_us: Some(11_000.0),
                wait_share: Some(0.3),
                others,
                ..sound_driver()
            }],
            ..sound()
        };
        let found = caveats(&doubts(&evidence, &Limits::for_gate(Some(200.0))));
        let of_id = found.into_iter().find(|caveat| caveat.id == id);
        of_id.expect("late").text
    };
    let [one, two, three] = [
        other("agent", 1, 0.0051),
        other("kdamond.0", 77, 0.004),
        other("sh", 9, 1.0),
    ];
    let late = text("send-lag", vec![one.clone()]);
    let remedy = "; keep agent (PID 1, 0.5 % of a core) off the client's cores (`taskset -apc CPUS PID`), or give the client more cores";
    assert!(late.contains(remedy), "{late}");
    let starved = text("client-starved", vec![three, one, two]);
    let remedy = "; keep sh (PID 9, 100.0 % of a core), agent (PID 1, 0.5 % of a core) and kdamond.0 (PID 77, 0.4 % of a core) off the client's cores (`taskset -apc CPUS PID`), lift";
    assert!(starved.contains(remedy), "{starved}");
    let late = text("send-lag", Vec::new());
    assert!(late.contains("; give the client more cores"), "{late}");
    let starved = text("client-starved", Vec::new());
    assert!(starved.contains("; stop other programs on"), "{starved}");
}

#[test]
fn who_ran_out_and_what_is_hopeless() {
    let of = |which: fn(&Caveat) -> bool| {
        let found = caveats(&one_of_each());
        let found = found.into_iter().filter(&which);
        let ids: BTreeSet<String> = found.map(|caveat| caveat.id).collect();
        Vec::from_iter(ids)
    };
    assert_eq!(
        of(Caveat::client_ran_out),
        [
            "achieved-load",
            "client-busy",
            "client-fault",
            "client-starved",
            "inference-queued",
            "inference-saturated",
            "machine-bound",
            "send-lag",
            "steal",
            "target-starved"
        ]
    );
    assert_eq!(
        of(Caveat::hopeless),
        ["back-end-bypassed", "interrupted", "shared-cores"]
    );
    assert_eq!(
        of(|caveat| !caveat.blocking),
        [
            "back-end-unchecked",
            "client-pays-receive",
            "clock-error",
            "format-opaque",
            "machine-moved",
            "near-floor",
            "no-quota",
            "no-resources",
            "unprocessed"
        ]
    );
    assert_eq!(
        of(Caveat::of_companion),
        ["inference-gone", "inference-queued", "inference-saturated"]
    );
}

#[test]
fn the_companions_of_all_workloads_are_treated_alike() {
    let recorded = |id: &str, blocking| Caveat {
        id: id.to_owned(),
        blocking,
        text: String::new(),
    };
    for companion in ["inference", "model", "broker"] {
        for (end, ran_out) in [("saturated", true), ("queued", true), ("gone", false)] {
            let caveat = recorded(&format!("{companion}-{end}"), true);
            assert_eq!(caveat.client_ran_out(), ran_out, "{caveat:?}");
            assert!(caveat.of_companion() && !caveat.hopeless() && !caveat.machine_ran_out());
        }
    }
    assert!(!recorded("model-queued", false).client_ran_out());
    assert!(!recorded("send-lag", true).of_companion());
}

#[test]
fn a_workload_is_spoken_of_in_its_own_terms() {
    let all: String = caveats(&one_of_each())
        .iter()
        .map(|caveat| caveat.text.clone() + "\n")
        .collect();
    for said in [
        "or use fewer messages per second\n",
        "use more messages per second or",
        "the target's messages_received_total rose by 110",
        "the machine ran out of open files, so",
        "read 1000 messages, but its application received only 999",
        "decodes msgpack",
        "the model itself answered late: p99 10.1 ms",
        "or run the model elsewhere\n",
        "requests queued in the model: p99 10.1 ms, allowed 10.0 ms; raise MODEL_PLACES\n",
        "the model exited or stopped answering",
        "the model received only 0 bytes of frames, but the answered frames hold 640;",
        "the model received 2000 bytes of frames, more than the 1280 that the client sent;",
    ] {
        assert!(all.contains(said), "{said}: {all}");
    }
    for not_said in ["fewer sessions", "more sessions", "simulator"] {
        assert!(!all.contains(not_said), "{not_said}: {all}");
    }
    for doubt in one_of_each() {
        assert_eq!(Caveat::of(&doubt, &Terms::default()), Caveat::from(&doubt));
    }
}

#[test]
fn the_gate_that_lacks_most_is_named() {
    let evidence = Evidence {
        samples: vec![
            samples("newest_p95_ms", 150, 200),
            samples("oldest_p99_ms", 160, 1_000),
            samples("newest_p50_ms", 150, 20),
        ],
        ..sound()
    };
    let found = doubts(&evidence, &Limits::for_gate(None));
    assert_eq!(found.len(), 1);
    let text = found[0].text();
    assert!(
        text.contains("oldest_p99_ms") && text.contains("only 160"),
        "{text}"
    );
    let interrupted = Evidence {
        interrupted: true,
        ..evidence
    };
    assert_eq!(ids(&interrupted), ["interrupted"]);
}

#[test]
fn an_achieved_share_is_not_rounded_up_to_its_limit() {
    let doubt = Doubt::AchievedLoad {
        share: 0.99899,
        limit: 0.999,
    };
    assert!(doubt.text().contains("only 99.89 %"), "{}", doubt.text());
}

#[test]
fn the_text_says_whose_cores_were_stolen() {
    let text = |party| {
        Doubt::Steal {
            party,
            share: 0.2,
            limit: 0.05,
        }
        .text()
    };
    assert!(text(Party::Client).contains("the client's cores"));
    assert!(text(Party::Target).contains("the target's cores"));
}

#[test]
fn a_caveat_carries_the_remedy() {
    let caveat = Caveat::from(&Doubt::ClientFault {
        what: "EMFILE".to_owned(),
        count: 1,
    });
    assert_eq!(caveat.id, "client-fault");
    assert!(caveat.blocking && caveat.text.contains("ulimit -n"));
}

/// A new kind of doubt does not compile until it has a line here. It then also needs an entry in [`one_of_each`].
fn kind(doubt: &Doubt) -> usize {
    match doubt {
        Doubt::SendLag { .. } => 0,
        Doubt::ClientBusy { .. } => 1,
        Doubt::ClientStarved { .. } => 2,
        Doubt::AchievedLoad { .. } => 3,
        Doubt::CompanionSaturated { .. } => 4,
        Doubt::CompanionGone => 5,
        Doubt::CompanionQueued { .. } => 6,
        Doubt::ClientFault { .. } => 7,
        Doubt::Steal { .. } => 8,
        Doubt::TargetStarved { .. } => 9,
        Doubt::ClockJump(_) => 10,
        Doubt::AccountsDisagree { .. } => 11,
        Doubt::MachineBound { .. } => 12,
        Doubt::Unprocessed { .. } => 13,
        Doubt::FormatOpaque { .. } => 14,
        Doubt::SharedCores => 15,
        Doubt::BackEndUnchecked => 16,
        Doubt::NoQuota { .. } => 17,
        Doubt::NoResources => 18,
        Doubt::Interrupted => 19,
        Doubt::TooFewSamples(_) => 20,
        Doubt::ClientPaysReceive { .. } => 21,
        Doubt::MachineMoved(_) => 22,
        Doubt::NearFloor { .. } => 23,
        Doubt::AgentLost { .. } => 24,
        Doubt::ClockError { .. } => 25,
        Doubt::ObserverLost { .. } => 26,
        Doubt::ObserverClock { .. } => 27,
        Doubt::AtAgent { doubt, .. } => kind(doubt),
    }
}

#[test]
fn the_reference_page_has_every_caveat_and_no_other() {
    let kinds: BTreeSet<usize> = one_of_each().iter().map(kind).collect();
    assert_eq!(kinds, (0..=27).collect(), "one_of_each lacks a kind");
    let all = caveats(&one_of_each());
    let known: BTreeMap<String, bool> = all
        .iter()
        .map(|caveat| (caveat.id.clone(), caveat.blocking))
        .collect();

    let page = include_str!("../../../../docs/reference/caveats.md");
    // Those below come from workloads.
    let (page, _) = page
        .split_once("\n## Caveats of one workload\n")
        .expect("a heading");
    let section = |text: &str| {
        let id = text.split('`').next().unwrap_or_default().to_owned();
        for part in ["- **When**", "- **Why**: ", "- **Remedy**: "] {
            assert!(text.contains(part), "`{id}` has no {part}");
        }
        let yes = text.contains("- **Blocking**: yes\n");
        assert!(yes || text.contains("- **Blocking**: no\n"), "{id}");
        (id, yes)
    };
    let written: Vec<(String, bool)> = page.split("\n### `").skip(1).map(section).collect();
    let written_once: BTreeMap<String, bool> = written.iter().cloned().collect();
    assert_eq!(written.len(), written_once.len(), "a section stands twice");
    assert_eq!(written_once, known);
    let ends = |caveat: &&Caveat| caveat.client_ran_out() || caveat.hopeless();
    for caveat in all.iter().filter(ends) {
        let head = page.split("\n## ").next().unwrap_or_default();
        assert!(head.contains(&format!("`{}`", caveat.id)), "{caveat:?}");
    }
}
