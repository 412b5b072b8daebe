//! The gateway over real sockets: what is let in, what is refused, and with which code.

mod support;

use rust_axum::messages::FRAME_BYTES;
use support::client::{
    BINARY, CLOSE, Client, FINAL, PING, PONG, START, TEXT, UPGRADE, connect, frame, header, http, request, upgrade,
};
use support::inference::{Inference, synthetic_frame};
use support::{gateway, vectors};

/// A gateway whose inference server is never asked.
async fn lone_gateway(variables: &[(&str, &str)]) -> u16 {
    gateway(1, variables).await.0
}

#[tokio::test]
async fn routes() {
    let port = lone_gateway(&[]).await;
    for (request, status) in [
        ("GET /health", 200),
        ("GET /metrics", 200),
        ("GET /ws/stt", 426),
        ("GET /", 404),
        ("GET /ws/stt/", 404),
        ("POST /health", 404),
        ("POST /ws/stt", 404),
    ] {
        let answer = http(port, request, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    for (good, bad) in [
        ("Version: 13", "Version: 12"),
        ("Connection: Upgrade", "Connection: keep-alive"),
        ("Upgrade: websocket", "Upgrade: h2c"),
        ("Key: dGhlIHNhbXBsZSBub25jZQ==", "Key: c2hvcnQ="),
    ] {
        let (answer, _) = request(connect(port).await, &UPGRADE.replace(good, bad), b"").await;
        assert!(answer.starts_with("HTTP/1.1 426 "), "{bad}: {answer}");
    }
}

#[tokio::test]
async fn admission() {
    let port = lone_gateway(&[("MAX_SESSIONS", "1")]).await;
    let mut client = Client::started(port).await;
    let (refused, _) = upgrade(port, "").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    client.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(client.receive_close().await, 1000);
    // The place was free before the close was answered.
    let _next = Client::open(port).await;
    let metrics = http(port, "GET /metrics", "").await;
    for line in ["stt_sessions 1", "stt_sessions_total 2", "stt_sessions_rejected_total 1"] {
        assert!(metrics.lines().any(|it| it == line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn authorization() {
    let port = lone_gateway(&[("AUTH_TOKEN", "secret")]).await;
    for headers in [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer secre\r\n",
        "Authorization: Bearer secret2\r\n",
        "Authorization: Basic secret\r\n",
    ] {
        let (refused, _) = upgrade(port, headers).await;
        assert!(refused.starts_with("HTTP/1.1 401 "), "{headers}: {refused}");
    }
    let (welcome, _) = upgrade(port, "Authorization: Bearer secret\r\n").await;
    assert!(welcome.starts_with("HTTP/1.1 101 "), "{welcome}");
}

#[tokio::test]
async fn a_session_begins_with_a_start() {
    let port = lone_gateway(&[]).await;
    for case in vectors("start.json") {
        let mut client = Client::open(port).await;
        client.send(TEXT, case["text"].as_str().expect("text").as_bytes()).await;
        client.send(PING, b"?").await;
        if case["ok"] == true {
            assert_eq!(client.receive().await, (PONG, b"?".to_vec()), "{}", case["id"]);
        } else {
            assert_eq!(u64::from(client.receive_close().await), case["close"], "{}", case["id"]);
        }
    }
    let mut binary_first = Client::open(port).await;
    binary_first.send(BINARY, &[0; FRAME_BYTES]).await;
    assert_eq!(binary_first.receive_close().await, 1002);
    let impatient_port = lone_gateway(&[("START_TIMEOUT_MS", "100")]).await;
    let mut silent = Client::open(impatient_port).await;
    assert_eq!(silent.receive_close().await, 1002);
}

#[tokio::test]
async fn messages_by_type_and_size() {
    let port = lone_gateway(&[]).await;
    for case in vectors("frames.json") {
        let mut client = Client::started(port).await;
        let opcode = if case["opcode"] == "text" { TEXT } else { BINARY };
        let length = case["length"].as_u64().expect("a length");
        if case["close"] == 1009 {
            // The declared length is enough.
            let mut head = header(FINAL | opcode, 0x80, length);
            head.extend([0; 4]);
            client.write(&head).await;
        } else {
            client.send(opcode, &vec![b'0'; usize::try_from(length).expect("short")]).await;
        }
        if case["ok"] == true {
            client.send(PING, b"?").await;
            assert_eq!(client.receive().await, (PONG, b"?".to_vec()), "{}", case["id"]);
        } else {
            assert_eq!(u64::from(client.receive_close().await), case["close"], "{}", case["id"]);
        }
    }
}

#[tokio::test]
async fn violations_of_the_wire() {
    let port = lone_gateway(&[]).await;
    let mut unmasked = Client::started(port).await;
    unmasked.write(&header(FINAL | BINARY, 0, FRAME_BYTES as u64)).await;
    unmasked.write(&[0; FRAME_BYTES]).await;
    assert_eq!(unmasked.receive_close().await, 1002);

    let reserved_bits = [0x40, 0x20, 0x10].map(|bit| FINAL | bit | BINARY);
    let opcodes = [0x3, 0x7, 0xB, 0xF].map(|opcode| FINAL | opcode);
    let continuation_of_nothing = [FINAL];
    let fragmented_ping = [PING];
    for first_byte in reserved_bits.into_iter().chain(opcodes).chain(continuation_of_nothing).chain(fragmented_ping) {
        let mut client = Client::started(port).await;
        client.send_frame(first_byte, b"").await;
        assert_eq!(client.receive_close().await, 1002, "{first_byte:#x}");
    }
    let mut not_utf8 = Client::started(port).await;
    not_utf8.send(TEXT, b"\xFF").await;
    assert_eq!(not_utf8.receive_close().await, 1002);
    let mut long_ping = Client::started(port).await;
    long_ping.send(PING, &[0; 126]).await;
    assert_eq!(long_ping.receive_close().await, 1002);
}

#[tokio::test]
async fn the_close_code_arrives_although_the_client_sends_on() {
    let port = lone_gateway(&[]).await;
    let mut client = Client::started(port).await;
    client.send(BINARY, &[0; 639]).await;
    for _ in 0..500 {
        client.send(BINARY, &[0; FRAME_BYTES]).await;
    }
    assert_eq!(client.receive_close().await, 1003);
}

#[tokio::test]
async fn fragments_make_a_frame_and_too_many_do_not() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[]).await;
    let mut client = Client::started(port).await;
    let pcm = synthetic_frame(0, 1);
    client.send_frame(BINARY, &pcm[..1]).await;
    client.send(PING, b"between").await;
    client.send_frame(0, &pcm[1..600]).await;
    client.send_frame(FINAL, &pcm[600..]).await;
    assert_eq!(client.receive().await, (PONG, b"between".to_vec()));
    assert_eq!(client.receive_json().await["checksum"], 1_745_339_397);

    let mut endless = Client::started(port).await;
    endless.send_frame(BINARY, &[0; 60_000]).await;
    endless.send_frame(0, &[0; 60_000]).await;
    assert_eq!(endless.receive_close().await, 1009);
}

#[tokio::test]
async fn what_comes_with_the_handshake_is_not_lost() {
    let inference = Inference::start().await;
    let (port, _) = gateway(inference.port, &[]).await;
    let (_, socket) = request(connect(port).await, UPGRADE, &frame(FINAL | TEXT, START)).await;
    let mut client = Client { socket };
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    assert_eq!(client.receive_json().await["type"], "partial");
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    let port = lone_gateway(&[]).await;
    for code in [1000_u16, 1001, 4000] {
        let mut client = Client::started(port).await;
        client.send(BINARY, &[0; FRAME_BYTES]).await;
        client.send(CLOSE, &code.to_be_bytes()).await;
        assert_eq!(client.receive_close().await, code);
    }
    let mut half_a_code = Client::started(port).await;
    half_a_code.send(CLOSE, &[3]).await;
    assert_eq!(half_a_code.receive_close().await, 1002);
}

#[tokio::test]
async fn the_close_policy_closes_with_1013() {
    let port =
        lone_gateway(&[("OVERFLOW_POLICY", "close"), ("MAX_BUFFER_FRAMES", "3"), ("FLUSH_INTERVAL_MS", "60000")]).await;
    let mut client = Client::started(port).await;
    for _ in 0..4 {
        client.send(BINARY, &[0; FRAME_BYTES]).await;
    }
    assert_eq!(client.receive_close().await, 1013);
}
