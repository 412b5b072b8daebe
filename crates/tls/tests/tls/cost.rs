//! What TLS costs, by a clock of the test.

use plimsoll_core::profile::Profile;
use plimsoll_core::session::{Phase, Session};
use plimsoll_core::tls_cost::{Timed, TlsCost};
use rustls::version::{TLS12, TLS13};

use crate::pki::{Authority, NAME};
use crate::rig::{READING_NS, READINGS_EACH, Rig, WORK_NS, readings};

/// What is recorded of work that was done `count` times and timed `timed` times.
fn of(count: u64, timed: u64) -> Timed {
    Timed {
        count,
        timed,
        between_ns: timed * (READING_NS + WORK_NS),
        clock_ns: timed * READING_NS,
    }
}

#[test]
fn a_handshake_is_apart_and_one_frame_in_64_is_timed() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let window = Profile::quick().window();
    for version in [&TLS12, &TLS13] {
        let began = readings();
        let server = authority.identity(NAME).server(&[version], &[]);
        let mut rig = Rig::new(&client, server, 160);
        rig.now_ns = 0;
        rig.exchange();
        assert_eq!(rig.session.phase(), Phase::Open);
        let of_handshake = rig.recorder.tls.handshakes;
        // It is made of several parts: making the hello, and each write and read until it was done. All are timed.
        let parts = (readings() - began) / READINGS_EACH;
        assert!(parts >= 3, "{parts}");
        let expected = Timed {
            count: 1,
            timed: 1,
            ..of(0, parts)
        };
        assert_eq!(of_handshake, expected);

        // Before the window, nothing else is counted.
        rig.now_ns = window.start_ns - 1;
        rig.exchange();
        let before = rig.recorder.ledger.frames_sent_in_all;
        assert!(before > 1_000);
        let expected = TlsCost {
            handshakes: of_handshake,
            ..TlsCost::default()
        };
        assert_eq!(rig.recorder.tls, expected);
        assert_eq!(readings(), began + parts * READINGS_EACH);

        let began = readings();
        // A message at a time, as it is written and answered.
        for _ in 0..1_000 {
            rig.now_ns += 2_000_000;
            rig.exchange();
        }
        let sent = rig.recorder.ledger.frames_sent_in_all - before;
        assert_eq!(sent, 1_000);
        let tls = rig.recorder.tls;
        // Of the first session, the first is timed.
        assert_eq!(tls.writes, of(sent, sent.div_ceil(64)));
        assert_eq!(tls.reads, of(sent, sent.div_ceil(64)));
        assert_eq!(tls.handshakes, of_handshake);
        let timed = tls.writes.timed + tls.reads.timed;
        assert_eq!(readings() - began, timed * READINGS_EACH);
        let work_us = 5.0;
        assert_eq!(tls.us_per_frame(sent), Some(2.0 * work_us));

        // After the window neither, but what was due in it is written.
        rig.now_ns = window.end_ns;
        rig.exchange();
        assert!(rig.recorder.ledger.frames_sent_in_all > before + sent);
        assert_eq!(rig.recorder.tls, tls);
    }
}

#[test]
fn each_part_of_a_long_message_is_a_write() {
    let authority = Authority::new();
    let client = authority.client(NAME, &[]);
    let server = authority.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(&client, server, 100_000);
    rig.now_ns = 0;
    rig.exchange();
    rig.now_ns = Profile::quick().window().start_ns;
    let sent = |rig: &Rig| rig.seen.lock().unwrap().sent;
    let before = sent(&rig);
    while sent(&rig) == before {
        assert!(rig.write());
    }
    assert_eq!(rig.recorder.tls.writes, of(4, 1));
}
