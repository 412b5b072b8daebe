//! `plimsoll calibrate`, with the real command: what the client costs, in its record, on the page and on the terminal.

use crate::support::{Ended, Plimsoll, records, turn};
use serde_json::Value;

/// One short round. Descriptors for two dozen connections keep the search for the highest load short too.
fn calibrate(arguments: &[&str]) -> Ended {
    let _turn = turn();
    let mut line = vec![
        "calibrate",
        "--rounds",
        "1",
        "--seconds",
        "0.5",
        "--sessions",
    ];
    line.extend_from_slice(arguments);
    let ended = Plimsoll::after("ulimit -n 560", &line)
        .keeping_results()
        .run();
    ended.expect_code(0);
    ended.expect_nothing_left_running();
    ended
}

/// The record of a calibration.
fn record_of(ended: &Ended, name: &str) -> Value {
    let record = ended.json_of(name);
    records::expect_valid(&record, name);
    assert!(record.to_string().contains("\"timer_error_p99_us\""));
    record
}

fn number(value: &Value, field: &str) -> f64 {
    let number = value.pointer(field).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn messages_echoes_and_connections_have_a_cost() {
    let ended = calibrate(&["10", "--workload", "ws", "--json"]);
    let record = record_of(&ended, "calibration-ws.json");
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON and nothing else");
    assert_eq!(printed, record);
    let costs = record["costs"].as_array().expect("a list");
    let works: Vec<_> = costs
        .iter()
        .map(|cost| (&cost["work"], &cost["messages_per_write"]))
        .map(|(work, messages)| (work.as_str().expect("a name"), messages.as_u64()))
        .collect();
    let expected = [
        ("json", Some(1)),
        ("json", Some(8)),
        ("msgpack", Some(1)),
        ("msgpack", Some(8)),
        ("echo", Some(1)),
        ("connections", None),
    ];
    assert_eq!(works, expected);
    for cost in costs {
        let engine_us = number(cost, "/engine_cpu_us/median");
        let ratio = engine_us / number(cost, "/bare_cpu_us/median");
        assert!((number(cost, "/ratio/median") / ratio - 1.0).abs() < 1e-9);
        let per_core_second = number(cost, "/engine_per_core_second") * engine_us;
        assert!((per_core_second / 1e6 - 1.0).abs() < 1e-9);
        assert!(number(cost, "/load") > 0.0);
    }
    // A message that is written with seven others costs less than one by itself, in any build.
    let engine_us = |place: usize| number(&costs[place], "/engine_cpu_us/median");
    assert!(engine_us(1) < engine_us(0) && engine_us(3) < engine_us(2));
    let page = ended.text_of("report.html");
    assert!(page.contains("What workload ws costs this machine"));
}

#[test]
fn speech_is_what_is_measured_unless_told_otherwise() {
    let ended = calibrate(&["20"]);
    let record = record_of(&ended, "calibration.json");
    for word in [
        "bare loop",
        "engine / bare",
        "timer error p99",
        "most sessions",
    ] {
        assert!(ended.stdout.contains(word), "{}", ended.stdout);
    }
    assert!(number(&record, "/engine_us_per_frame") > 0.0);
}

#[test]
fn messages_of_workload_echo_have_a_cost() {
    let ended = calibrate(&["20", "--workload", "echo"]);
    let record = ended.json_of("calibration-echo.json");
    records::expect_valid(&record, "calibration-ws.json");
    let costs = record["costs"].as_array().expect("a list");
    assert_eq!(record["workload"], "echo");
    let heading = "What workload echo costs this machine's client";
    assert!(ended.stdout.contains(heading), "{}", ended.stdout);
    assert_eq!(costs.len(), 1);
    assert_eq!(costs[0]["work"], "echo");
    assert_eq!(costs[0]["load"], 1_000);
    assert!(number(&costs[0], "/engine_cpu_us/median") > 0.0);
}

#[test]
fn an_unknown_workload_is_refused_with_those_that_are_calibrated_here() {
    let ended = Plimsoll::plain(["calibrate", "--workload", "nonsense"]).run();
    ended.expect_code(2);
    let values = "[possible values: stt, echo, ws, http, broker, voice]";
    assert!(ended.stderr.contains(values), "{}", ended.stderr);
}
