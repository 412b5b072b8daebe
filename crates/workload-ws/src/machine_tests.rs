//! The machines against honest servers: they say what they should, and every frame is answered.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::NS_PER_S;
use plimsoll_core::schedule::{Arrivals, Spacing};
use plimsoll_core::session::{Disconnect, Phase, Session as _};
use serde_json::json;

use super::closed_loop::{ClosedPings, Finding, Flood};
use super::rig::{MS, Reply, Rig, Said, close_frame, messages, peer, pong, profile, text};
use super::wse::with_token;
use super::*;
use plimsoll_protocol::websocket::Opcode;

fn endpoint(dialect: Dialect) -> Endpoint {
    peer(dialect).endpoint
}

/// Answers every ping after 3 ms.
fn honest(_now_ns: u64, said: &Said) -> Vec<Reply> {
    said.pong().map(|pong| (3 * MS, pong)).into_iter().collect()
}

/// Sends every message back after 2 ms.
fn echoing(_now_ns: u64, said: &Said) -> Vec<Reply> {
    vec![(2 * MS, said.echo())]
}

#[test]
fn a_wse_session_is_open_when_the_server_is_ready_and_the_hello_is_said() {
    let mut rig = Rig::new(&WsePings::new(endpoint(Dialect::Wse), 100 * MS)).upgraded();
    assert_eq!(rig.session.phase(), Phase::Opening);
    assert_eq!(rig.session.next_due_ns(), None);
    rig.receive(&text(&json!({"t": "ping", "p": {}})));
    assert_eq!(
        rig.said()[0].json()["t"],
        "PONG",
        "even a server that asks early is answered"
    );
    rig.receive(&text(&json!({"t": "server_ready", "p": {}})));
    assert_eq!(rig.session.phase(), Phase::Open);
    let said = rig.said();
    assert_eq!(said[0].json()["t"], "client_hello");
    assert_eq!(said[0].json()["p"]["protocol_version"], 1);
    assert_eq!(rig.recorder.ledger.sessions_started, 1);
}

#[test]
fn every_ping_is_answered_by_its_own_pong() {
    let (mut rig, _) = Rig::new(&WsePings::new(endpoint(Dialect::Wse), 100 * MS)).greeted();
    rig.run_until(3_200 * MS, honest);
    assert!(rig.session.settled());
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_due, ledger.frames_answered), (20, 20));
    assert_eq!((ledger.partials, ledger.protocol_faults), (20, 0));
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 3);
    assert_eq!(rig.writes().concat()[0], 0x88, "a close frame");
}

#[test]
fn a_session_answers_the_server_for_as_long_as_it_lasts() {
    let (mut rig, _) = Rig::new(&WsePings::new(endpoint(Dialect::Wse), 5 * NS_PER_S)).greeted();
    rig.writes();
    for message in [
        json!({"c": "WSE", "t": "ping", "p": {"server_time": "x"}}),
        json!({"t": "presence_update", "p": [1, 2]}),
    ] {
        rig.receive(&text(&message));
    }
    let said: Vec<_> = rig.said().iter().map(Said::json).collect();
    assert_eq!(said, [json!({"c": "WSE", "t": "PONG", "p": {}, "v": 1})]);
    rig.receive(&text(&json!({"t": "error", "p": {"code": "RATE_LIMITED"}})));
    rig.receive(&text(&json!("no object")));
    assert_eq!(rig.recorder.ledger.protocol_faults, 2);
}

#[test]
fn what_echoes_is_compared_in_full() {
    let content = EchoMessages::content_of(175).unwrap();
    let mut rig = Rig::new(&EchoMessages::new(
        endpoint(Dialect::Echo),
        content,
        10 * MS,
    ))
    .upgraded();
    rig.now_ns = 10 * MS;
    let said = rig.said();
    assert_eq!((said.len(), said[0].payload.len()), (1, 175));
    let mut changed = said[0].clone();
    changed.payload[100] ^= 1;
    rig.receive(&changed.echo());
    assert_eq!(rig.recorder.ledger.content_wrong, 1);
    // As binary; with another connection's number; without a number; and two messages merged into one.
    let strange = [
        Said {
            opcode: Opcode::Binary,
            ..said[0].clone()
        },
        Said {
            payload: [&b"0000002a"[..], &said[0].payload[8..]].concat(),
            ..said[0].clone()
        },
        Said {
            payload: b"short".to_vec(),
            ..said[0].clone()
        },
    ];
    for said in strange {
        rig.receive(&said.echo());
    }
    assert_eq!(rig.recorder.ledger.protocol_faults, 3);
    let merged = Said {
        payload: said[0].payload.repeat(2),
        ..said[0].clone()
    };
    rig.receive(&merged.echo());
    assert_eq!(rig.recorder.ledger.content_wrong, 2);
    assert!(EchoMessages::content_of(23).is_err());
}

#[test]
fn due_messages_go_out_with_one_write_but_never_across_the_windows_edge() {
    let content = EchoMessages::content_of(64).unwrap();
    let period_ns = 100_000;
    let mut rig = Rig::new(&EchoMessages::new(
        endpoint(Dialect::Echo),
        content,
        period_ns,
    ))
    .upgraded();
    rig.now_ns = 950 * MS;
    rig.writes();
    let before = rig.recorder.ledger.frames_sent_in_all;
    assert_eq!(rig.recorder.ledger.frames_sent, 0);
    // The window begins at 1 s: the messages before it are one write or more, and so are those after.
    rig.now_ns = 1_005 * MS;
    let mut said = Vec::new();
    let mut firsts_measured = Vec::new();
    while let Some(transmit) = rig.session.transmit(rig.now_ns) {
        firsts_measured.push(transmit.measured);
        let bytes = [transmit.head, transmit.body].concat();
        let again = rig
            .session
            .transmit(rig.now_ns)
            .map(|transmit| [transmit.head, transmit.body].concat());
        assert_eq!(again.as_ref(), Some(&bytes), "the same until it is written");
        said.extend(messages(&bytes));
        rig.session.sent(rig.now_ns, &mut rig.recorder);
    }
    assert_eq!(
        firsts_measured.iter().filter(|measured| **measured).count(),
        1
    );
    let ledger = &rig.recorder.ledger;
    assert_eq!(ledger.frames_sent_in_all - before, said.len() as u64);
    assert_eq!(ledger.frames_sent, 50, "in 5 ms");
    for said in said {
        rig.receive(&said.echo());
    }
    assert_eq!(rig.recorder.ledger.frames_answered, 50);
    assert_eq!(rig.recorder.ledger.content_wrong, 0);
}

#[test]
fn a_stream_is_answered_by_its_barriers() {
    let content = Content::trade_update();
    let workload = WseMessages::new(endpoint(Dialect::Wse), &content, Format::Json, 10 * MS);
    let (mut rig, said) = Rig::new(&workload).greeted();
    assert_eq!(said.len(), 2, "the hello, and the question in the format");
    let mut barriers = 0;
    rig.receive(&said[1].pong().expect("a ping"));
    rig.run_until(3_300 * MS, |now_ns, said| {
        barriers += u32::from(said.json()["t"] == "ping");
        honest(now_ns, said)
    });
    assert!(rig.session.settled());
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!((ledger.frames_due, ledger.frames_answered), (200, 200));
    assert_eq!((ledger.frames_duplicated, ledger.protocol_faults), (0, 0));
    assert!((33..=35).contains(&barriers), "{barriers} in 3.3 s");
    // The newest frame is right before its barrier; the oldest waited for it.
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 3);
    assert!((90..=103).contains(&rig.max_ms(Series::OldestFromSchedule)));
    rig.settle(&workload);
    assert!(workload.decode_proof().holds());
}

fn storm(dialect: Dialect) -> Storm {
    let arrivals = Arrivals {
        rate_per_s: 10.0,
        spacing: Spacing::Even,
        open_within_ns: 5 * NS_PER_S,
    };
    Storm::new(peer(dialect), arrivals, 500 * MS)
}

#[test]
fn an_arrival_opens_stays_and_lets_the_server_close() {
    // 30 arrivals from 0 to 3 s: number 15 comes in the window.
    let mut rig = Rig::of(&storm(Dialect::Echo), 15, 30);
    let due_ns = rig.now_ns;
    rig.now_ns += MS;
    rig.session.connecting(rig.now_ns, &mut rig.recorder);
    let request = rig.writes().concat();
    rig.now_ns += 20 * MS;
    rig.receive(&rig::upgrade(&request));
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 21);
    assert_eq!(rig.max_ms(Series::OldestFromSchedule), 21);
    assert_eq!(rig.max_ms(Series::NewestFromWrite), 20);
    assert_eq!(rig.max_ms(Series::SendLag), 1);
    assert_eq!(rig.recorder.sessions_open, 1);
    let leave_ns = due_ns + 521 * MS;
    assert_eq!(rig.session.next_due_ns(), Some(leave_ns));
    rig.now_ns = leave_ns;
    let said = rig.said();
    assert_eq!(
        (said[0].opcode, &said[0].payload[..]),
        (Opcode::Close, &[3, 232][..])
    );
    assert_eq!(rig.recorder.sessions_open, 0);
    rig.receive(&close_frame(1000));
    assert_eq!(rig.session.phase(), Phase::Open, "the server closes first");
    assert!(rig.writes().is_empty(), "a close is answered once");
    rig.session
        .disconnected(rig.now_ns, Disconnect::Closed, &mut rig.recorder);
    assert_eq!(rig.session.phase(), Phase::Ended);
    rig.finish();
    let ledger = &rig.recorder.ledger;
    assert_eq!(
        (
            ledger.frames_due,
            ledger.frames_answered,
            ledger.sessions_died
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_server_that_does_not_answer_a_farewell_is_left_after_a_second() {
    let mut rig = Rig::of(&storm(Dialect::Echo), 15, 30).upgraded();
    rig.now_ns += 500 * MS;
    rig.writes();
    rig.now_ns += NS_PER_S;
    assert!(rig.writes().is_empty());
    assert_eq!(rig.session.phase(), Phase::Ended);
    rig.finish();
    assert_eq!(rig.recorder.ledger.sessions_died, 0);
}

#[test]
fn a_wse_arrival_has_two_latencies() {
    let mut rig = Rig::of(&storm(Dialect::Wse), 15, 30).upgraded();
    rig.now_ns += 4 * MS;
    rig.receive(&text(&json!({"t": "server_ready", "p": {}})));
    assert_eq!(
        rig.session.phase(),
        Phase::Opening,
        "the hello is not written"
    );
    rig.now_ns += MS;
    rig.writes();
    assert_eq!(rig.session.phase(), Phase::Open);
    assert_eq!(rig.max_ms(Series::NewestFromSchedule), 5);
    assert_eq!(rig.count(Series::OldestFromSchedule), 0);
    rig.now_ns += 30 * MS;
    rig.receive(&text(&json!({"t": "server_hello", "p": {}})));
    assert_eq!(rig.max_ms(Series::OldestFromSchedule), 35);
}

#[test]
fn an_open_connection_without_a_server_hello_is_told() {
    let mut rig = Rig::of(&storm(Dialect::Wse), 15, 30).upgraded();
    rig.receive(&text(&json!({"t": "server_ready", "p": {}})));
    rig.writes();
    rig.now_ns += 200 * MS;
    rig.finish();
    assert_eq!(rig.reason("no_server_hello"), 1);
    assert_eq!(rig.max_ms(Series::OldestFromSchedule), 200);
}

/// A hub of one connection: what it publishes comes back to it.
#[test]
fn every_delivery_that_is_due_is_counted() {
    for dialect in Dialect::ALL {
        let fanout = Fanout::new(peer(dialect), 1, 256, 50 * MS);
        let mut rig = match dialect {
            Dialect::Echo => Rig::new(&fanout).upgraded(),
            Dialect::Wse => Rig::new(&fanout).greeted().0,
        };
        rig.run_until(3_200 * MS, echoing);
        assert!(rig.session.settled());
        assert_eq!(rig.session.owed(3_000 * MS), 0);
        rig.finish();
        let ledger = &rig.recorder.ledger;
        assert_eq!((ledger.frames_due, ledger.frames_answered), (40, 40));
        assert_eq!((ledger.content_wrong, ledger.protocol_faults), (0, 0));
        assert_eq!(rig.max_ms(Series::NewestFromSchedule), 2);
    }
}

#[test]
fn a_delivery_that_is_missing_doubled_or_late_is_told_apart() {
    let fanout = Fanout::new(peer(Dialect::Echo), 2, 64, 100 * MS);
    let mut publisher = Rig::of(&fanout, 0, 2).upgraded();
    let mut receiver = Rig::of(&fanout, 1, 2).upgraded();
    let mut published = Vec::new();
    publisher.run_until(3_000 * MS, |_, said| {
        published.push(said.echo());
        Vec::new()
    });
    assert!(published.len() >= 30);
    receiver.now_ns = 3_000 * MS;
    for (place, message) in published.iter().enumerate() {
        match place {
            // Missing, late and doubled, all in the window.
            12 | 14 => {}
            15 => {
                receiver.receive(message);
                receiver.receive(&published[14]);
            }
            20 => {
                receiver.receive(message);
                receiver.receive(message);
            }
            _ => receiver.receive(message),
        }
    }
    assert!(!receiver.session.settled());
    receiver.now_ns = 8_000 * MS;
    receiver.finish();
    let ledger = &receiver.recorder.ledger;
    assert_eq!((ledger.frames_due, ledger.frames_lost), (20, 1));
    assert_eq!(
        (ledger.frames_out_of_order, ledger.frames_duplicated),
        (1, 1)
    );
    // Message 13 was due at 1.2 s and waited for until 8 s.
    assert_eq!(receiver.max_ms(Series::NewestFromSchedule) / 10, 680);
    publisher.now_ns = 8_000 * MS;
    publisher.finish();
    assert_eq!(publisher.recorder.ledger.frames_lost, 20, "it got none");
}

#[test]
fn a_receiver_that_dies_owes_nothing_from_then_on() {
    let fanout = Fanout::new(peer(Dialect::Echo), 2, 64, 100 * MS);
    let mut receiver = Rig::of(&fanout, 1, 2).upgraded();
    receiver.now_ns = 1_950 * MS;
    receiver
        .session
        .disconnected(receiver.now_ns, Disconnect::Reset, &mut receiver.recorder);
    receiver.now_ns = 8_000 * MS;
    receiver.finish();
    let ledger = &receiver.recorder.ledger;
    assert_eq!((ledger.frames_due, ledger.sessions_died), (10, 1));
}

#[test]
fn the_closed_loop_asks_again_only_when_it_was_answered() {
    let workload = ClosedPings::new(peer(Dialect::Wse), 3);
    let (mut rig, _) = Rig::new(&workload).greeted();
    rig.run_until(999 * MS, honest);
    assert_eq!(rig.recorder.ledger.frames_sent_in_all, 0);
    rig.run_until(3_000 * MS, honest);
    assert!(rig.session.settled());
    rig.finish();
    assert_eq!(rig.recorder.claims, [Finding::RoundTripNs(3 * MS); 3]);
    rig.settle(&workload);
    let told = workload.told();
    assert_eq!((told.pings_answered, told.pings_given_up), (3, 0));
}

#[test]
fn a_flood_counts_what_the_socket_took_in_the_window() {
    let content = Content::trade_update();
    let workload = Flood::new(peer(Dialect::Echo), &content, profile().window());
    let mut rig = Rig::new(&workload).upgraded();
    assert!(rig.writes().is_empty(), "the window has not begun");
    assert_eq!(rig.session.next_due_ns(), Some(NS_PER_S));
    rig.now_ns = 1_500 * MS;
    let first = rig.said();
    assert_eq!(first.len(), 1_000, "then the others have their turn");
    assert_eq!(first[0].payload, content.bytes);
    rig.now_ns += MS;
    rig.writes();
    rig.now_ns = 3_000 * MS;
    assert!(rig.writes().is_empty());
    rig.finish();
    rig.settle(&workload);
    let told = workload.told();
    assert_eq!(told.messages_handed_over, 2_000);
    assert!((told.messages_per_second - 1_000.0).abs() < 1e-9);
}

#[test]
fn a_token_that_the_user_brings_is_refused_in_words() {
    let mut own = endpoint(Dialect::Wse);
    own.headers = vec![("Cookie".to_owned(), "access_token=x".to_owned())];
    let own = with_token(own, &jwt::Credentials::default(), 1);
    let mut rig = Rig::new(&WsePings::new(own, 100 * MS)).upgraded();
    let refusal = text(&json!({"t": "error", "p": {"code": "AUTH_FAILED"}}));
    rig.receive(&[refusal, close_frame(4401)].concat());
    assert_eq!(rig.recorder.ledger.sessions_failed, 1);
    assert_eq!(rig.reason("refused by the target: AUTH_FAILED"), 1);
    // A pong for nobody before the session is open is no reason to end it.
    let mut rig = Rig::new(&WsePings::new(endpoint(Dialect::Wse), 100 * MS)).upgraded();
    rig.receive(&pong(&json!(0)));
    assert_eq!(rig.session.phase(), Phase::Opening);
}
