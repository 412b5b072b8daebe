//! The gateway between a real client and a real HTTP/2 server.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::serve::ListenerExt;
use futures_util::{SinkExt, StreamExt};
use rust_axum_plain::gateway::Gateway;
use rust_axum_plain::http;
use serde_json::{Value, json};
use support::inference::{Answer, Inference};
use support::vectors;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long anything may take before a test gives up. Not a requirement on the gateway.
const PATIENCE: Duration = Duration::from_secs(10);

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn open(port: u16, authorization: Option<&str>) -> Result<Self, (u16, Option<String>)> {
        let mut request = format!("ws://127.0.0.1:{port}/ws/stt").into_client_request().expect("a request");
        if let Some(value) = authorization {
            request.headers_mut().insert("authorization", value.parse().expect("a value"));
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(refusal)) => {
                let retry_after = refusal.headers().get("retry-after");
                let retry_after = retry_after.map(|value| value.to_str().expect("text").to_owned());
                Err((refusal.status().as_u16(), retry_after))
            }
            Err(other) => panic!("{other}"),
        }
    }

    async fn started(port: u16) -> Self {
        let mut client = Self::open(port, None).await.expect("accepted");
        client.send(Message::text(r#"{"type":"start"}"#)).await;
        client
    }

    async fn send(&mut self, message: Message) {
        self.0.send(message).await.expect("sent");
    }

    async fn send_frames(&mut self, frames: u8) {
        for number in 1..=frames {
            self.send(Message::binary(vec![number; 640])).await;
        }
    }

    async fn receive(&mut self) -> Message {
        let message = timeout(PATIENCE, self.0.next()).await.expect("in time");
        message.expect("not the end").expect("a message")
    }

    async fn receive_json(&mut self) -> Value {
        let message = self.receive().await;
        serde_json::from_str(message.to_text().expect("a text")).expect("JSON")
    }

    async fn receive_close(&mut self) -> u16 {
        match self.receive().await {
            Message::Close(Some(frame)) => frame.code.into(),
            other => panic!("{other:?}"),
        }
    }
}

/// Starts a gateway with short intervals, and with `variables` over them.
async fn start(inference_port: u16, variables: &[(&str, &str)]) -> (u16, Arc<Gateway>) {
    let url = format!("http://127.0.0.1:{inference_port}");
    let usual = [
        ("INFERENCE_URL", url.as_str()),
        ("FLUSH_INTERVAL_MS", "50"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("WORKER_THREADS", "2"),
    ];
    let gateway = support::gateway(&[variables, &usual].concat());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let listener = listener.tap_io(|socket| socket.set_nodelay(true).expect("set"));
    let shutdown = gateway.shutdown.clone().cancelled_owned();
    let server = axum::serve(listener, http::router(gateway.clone()));
    tokio::spawn(server.with_graceful_shutdown(shutdown).into_future());
    (port, gateway)
}

async fn get(port: u16, path: &str) -> reqwest::Response {
    reqwest::get(format!("http://127.0.0.1:{port}{path}")).await.expect("an answer")
}

async fn until(condition: impl Fn() -> bool) {
    let polling = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, polling).await.expect("in time");
}

#[tokio::test]
async fn frames_are_answered_and_counted() {
    let inference = Inference::start().await;
    let (port, _gateway) = start(inference.port, &[]).await;
    let mut client = Client::started(port).await;
    client.send(Message::Ping("?".into())).await;
    assert_eq!(client.receive().await, Message::Pong("?".into()));
    client.send_frames(1).await;
    let mut partial = client.receive_json().await;
    assert!(partial["flush_lateness_ms"].take().as_f64().is_some_and(|lateness| lateness >= 0.0));
    let expected = json!({
        "type": "partial", "oldest_frame_seq": 1, "newest_frame_seq": 1, "frames": 1,
        "rms": 0.0, "zero_crossings": 1, "checksum": 1, "samples": 1280, "transcript": "now",
        "audio_bytes": 640, "cpu_passes": 4, "flush_lateness_ms": null,
    });
    assert_eq!(partial, expected);
    let answer = get(port, "/metrics").await;
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4");
    let text = answer.text().await.expect("text");
    for line in [
        "# TYPE stt_errors_total counter",
        "stt_sessions 1",
        "stt_sessions_total 1",
        "stt_frames_total 1",
        "stt_partials_total 1",
        "stt_jobs_inflight 0",
        "stt_buffer_frames_sum 1",
        "stt_inference_seconds_count 1",
        "stt_errors_total{kind=\"overflow\",stage=\"input_buffer\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn failures_are_named_and_the_session_goes_on() {
    let inference = Inference::start().await;
    let (port, _gateway) = start(inference.port, &[("INFERENCE_TIMEOUT_MS", "2000")]).await;
    let mut client = Client::started(port).await;
    for (answer, kind, status) in [
        (Answer::Status(429), "http_429", 429),
        (Answer::Status(503), "http_5xx", 503),
        (Answer::Status(404), "http_4xx", 404),
        (Answer::Status(302), "parse_error", 302),
        (Answer::Body(r#"{"rms":1}"#), "parse_error", 200),
    ] {
        inference.set(answer);
        client.send_frames(1).await;
        let error = client.receive_json().await;
        assert_eq!((&error["kind"], &error["inference_status"]), (&json!(kind), &json!(status)), "{error}");
        assert_eq!(error["inflight_gateway_batches"], 0, "{error}");
    }
    inference.set(Answer::Good);
    let held = inference.gate.acquire_many(1000).await.expect("open");
    client.send_frames(1).await;
    let error = client.receive_json().await;
    assert_eq!((&error["kind"], &error["oldest_frame_seq"]), (&json!("timeout"), &json!(6)), "{error}");
    drop(held);
    client.send_frames(1).await;
    assert_eq!(client.receive_json().await["type"], "partial");
}

#[tokio::test]
async fn no_inference_server_is_a_connection_reset() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nobody_port = nobody.local_addr().expect("bound").port();
    drop(nobody);
    let (port, _gateway) = start(nobody_port, &[]).await;
    let mut client = Client::started(port).await;
    client.send_frames(1).await;
    let error = client.receive_json().await;
    assert_eq!((&error["kind"], &error["inference_status"]), (&json!("connection_reset"), &Value::Null));
}

#[tokio::test]
async fn each_worker_has_its_connections_and_no_more() {
    let inference = Inference::start().await;
    let (port, _gateway) = start(inference.port, &[("INFERENCE_HTTP_CLIENTS", "2")]).await;
    let mut sessions = tokio::task::JoinSet::new();
    for _ in 0..40 {
        sessions.spawn(async move {
            let mut client = Client::started(port).await;
            client.send_frames(3).await;
            let mut named = 0;
            while named < 3 {
                let partial = client.receive_json().await;
                assert_eq!(partial["oldest_frame_seq"], named + 1);
                named = partial["newest_frame_seq"].as_u64().expect("a number");
            }
        });
    }
    sessions.join_all().await;
    assert_eq!(inference.connections.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn one_request_in_flight_however_long_it_takes() {
    let inference = Inference::start().await;
    let (port, gateway) = start(inference.port, &[]).await;
    let held = inference.gate.acquire_many(1000).await.expect("open");
    let mut client = Client::started(port).await;
    client.send_frames(1).await;
    until(|| inference.requests.load(Ordering::SeqCst) == 1).await;
    client.send_frames(2).await;
    until(|| gateway.metrics.ticks_deferred("inflight").get() >= 3).await;
    assert_eq!(inference.requests.load(Ordering::SeqCst), 1);
    drop(held);
    assert_eq!(client.receive_json().await["newest_frame_seq"], 1);
    assert_eq!(client.receive_json().await["newest_frame_seq"], 3);
    // A client that leaves gives its request up.
    let _held = inference.gate.acquire_many(1000).await.expect("open");
    client.send_frames(1).await;
    until(|| gateway.jobs.in_use() == 1).await;
    drop(client);
    until(|| gateway.jobs.in_use() == 0 && gateway.sessions.in_use() == 0).await;
}

#[tokio::test]
async fn routes() {
    let (port, _gateway) = start(1, &[("AUTH_TOKEN", "secret"), ("MAX_SESSIONS", "1")]).await;
    for (path, status) in [("/health", 200), ("/metrics", 200), ("/ws/stt", 400), ("/", 404), ("/ws/stt/more", 404)] {
        assert_eq!(get(port, path).await.status(), status, "{path}");
    }
    let posted = reqwest::Client::new().post(format!("http://127.0.0.1:{port}/health")).send().await;
    assert_eq!(posted.expect("an answer").status(), 405);
}

#[tokio::test]
async fn admission() {
    let (port, gateway) = start(1, &[("AUTH_TOKEN", "secret"), ("MAX_SESSIONS", "1")]).await;
    let mut first = Client::open(port, Some("Bearer secret")).await.expect("accepted");
    for wrong in [None, Some("Bearer"), Some("Bearer secre"), Some("Bearer secret2"), Some("Basic secret")] {
        assert_eq!(Client::open(port, wrong).await.err(), Some((401, None)), "{wrong:?}");
    }
    let full = Client::open(port, Some("Bearer secret")).await.err();
    assert_eq!(full, Some((503, Some("1".to_owned()))));
    assert_eq!(gateway.metrics.sessions_rejected.get(), 1);
    first.0.close(None).await.expect("sent");
    assert!(matches!(first.receive().await, Message::Close(_)));
    // The place was free before the close was answered.
    Client::open(port, Some("Bearer secret")).await.expect("accepted");
    assert_eq!(gateway.metrics.sessions.get(), 2);
}

#[tokio::test]
async fn messages_by_type_and_size() {
    let (port, _gateway) = start(1, &[("FLUSH_INTERVAL_MS", "60000")]).await;
    for case in vectors("frames.json") {
        let length = case["length"].as_u64().expect("a length");
        if length > 1 << 20 {
            continue;
        }
        let payload = vec![b'0'; usize::try_from(length).expect("short")];
        let text = case["opcode"] == "text";
        let mut client = Client::started(port).await;
        let message = if text { Message::text(String::from_utf8(payload).expect("text")) } else { payload.into() };
        let sent = client.0.send(message).await;
        if case["ok"] == true {
            client.send(Message::Ping("?".into())).await;
            assert_eq!(client.receive().await, Message::Pong("?".into()), "{}", case["id"]);
        } else if case["close"] != 1009 {
            sent.expect("sent");
            assert_eq!(u64::from(client.receive_close().await), case["close"], "{}", case["id"]);
        } else {
            // axum does not say which limit was broken, and what is left unread may tear the connection.
            let end = timeout(PATIENCE, client.0.next()).await.expect("in time");
            let refused = match end {
                Some(Ok(Message::Close(Some(frame)))) => u16::from(frame.code) == 1002,
                other => matches!(other, None | Some(Err(_))),
            };
            assert!(refused, "{}", case["id"]);
        }
    }
}

#[tokio::test]
async fn a_session_begins_with_a_start() {
    let (port, _gateway) = start(1, &[("START_TIMEOUT_MS", "100")]).await;
    let mut silent = Client::open(port, None).await.expect("accepted");
    assert_eq!(silent.receive_close().await, 1002);
    let mut binary_first = Client::open(port, None).await.expect("accepted");
    binary_first.send_frames(1).await;
    assert_eq!(binary_first.receive_close().await, 1002);
    for case in vectors("start.json").iter().filter(|case| case["ok"] == false) {
        let mut client = Client::open(port, None).await.expect("accepted");
        client.send(Message::text(case["text"].as_str().expect("text"))).await;
        assert_eq!(client.receive_close().await, 1002, "{}", case["id"]);
    }
}

#[tokio::test]
async fn the_close_policy_closes_with_1013() {
    let variables = [("OVERFLOW_POLICY", "close"), ("MAX_BUFFER_FRAMES", "3"), ("FLUSH_INTERVAL_MS", "60000")];
    let (port, _gateway) = start(1, &variables).await;
    let mut client = Client::started(port).await;
    client.send_frames(4).await;
    assert_eq!(client.receive_close().await, 1013);
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_then_closes() {
    let inference = Inference::start().await;
    let (port, gateway) = start(inference.port, &[]).await;
    let held = inference.gate.acquire_many(1000).await.expect("open");
    let mut idle = Client::started(port).await;
    let mut client = Client::started(port).await;
    client.send_frames(2).await;
    until(|| gateway.jobs.in_use() == 1).await;
    let draining = tokio::spawn(async move { gateway.drain().await });
    assert_eq!(idle.receive_close().await, 1001);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "nobody listens any more");
    drop(held);
    assert_eq!(client.receive_json().await["type"], "partial");
    assert_eq!(client.receive_close().await, 1001);
    drop((idle, client));
    timeout(PATIENCE, draining).await.expect("in time").expect("no panic");
}

#[tokio::test]
async fn a_drain_ends_although_an_answer_does_not_come() {
    let inference = Inference::start().await;
    let (port, gateway) = start(inference.port, &[("DRAIN_TIMEOUT_MS", "200")]).await;
    let _held = inference.gate.acquire_many(1000).await.expect("open");
    let mut client = Client::started(port).await;
    client.send_frames(1).await;
    until(|| gateway.jobs.in_use() == 1).await;
    let draining = tokio::spawn(async move { gateway.drain().await });
    assert_eq!(client.receive_close().await, 1001);
    timeout(PATIENCE, draining).await.expect("in time").expect("no panic");
}
