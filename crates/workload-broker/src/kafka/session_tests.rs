//! A trial whose sessions speak Kafka, against the toy broker and by a made-up clock.

use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::Spacing;
use plimsoll_core::session::{Account, Endpoint, Phase, Session, SessionMachines};

use super::toy::{Toy, setup, shared};
use super::{Reader, Writer};
use crate::link::{Links, told};
use crate::load::{BrokerLoad, Spoken, Test};
use crate::machines::Connections;
use crate::rig::Server;
use crate::schedule::Schedule;
use crate::session::BrokerSession;

/// How often the simulation looks.
const TICK_NS: u64 = NS_PER_MS / 2;
/// Messages per second.
const RATE: u32 = 8_000;
/// A Fetch without messages is answered so many ticks later.
const FETCH_TICKS: u64 = 200;

fn load() -> BrokerLoad {
    BrokerLoad {
        set: None,
        test: Test::Steady,
        spoken: Some(Spoken::Kafka),
        level: "ephemeral".to_owned(),
        confirm_at: None,
        deliver_at: None,
        writers: 2,
        readers: 2,
        rate: None,
        message_bytes: 64,
        window: Some(1_024),
        prefetch: 8,
        spacing: Spacing::Even,
        bursts: None,
        preload: 0,
        slow_ms: 0,
        crash: None,
        holds_readers: false,
    }
}

fn profile() -> Profile {
    Profile {
        ramp_s: 0.2,
        warm_up_s: 0.3,
        measured_s: 1.0,
        grace_s: 0.5,
        ..Profile::quick()
    }
}

fn machines(load: &BrokerLoad, profile: &Profile) -> Connections {
    let nowhere = Endpoint {
        host: String::new(),
        path: String::new(),
        headers: Vec::new(),
    };
    let links = Links::new(load, &told(nowhere, 7, None), load.readers).unwrap();
    Connections::new(load, links, 7, RATE, profile).unwrap()
}

/// Two writers and two readers.
fn sessions(machines: &Connections, load: &BrokerLoad, profile: &Profile) -> Vec<BrokerSession> {
    let window = profile.window();
    let messages_max = 1 << 20;
    let prefetch = load.prefetch;
    let writers = (0..2).map(|id| {
        let plan = machines.plan(id, 4, profile, 5);
        let schedule = Schedule::new(load.messages_of(RATE), id, profile, plan.seed);
        let most = load.window.map(u64::from);
        let writer =
            crate::writer::Writer::new(id, plan.seed, schedule, window, messages_max, most);
        let dialect = Writer::new(setup(2), id, true).unwrap();
        BrokerSession::of_writer(machines.shared(), Box::new(dialect), writer)
    });
    let readers = (0..2).map(|number| {
        let reader = crate::reader::Reader::new(number, 2, messages_max, window, 0);
        let dialect = Reader::new(setup(2), shared(number, 2), prefetch).unwrap();
        BrokerSession::of_reader(machines.shared(), Box::new(dialect), reader)
    });
    writers.chain(readers).collect()
}

#[test]
fn every_message_is_confirmed_delivered_and_committed() {
    let (load, profile) = (load(), profile());
    let machines = machines(&load, &profile);
    let mut sessions = sessions(&machines, &load, &profile);
    let mut recorder = Recorder::default();
    let mut toy = Toy::default();
    let lines: Vec<usize> = sessions.iter().map(|_| toy.connect()).collect();
    let end_ns = profile.window().grace_end_ns;
    for tick in 0..end_ns / TICK_NS {
        let now_ns = tick * TICK_NS;
        for (session, line) in sessions.iter_mut().zip(&lines) {
            if tick % FETCH_TICKS == 0 {
                toy.expire(*line);
            }
            let bytes = toy.written(*line);
            if !bytes.is_empty() {
                session.received(now_ns, &bytes, &mut recorder);
            }
            while let Some(transmit) = session.transmit(now_ns) {
                let bytes = [transmit.head, transmit.body].concat();
                session.sent(now_ns, &mut recorder);
                toy.received(*line, &bytes);
            }
            assert_ne!(
                session.phase(),
                Phase::Ended,
                "{:?}",
                recorder.ledger.reasons
            );
        }
    }
    for session in &mut sessions {
        session.finish(end_ns, &mut recorder);
    }
    let claims = std::mem::take(&mut recorder.claims);
    machines.settle(
        &claims,
        Account {
            ledger: &mut recorder.ledger,
            latency: &mut recorder.interval,
            began_ns: Some(0),
        },
    );
    let found = machines.found();
    let tally = &found.tally;
    let delivery = tally.delivery.as_ref().unwrap();
    assert_eq!(
        (tally.offered, tally.published, tally.confirmed),
        (8_000, 8_000, 8_000)
    );
    assert_eq!(
        (delivery.missing, delivery.duplicated, delivery.reordered),
        (0, 0, 0)
    );
    assert_eq!(recorder.ledger.frames_answered, 8_000);
    assert!(
        recorder.ledger.reasons.is_empty(),
        "{:?}",
        recorder.ledger.reasons
    );
    for (partition, log) in (0..).zip(&toy.logs) {
        let messages: i64 = log.iter().map(|batch| batch.count).sum();
        assert_eq!(toy.committed[&partition], messages, "all is committed");
        // Two messages of a writer are due in each tick.
        let batches = i64::try_from(log.len()).unwrap();
        assert!(
            batches > 0 && messages >= batches * 2 - 2,
            "{messages} in {batches}"
        );
    }
}
