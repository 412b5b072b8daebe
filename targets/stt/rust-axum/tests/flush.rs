//! The gateway between a real client and a real HTTP/2 server.

mod support;

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use support::client::{BINARY, Client, FINAL, PING, PONG, START, TEXT, frame, http, patiently};
use support::inference::{Behaviour, Inference, synthetic_frame};
use support::{gateway, vectors};

#[tokio::test]
async fn the_golden_frame() {
    let inference = Inference::start().await;
    let (port, gateway) = gateway(inference.port, &[]).await;
    let mut client = Client::started(port).await;
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    let mut partial = client.receive_json().await;
    let lateness = partial["flush_lateness_ms"].take();
    assert!(lateness.as_f64().is_some_and(|lateness| lateness >= 0.0), "{lateness}");
    let expected = json!({
        "type": "partial", "oldest_frame_seq": 1, "newest_frame_seq": 1, "frames": 1,
        "rms": 2_425.502_319_108_353_3, "zero_crossings": 7, "checksum": 1_745_339_397, "samples": 1280,
        "transcript": "now", "audio_bytes": 640, "cpu_passes": 4, "flush_lateness_ms": null,
    });
    assert_eq!(partial, expected);
    assert_eq!(gateway.jobs.in_use(), 0);
    let metrics = http(port, "GET /metrics", "").await;
    for line in ["stt_frames_total 1", "stt_partials_total 1", "stt_inference_seconds_count 1", "stt_jobs_inflight 0"] {
        assert!(metrics.lines().any(|it| it == line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn one_request_in_flight_however_long_it_takes() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[("FLUSH_INTERVAL_MS", "10")]).await;
    let held = inference.gate.acquire_many(1000).await.expect("open");
    let mut client = Client::started(port).await;
    let mut sent = 0;
    let deferred = "stt_ticks_deferred_total{reason=\"inflight\"} ";
    // Until three ticks have found the first request still in flight.
    loop {
        sent += 1;
        client.send(BINARY, &synthetic_frame(0, sent)).await;
        let metrics = http(port, "GET /metrics", "").await;
        let count = metrics.lines().find_map(|line| line.strip_prefix(deferred)).expect("a counter");
        if count.parse::<u64>().expect("a number") >= 3 {
            break;
        }
    }
    assert_eq!(inference.requests.load(Ordering::SeqCst), 1);
    drop(held);
    let mut named = 0;
    while named < sent {
        let partial = client.receive_json().await;
        assert_eq!(partial["type"], "partial");
        assert_eq!(partial["oldest_frame_seq"], named + 1);
        named = partial["newest_frame_seq"].as_u64().expect("a number");
    }
    assert_eq!(inference.running_max.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_still_heard() {
    const PINGS: usize = 100_000;
    let inference = Inference::start().await;
    let variables = [("FLUSH_INTERVAL_MS", "10"), ("OUTBOX_MESSAGES", "2"), ("MAX_BUFFER_FRAMES", "3")];
    let (port, _) = gateway(inference.port, &variables).await;
    let mut client = Client::deaf(port).await;
    client.send(TEXT, START).await;
    // More pongs than all buffers on the way hold, so that the gateway can write nothing more. That the client can send
    // them all means that the gateway goes on reading.
    let pings = frame(FINAL | PING, &[b'?'; 125]).repeat(PINGS);
    patiently(client.write(&pings)).await;
    let deferred = "stt_ticks_deferred_total{reason=\"outbox\"} ";
    let sent = patiently(async {
        for seq in 1.. {
            client.send(BINARY, &synthetic_frame(0, seq)).await;
            let metrics = http(port, "GET /metrics", "").await;
            let count = metrics.lines().find_map(|line| line.strip_prefix(deferred)).expect("a counter");
            if count.parse::<u64>().expect("a number") >= 10 {
                return seq;
            }
        }
        unreachable!("a u64 does not run out")
    })
    .await;
    let (mut named, mut pongs) = (0, 0);
    while named < sent {
        let (opcode, payload) = client.receive().await;
        if opcode == PONG {
            pongs += 1;
            continue;
        }
        let message: Value = serde_json::from_slice(&payload).expect("JSON");
        assert_eq!(message["oldest_frame_seq"], named + 1, "{message}");
        named = message["newest_frame_seq"].as_u64().expect("a number");
    }
    assert!(pongs < PINGS, "the gateway was never held up, so nothing was tested");
}

#[tokio::test]
async fn failures_are_named_and_the_session_goes_on() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[("INFERENCE_TIMEOUT_MS", "200")]).await;
    let mut client = Client::started(port).await;
    let mut seq = 0;
    for case in vectors("inference_failures.json") {
        inference.set(match (case["status"].as_u64(), case["transport"].as_str()) {
            (Some(status), _) => Behaviour::Status(u16::try_from(status).expect("a status")),
            (_, Some("reset")) => Behaviour::Reset,
            _ => Behaviour::Never,
        });
        seq += 1;
        client.send(BINARY, &synthetic_frame(0, seq)).await;
        let error = client.receive_json().await;
        let id = &case["id"];
        assert_eq!((&error["type"], &error["kind"]), (&json!("error"), &case["kind"]), "{id}: {error}");
        assert_eq!((&error["stage"], &error["retryable"]), (&case["stage"], &case["retryable"]), "{id}");
        assert_eq!((&error["oldest_frame_seq"], &error["newest_frame_seq"]), (&json!(seq), &json!(seq)), "{id}");
        assert_eq!(error["inference_status"], case["status"], "{id}");
        assert!(error["inference_elapsed_ms"].as_f64().is_some(), "{id}");
    }
    inference.set(Behaviour::Body(r#"{"rms":1}"#));
    client.send(BINARY, &synthetic_frame(0, seq + 1)).await;
    assert_eq!(client.receive_json().await["kind"], "parse_error");
    inference.set(Behaviour::Answer);
    client.send(BINARY, &synthetic_frame(0, seq + 2)).await;
    assert_eq!(client.receive_json().await["type"], "partial");
}

#[tokio::test]
async fn a_lost_connection_is_made_anew() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[("WORKER_THREADS", "1")]).await;
    let mut client = Client::started(port).await;
    for seq in 1..=3 {
        client.send(BINARY, &synthetic_frame(0, seq)).await;
        assert_eq!(client.receive_json().await["type"], "partial");
        inference.disconnect().await;
    }
    assert_eq!(inference.connections_accepted.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn no_inference_server_is_a_connection_reset() {
    let (port, _) = gateway(support::free_port(), &[]).await;
    let mut client = Client::started(port).await;
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    assert_eq!(client.receive_json().await["kind"], "connection_reset");
}

#[tokio::test]
async fn many_sessions_share_few_connections() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[("WORKER_THREADS", "2"), ("INFERENCE_HTTP_CLIENTS", "2")]).await;
    let sessions = (0..40).map(|session| async move {
        let mut client = Client::started(port).await;
        for seq in 1..=5 {
            client.send(BINARY, &synthetic_frame(session, seq)).await;
        }
        let mut named = 0;
        while named < 5 {
            named = client.receive_json().await["newest_frame_seq"].as_u64().expect("a number");
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    sessions.for_each(|session| drop(tasks.spawn(session)));
    tasks.join_all().await;
    assert_eq!(inference.connections_accepted.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_request_up() {
    let inference = Inference::start().await;
    let (port, gateway) = gateway(inference.port, &[]).await;
    inference.set(Behaviour::Never);
    let mut client = Client::started(port).await;
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    until(|| gateway.jobs.in_use() == 1).await;
    drop(client);
    until(|| gateway.jobs.in_use() == 0 && gateway.sessions.in_use() == 0).await;
}

async fn until(condition: impl Fn() -> bool) {
    patiently(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
