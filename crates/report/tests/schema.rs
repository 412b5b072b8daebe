//! The checked-in schema matches the record types, is valid for real records, and has every field that others rely on.
//!
//! After a change to the records: `PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report`.

mod example;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

fn checked_in(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(name)
}

fn schema(name: &str) -> Value {
    let all = plimsoll_report::schema::all(example::TELLERS);
    let (_, text) = all.iter().find(|(found, _)| *found == name).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_checked_in_schema_is_that_of_the_types() {
    for (name, text) in plimsoll_report::schema::all(example::TELLERS) {
        let file = checked_in(name);
        if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == text,
            "{} differs from the record types; raise SCHEMA_VERSION if a meaning changed, then run PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report",
            file.display()
        );
    }
}

#[test]
fn records_hold_to_the_schema() {
    let trial_schema = jsonschema::validator_for(&schema("trial.json")).unwrap();
    let bracket_schema = jsonschema::validator_for(&schema("bracket.json")).unwrap();
    let calibration_schema = jsonschema::validator_for(&schema("calibration.json")).unwrap();
    for find in [
        example::find(),
        example::lower_bound(),
        example::nothing_passed(),
    ] {
        for trial in find.trials.iter().chain([&example::failed_run()]) {
            let record = serde_json::to_value(trial).unwrap();
            trial_schema.validate(&record).unwrap();
        }
        let record = serde_json::to_value(&find.bracket).unwrap();
        bracket_schema.validate(&record).unwrap();
    }
    let ranking_schema = jsonschema::validator_for(&schema("ranking.json")).unwrap();
    let record = serde_json::to_value(example::ranking()).unwrap();
    ranking_schema.validate(&record).unwrap();
    let check_schema = jsonschema::validator_for(&schema("check.json")).unwrap();
    check_schema.validate(&example::check()).unwrap();
    let record = serde_json::to_value(example::calibrations::engine()).unwrap();
    calibration_schema.validate(&record).unwrap();
    let costs_schema = jsonschema::validator_for(&schema("calibration-ws.json")).unwrap();
    let record = serde_json::to_value(example::calibrations::client_costs()).unwrap();
    costs_schema.validate(&record).unwrap();
    let fleet_schema = jsonschema::validator_for(&schema("fleet.json")).unwrap();
    let record = serde_json::to_value(example::fleet::two_agents()).unwrap();
    fleet_schema.validate(&record).unwrap();
    let inference_schema = jsonschema::validator_for(&schema("inference.json")).unwrap();
    let record = serde_json::to_value(example::calibrations::inference()).unwrap();
    inference_schema.validate(&record).unwrap();
}

#[test]
fn the_schema_refuses_what_is_not_a_trial() {
    let schema = jsonschema::validator_for(&schema("trial.json")).unwrap();
    let whole = serde_json::to_value(example::failed_run()).unwrap();
    let mut missing = whole.clone();
    missing.as_object_mut().unwrap().remove("ledger");
    assert!(!schema.is_valid(&missing));
    let mut odd = whole;
    odd["verdict"] = "fine".into();
    assert!(!schema.is_valid(&odd));
}

/// The fields that others rely on. `a.b` is field `b` of the object, or list of objects, in `a`.
const TRIAL: &str = "schema_version verdict gates.name gates.threshold gates.observed gates.pass caveats.id caveats.blocking caveats.text \
    workload profile sessions target.name target.tier target.versions target.ships_bytes target.runtime_bytes environment seed started_at \
    ledger.frames_due ledger.frames_sent ledger.frames_answered ledger.frames_errored ledger.frames_lost ledger.frames_duplicated \
    ledger.frames_out_of_order ledger.sessions_started ledger.sessions_failed ledger.sessions_died ledger.partials ledger.errors \
    ledger.content_checked ledger.content_wrong \
    client.cpu_us_per_frame client.cpu_share client.send_lag.p50_us client.send_lag.p99_us client.send_lag.p999_us client.send_lag.max_us \
    client.send_wait.p50_us client.send_wait.p99_us client.send_wait.p999_us client.send_wait.max_us \
    target_resources.cpu_us_per_session_second target_resources.cpu_share target_resources.rss_peak_bytes \
    target_resources.rss_bytes_per_session target_resources.throttled_share \
    inference.requests inference.busy_share inference.queue_wait.p99_us";
const BRACKET: &str = "target vcpu confirmed borderline first_fail failing_gate bottleneck sessions_per_vcpu lower_bound_only trials";
const CHECK: &str = "target cases.id cases.title cases.pass cases.expected cases.seen passed failed failed_should deviations";
const CALIBRATION: &str =
    "bare_us_per_frame engine_us_per_frame ratio max_sessions send_lag_p99_us timer_error_p99_us";
const CLIENT_COSTS: &str = "costs.work costs.load costs.on_time_load costs.ratio.median costs.engine_cpu_us.median costs.engine_per_core_second timer_error_p99_us";

const FLEET: &str = "workload agents.index agents.host agents.client_cpus agents.shares_cpu works.work works.load_unit works.on_time_load works.even_load works.load_sum works.least_agent works.agents.engine_cpu_us works.agents.on_time_load works.agents.send_lag_p99_us";

const INFERENCE: &str = "url transport batch_bytes p99_limit_ms sessions ended loads.sessions loads.judged loads.answered_per_s loads.from_schedule.p99_ms loads.errors loads.send_lag.p99_us loads.server.cpu_us_per_batch loads.server_says.queue_wait.p99_us";

#[test]
fn every_field_that_others_rely_on_is_in_the_schema() {
    for (name, fields) in [
        ("trial.json", TRIAL),
        ("bracket.json", BRACKET),
        ("check.json", CHECK),
        ("calibration.json", CALIBRATION),
        ("calibration-ws.json", CLIENT_COSTS),
        ("fleet.json", FLEET),
        ("inference.json", INFERENCE),
    ] {
        for path in fields.split_whitespace() {
            assert!(has(&schema(name), path), "{name} has no {path}");
        }
    }
    for side in ["newest", "oldest"] {
        for clock in ["from_schedule", "from_write"] {
            for field in [
                "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "count", "censored",
            ] {
                let path = format!("latency.{side}.{clock}.{field}");
                assert!(has(&schema("trial.json"), &path), "no {path}");
            }
        }
    }
    assert!(
        !has(&schema("trial.json"), "ledger.frames_imagined"),
        "this test can fail"
    );
}

/// Whether there is a required field at that path.
fn has(root: &Value, path: &str) -> bool {
    let mut at = root;
    for name in path.split('.') {
        at = resolve(root, at);
        let required = at["required"]
            .as_array()
            .is_some_and(|r| r.iter().any(|n| n == name));
        if !required {
            return false;
        }
        at = &at["properties"][name];
    }
    at.is_object()
}

/// The object that a field holds, through references, lists, and "or null".
fn resolve<'a>(root: &'a Value, at: &'a Value) -> &'a Value {
    if let Some(reference) = at["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return resolve(root, root.pointer(pointer).unwrap());
    }
    if let Some(either) = at["anyOf"].as_array() {
        return resolve(
            root,
            either.iter().find(|one| one["type"] != "null").unwrap(),
        );
    }
    if at["items"].is_object() {
        return resolve(root, &at["items"]);
    }
    at
}
