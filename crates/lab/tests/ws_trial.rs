//! Trials of workload `ws` against a server in this process that echoes and counts. They test how the laboratory
//! handles a load whose unit is not sessions, a target's own counters, and a closed loop.

mod support;

use std::path::Path;

use plimsoll_core::profile::Length;
use plimsoll_core::record::{LoadUnit, Trial};
use plimsoll_host::signals::Stop;
use plimsoll_lab::trial::{self, Subject, TargetUrl};
use plimsoll_workload::{Value, Values, Workload};
use plimsoll_workload_ws::Ws;
use plimsoll_workload_ws::record::{SECTION, WsRecord};

use support::{conditions, echo_server};

/// Runs a short trial of the load against a fresh server.
fn trial_of(values: &[(&str, Value)], load: u32, logs: &Path) -> Trial {
    let address = echo_server();
    let values = values.iter().cloned();
    let values = values.fold(Values::default(), |values, (name, value)| {
        values.with(name, value)
    });
    let plan = (&Ws as &dyn Workload).planned(values).expect("a plan");
    let conditions = conditions(plan, logs);
    let subject = Subject::Running {
        url: TargetUrl::parse(&format!("ws://{address}"), &conditions.plan.told().path)
            .expect("a URL"),
        resources: None,
    };
    let outcome = trial::run(
        &conditions,
        &subject,
        load,
        Length::Full,
        &Stop::new(),
        &mut |_| {},
    );
    let trial = outcome.expect("a trial").trial;
    let ledger = &trial.ledger;
    assert!(ledger.frames_due > 0, "{ledger:?}");
    assert_eq!(ledger.frames_lost + ledger.frames_errored, 0, "{ledger:?}");
    assert_eq!(
        ledger.sessions_failed + ledger.sessions_died,
        0,
        "{ledger:?}"
    );
    let of_target = |name: &str| name.starts_with("metrics_");
    let mut told = trial.sanity.iter().filter(|check| of_target(&check.name));
    assert!(told.all(|check| check.holds), "{:?}", trial.sanity);
    trial
}

#[test]
fn pings_and_a_closed_loop_beside_them() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("period_ms", Value::Whole(100)),
        ("closed_loop", Value::Flag(true)),
    ];
    let trial = trial_of(&values, 10, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (10, LoadUnit::CONNECTIONS)
    );
    assert_eq!(trial.ledger.sessions_started, 10);
    let names: Vec<_> = trial
        .sanity
        .iter()
        .map(|check| check.name.as_str())
        .collect();
    assert!(
        names.contains(&"metrics_frames") && names.contains(&"metrics_sessions"),
        "{names:?}"
    );
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    let delivered = record.delivered;
    assert_eq!(delivered.read, delivered.offered);
    let processed = delivered.processed.expect("it counts");
    // Neither account has what the closed loop sent afterwards.
    assert!(
        (trial.ledger.frames_answered_in_all..=delivered.written_in_all).contains(&processed),
        "{delivered:?}"
    );
    let closed_loop = record.closed_loop.expect("asked for");
    assert_eq!(
        (closed_loop.pings_answered, closed_loop.pings_given_up),
        (10 * 50, 0)
    );
    assert!(closed_loop.p50_ms.is_some() && closed_loop.messages_per_second.is_none());
}

#[test]
fn messages_at_a_rate_and_a_flood_beside_them() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("test", Value::Word("throughput".to_owned())),
        ("connections", Value::Whole(5)),
        ("closed_loop", Value::Flag(true)),
    ];
    let trial = trial_of(&values, 500, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (500, LoadUnit::MESSAGES_PER_SECOND)
    );
    assert_eq!(trial.ledger.sessions_started, 5);
    // Messages for 1.5 s. The exact count depends on where each connection's schedule begins.
    assert!((745..=755).contains(&trial.ledger.frames_due));
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    assert_eq!(
        (record.connections, record.message_bytes),
        (Some(5), Some(175))
    );
    assert_eq!(
        (record.format.as_deref(), record.decode),
        (Some("json"), None)
    );
    let flood = record.closed_loop.expect("asked for");
    assert!(flood.messages_per_second.is_some_and(|rate| rate > 500.0));
}

#[test]
fn arrivals_at_a_rate() {
    let logs = tempfile::tempdir().expect("temp");
    let values = [
        ("test", Value::Word("storm".to_owned())),
        ("linger_ms", Value::Whole(100)),
    ];
    let trial = trial_of(&values, 40, logs.path());
    assert_eq!(
        (trial.sessions, trial.load_unit),
        (40, LoadUnit::CONNECTIONS_PER_SECOND)
    );
    // There is no ramp: connections arrive in warm-up and window.
    assert_eq!(trial.phases.ramp_s.to_bits(), 0.0_f64.to_bits());
    assert_eq!(trial.ledger.sessions_started, 80);
    assert!((59..=61).contains(&trial.ledger.frames_due));
    let record = trial.sections.get::<WsRecord>(SECTION).expect("a record");
    assert_eq!(record.outcomes, []);
    assert_eq!(record.delivered.processed, None);
}
