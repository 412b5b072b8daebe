mod faults;
mod properties;

use super::config::{MqttConfig, Qos};
use super::connection::Mqtt;
use super::server::{Published, Server, append_connack, append_message, append_reason};
use super::wire::packet;
use crate::dialect::{Dialect, Fault, Heard, Role};

/// Flags of PUBLISH.
const QOS_1: u8 = 2;
const QOS_2: u8 = 4;
const DUP: u8 = 8;

/// What was heard, with bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Ready,
    Confirmed(u64),
    Refused(u64, String),
    Delivered(Vec<u8>, u64, bool),
}

fn note(heard: Heard<'_>) -> Seen {
    match heard {
        Heard::Ready => Seen::Ready,
        Heard::Confirmed { tag, up_to: false } => Seen::Confirmed(tag),
        Heard::Refused {
            tag: Some(tag),
            why,
        } => Seen::Refused(tag, why.to_owned()),
        Heard::Delivered {
            payload,
            handle,
            redelivered,
        } => Seen::Delivered(payload.to_vec(), handle, redelivered),
        other => panic!("{other:?}"),
    }
}

/// Gives a client bytes in pieces. Returns what it heard, what it answered, and its fault.
fn give<'a>(
    client: &mut Mqtt,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, Vec<u8>, Option<Fault>) {
    let (mut seen, mut out) = (Vec::new(), Vec::new());
    for piece in pieces {
        let result = client.received(piece, &mut out, &mut |heard| seen.push(note(heard)));
        if let Err(fault) = result {
            let again = client.received(b"x", &mut out, &mut |_| panic!("heard after a fault"));
            assert_eq!(again, Err(fault.clone()));
            return (seen, out, Some(fault));
        }
    }
    (seen, out, None)
}

/// Carries bytes to and fro until both are silent.
fn talk(client: &mut Mqtt, server: &mut Server, mut to_server: Vec<u8>) -> Vec<Seen> {
    let mut seen = Vec::new();
    while !to_server.is_empty() {
        let mut to_client = Vec::new();
        server.received(&to_server, &mut to_client);
        let (more, out, fault) = give(client, [&to_client[..]]);
        assert_eq!(fault, None);
        seen.extend(more);
        to_server = out;
    }
    seen
}

fn open(config: MqttConfig) -> (Mqtt, Server) {
    open_with(config, Server::default())
}

fn open_with(config: MqttConfig, mut server: Server) -> (Mqtt, Server) {
    let mut client = Mqtt::new(config).unwrap();
    let mut hello = Vec::new();
    client.open(&mut hello);
    let seen = talk(&mut client, &mut server, hello);
    assert_eq!(seen, [Seen::Ready]);
    (client, server)
}

fn writer(qos: Qos) -> MqttConfig {
    MqttConfig::new(Role::Writer, "a/b", qos)
}

fn reader(qos: Qos) -> MqttConfig {
    MqttConfig::new(Role::Reader, "t", qos)
}

/// CONNECT of a writer, by hand from section 3.1.
#[test]
fn connect_is_that_of_the_standard() {
    let (_, server) = open(writer(Qos::AtLeastOnce));
    let connect = b"\0\x04MQTT\x05\x02\0\0\x05\x27\0\x82\0\0\0\0";
    assert_eq!(server.control, [(packet::CONNECT, connect.to_vec())]);

    let mut config = reader(Qos::AtLeastOnce);
    config.prefetch = 20;
    config.session_expiry_s = 10;
    config.clean_start = false;
    config.client_id = "me".to_owned();
    config.user = Some("u".to_owned());
    config.password = Some("pw".to_owned());
    let (_, server) = open(config);
    let connect = b"\0\x04MQTT\x05\xC0\0\0\x0D\x11\0\0\0\x0A\x21\0\x14\x27\0\x82\0\0\
        \0\x02me\0\x01u\0\x02pw";
    assert_eq!(server.control[0], (packet::CONNECT, connect.to_vec()));
}

/// SUBSCRIBE of a reader, by hand from section 3.8.
#[test]
fn subscribe_is_that_of_the_standard() {
    let subscribed = |config| {
        let (_, server) = open(config);
        let [_, (packet::SUBSCRIBE, fields)] = &server.control[..] else {
            panic!("{:?}", server.control);
        };
        fields.clone()
    };
    assert_eq!(
        subscribed(reader(Qos::AtLeastOnce)),
        b"\0\x01\0\0\x01t\x21",
        "QoS 1 without what is retained"
    );
    let mut config = reader(Qos::ExactlyOnce);
    config.share = Some("g".to_owned());
    config.retained = true;
    assert_eq!(subscribed(config), b"\0\x01\0\0\x0A$share/g/t\x02");
}

/// PUBLISH, by hand from sections 3.3.1 and 3.3.2, with the topic of the standard's own example.
#[test]
fn publish_is_that_of_the_standard() {
    let published = |qos| {
        let (mut client, _) = open(writer(qos));
        let mut out = Vec::new();
        client.publish(&mut out, b"hi", 7);
        out
    };
    assert_eq!(published(Qos::AtMostOnce), b"\x30\x08\0\x03a/b\0hi");
    assert_eq!(published(Qos::AtLeastOnce), b"\x32\x0A\0\x03a/b\0\x01\0hi");
    assert_eq!(published(Qos::ExactlyOnce), b"\x34\x0A\0\x03a/b\0\x01\0hi");
}

#[test]
fn messages_are_confirmed_by_their_last_answer() {
    for (qos, window) in [(Qos::AtLeastOnce, 3), (Qos::ExactlyOnce, 3)] {
        let mut config = writer(qos);
        config.window = window;
        let (mut client, mut server) = open(config);
        let held = client.held_bytes();
        for round in 0..50 {
            let mut out = Vec::new();
            for tag in [round, round + 1000, round + 2000] {
                client.publish(&mut out, b"body", tag);
            }
            let seen = talk(&mut client, &mut server, out);
            let expected = [round, round + 1000, round + 2000].map(Seen::Confirmed);
            assert_eq!(seen, expected);
        }
        assert_eq!(server.published.len(), 150);
        assert_eq!(client.held_bytes(), held);
    }
}

#[test]
fn answers_may_come_in_any_order() {
    let (mut client, _) = open(writer(Qos::AtLeastOnce));
    let mut out = Vec::new();
    for tag in [10, 20, 30] {
        client.publish(&mut out, b"body", tag);
    }
    let mut bytes = Vec::new();
    append_reason(&mut bytes, packet::PUBACK, 3, 0);
    append_reason(&mut bytes, packet::PUBACK, 1, 0x97);
    append_reason(&mut bytes, packet::PUBACK, 2, 0x10);
    let (seen, _, fault) = give(&mut client, [&bytes[..]]);
    let expected = [
        Seen::Confirmed(30),
        Seen::Refused(10, "quota exceeded (0x97)".to_owned()),
        Seen::Refused(20, "no matching subscribers (0x10)".to_owned()),
    ];
    assert_eq!((&seen[..], fault), (&expected[..], None));
}

#[test]
fn a_refusal_of_qos_2_ends_the_exchange() {
    for (reason, released) in [(0x97, false), (0x10, true)] {
        let mut config = writer(Qos::ExactlyOnce);
        config.window = 1;
        let server = Server {
            reason,
            ..Server::default()
        };
        let (mut client, mut server) = open_with(config, server);
        for tag in [1, 2, 3] {
            let mut out = Vec::new();
            client.publish(&mut out, b"body", tag);
            let mut answer = Vec::new();
            server.received(&out, &mut answer);
            let (seen, out, _) = give(&mut client, [&answer[..]]);
            assert_eq!((seen.is_empty(), !out.is_empty()), (released, released));
            let rest = talk(&mut client, &mut server, out);
            let all = [seen, rest].concat();
            assert!(matches!(&all[..], [Seen::Refused(it, _)] if *it == tag));
        }
    }
}

#[test]
fn an_alias_stands_for_the_topic() {
    for (allowed, is_used) in [(&b"\x22\0\x0A"[..], true), (b"", false)] {
        let mut config = writer(Qos::AtMostOnce);
        config.topic_alias = true;
        let server = Server {
            connack: (0, allowed.to_vec()),
            ..Server::default()
        };
        let (mut client, mut server) = open_with(config, server);
        let mut out = Vec::new();
        client.publish(&mut out, b"one", 1);
        client.publish(&mut out, b"two", 2);
        server.received(&out, &mut Vec::new());
        let message = |topic: &[u8], alias: &[u8], body: &[u8]| Published {
            first: packet::PUBLISH,
            topic: topic.to_vec(),
            id: 0,
            properties: alias.to_vec(),
            body: body.to_vec(),
        };
        let expected = if is_used {
            let alias = b"\x23\0\x01";
            [message(b"a/b", alias, b"one"), message(b"", alias, b"two")]
        } else {
            [message(b"a/b", b"", b"one"), message(b"a/b", b"", b"two")]
        };
        assert_eq!(server.published, expected);
    }
}

#[test]
fn messages_are_delivered_and_settled() {
    let (mut client, mut server) = open(reader(Qos::ExactlyOnce));
    let mut bytes = Vec::new();
    append_message(&mut bytes, 0, 0, b"zero");
    append_message(&mut bytes, QOS_1 | DUP, 500, b"one");
    append_message(&mut bytes, QOS_2, 501, b"two");
    let (seen, mut out, fault) = give(&mut client, [&bytes[..]]);
    let expected = [
        Seen::Delivered(b"zero".to_vec(), 0, false),
        Seen::Delivered(b"one".to_vec(), 1 << 16 | 500, true),
        Seen::Delivered(b"two".to_vec(), 2 << 16 | 501, false),
    ];
    assert_eq!((&seen[..], fault), (&expected[..], None));
    let handles = [0, 1 << 16 | 500, 2 << 16 | 501];
    client.settle(&mut out, &handles);
    client.settle(&mut out, &handles);
    assert_eq!(talk(&mut client, &mut server, out), []);
    let expected = [
        (packet::PUBACK, 500),
        (packet::PUBREC, 501),
        (packet::PUBCOMP, 501),
    ];
    assert_eq!(server.answers, expected);
    // Both identifiers are free again.
    let (seen, _, fault) = give(&mut client, [&bytes[..]]);
    assert_eq!((seen.len(), fault), (3, None));
}

#[test]
fn a_release_of_an_earlier_connection_is_answered() {
    let (mut client, _) = open(reader(Qos::ExactlyOnce));
    let (_, out, fault) = give(&mut client, [&b"\x62\x02\0\x09"[..]]);
    assert_eq!((&out[..], fault), (&b"\x70\x03\0\x09\x92"[..], None));
}

#[test]
fn a_whole_message_is_not_copied() {
    let (mut client, _) = open(reader(Qos::AtLeastOnce));
    let mut bytes = Vec::new();
    for id in 1..=16 {
        append_message(&mut bytes, QOS_1, id, &[1; 1024]);
    }
    let (range, held) = (bytes.as_ptr_range(), client.held_bytes());
    let mut count = 0;
    let result = client.received(&bytes, &mut Vec::new(), &mut |heard| {
        let Heard::Delivered { payload, .. } = heard else {
            panic!("{heard:?}");
        };
        assert!(range.contains(&payload.as_ptr()));
        count += 1;
    });
    assert_eq!((result, count, client.held_bytes()), (Ok(()), 16, held));
}

#[test]
fn the_brokers_limits_are_kept() {
    let connack =
        b"\x21\0\x14\x24\x01\x27\0\0\x20\0\x22\0\x0A\x2A\0\x13\xFF\xFF\x12\0\x02me".to_vec();
    let fault = |config: MqttConfig| {
        let mut client = Mqtt::new(config).unwrap();
        client.open(&mut Vec::new());
        let mut bytes = Vec::new();
        append_connack(&mut bytes, 0, 0, &connack);
        let fault = give(&mut client, [&bytes[..]]).2;
        fault.map(|fault| fault.0).unwrap_or_default()
    };
    let small = |qos, window| {
        let mut config = writer(qos);
        config.window = window;
        config.body_bytes_max = 1024;
        config
    };
    assert_eq!(fault(small(Qos::AtLeastOnce, 20)), "");
    assert!(fault(small(Qos::AtLeastOnce, 21)).contains("20 unconfirmed"));
    assert!(fault(small(Qos::ExactlyOnce, 1)).contains("QoS 1 at most"));
    assert!(fault(writer(Qos::AtMostOnce)).contains("packets of 8192 bytes"));
    let mut shared = reader(Qos::AtLeastOnce);
    shared.share = Some("g".to_owned());
    assert!(fault(shared).contains("no shared subscriptions"));

    let server = Server {
        connack: (0, connack.clone()),
        ..Server::default()
    };
    let (client, _) = open_with(small(Qos::AtLeastOnce, 20), server);
    let limits = client.limits().unwrap();
    assert_eq!((limits.receive_max, limits.qos_max), (20, 1));
    assert_eq!(limits.keep_alive_s, Some(65_535));
    assert_eq!(limits.client_id.as_deref(), Some("me"));
}
