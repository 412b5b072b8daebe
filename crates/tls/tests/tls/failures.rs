//! What goes wrong: certificates, alerts, bytes that are no TLS.

use std::sync::Arc;

use plimsoll_core::session::{Disconnect, Phase, Session};
use plimsoll_tls::Client;
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, Error, ServerConfig};

use crate::pki::{Authority, NAME};
use crate::rig::Rig;

/// A handshake that must fail for this reason; the target is told by this alert.
fn fails(client: &Client, server: &Arc<ServerConfig>, reason: &'static str) -> Rig {
    let mut rig = Rig::new(client, Arc::clone(server), 100);
    // The socket takes its time with the alert, too.
    rig.write_bytes = 3;
    rig.exchange();
    assert_eq!(rig.session.phase(), Phase::Ended);
    assert_eq!(rig.gone(), [Disconnect::Tls(reason)]);
    assert_eq!(rig.reasons(), [(reason, 1)]);
    assert_eq!(rig.recorder.ledger.sessions_failed, 1);
    rig
}

#[test]
fn a_certificate_that_is_not_to_be_believed_fails_the_session() {
    let authority = Authority::new();
    let (unknown, namesake) = (Authority::named("another"), Authority::new());
    let client = authority.client(NAME, &[]);
    for (identity, reason, alert) in [
        (
            authority.identity("another.example"),
            "TLS: the target's certificate is for another name",
            AlertDescription::BadCertificate,
        ),
        (
            unknown.identity(NAME),
            "TLS: the target's certificate is of a CA that is not trusted",
            AlertDescription::UnknownCA,
        ),
        (
            namesake.identity(NAME),
            "TLS: the target's certificate is not signed by the trusted CA of that name",
            AlertDescription::DecryptError,
        ),
        (
            authority.identity_until(NAME, 2001),
            "TLS: the target's certificate has expired",
            AlertDescription::CertificateExpired,
        ),
    ] {
        for version in [&TLS12, &TLS13] {
            let rig = fails(&client, &identity.server(&[version], &[]), reason);
            assert_eq!(rig.server_fault, Some(Error::AlertReceived(alert)));
            assert_eq!(rig.recorder.ledger.protocol_faults, 0, "no rule is broken");
        }
    }
}

#[test]
fn a_target_that_speaks_none_of_the_protocols_says_so() {
    let authority = Authority::new();
    let server = authority.identity(NAME).server(&[&TLS13], &["http/1.1"]);
    fails(
        &authority.client(NAME, &["h2"]),
        &server,
        "TLS: alert no_application_protocol of the target",
    );
    // A server that does not know ALPN is taken as it is.
    let silent = authority.identity(NAME).server(&[&TLS13], &[]);
    let rig = Rig::opened(&authority.client(NAME, &["http/1.1"]), silent);
    assert_eq!(rig.server.alpn_protocol(), None);
}

#[test]
fn a_target_without_tls_is_named_as_such() {
    let authority = Authority::new();
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&authority.client(NAME, &[]), server, 100);
    assert!(rig.write());
    rig.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    rig.exchange();
    let reason = "TLS: the target answers with something that is not TLS";
    assert_eq!(rig.gone(), [Disconnect::Tls(reason)]);
    assert_eq!(rig.recorder.ledger.protocol_faults, 1);
}

#[test]
fn an_alert_in_mid_stream_ends_the_session_with_its_name() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    for version in [&TLS12, &TLS13] {
        let server = authority.identity(NAME).server(&[version], &[]);
        let mut rig = Rig::opened(&client, server);
        // A record that is not the session's: the server cannot decrypt it, and says so.
        rig.deliver(&[&[23, 3, 3, 0, 40][..], &[0; 40]].concat());
        assert_eq!(rig.server_fault, Some(Error::DecryptError));
        rig.exchange();
        let reason = "TLS: alert bad_record_mac of the target";
        assert_eq!(rig.gone(), [Disconnect::Tls(reason)]);
        assert_eq!(rig.reasons(), [(reason, 1)]);
        let ledger = &rig.recorder.ledger;
        assert_eq!((ledger.sessions_died, ledger.protocol_faults), (1, 0));
        assert_eq!(rig.session.phase(), Phase::Ended);
    }
}

#[test]
fn bytes_that_do_not_decrypt_are_a_protocol_fault_and_the_target_is_told() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    for half_written in [false, true] {
        let mut rig = Rig::opened(&client, server.clone());
        rig.now_ns = 5_000_000_000;
        assert!(rig.write());
        let mut echo = rig.collect_answer();
        *echo.last_mut().unwrap() ^= 1;
        if half_written {
            rig.write_bytes = 20;
            assert!(rig.write());
        }
        rig.receive(&echo);
        let sent = rig.seen.lock().unwrap().sent;
        assert_eq!(
            rig.session.phase(),
            Phase::Opening,
            "an alert is to be written"
        );
        assert!(rig.session.settled(), "the trial does not wait for that");
        rig.exchange();
        let reason = "TLS: a message of the target does not decrypt";
        assert_eq!(rig.gone(), [Disconnect::Tls(reason)]);
        assert_eq!(rig.recorder.ledger.protocol_faults, 1);
        let told = Error::AlertReceived(AlertDescription::BadRecordMac);
        assert_eq!(rig.server_fault, Some(told), "{half_written}");
        assert_eq!(rig.session.phase(), Phase::Ended);
        // Whoever lost the connection is told of no further write, and loses it once.
        assert_eq!(rig.seen.lock().unwrap().sent, sent);
        let closed = Disconnect::Closed;
        rig.session.disconnected(0, closed, &mut rig.recorder);
        assert_eq!(rig.gone().len(), 1);
    }
}

#[test]
fn a_target_that_closes_in_the_handshake_never_had_a_session() {
    let authority = Authority::new();
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&authority.client(NAME, &[]), server, 100);
    assert!(rig.write());
    let (closed, now_ns) = (Disconnect::Closed, rig.now_ns);
    rig.session.disconnected(now_ns, closed, &mut rig.recorder);
    assert_eq!(rig.gone(), [Disconnect::Closed]);
    assert_eq!(rig.recorder.ledger.sessions_failed, 1);
}
