//! Both sides of a calibration over TLS: a session and a speaker, without a network between them.

use std::sync::{Arc, Mutex};

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, SessionMachines};
use plimsoll_core::speaker::{After, Speaker};
use plimsoll_tls::{Client, OwnTls, TlsSession, TlsSpeaker};
use rustls::version::TLS13;

use crate::pki::{Authority, NAME};
use crate::rig::{Rig, clock};
use crate::toy::{BYE, Seen, Toy, Toys};

/// Sends everything back, and closes when it hears the farewell. Unasked, it says the time.
struct Echoing;

impl Speaker for Echoing {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        if bytes.ends_with(BYE) {
            return After::Close;
        }
        out.extend_from_slice(bytes);
        After::GoOn
    }

    fn unasked(&mut self, now_ns: u64, _profile: &Profile, out: &mut Vec<u8>) {
        if now_ns > 0 {
            out.extend_from_slice(&now_ns.to_be_bytes());
        }
    }
}

struct Pair {
    session: TlsSession<Toy>,
    seen: Arc<Mutex<Seen>>,
    speaker: TlsSpeaker,
    recorder: Recorder<()>,
    plan: SessionPlan,
}

impl Pair {
    fn new(own: &OwnTls, client: &Client, message_bytes: usize) -> Self {
        let toys = Toys { message_bytes };
        let plan = toys.plan(0, 1, &Profile::quick(), 1);
        let toy = toys.session(&plan);
        let seen = Arc::clone(&toy.seen);
        let mut session = TlsSession::new(toy, &plan, client.clone(), clock);
        let mut recorder = Recorder::default();
        session.connecting(0, &mut recorder);
        Self {
            session,
            seen,
            speaker: own.speaker(Box::new(Echoing)),
            recorder,
            plan,
        }
    }

    /// Exchanges bytes, so many at a time, until both sides are silent. What the speaker wants then.
    fn exchange(&mut self, now_ns: u64, piece_bytes: usize) -> After {
        while let Some(transmit) = self.session.transmit(now_ns) {
            let bytes = [transmit.head, transmit.body].concat();
            self.session.sent(now_ns, &mut self.recorder);
            for piece in bytes.chunks(piece_bytes) {
                let (mut piece, mut out) = (piece.to_vec(), Vec::new());
                let after = self.speaker.heard(&mut piece, &mut out);
                for piece in out.chunks(piece_bytes) {
                    self.session.received(now_ns, piece, &mut self.recorder);
                }
                if after == After::Close {
                    return after;
                }
            }
        }
        After::GoOn
    }
}

#[test]
fn a_speaker_is_heard_and_hears_in_any_split() {
    let own = OwnTls::new().unwrap();
    for piece_bytes in [1, 7, 1_000, usize::MAX] {
        for message_bytes in [8, 160, 40_000] {
            let mut pair = Pair::new(&own, own.client(), message_bytes);
            let after = pair.exchange(pair.plan.first_due_ns, piece_bytes);
            assert_eq!(after, After::GoOn);
            assert_eq!(pair.session.phase(), Phase::Open);
            pair.exchange(pair.plan.first_due_ns + 20_000_000, piece_bytes);
            let ledger = &pair.recorder.ledger;
            assert_eq!(ledger.frames_answered_in_all, 11);
            assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
            assert_eq!(pair.recorder.tls.handshakes.count, 1);
        }
    }
}

#[test]
fn what_it_says_unasked_is_encrypted_too() {
    let own = OwnTls::new().unwrap();
    let mut pair = Pair::new(&own, own.client(), 1_000);
    pair.exchange(0, usize::MAX);
    let (profile, mut out) = (Profile::quick(), Vec::new());
    pair.speaker.unasked(0, &profile, &mut out);
    assert!(out.is_empty(), "it had nothing to say");
    pair.speaker.unasked(77, &profile, &mut out);
    assert!(out.len() > 8 && !out.ends_with(&77_u64.to_be_bytes()));
    pair.session.received(0, &out, &mut pair.recorder);
    let plain = &pair.seen.lock().unwrap().plain;
    assert!(plain.ends_with(&77_u64.to_be_bytes()));
}

#[test]
fn a_close_of_either_side_is_one_of_tls() {
    let own = OwnTls::new().unwrap();
    let mut pair = Pair::new(&own, own.client(), 100);
    pair.exchange(0, usize::MAX);
    // The farewell of the session ends the speaker, which closes.
    pair.session.finish(0, &mut pair.recorder);
    assert_eq!(pair.exchange(0, usize::MAX), After::Close);
    assert_eq!(pair.seen.lock().unwrap().gone, [Disconnect::Closed]);
    assert_eq!(pair.recorder.ledger.protocol_faults, 0);
}

#[test]
fn nobody_else_believes_it_and_its_client_believes_nobody_else() {
    let own = OwnTls::new().unwrap();
    let not_trusted = "TLS: the target's certificate is of a CA that is not trusted";
    let another = Authority::new();
    let mut pair = Pair::new(&own, &another.client("sink.invalid", &[]), 100);
    pair.exchange(0, usize::MAX);
    assert_eq!(
        pair.seen.lock().unwrap().gone,
        [Disconnect::Tls(not_trusted)]
    );

    let server = another.identity(NAME).server(&[&TLS13], &[]);
    let mut rig = Rig::new(own.client(), server, 100);
    rig.exchange();
    assert_eq!(rig.gone(), [Disconnect::Tls(not_trusted)]);
}

#[test]
fn what_is_no_tls_ends_the_connection() {
    let own = OwnTls::new().unwrap();
    let mut speaker = own.speaker(Box::new(Echoing));
    let mut out = Vec::new();
    let after = speaker.heard(&mut b"GET / HTTP/1.1\r\n\r\n".to_vec(), &mut out);
    assert_eq!(after, After::Close);
}
