//! What goes well: handshakes, messages of all sizes, full sockets, farewells.

use std::io::Write;

use plimsoll_core::session::{Disconnect, Phase, Session, Unconnected};
use plimsoll_tls::Trust;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, ProtocolVersion};

use crate::pki::{Authority, NAME, client};
use crate::rig::{Rig, records};

#[test]
fn bytes_may_come_in_any_split() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let identity = authority.identity(NAME);
    for version in [&TLS12, &TLS13] {
        let server = identity.server(&[version], &[]);
        for (read_bytes, write_bytes) in [
            (1, 1),
            (2, usize::MAX),
            (3, 1000),
            (usize::MAX, 7),
            (64, 64),
            (1000, 5),
            (usize::MAX, usize::MAX),
        ] {
            for message_bytes in [8, 160, 4096, 40_000] {
                let mut rig = Rig::new(&client, server.clone(), message_bytes);
                (rig.read_bytes, rig.write_bytes) = (read_bytes, write_bytes);
                rig.echo(20);
                let ledger = &rig.recorder.ledger;
                assert_eq!(ledger.sessions_started, 1);
                assert_eq!(ledger.frames_answered_in_all, ledger.frames_sent_in_all);
                assert!(ledger.frames_sent_in_all >= 20);
                assert_eq!(rig.server.protocol_version(), Some(version.version));
                assert_eq!(rig.server.server_name(), Some(NAME));
                assert!(rig.reasons().is_empty(), "{:?}", rig.reasons());
            }
        }
    }
}

#[test]
fn a_write_of_the_inner_session_is_one_record_with_its_times() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let mut rig = Rig::new(
        &client,
        authority.identity(NAME).server(&[&TLS13], &[]),
        648,
    );
    let first_due_ns = rig.now_ns;
    rig.echo(300);
    let (load, rest): (Vec<_>, Vec<_>) =
        rig.written.iter().partition(|write| write.due_ns.is_some());
    for (number, write) in (0..).zip(&load) {
        let due_ns = first_due_ns + number * 2_000_000;
        assert_eq!(write.due_ns, Some(due_ns));
        assert_eq!(write.held_until_ns, Some(due_ns + 1));
        // A tag of 16 bytes and the type of the content.
        assert_eq!(records(&write.bytes), [648 + 17]);
    }
    let window = plimsoll_core::profile::Profile::quick().window();
    let measured = |write: &&&crate::rig::Written| write.measured;
    let due = |write: &&&crate::rig::Written| window.contains(write.due_ns.unwrap_or(u64::MAX));
    assert_eq!(
        load.iter().filter(measured).count(),
        load.iter().filter(due).count()
    );
    for write in rest {
        assert!(write.held_until_ns.is_none() && !write.measured);
    }
}

#[test]
fn a_long_write_goes_out_in_parts_and_is_due_once() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let bytes = 1 << 20;
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&client, server, bytes);
    rig.echo(2);
    let parts: Vec<_> = rig.written.iter().map(|write| write.bytes.len()).collect();
    assert!(parts.iter().all(|part| *part <= (32 << 10) + 2 * 22));
    assert!(parts.len() > 2 * bytes / (32 << 10));
    let due = rig.written.iter().filter(|write| write.due_ns.is_some());
    assert_eq!(due.count() as u64, rig.recorder.ledger.frames_sent_in_all);
    // Nothing of it is kept.
    assert_eq!(rig.session.held_bytes(), 0);
}

/// Send lag and send wait count to the write that a session is told of.
#[test]
fn a_message_is_written_with_its_last_encrypted_byte() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    // A record is 22 bytes longer than what is in it. The longer message takes two writes, of two records and of one.
    let all_but_one = [(100, vec![121]), (40_000, vec![32_768 + 44, 7_232 + 21])];
    for (message_bytes, taken) in all_but_one {
        let mut rig = Rig::new(&client, server.clone(), message_bytes);
        rig.now_ns = 0;
        rig.exchange();
        rig.written.clear();
        rig.now_ns = 5_000_000_000;
        for bytes in &taken {
            rig.write_bytes = *bytes;
            assert!(rig.write());
        }
        let written_ns = rig.seen.lock().unwrap().written_ns.clone();
        assert!(written_ns.is_empty(), "all but one byte is not a message");
        rig.now_ns += 7_000_000;
        assert!(rig.write());
        let written_ns = rig.seen.lock().unwrap().written_ns.clone();
        assert_eq!(written_ns, [rig.now_ns]);
        let last = rig.written.last().unwrap();
        assert_eq!(last.bytes.len(), taken.last().unwrap() + 1);
        assert!(last.due_ns.is_some());
    }
}

#[test]
fn keys_that_change_while_a_write_is_half_done_disturb_nothing() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&client, server, 4096);
    rig.echo(1);
    rig.write_bytes = 1000;
    for messages in 2..50 {
        rig.now_ns += 2_000_000;
        assert!(rig.write());
        rig.server.refresh_traffic_keys().unwrap();
        let bytes = rig.collect_answer();
        rig.receive(&bytes);
        rig.echo(messages);
    }
    assert!(rig.reasons().is_empty() && rig.server_fault.is_none());
}

#[test]
fn every_connection_is_a_full_handshake_without_tickets() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    for version in [&TLS12, &TLS13] {
        let server = authority.identity(NAME).server(&[version], &[]);
        for _ in 0..3 {
            let rig = Rig::opened(&client, server.clone());
            assert_eq!(rig.server.handshake_kind(), Some(HandshakeKind::Full));
        }
    }
}

#[test]
fn what_was_agreed_on_is_told() {
    let authority = Authority::new();
    let identity = authority.identity(NAME);
    for (version, alpn, text) in [
        (&TLS13, "h2", "TLS 1.3, TLS_AES_256_GCM_SHA384, h2"),
        (
            &TLS12,
            "http/1.1",
            "TLS 1.2, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, http/1.1",
        ),
    ] {
        let server = identity.server(&[version], &["h2", "http/1.1"]);
        let (address, serving) = crate::engine::serve_one(server.clone());
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let tls = authority
            .client(NAME, &[alpn])
            .greet(&mut stream, |_| {})
            .unwrap();
        assert_eq!(tls.to_string(), text);
        assert!(serving.join().unwrap(), "the server saw a proper end");
        let rig = Rig::opened(&authority.client(NAME, &[alpn]), server);
        assert_eq!(rig.server.alpn_protocol(), Some(alpn.as_bytes()));
    }
}

#[test]
fn anyone_is_believed_if_asked_for_and_the_record_says_so() {
    let unknown = Authority::new();
    let server = unknown.identity("another.example").server(&[&TLS13], &[]);
    let credulous = client(NAME, Trust::Anyone, &[]);
    let rig = Rig::opened(&credulous, server.clone());
    assert_eq!(
        rig.server.protocol_version(),
        Some(ProtocolVersion::TLSv1_3)
    );
    let (address, serving) = crate::engine::serve_one(server);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let tls = credulous.greet(&mut stream, |_| {}).unwrap();
    assert!(!tls.verified);
    serving.join().unwrap();
}

#[test]
fn an_address_can_have_a_certificate_too() {
    let authority = Authority::new();
    let server = authority.identity("127.0.0.1").server(&[&TLS13], &[]);
    let rig = Rig::opened(&authority.client("127.0.0.1", &[]), server);
    assert_eq!(rig.server.server_name(), None, "an address is no name");
}

#[test]
fn both_ways_of_closing_are_the_end_of_the_connection() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    for version in [&TLS12, &TLS13] {
        let server = authority.identity(NAME).server(&[version], &[]);
        let mut polite = Rig::opened(&client, server.clone());
        polite.server.send_close_notify();
        let bytes = polite.collect_answer();
        polite.receive(&bytes);
        let mut rude = Rig::opened(&client, server);
        let how = Disconnect::Closed;
        rude.session.disconnected(0, how, &mut rude.recorder);
        for rig in [polite, rude] {
            assert_eq!(rig.gone(), [Disconnect::Closed]);
            assert_eq!(rig.session.phase(), Phase::Ended);
            assert_eq!(rig.reasons(), [("connection closed by the target", 1)]);
            assert_eq!(rig.recorder.ledger.protocol_faults, 0);
            assert_eq!(rig.session.held_bytes(), 0);
        }
    }
}

#[test]
fn what_came_before_the_close_still_counts() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::opened(&client, server);
    rig.now_ns = 5_000_000_000;
    assert!(rig.write());
    rig.server.send_close_notify();
    let bytes = rig.collect_answer();
    rig.receive(&bytes);
    assert_eq!(rig.recorder.ledger.frames_answered_in_all, 1);
    assert_eq!(rig.gone(), [Disconnect::Closed]);
}

#[test]
fn the_end_of_a_trial_is_said_inside_and_then_outside() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::opened(&client, server);
    rig.session.finish(0, &mut rig.recorder);
    assert!(rig.write());
    assert!(!rig.server.process_new_packets().unwrap().peer_has_closed());
    assert!(rig.write());
    assert!(rig.server.process_new_packets().unwrap().peer_has_closed());
    assert!(!rig.write(), "that was all");
    let bytes = rig.collect_answer();
    rig.receive(&bytes);
    assert!(rig.seen.lock().unwrap().plain.ends_with(b"bye"));
}

#[test]
fn a_half_written_message_is_finished_before_the_farewell() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&client, server, 100_000);
    rig.echo(1);
    rig.now_ns += 2_000_000;
    rig.write_bytes = 40_000;
    assert!(rig.write() && rig.write());
    rig.session.finish(rig.now_ns, &mut rig.recorder);
    rig.exchange();
    assert!(rig.seen.lock().unwrap().plain.ends_with(b"bye"));
    assert_eq!(rig.recorder.ledger.frames_answered_in_all, 2);
    assert!(rig.server.process_new_packets().unwrap().peer_has_closed());
}

#[test]
fn what_a_target_makes_it_hold_is_counted_and_let_go() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    // Longer than what comes, so that the inner session waits for more.
    let mut rig = Rig::new(&client, server, 1 << 20);
    rig.now_ns = 0;
    rig.exchange();
    assert_eq!(rig.session.held_bytes(), 0);
    rig.server.writer().write_all(&[7; 16_000]).unwrap();
    let bytes = rig.collect_answer();
    rig.read_bytes = 100;
    rig.receive(&bytes[..15_000]);
    assert_eq!(rig.session.held_bytes(), 15_000);
    rig.receive(&bytes[15_000..]);
    assert_eq!(rig.session.held_bytes(), 0);
}

#[test]
fn a_session_can_connect_again() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    for leaves in [false, true] {
        let mut rig = Rig::opened(&client, server.clone());
        rig.seen.lock().unwrap().returns = true;
        // The first connection ends with half a record in the client and half a message in the socket.
        (rig.now_ns, rig.write_bytes) = (5_000_000_000, 60);
        assert!(rig.write());
        if leaves {
            rig.server.writer().write_all(b"end").unwrap();
            rig.seen.lock().unwrap().leaves = true;
        } else {
            rig.server.send_close_notify();
        }
        rig.server.writer().write_all(b"never read").unwrap();
        let bytes = rig.collect_answer();
        rig.receive(&bytes);
        assert_eq!(rig.session.phase(), Phase::Ended);
        rig.seen.lock().unwrap().leaves = false;
        let next = rig.session.unconnected(rig.now_ns);
        assert!(matches!(next, Unconnected::Connects { .. }), "{next:?}");
        assert_eq!(rig.session.phase(), Phase::Opening);
        assert_eq!(rig.session.held_bytes(), 0);
        assert!(rig.session.transmit(rig.now_ns).is_none());

        // Nobody listens at first: the inner session hears of that, too.
        let (refused, before) = (Disconnect::Refused, rig.gone().len());
        rig.session
            .disconnected(rig.now_ns, refused, &mut rig.recorder);
        assert_eq!(rig.gone()[before..], [Disconnect::Refused]);
        rig.session.unconnected(rig.now_ns);
        rig.connect_to(server.clone());
        rig.exchange();
        assert_eq!(rig.session.phase(), Phase::Open);
        assert_eq!(rig.recorder.tls.handshakes.count, 2);
        assert!(rig.server_fault.is_none());
        assert_eq!(rig.server.handshake_kind(), Some(HandshakeKind::Full));
    }
}
