//! Requests and answers of JetStream. Where a text is an answer of a server, it is written as the server's source makes
//! it (`mset.pubAck` in nats-io/nats-server, server/stream.go).

use serde_json::{Value, json};

use super::*;

fn setup(shape: Shape, keeping: Keeping) -> Setup {
    Setup {
        stream: "S".to_owned(),
        subject: "orders".to_owned(),
        shape,
        keeping,
        connection: "c1".to_owned(),
        login: None,
    }
}

/// The line and the body of a request.
fn request(write: impl FnOnce(&mut Vec<u8>)) -> (String, Value) {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).unwrap();
    let mut lines = text.split("\r\n");
    let (line, body) = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(line.rsplit(' ').next(), Some(&*body.len().to_string()));
    (line.to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn a_stream_is_a_queue_or_keeps_everything() {
    let cases = [
        (Shape::Queue, Keeping::File, "workqueue", "file", None),
        (Shape::Queue, Keeping::Memory, "workqueue", "memory", None),
        (
            Shape::Stream,
            Keeping::FileLater,
            "limits",
            "file",
            Some("async"),
        ),
    ];
    for (shape, keeping, retention, storage, persist) in cases {
        let (line, body) = request(|out| create_stream(out, &setup(shape, keeping), b"r"));
        assert!(line.starts_with("PUB $JS.API.STREAM.CREATE.S r "), "{line}");
        let mut expected = json!({"name": "S", "subjects": ["orders"], "retention": retention, "storage": storage,
            "num_replicas": 1});
        if let Some(mode) = persist {
            expected["persist_mode"] = json!(mode);
        }
        assert_eq!(body, expected);
    }
}

#[test]
fn a_shared_consumer_is_durable_and_wants_acknowledgements() {
    let reading = Reading::Shared {
        consumer: "readers".to_owned(),
        unsettled_max: 512,
        ack_wait_ns: Some(2_000_000_000),
    };
    let setup = setup(Shape::Queue, Keeping::File);
    let (line, body) =
        request(|out| create_consumer(out, &setup, &reading, "readers", Begin::Next, b"r"));
    assert!(
        line.starts_with("PUB $JS.API.CONSUMER.CREATE.S.readers r "),
        "{line}"
    );
    let expected = json!({"stream_name": "S", "action": "create", "config": {
        "name": "readers", "durable_name": "readers", "deliver_policy": "all", "ack_policy": "explicit",
        "replay_policy": "instant", "ack_wait": 2_000_000_000_u64, "max_ack_pending": 512, "num_replicas": 1}});
    assert_eq!(body, expected);
}

#[test]
fn an_ordered_consumer_begins_with_the_next_message_or_with_a_number() {
    let setup = setup(Shape::Stream, Keeping::File);
    let config = |begin| {
        let (_, body) =
            request(|out| create_consumer(out, &setup, &Reading::Ordered, "c1-2", begin, b"r"));
        body["config"].clone()
    };
    let mut expected = json!({"name": "c1-2", "deliver_policy": "new", "ack_policy": "none", "replay_policy": "instant",
        "inactive_threshold": 300_000_000_000u64, "num_replicas": 1, "mem_storage": true});
    assert_eq!(config(Begin::Next), expected);
    expected["deliver_policy"] = json!("by_start_sequence");
    expected["opt_start_seq"] = json!(8);
    assert_eq!(config(Begin::At(8)), expected);
}

#[test]
fn a_pull_request_says_its_size_twice() {
    for batch in [1, 9, 10, 512, 65_536] {
        let (line, body) = request(|out| {
            pull(
                out,
                b"PUB $JS.API.CONSUMER.MSG.NEXT.S.c _INBOX.c1.2.",
                batch,
            )
        });
        assert!(
            line.starts_with(&format!(
                "PUB $JS.API.CONSUMER.MSG.NEXT.S.c _INBOX.c1.2.{batch} "
            )),
            "{line}"
        );
        assert_eq!(body, json!({"batch": batch, "expires": 30_000_000_000u64}));
    }
}

#[test]
fn an_error_of_the_server_is_told_with_its_numbers() {
    let payload = br#"{"type":"io.nats.jetstream.api.v1.stream_create_response","error":{"code":400,"err_code":10058,"description":"stream name already in use with a different configuration"}}"#;
    assert_eq!(
        answer::<Done>(payload).err().unwrap(),
        "JetStream answers with error 400 (10058): stream name already in use with a different configuration"
    );
    assert!(answer::<Done>(b"{\"did_create\":true}").is_ok());
    assert!(answer::<Done>(b"nonsense").is_err());
    assert!(answer::<ConsumerCreated>(b"{}").is_err());
}

#[test]
fn pub_acks_are_read_the_short_way_and_the_long_way() {
    let begin = pub_ack_begin("S");
    let stored: [&[u8]; 5] = [
        br#"{"stream":"S", "seq":7}"#,
        br#"{"stream":"S","seq":7}"#,
        br#"{"stream":"S", "domain":"hub", "seq":7}"#,
        br#"{"stream":"S", "seq":7,"duplicate": true}"#,
        br#"{"type":"x","stream":"S","seq":7}"#,
    ];
    for payload in stored {
        assert_eq!(pub_ack(&begin, payload), Some(PubAck::Stored));
    }
    let refused = br#"{"error":{"code":429,"err_code":10167,"description":"too many requests"},"stream":"S","seq":0}"#;
    assert_eq!(
        pub_ack(&begin, refused),
        Some(PubAck::Refused("too many requests".into()))
    );
    for payload in [
        &b""[..],
        b"{}",
        br#"{"stream":"S", "seq":}"#,
        br#"{"stream":"S", "seq":-1}"#,
        b"+OK",
    ] {
        assert_eq!(pub_ack(&begin, payload), None);
    }
}
