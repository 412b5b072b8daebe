//! What the simulator says of itself, and the program around it.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use common::{BOTH, Client, Protocol, infer, quick, request, start};
use hyper::{Method, StatusCode};
use plimsoll_workload_stt::reference::compute;
use serde_json::{Value, json};

#[tokio::test]
async fn health() {
    let address = start(quick());
    for protocol in BOTH {
        assert_eq!(
            Client::connect(address, protocol)
                .await
                .get("/health")
                .await
                .status,
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn stats_count_a_window_and_begin_anew() {
    let mut client = Client::connect(start(quick()), Protocol::Http2).await;
    for _ in 0..3 {
        client
            .send(infer(vec![0; 32_000], "4"))
            .await
            .expect("an answer");
    }
    let stats = client.get("/stats").await.json();
    assert_eq!(
        (
            &stats["requests"],
            &stats["inflight"],
            &stats["inflight_max"]
        ),
        (&json!(3), &json!(0), &json!(1))
    );
    let number = |stats: &Value, name: &str| stats[name].as_u64().expect("a whole number");
    assert!(
        number(&stats, "busy_us") > 0 && number(&stats, "cpu_us") > 0,
        "{stats}"
    );
    assert!(
        number(&stats, "busy_us") <= number(&stats, "window_us"),
        "{stats}"
    );
    assert!(
        stats["answer_lateness"]["max_us"].as_u64() >= stats["answer_lateness"]["p50_us"].as_u64(),
        "{stats}"
    );

    let reset = client
        .send(request(Method::POST, "/stats/reset", "".into()))
        .await
        .expect("an answer");
    assert_eq!(reset.status, StatusCode::OK);
    let anew = client.get("/stats").await.json();
    assert_eq!(anew["requests"], json!(0));
    assert!(
        number(&anew, "window_us") < number(&anew, "uptime_us"),
        "{anew}"
    );
    assert!(
        number(&anew, "uptime_us") > number(&stats, "uptime_us"),
        "{anew}"
    );
}

#[tokio::test]
async fn metrics_are_prometheus_text_and_survive_a_reset_of_the_window() {
    let mut client = Client::connect(start(quick()), Protocol::Http1).await;
    client
        .send(infer(vec![0; 640], "4"))
        .await
        .expect("an answer");
    client
        .send(request(Method::POST, "/stats/reset", "".into()))
        .await
        .expect("an answer");
    let reply = client.get("/metrics").await;
    assert!(
        reply.content_type.starts_with("text/plain; version=0.0.4"),
        "{}",
        reply.content_type
    );
    let text = reply.text();
    for line in [
        "inference_requests_total 1",
        "inference_inflight 0",
        "inference_inflight_max 1",
        "inference_faults_total{kind=\"never\"} 0",
        "inference_queue_wait_seconds_count 1",
        "inference_answer_lateness_seconds_count 1",
    ] {
        assert!(
            text.lines().any(|seen| seen == line),
            "{line} is not in\n{text}"
        );
    }
    // Every sample is `name value` or `name{labels} value`, with a number for a value.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<f64>());
        assert!(matches!(value, Some(Ok(_))), "{line}");
    }
}

#[tokio::test]
async fn requests_show_what_was_sent() {
    let address = start(quick());
    for (protocol, version) in [(Protocol::Http1, "HTTP/1.1"), (Protocol::Http2, "HTTP/2.0")] {
        let mut client = Client::connect(address, protocol).await;
        let pcm = vec![1; 640];
        let sum = compute(&pcm, 3).expect("even").checksum;
        client.send(infer(pcm, "3")).await.expect("an answer");
        client
            .send(request(Method::POST, "/infer", vec![1; 3].into()))
            .await
            .expect("an answer");
        let seen = client.get("/requests?last=2").await.json();
        let mut seen = seen.as_array().expect("an array").clone();
        let at: Vec<_> = seen
            .iter_mut()
            .map(|one| one.as_object_mut().and_then(|one| one.remove("at_us")))
            .collect();
        assert!(
            at[0].as_ref().and_then(Value::as_u64) < at[1].as_ref().and_then(Value::as_u64),
            "{at:?}"
        );
        assert_eq!(
            seen,
            [
                json!({"http_version": version, "content_type": "application/octet-stream", "cpu_passes": 3,
                       "audio_bytes": 640, "checksum": sum, "inflight": 1}),
                json!({"http_version": version, "content_type": null, "cpu_passes": null,
                       "audio_bytes": 3, "checksum": null, "inflight": 1}),
            ]
        );
        assert_eq!(
            client.get("/requests?last=many").await.status,
            StatusCode::BAD_REQUEST
        );
    }
}

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_plimsoll-inference"));
    program
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    program
}

/// Starts the program and reads its first line.
fn started(program: &mut Command) -> (Child, Value) {
    let mut child = program.spawn().expect("the program was built");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("a line");
    (
        child,
        serde_json::from_str(&line).expect("one JSON object on one line"),
    )
}

#[tokio::test]
async fn the_program_says_where_it_listens_and_ends_well_on_both_signals() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let (mut child, line) = started(program().env("PORT", "0").args(["--model-delay-ms", "1"]));
        assert_eq!(line["name"], json!("plimsoll-inference"));
        assert_eq!(line["version"], json!(env!("CARGO_PKG_VERSION")));
        assert_eq!(line["config"]["model_delay_ms"], json!(1.0));
        let address = line["address"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("a socket address");
        assert_eq!(
            Client::connect(address, Protocol::Http2)
                .await
                .get("/health")
                .await
                .status,
            StatusCode::OK
        );
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal)
            .expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn a_bad_value_is_one_line_and_exit_code_2() {
    for (name, value) in [
        ("PORT", "none"),
        ("MODEL_SEED", "-1"),
        ("MODEL_LONGTAIL_PROB", "2"),
    ] {
        let output = program()
            .env(name, value)
            .output()
            .expect("the program was built");
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(
            text.starts_with(&format!("plimsoll-inference: {name}={value}: give ")),
            "{text}"
        );
        assert_eq!(
            (text.lines().count(), output.stdout.len()),
            (1, 0),
            "{text}"
        );
    }
}

#[test]
fn a_port_in_use_is_one_line_and_exit_code_2() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let output = program()
        .env("PORT", &port)
        .output()
        .expect("the program was built");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains(&port) && text.lines().count() == 1, "{text}");
}
