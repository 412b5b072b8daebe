//! Faults on demand over real sockets, both protocols.

mod common;

use std::error::Error;
use std::io::ErrorKind;

use common::{BOTH, Client, Protocol, Reply, infer, quick, start};
use hyper::StatusCode;
use plimsoll_workload_stt::reference::Answer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn with_fault(client: &mut Client, name: &str) -> Reply {
    let reply = client.put_faults(&format!("{{\"{name}\": 1}}")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    client
        .send(infer(vec![0; 640], "4"))
        .await
        .expect("an answer")
}

#[tokio::test]
async fn statuses_and_bad_bodies() {
    let address = start(quick());
    for protocol in BOTH {
        let mut client = Client::connect(address, protocol).await;
        for (name, status) in [("http_429", 429), ("http_503", 503), ("http_404", 404)] {
            assert_eq!(with_fault(&mut client, name).await.status, status, "{name}");
        }
        for name in ["garbage", "unknown_field", "missing_field"] {
            let reply = with_fault(&mut client, name).await;
            assert_eq!(reply.status, StatusCode::OK, "{name}");
            assert!(
                Answer::from_json(&reply.body).is_err(),
                "{name}: {}",
                reply.text()
            );
            let is_json = serde_json::from_slice::<Value>(&reply.body).is_ok();
            assert_eq!(is_json, name != "garbage", "{name}: {}", reply.text());
        }
        client.put_faults("{}").await;
        let reply = client
            .send(infer(vec![0; 640], "4"))
            .await
            .expect("an answer");
        assert!(
            Answer::from_json(&reply.body).is_ok(),
            "faults are off again: {}",
            reply.text()
        );
    }
    let stats = Client::connect(address, Protocol::Http1)
        .await
        .get("/stats")
        .await
        .json();
    assert_eq!(
        stats["faults"],
        json!({"http_429": 2, "http_503": 2, "http_404": 2, "garbage": 2, "unknown_field": 2, "missing_field": 2,
               "reset": 0, "never": 0})
    );
}

#[tokio::test]
async fn reset_resets_the_stream_of_http_2_and_not_its_connection() {
    let mut client = Client::connect(start(quick()), Protocol::Http2).await;
    client.put_faults(r#"{"reset": 1}"#).await;
    let error = client
        .send(infer(vec![0; 640], "4"))
        .await
        .err()
        .expect("no answer");
    let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
    let stream_error = loop {
        let this = cause.expect("an error of the HTTP/2 layer among the causes");
        if let Some(found) = this.downcast_ref::<h2::Error>() {
            break found;
        }
        cause = this.source();
    };
    assert!(
        stream_error.is_reset() && stream_error.is_remote(),
        "{stream_error:?}"
    );
    assert_eq!(stream_error.reason(), Some(h2::Reason::INTERNAL_ERROR));
    // The same connection still serves.
    client.put_faults("{}").await;
    assert_eq!(
        client
            .send(infer(vec![0; 640], "4"))
            .await
            .expect("an answer")
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn reset_aborts_the_connection_of_http_1() {
    let address = start(quick());
    Client::connect(address, Protocol::Http1)
        .await
        .put_faults(r#"{"reset": 1}"#)
        .await;
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the simulator listens");
    stream
        .write_all(b"POST /infer HTTP/1.1\r\nhost: simulator\r\ncontent-length: 4\r\n\r\n\0\0\0\0")
        .await
        .expect("a socket that takes bytes");
    let mut buffer = [0; 64];
    let error = stream
        .read(&mut buffer)
        .await
        .expect_err("a reset, not an orderly end and not an answer");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn never_holds_the_request_until_the_client_goes() {
    let address = start(quick());
    let mut control = Client::connect(address, Protocol::Http1).await;
    for protocol in BOTH {
        control.put_faults(r#"{"never": 1}"#).await;
        let mut client = Client::connect(address, protocol).await;
        let held = tokio::spawn(async move {
            client
                .send(infer(vec![0; 640], "4"))
                .await
                .map(|reply| reply.status)
        });
        while control.get("/stats").await.json()["inflight"] != json!(1) {}
        control.put_faults("{}").await;
        // A later request with the same latency is answered, the held one is not.
        let mut other = Client::connect(address, protocol).await;
        other
            .send(infer(vec![0; 640], "4"))
            .await
            .expect("an answer");
        assert!(!held.is_finished(), "{protocol:?}");
        held.abort();
        while control.get("/stats").await.json()["inflight"] != json!(0) {}
    }
    assert_eq!(
        control.get("/stats").await.json()["faults"]["never"],
        json!(2)
    );
}

#[tokio::test]
async fn a_delay_is_added_to_the_latency() {
    let mut client = Client::connect(start(quick()), Protocol::Http2).await;
    client.put_faults(r#"{"delay_ms": 60}"#).await;
    let sent = std::time::Instant::now();
    client
        .send(infer(vec![0; 640], "4"))
        .await
        .expect("an answer");
    assert!(sent.elapsed().as_millis() >= 61, "{:?}", sent.elapsed());
}

#[tokio::test]
async fn the_same_wish_gives_the_same_faults_again() {
    let mut client = Client::connect(start(quick()), Protocol::Http2).await;
    let mut rounds = Vec::new();
    for _ in 0..2 {
        client
            .put_faults(r#"{"http_503": 0.5, "http_429": 0.2}"#)
            .await;
        let mut statuses = Vec::new();
        for _ in 0..30 {
            statuses.push(
                client
                    .send(infer(vec![0; 2], "1"))
                    .await
                    .expect("an answer")
                    .status
                    .as_u16(),
            );
        }
        rounds.push(statuses);
    }
    assert_eq!(rounds[0], rounds[1]);
    for status in [200, 429, 503] {
        assert!(
            rounds[0].contains(&status),
            "{status} is not among {:?}",
            rounds[0]
        );
    }
}

#[tokio::test]
async fn bad_faults_are_refused_and_change_nothing() {
    let mut client = Client::connect(start(quick()), Protocol::Http1).await;
    client.put_faults(r#"{"http_503": 0.25}"#).await;
    let reply = client.put_faults(r#"{"http_503": 2}"#).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        reply.text(),
        "faults: http_503 is 2: give a share from 0 to 1\n"
    );
    assert_eq!(client.get("/faults").await.json()["http_503"], json!(0.25));
}
