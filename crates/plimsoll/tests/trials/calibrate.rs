//! `plimsoll calibrate`, with the real command: what the client costs, in its record, on the page and on the terminal.

use crate::support::simulator::Simulator;
use crate::support::{
    ATTEMPTS, Ended, Plimsoll, half_turn, or_inconclusive, records, turn_of_attempt,
};
use plimsoll_testing::measures;
use serde_json::Value;

/// One short round. Descriptors for two dozen connections keep the search for the highest load short too.
fn calibrate(arguments: &[&str]) -> Ended {
    let _turn = half_turn();
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
#[ignore = "long; make test-all runs it"]
#[measures]
fn messages_echoes_and_connections_have_a_cost_and_another_over_tls() {
    let ended = calibrate(&["10", "--workload", "ws", "--tls"]);
    let record = record_of(&ended, "calibration-ws.json");
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
    expect_tls(costs);
    assert!(page.contains("over TLS / without"));
    assert!(
        ended.stdout.contains("The same over TLS"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("µs per handshake"),
        "{}",
        ended.stderr
    );
}

/// Expects what TLS adds beside each cost but that of connections.
fn expect_tls(costs: &[Value]) {
    for cost in costs {
        let Some(tls) = cost.get("tls") else {
            // Nearly all of it would be the handshake.
            assert_eq!(cost["work"], "connections");
            continue;
        };
        let plain_us = number(cost, "/engine_cpu_us/median");
        let over_us = number(tls, "/engine_cpu_us/median");
        let added_us = number(tls, "/added_cpu_us/median");
        assert!((over_us - plain_us - added_us).abs() < 1e-9);
        let ratio = number(tls, "/ratio/median");
        assert!((ratio - over_us / plain_us).abs() < 1e-9);
        let timed_us = number(tls, "/tls_cpu_us/median");
        assert!(timed_us > 0.0 && timed_us < over_us, "{tls}");
        assert!(number(tls, "/handshake_cpu_us/median") > timed_us);
    }
    assert_eq!(
        costs
            .iter()
            .filter(|cost| cost.get("tls").is_some())
            .count(),
        5
    );
}

#[test]
#[measures]
fn speech_is_what_is_measured_unless_told_otherwise_and_over_tls_too() {
    let ended = calibrate(&["20", "--tls"]);
    let record = record_of(&ended, "calibration.json");
    for word in [
        "bare loop",
        "engine / bare",
        "timer error p99",
        "most sessions",
        "engine over TLS",
    ] {
        assert!(ended.stdout.contains(word), "{}", ended.stdout);
    }
    assert!(number(&record, "/engine_us_per_frame") > 0.0);
    assert!(number(&record, "/tls/engine_cpu_us/median") > 0.0);
}

#[test]
#[measures]
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

    let ended = calibrate(&["20", "--workload", "echo", "--json"]);
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON and nothing else");
    assert_eq!(printed, ended.json_of("calibration-echo.json"));
}

#[test]
#[measures]
fn an_unknown_workload_is_refused_with_those_that_are_calibrated_here() {
    let ended = Plimsoll::plain(["calibrate", "--workload", "nonsense"]).run();
    ended.expect_code(2);
    let values = "[possible values: stt, echo, ws, http, broker, voice, stt-real]";
    assert!(ended.stderr.contains(values), "{}", ended.stderr);
}

/// Loads this simulator without a gateway, at most with so many sessions, until the client was not the limit. A machine that
/// makes the client late each time is reported. Beside other trials the simulator may be late, too: an end other than
/// `expected` counts only in the last attempt, which has the machine to itself.
fn load_alone(
    simulator: &Simulator,
    sessions_max: u32,
    expected: &str,
    arguments: &[&str],
) -> Option<Value> {
    let limit = format!("ulimit -n {}", 512 + 2 * sessions_max);
    let mut line = vec!["calibrate", "--json", "--inference", &simulator.url];
    line.extend_from_slice(arguments);
    for attempt in 1..=ATTEMPTS {
        let _turn = turn_of_attempt(attempt, ATTEMPTS);
        let ended = Plimsoll::after(&limit, &line).keeping_results().run();
        let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON and nothing else");
        let record = ended.json_of("inference.json");
        records::expect_valid(&record, "inference.json");
        assert_eq!(printed, record);
        let by_client = record["ended"] == "client";
        let is_invalid = by_client && record["sessions"].is_null();
        ended.expect_code(if is_invalid { 3 } else { 0 });
        if by_client || (record["ended"] != expected && attempt < ATTEMPTS) {
            continue;
        }
        ended.expect_nothing_left_running();
        let page = ended.text_of("report.html");
        assert!(page.contains("Calibration of an inference server"));
        return Some(record);
    }
    or_inconclusive(Err(vec!["the client was late each time".to_owned()]));
    None
}

fn load_of(record: &Value, sessions: u64) -> &Value {
    let mut loads = record["loads"].as_array().expect("a list").iter();
    let load = loads.find(|load| load["sessions"] == sessions && load["judged"] == "held");
    load.unwrap_or_else(|| panic!("{sessions} sessions are held in {record:#}"))
}

#[test]
#[measures]
fn a_healthy_inference_server_holds_the_most_that_is_tried() {
    let simulator = Simulator::with(&[]);
    let pid = simulator.pid().to_string();
    let arguments = ["--sessions", "20", "--seconds", "1", "--pid", &pid];
    let Some(record) = load_alone(&simulator, 60, "nothing", &arguments) else {
        return;
    };
    assert_eq!(
        (&record["sessions"], &record["ended"]),
        (&60.into(), &"nothing".into())
    );
    assert_eq!(record["transport"], "h2c");
    assert_eq!(record["batch_bytes"], 32_000);
    let load = load_of(&record, 60);
    assert_eq!(load["answered_per_s"], 60.0, "one per session per second");
    assert_eq!(load["sent_per_s"], load["answered_per_s"]);
    // The model takes 75 ms as a median.
    assert!(
        (50.0..250.0).contains(&number(load, "/from_schedule/p50_ms")),
        "{load}"
    );
    assert!(number(load, "/from_schedule/p99_ms") <= number(&record, "/p99_limit_ms"));
    assert!(number(load, "/server/cpu_us_per_batch") > 0.0, "{load}");
    assert!(number(load, "/server/cpu_share") > 0.0, "{load}");
    assert!(number(load, "/server_says/requests") >= number(load, "/batches"));
    assert_eq!(load["errors"], serde_json::json!({}));
}

/// Four places of 100 ms each answer 40 batches a second, and fewer where batches that come at random times must not wait.
#[test]
#[measures]
fn an_inference_server_with_few_places_is_its_own_limit() {
    let simulator = Simulator::with(&[
        ("MODEL_MAX_CONCURRENT", "4"),
        ("MODEL_DELAY_MS", "100"),
        ("MODEL_JITTER_SIGMA", "0"),
        ("MODEL_BATCH_WAIT_MAX_MS", "0"),
        ("MODEL_LONGTAIL_PROB", "0"),
    ]);
    let arguments = ["--seconds", "1", "--inference-transport", "http1"];
    let Some(record) = load_alone(&simulator, 200, "server", &arguments) else {
        return;
    };
    assert_eq!(record["ended"], "server", "{record:#}");
    let sessions = number(&record, "/sessions");
    assert!((20.0..=44.0).contains(&sessions), "{record:#}");
    let loads = record["loads"].as_array().expect("a list");
    let mut over = loads
        .iter()
        .filter(|load| number(load, "/sessions") > sessions);
    let failed = |load: &&Value| load["judged"] == "late" || load["judged"] == "unanswered";
    let over = over.find(failed).expect("a load is too much");
    let waited_us = number(over, "/server_says/queue_wait/p99_us");
    assert!(waited_us > 100_000.0, "{over}");
}

#[test]
#[measures]
fn an_inference_server_that_cannot_be_loaded_is_named_in_one_line() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let ended = Plimsoll::plain([&["calibrate"], arguments].concat()).run();
        ended.expect_code(2);
        let lines: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|it| it.starts_with("plimsoll:"))
            .collect();
        assert_eq!(lines.len(), 1, "{}", ended.stderr);
        for word in words {
            assert!(lines[0].contains(word), "{word} in {}", lines[0]);
        }
    };
    let flag = "--inference";
    refused(&[flag, "ws://127.0.0.1:1"], &["http://HOST:PORT"]);
    refused(
        &[flag, "http://127.0.0.1:1"],
        &["http://127.0.0.1:1", "start the inference server first"],
    );
    refused(
        &[flag, "http://127.0.0.1:1", "--tls"],
        &["--inference", "--tls"],
    );
    refused(
        &[flag, "http://127.0.0.1:1", "--workload", "ws"],
        &["ws has no inference server"],
    );
    refused(
        &[flag, "http://127.0.0.1:1", "--pid", "999999999"],
        &["no such process"],
    );
    refused(&["--pid", "1"], &["--inference"]);
    // Every answer has another status: this is no inference server that can be measured.
    let simulator = Simulator::with(&[]);
    let faults = r#"{"http_404": 1.0}"#;
    put_faults(&simulator, faults);
    refused(
        &[flag, &simulator.url, "--seconds", "0.5"],
        &["http_status 404", "--inference-transport"],
    );
}

/// Tells a simulator which faults to have.
fn put_faults(simulator: &Simulator, faults: &str) {
    use std::io::{Read, Write};
    let address = simulator.url.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).expect("a simulator");
    let request = format!(
        "PUT /faults HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{faults}",
        faults.len()
    );
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
}
