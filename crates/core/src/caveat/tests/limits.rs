//! Which evidence raises which doubt.

use super::*;
use crate::record::GateResult;

#[test]
fn a_sound_trial_has_no_doubts() {
    assert_eq!(ids(&sound()), [""; 0]);
    let at_the_limits = Evidence {
        drivers: vec![Driver {
            send_lag_p999_us: Some(10_000.0),
            busy_share: 0.95,
            wait_share: Some(0.25),
            opening_wait_share: Some(0.25),
            steal_share: Some(0.05),
            clock_error_ms: Some(5.0),
            ..Driver::default()
        }],
        achieved_share: Some(0.999),
        target_steal_share: Some(0.05),
        target_starved: Some(Starved {
            taken_share: 0.05,
            wait_share: 3.0,
        }),
        // Only messages that a barrier proves count as read. The target may also have processed messages after the last
        // barrier.
        read_and_processed: Some((1_000, 1_001)),
        ..sound()
    };
    assert_eq!(ids(&at_the_limits), [""; 0]);
    let nothing_known = Evidence {
        drivers: vec![Driver::default()],
        achieved_share: None,
        target_steal_share: None,
        ..sound()
    };
    assert_eq!(ids(&nothing_known), [""; 0]);
}

#[test]
fn a_target_is_starved_of_what_it_was_given_and_wanted() {
    let of = |others, cpus, given, wait_share| {
        let target_starved = Some(Starved::of(others, cpus, given, wait_share));
        ids(&Evidence {
            target_starved,
            ..sound()
        })
    };
    // A whole core, of which others use a tenth.
    assert_eq!(of(0.1, 1.0, 1.0, 0.2), ["target-starved"]);
    // The target did not want that time.
    assert_eq!(of(0.1, 1.0, 1.0, 0.02), [""; 0]);
    // A quarter of a core: others may use the other three quarters, but no more.
    assert_eq!(of(0.75, 1.0, 0.25, 2.0), [""; 0]);
    assert_eq!(of(0.8, 1.0, 0.25, 2.0), ["target-starved"]);
    // Two cores, with another program on one of them.
    assert_eq!(of(0.5, 2.0, 2.0, 0.3), ["target-starved"]);
    assert_eq!(of(0.5, 2.0, 1.0, 0.3), [""; 0]);
}

#[test]
fn each_limit_raises_its_doubt() {
    let found = caveats(&one_of_each());
    let found: Vec<_> = found.iter().map(|caveat| caveat.id.as_str()).collect();
    assert_eq!(
        found,
        [
            "client-fault",
            "client-busy",
            "client-starved",
            "send-lag",
            "clock-error",
            "steal",
            "agent-lost",
            "achieved-load",
            "observer-lost",
            "clock-error",
            "inference-gone",
            "inference-saturated",
            "inference-queued",
            "machine-bound",
            "shared-cores",
            "steal",
            "target-starved",
            "clock-jump",
            "metrics-disagree",
            "bytes-disagree",
            "back-end-bypassed",
            "bytes-disagree",
            "too-few-samples",
            "unprocessed",
            "format-opaque",
            "back-end-unchecked",
            "no-quota",
            "client-pays-receive",
            "no-resources",
            "littles-law",
            "near-floor",
            "interrupted",
            "machine-moved"
        ]
    );
}

#[test]
fn a_client_that_could_not_open_its_sessions_in_time_was_starved() {
    let opening = Evidence {
        drivers: vec![Driver {
            opening_wait_share: Some(0.26),
            ..sound_driver()
        }],
        ..sound()
    };
    assert_eq!(ids(&opening), ["client-starved"]);
    let found = doubts(&opening, &Limits::for_gate(Some(200.0)));
    let told = &caveats(&found)[0].text;
    assert!(
        told.contains("for 26 % of the time in which sessions were to open"),
        "{told}"
    );
}

#[test]
fn a_doubt_about_an_agent_names_it_and_is_as_grave_as_anywhere() {
    let of = |driver: Driver| {
        let evidence = Evidence {
            drivers: vec![
                sound_driver(),
                Driver {
                    agent: Some("1 (node-b)".to_owned()),
                    ..driver
                },
            ],
            ..sound()
        };
        caveats(&doubts(&evidence, &Limits::for_gate(Some(200.0))))
    };
    let late = of(Driver {
        send_lag_p999_us: Some(11_000.0),
        ..sound_driver()
    });
    assert_eq!((late.len(), late[0].id.as_str()), (1, "send-lag"));
    assert!(late[0].blocking && late[0].client_ran_out());
    assert!(
        late[0]
            .text
            .starts_with("agent 1 (node-b): the client wrote frames late")
    );
    for (error_ms, blocking) in [(6.0, false), (50.0, false), (51.0, true)] {
        let apart = of(Driver {
            clock_error_ms: Some(error_ms),
            ..sound_driver()
        });
        assert_eq!((apart.len(), apart[0].id.as_str()), (1, "clock-error"));
        assert_eq!(apart[0].blocking, blocking);
    }
}

#[test]
fn a_late_client_explains_why_littles_law_does_not_hold() {
    let with = |driver: Driver| Evidence {
        drivers: vec![
            sound_driver(),
            Driver {
                agent: Some("0 (node-a)".to_owned()),
                ..driver
            },
        ],
        sanity: vec![
            SanityCheck::of("littles_law", 98.0, 102.0, 90.0),
            SanityCheck::of("metrics_frames", 90.0, 100.0, 110.0),
        ],
        ..sound()
    };
    let starved = Driver {
        wait_share: Some(0.3),
        ..sound_driver()
    };
    let expected = ["client-starved", "metrics-disagree"];
    assert_eq!(ids(&with(starved)), expected);
    let lagging = Driver {
        send_lag_p999_us: Some(1e6),
        ..sound_driver()
    };
    assert_eq!(ids(&with(lagging)), ["send-lag", "metrics-disagree"]);
    let expected = ["littles-law", "metrics-disagree"];
    assert_eq!(ids(&with(sound_driver())), expected);
}

fn latency_gate(observed: f64) -> GateResult {
    GateResult {
        name: "newest_p50_ms".to_owned(),
        threshold: 200.0,
        observed: Some(observed),
        pass: observed <= 200.0,
    }
}

#[test]
fn a_latency_beyond_its_gate_is_not_explained_by_a_tenth_of_that() {
    let limit_ms = |gates: &[GateResult]| {
        let limits = Limits::for_verdict(Some(200.0), gates);
        assert_eq!(limits.client_busy_share.to_bits(), 0.95_f64.to_bits());
        limits.send_lag_p999_us / 1e3
    };
    assert_eq!(limit_ms(&[latency_gate(150.0)]), 10.0);
    assert_eq!(limit_ms(&[latency_gate(290.0)]), 10.0, "a fail by a little");
    assert_eq!(
        limit_ms(&[
            latency_gate(6_000.0),
            latency_gate(400.0),
            latency_gate(100.0)
        ]),
        580.0
    );
    assert_eq!(limit_ms(&[latency_gate(400.0)]), 20.0);
    // What the client may owe at the end follows.
    let written = |observed: f64| {
        let limits = Limits::for_verdict(Some(200.0), &[latency_gate(observed)]);
        (limits.achieved_share * 1e4).round() / 1e4
    };
    assert_eq!(written(150.0), 0.999);
    assert_eq!(written(290.0), 0.999, "a fail by a little");
    assert_eq!(written(400.0), 0.998);
    assert_eq!(written(6_000.0), 0.95);
    // A count says nothing about lag.
    let lost = GateResult {
        name: "frames_lost".to_owned(),
        threshold: 0.0,
        observed: Some(9e9),
        pass: false,
    };
    assert_eq!(limit_ms(std::slice::from_ref(&lost)), 10.0);
    // To explain lost answers, a target must lack more than to explain late ones.
    let starved =
        |gates: &[GateResult]| Limits::for_verdict(Some(200.0), gates).target_starved_share;
    assert_eq!(starved(&[latency_gate(6_000.0)]), 0.05);
    assert_eq!(starved(&[latency_gate(6_000.0), lost]), 0.25);
}
