//! `POST /infer` over real sockets, both protocols.

mod common;

use std::time::{Duration, Instant};

use common::{BOTH, Client, Protocol, infer, quick, request, start};
use hyper::{Method, StatusCode};
use plimsoll_inference::config::Config;
use plimsoll_workload_stt::reference::{Answer, compute};
use plimsoll_workload_stt::synthetic::Synthetic;
use serde_json::json;

#[tokio::test]
async fn the_golden_vector_in_exactly_the_contracts_fields() {
    let address = start(quick());
    for protocol in BOTH {
        let mut client = Client::connect(address, protocol).await;
        // Twice on one connection: it is kept alive.
        for _ in 0..2 {
            let pcm = Synthetic::new().batch(0, 1, 1);
            let reply = client.send(infer(pcm, "4")).await.expect("an answer");
            assert_eq!(
                (reply.status, &reply.content_type[..]),
                (StatusCode::OK, "application/json")
            );
            assert_eq!(
                reply.text(),
                "{\"rms\":2425.5023191083533,\"zero_crossings\":7,\"checksum\":1745339397,\"samples\":1280,\
                 \"transcript\":\"now\",\"audio_bytes\":640}"
            );
        }
    }
}

#[tokio::test]
async fn passes_default_to_the_contracts_and_an_empty_batch_is_answered() {
    let address = start(quick());
    for protocol in BOTH {
        let mut client = Client::connect(address, protocol).await;
        let pcm = Synthetic::new().batch(3, 1, 2);
        let bare = request(Method::POST, "/infer", pcm.clone().into());
        let reply = client.send(bare).await.expect("an answer");
        assert_eq!(Answer::from_json(&reply.body).ok(), compute(&pcm, 4).ok());
        let reply = client.send(infer("", "4")).await.expect("an answer");
        assert_eq!(Answer::from_json(&reply.body).ok(), compute(&[], 4).ok());
    }
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_in_one_line() {
    let address = start(quick());
    for protocol in BOTH {
        let mut client = Client::connect(address, protocol).await;
        let refused = [
            (infer(vec![0; 641], "4"), StatusCode::BAD_REQUEST),
            (infer(vec![0; 640], "four"), StatusCode::BAD_REQUEST),
            (infer(vec![0; 640], "-1"), StatusCode::BAD_REQUEST),
            (infer(vec![0; 640], "65"), StatusCode::BAD_REQUEST),
            (
                infer(vec![0; (4 << 20) + 2], "1"),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
            (
                request(Method::GET, "/infer", "".into()),
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            (
                request(Method::POST, "/stats", "".into()),
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            (
                request(Method::POST, "/inference", "".into()),
                StatusCode::NOT_FOUND,
            ),
        ];
        for (request, status) in refused {
            let what = format!("{protocol:?} {} {}", request.method(), request.uri());
            let reply = client.send(request).await.expect("an answer");
            assert_eq!(reply.status, status, "{what}: {}", reply.text());
            assert_eq!(reply.text().lines().count(), 1, "{what}: {}", reply.text());
            if status == StatusCode::PAYLOAD_TOO_LARGE {
                // HTTP/1.1 closes where it has not read the body.
                client = Client::connect(address, protocol).await;
            }
        }
    }
}

#[tokio::test]
async fn many_batches_at_once_on_one_connection() {
    let address = start(Config {
        model_delay_ms: 20.0,
        model_jitter_sigma: 0.5,
        ..quick()
    });
    let Client::Http2(sender) = Client::connect(address, Protocol::Http2).await else {
        unreachable!("asked for")
    };
    let synthetic = Synthetic::new();
    let mut asked = Vec::new();
    for session in 0..100 {
        let mut client = Client::Http2(sender.clone());
        let pcm = synthetic.batch(session, 1, 49 + session % 3);
        let passes = 1 + u32::try_from(session % 4).expect("small");
        let request = infer(pcm.clone(), &passes.to_string());
        asked.push((
            pcm,
            passes,
            tokio::spawn(async move { client.send(request).await }),
        ));
    }
    for (pcm, passes, reply) in asked {
        let reply = reply.await.expect("no panic").expect("an answer");
        assert_eq!(
            Answer::from_json(&reply.body).ok(),
            compute(&pcm, passes).ok()
        );
    }
    let stats = Client::connect(address, Protocol::Http1)
        .await
        .get("/stats")
        .await
        .json();
    assert_eq!(
        (&stats["requests"], &stats["inflight"]),
        (&json!(100), &json!(0))
    );
}

#[tokio::test]
async fn no_answer_comes_before_its_latency() {
    let address = start(Config {
        model_delay_ms: 40.0,
        ..quick()
    });
    for protocol in BOTH {
        let mut client = Client::connect(address, protocol).await;
        let sent = Instant::now();
        client
            .send(infer(vec![0; 640], "4"))
            .await
            .expect("an answer");
        assert!(
            sent.elapsed() >= Duration::from_millis(40),
            "{protocol:?}: {:?}",
            sent.elapsed()
        );
    }
}

#[tokio::test]
async fn requests_over_the_limit_queue_in_order_and_their_wait_is_shown() {
    let address = start(Config {
        model_max_concurrent: 1,
        ..quick()
    });
    let mut control = Client::connect(address, Protocol::Http1).await;
    // One request takes the only place and keeps it until its client goes.
    control.put_faults(r#"{"never": 1}"#).await;
    let mut holder = Client::connect(address, Protocol::Http2).await;
    let holding = tokio::spawn(async move {
        holder
            .send(infer(vec![0; 2], "1"))
            .await
            .map(|reply| reply.status)
    });
    while control.get("/stats").await.json()["inflight"] != json!(1) {}
    control.put_faults("{}").await;

    let Client::Http2(sender) = Client::connect(address, Protocol::Http2).await else {
        unreachable!("asked for")
    };
    let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 1..=4 {
        let (mut client, done) = (Client::Http2(sender.clone()), done.clone());
        tokio::spawn(async move {
            let reply = client
                .send(infer(vec![0; number * 2], "1"))
                .await
                .expect("an answer");
            let _ = done.send(reply.json()["audio_bytes"].as_u64());
        });
    }
    while control.get("/stats").await.json()["inflight"] != json!(5) {}
    let all_wait = Instant::now();
    assert!(
        order.try_recv().is_err(),
        "nobody is answered while the place is taken"
    );
    let waited = all_wait.elapsed();
    holding.abort();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(order.recv().await.flatten());
    }
    assert_eq!(seen, [2, 4, 6, 8]);
    let stats = control.get("/stats").await.json();
    // The last one also waited for three latencies of 1 ms.
    let shown = Duration::from_micros(stats["queue_wait"]["max_us"].as_u64().expect("a number"));
    assert!(shown >= waited + Duration::from_millis(3), "{stats}");
    assert_eq!(stats["inflight_max"], json!(5));
}
