mod faults;
mod properties;

use super::config::{AmqpConfig, Declare, Offset, QueueKind};
use super::connection::{Amqp, Depth};
use super::server::{
    Server, append_close, append_confirm, append_empty, append_nack, append_return,
};
use super::wire::{CHANNEL, append_heartbeat, append_method, method};
use crate::dialect::{Dialect, Fault, Heard, Role};

/// What was heard, with bytes of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Ready,
    Confirmed(u64, bool),
    Refused(Option<u64>, String),
    Delivered(Vec<u8>, u64, bool),
    Blocked(bool),
}

fn note(heard: Heard<'_>) -> Seen {
    match heard {
        Heard::Ready => Seen::Ready,
        Heard::Confirmed { tag, up_to } => Seen::Confirmed(tag, up_to),
        Heard::Refused { tag, why } => Seen::Refused(tag, why.to_owned()),
        Heard::Delivered {
            payload,
            handle,
            redelivered,
        } => Seen::Delivered(payload.to_vec(), handle, redelivered),
        Heard::Blocked(blocked) => Seen::Blocked(blocked),
    }
}

/// Gives a client bytes in pieces. Returns what it heard, what it answered, and its fault.
fn give<'a>(
    client: &mut Amqp,
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
fn talk(client: &mut Amqp, server: &mut Server, mut to_server: Vec<u8>) -> Vec<Seen> {
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

fn open(config: AmqpConfig) -> (Amqp, Server) {
    open_with(config, Server::new())
}

fn open_with(config: AmqpConfig, mut server: Server) -> (Amqp, Server) {
    let mut client = Amqp::new(config).unwrap();
    let mut hello = Vec::new();
    client.open(&mut hello);
    let seen = talk(&mut client, &mut server, hello);
    assert_eq!(seen, [Seen::Ready]);
    (client, server)
}

fn writer() -> AmqpConfig {
    AmqpConfig::new(Role::Writer, "q", QueueKind::Classic)
}

fn reader() -> AmqpConfig {
    AmqpConfig::new(Role::Reader, "q", QueueKind::Classic)
}

fn ids(server: &Server) -> Vec<u32> {
    server.methods.iter().map(|(id, _)| *id).collect()
}

fn arguments(server: &Server, method: u32) -> &[u8] {
    let found = server.methods.iter().find(|(id, _)| *id == method);
    &found.unwrap().1
}

#[test]
fn a_writer_opens_step_by_step() {
    let (client, server) = open(writer());
    let expected = [
        method::CONNECTION_START_OK,
        method::CONNECTION_TUNE_OK,
        method::CONNECTION_OPEN,
        method::CHANNEL_OPEN,
        method::QUEUE_DECLARE,
        method::CONFIRM_SELECT,
    ];
    assert_eq!(ids(&server), expected);
    assert_eq!(client.broker_version(), Some("3.10.8"));
    let login = arguments(&server, method::CONNECTION_START_OK);
    assert!(login.ends_with(b"\x05PLAIN\0\0\0\x0C\0guest\0guest\x05en_US"));
    // One channel, the broker's frames, no heartbeats.
    assert_eq!(
        arguments(&server, method::CONNECTION_TUNE_OK),
        b"\0\x01\0\x02\0\0\0\0"
    );
    assert_eq!(
        arguments(&server, method::CONNECTION_OPEN),
        b"\x01/\0\0",
        "the virtual host and two reserved fields"
    );
    // Durable and nothing else, no arguments.
    assert_eq!(
        arguments(&server, method::QUEUE_DECLARE),
        b"\0\0\x01q\x02\0\0\0\0"
    );
}

#[test]
fn a_reader_opens_step_by_step() {
    let (_, server) = open(reader());
    let expected = [
        method::CONNECTION_START_OK,
        method::CONNECTION_TUNE_OK,
        method::CONNECTION_OPEN,
        method::CHANNEL_OPEN,
        method::QUEUE_DECLARE,
        method::BASIC_QOS,
        method::BASIC_CONSUME,
    ];
    assert_eq!(ids(&server), expected);
    assert_eq!(
        arguments(&server, method::BASIC_QOS),
        b"\0\0\0\0\x02\0\0",
        "prefetch 512 for this consumer"
    );
    assert_eq!(
        arguments(&server, method::BASIC_CONSUME),
        b"\0\0\x01q\0\0\0\0\0\0"
    );
}

#[test]
fn kinds_of_queues_differ_in_their_arguments() {
    let declared = |kind| {
        let (_, server) = open(AmqpConfig::new(Role::Writer, "q", kind));
        arguments(&server, method::QUEUE_DECLARE).to_vec()
    };
    assert_eq!(declared(QueueKind::Transient), b"\0\0\x01q\0\0\0\0\0");
    assert_eq!(
        declared(QueueKind::Quorum),
        b"\0\0\x01q\x02\0\0\0\x3D\x0Cx-queue-typeS\0\0\0\x06quorum\
          \x1Bx-quorum-initial-group-sizel\0\0\0\0\0\0\0\x01"
    );
    assert_eq!(
        declared(QueueKind::Stream),
        b"\0\0\x01q\x02\0\0\0\x38\x0Cx-queue-typeS\0\0\0\x06stream\
          \x16x-initial-cluster-sizel\0\0\0\0\0\0\0\x01"
    );
    let mut config = writer();
    config.confirms = false;
    config.declare = Declare::Trust;
    let (_, server) = open(config);
    assert_eq!(ids(&server).last(), Some(&method::CHANNEL_OPEN));
}

#[test]
fn a_streams_reader_says_where_it_begins() {
    let offset = |offset| {
        let mut config = AmqpConfig::new(Role::Reader, "q", QueueKind::Stream);
        config.offset = offset;
        let (_, server) = open(config);
        arguments(&server, method::BASIC_CONSUME).to_vec()
    };
    assert_eq!(
        offset(Offset::Next),
        b"\0\0\x01q\0\0\0\0\0\x19\x0Fx-stream-offsetS\0\0\0\x04next"
    );
    assert!(offset(Offset::First).ends_with(b"S\0\0\0\x05first"));
    assert!(offset(Offset::Last).ends_with(b"S\0\0\0\x04last"));
    assert!(offset(Offset::At(258)).ends_with(b"l\0\0\0\0\0\0\x01\x02"));
}

#[test]
fn the_lower_limits_hold() {
    let mut config = writer();
    config.heartbeat_s = 30;
    let mut server = Server::new();
    server.frame_max = 4096;
    let (mut client, mut server) = open_with(config, server);
    assert_eq!(
        arguments(&server, method::CONNECTION_TUNE_OK),
        b"\0\x01\0\0\x10\0\0\x1E"
    );
    let mut out = Vec::new();
    client.publish(&mut out, &[7; 10_000], 1);
    assert_eq!(out.len(), 18 + 23 + 10_000 + 3 * 8);
    server.received(&out, &mut Vec::new());
    assert_eq!(server.published, [(2, vec![7; 10_000])]);
    // A frame over the limit is refused before its payload comes.
    let (_, _, fault) = give(&mut client, [&b"\x01\0\x01\0\0\x0F\xF9"[..]]);
    assert!(fault.unwrap().0.contains("over the limit of 4096"));
}

#[test]
fn messages_are_published_and_confirmed() {
    let (mut client, mut server) = open(writer());
    server.confirms = true;
    let mut out = Vec::new();
    for tag in [5, 6, 7] {
        client.publish(&mut out, b"body", tag);
    }
    let seen = talk(&mut client, &mut server, out);
    assert_eq!(seen, [Seen::Confirmed(7, true)]);
    assert_eq!(server.published, vec![(2, b"body".to_vec()); 3]);
}

#[test]
fn confirms_name_the_tags() {
    let (mut client, _) = open(writer());
    let mut sent = Vec::new();
    for tag in [50, 60, 70, 80] {
        client.publish(&mut sent, b"body", tag);
    }
    let mut bytes = Vec::new();
    append_confirm(&mut bytes, 2, false);
    append_nack(&mut bytes, 1, false);
    append_return(&mut bytes, b"body");
    append_confirm(&mut bytes, 4, true);
    let (seen, out, fault) = give(&mut client, [&bytes[..]]);
    let why = "the broker refused it (basic.nack)".to_owned();
    let expected = [
        Seen::Confirmed(60, false),
        Seen::Refused(Some(50), why),
        Seen::Refused(None, "312 NO_ROUTE".to_owned()),
        Seen::Confirmed(80, true),
    ];
    assert_eq!((&seen[..], out, fault), (&expected[..], vec![], None));
}

#[test]
fn without_confirms_nothing_is_kept() {
    let mut config = writer();
    config.confirms = false;
    config.kind = QueueKind::Transient;
    let (mut client, mut server) = open(config);
    let held = client.held_bytes();
    let mut out = Vec::new();
    for tag in 0..100 {
        client.publish(&mut out, b"body", tag);
    }
    assert_eq!(client.held_bytes(), held);
    server.received(&out, &mut Vec::new());
    assert_eq!(server.published, vec![(1, b"body".to_vec()); 100]);
    let mut bytes = Vec::new();
    append_confirm(&mut bytes, 1, false);
    assert!(give(&mut client, [&bytes[..]]).2.is_some());
}

#[test]
fn messages_are_delivered_and_settled() {
    let (mut client, mut server) = open(reader());
    let mut bytes = Vec::new();
    server.deliver(&mut bytes, b"one", false, 4088);
    server.deliver(&mut bytes, b"", true, 4088);
    server.deliver(&mut bytes, &[3; 10_000], false, 4088);
    let (seen, mut out, fault) = give(&mut client, [&bytes[..]]);
    let expected = [
        Seen::Delivered(b"one".to_vec(), 1, false),
        Seen::Delivered(vec![], 2, true),
        Seen::Delivered(vec![3; 10_000], 3, false),
    ];
    assert_eq!((&seen[..], fault), (&expected[..], None));
    client.settle(&mut out, &[1, 2, 3]);
    server.received(&out, &mut Vec::new());
    assert_eq!(server.acked, [(3, true)]);
}

#[test]
fn a_whole_message_is_not_copied() {
    let (mut client, mut server) = open(reader());
    let mut bytes = Vec::new();
    for _ in 0..16 {
        server.deliver(&mut bytes, &[1; 1024], false, 4088);
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
fn the_broker_can_ask_writers_to_wait() {
    let (mut client, mut server) = open(writer());
    let mut bytes = Vec::new();
    append_method(&mut bytes, 0, method::CONNECTION_BLOCKED, |out| {
        out.extend_from_slice(b"\x0Alow memory");
    });
    append_empty(&mut bytes, 0, method::CONNECTION_UNBLOCKED);
    append_method(&mut bytes, CHANNEL, method::CHANNEL_FLOW, |out| out.push(0));
    append_heartbeat(&mut bytes);
    let (seen, out, fault) = give(&mut client, [&bytes[..]]);
    let expected = [
        Seen::Blocked(true),
        Seen::Blocked(false),
        Seen::Blocked(true),
    ];
    assert_eq!((&seen[..], fault), (&expected[..], None));
    server.received(&out, &mut Vec::new());
    assert_eq!(arguments(&server, method::CHANNEL_FLOW_OK), b"\0");
    assert_eq!(server.heartbeats, 1);
}

#[test]
fn the_depth_can_be_asked_for() {
    let mut config = writer();
    config.declare = Declare::Check;
    let mut server = Server::new();
    server.depth = (7, 2);
    let (mut client, mut server) = open_with(config, server);
    let depth = |ready, consumers| Some(Depth { ready, consumers });
    assert_eq!(client.depth(), depth(7, 2));
    server.depth = (9, 3);
    let mut out = Vec::new();
    client.ask_depth(&mut out);
    assert_eq!(client.depth(), None);
    assert_eq!(talk(&mut client, &mut server, out), []);
    assert_eq!(client.depth(), depth(9, 3));
    // Passive, without other bits or arguments.
    assert_eq!(
        arguments(&server, method::QUEUE_DECLARE),
        b"\0\0\x01q\x01\0\0\0\0"
    );
}

#[test]
fn a_close_is_polite_from_either_side() {
    let (mut client, mut server) = open(reader());
    let mut out = Vec::new();
    client.close(&mut out);
    // What was on its way is discarded.
    let mut bytes = Vec::new();
    server.deliver(&mut bytes, b"late", false, 4088);
    assert_eq!(give(&mut client, [&bytes[..]]), (vec![], vec![], None));
    assert!(!client.is_closed());
    assert_eq!(talk(&mut client, &mut server, out), []);
    assert!(client.is_closed());

    for (channel, id, answer, what) in [
        (
            0,
            method::CONNECTION_CLOSE,
            method::CONNECTION_CLOSE_OK,
            "connection",
        ),
        (
            CHANNEL,
            method::CHANNEL_CLOSE,
            method::CHANNEL_CLOSE_OK,
            "channel",
        ),
    ] {
        let (mut client, mut server) = open(reader());
        let mut bytes = Vec::new();
        append_close(&mut bytes, channel, id, 404, "NOT_FOUND - no queue 'q'");
        let (_, out, fault) = give(&mut client, [&bytes[..]]);
        let text = format!("the broker closed the {what}: 404 NOT_FOUND - no queue 'q'");
        assert_eq!(fault, Some(Fault(text)));
        server.received(&out, &mut Vec::new());
        assert_eq!(ids(&server).last(), Some(&answer));
    }
}
