//! A broker that crashes in the middle of the window, by the same simulation.

use plimsoll_core::session::{Disconnect, Unconnected};
use plimsoll_workload::{Crash, CrashKind};

use super::*;
use crate::reopen::Reopen;

/// How long the broker stays away.
const AWAY_NS: u64 = 300 * NS_PER_MS;
/// When a message is confirmed, and when it is delivered.
const CONFIRMED_AFTER_NS: u64 = NS_PER_MS;
const DELIVERED_AFTER_NS: u64 = 20 * NS_PER_MS;

/// A queue that delivers later than it confirms, so that a crash finds messages in it.
#[derive(Default)]
struct Queue {
    /// When each message came, to which reader it goes, and its body; until it is delivered.
    held: Vec<(u64, usize, u64, Vec<u8>)>,
    keeps: bool,
}

impl Queue {
    fn took(&mut self, wire: &mut Wire, now_ns: u64, writer: usize, tag: u64, body: &[u8]) {
        wire.confirm(now_ns + CONFIRMED_AFTER_NS, writer, tag);
        let reader = 2 + usize::try_from(tag % 2).unwrap();
        self.held.push((now_ns, reader, tag, body.to_vec()));
    }

    fn deliver(&mut self, wire: &mut Wire, now_ns: u64) {
        self.held.retain(|(came_ns, reader, tag, body)| {
            let stays = came_ns + DELIVERED_AFTER_NS > now_ns;
            if !stays {
                wire.send(now_ns, *reader, b'D', *tag, body);
            }
            stays
        });
    }
}

fn rig() -> Rig {
    let mut rig = Rig::new(Test::Replay, 2, Some(1_024), 1_000);
    rig.load.crash = Some(Crash {
        kind: CrashKind::Kill,
        pause: std::time::Duration::ZERO,
        asked_by: "--test replay",
    });
    rig
}

fn machines(rig: &Rig) -> Connections {
    let nowhere = plimsoll_core::session::Endpoint {
        host: String::new(),
        path: String::new(),
        headers: Vec::new(),
    };
    let links = Links::new(&rig.load, &told(nowhere, 7, None), 2).unwrap();
    Connections::new(&rig.load, links, 7, rig.rate, &rig.profile).unwrap()
}

/// Sessions of a trial and whether each has a connection.
struct Lines {
    sessions: Vec<BrokerSession>,
    /// When one without a connection makes its next attempt.
    attempts: Vec<Option<u64>>,
}

impl Lines {
    fn of(rig: &Rig, machines: &Connections, crash_ns: u64) -> Self {
        let sessions = rig.sessions(machines).into_iter().map(|session| {
            let make = || Some(Box::new(Plain::default()) as Box<dyn Dialect>);
            session.opening_again(Reopen::new(crash_ns, Box::new(make)), false)
        });
        let sessions: Vec<BrokerSession> = sessions.collect();
        let attempts = vec![None; sessions.len()];
        Self { sessions, attempts }
    }

    fn end(&mut self, id: usize, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        let session = &mut self.sessions[id];
        session.disconnected(now_ns, how, recorder);
        assert_eq!(session.phase(), Phase::Ended);
        self.attempts[id] = match session.unconnected(now_ns) {
            Unconnected::Connects { at_ns, open_by_ns } => {
                assert_eq!(session.phase(), Phase::Opening);
                assert!(now_ns < at_ns && at_ns < open_by_ns);
                Some(at_ns)
            }
            other => panic!("{other:?}"),
        };
    }

    /// Makes the attempts that are due.
    fn connect(
        &mut self,
        now_ns: u64,
        is_back: bool,
        wire: &mut Wire,
        recorder: &mut Recorder<Claim>,
    ) {
        for id in 0..self.sessions.len() {
            if self.attempts[id].is_none_or(|at_ns| at_ns > now_ns) {
                continue;
            }
            if is_back {
                self.attempts[id] = None;
                wire.send(now_ns, id, b'R', 0, b"");
            } else {
                self.end(id, now_ns, Disconnect::Refused, recorder);
            }
        }
    }
}

/// Runs a trial over a crash of this queue, which stays away for so long.
fn crossed(mut queue: Queue, away_ns: u64) -> Shown {
    let rig = rig();
    let window = rig.profile.window();
    let crash_ns = Crash::at_ns(&window);
    let machines = machines(&rig);
    let mut lines = Lines::of(&rig, &machines, crash_ns);
    let (mut recorder, mut wire) = (Recorder::default(), Wire::default());
    (0..4).for_each(|id| wire.send(0, id, b'R', 0, b""));
    let mut now_ns = 0;
    while now_ns < window.grace_end_ns {
        if now_ns == crash_ns {
            // What is on its way goes with the connections.
            wire.events.clear();
            if !queue.keeps {
                queue.held.clear();
            }
            (0..4).for_each(|id| lines.end(id, now_ns, Disconnect::Reset, &mut recorder));
        }
        let is_back = now_ns < crash_ns || now_ns >= crash_ns + away_ns;
        lines.connect(now_ns, is_back, &mut wire, &mut recorder);
        if is_back {
            queue.deliver(&mut wire, now_ns);
        }
        while let Some(first) = wire.events.first_entry()
            && first.key().0 <= now_ns
        {
            let (id, bytes) = first.remove();
            lines.sessions[id].received(now_ns, &bytes, &mut recorder);
        }
        for (id, session) in lines.sessions.iter_mut().enumerate() {
            while session.phase() == Phase::Open
                && let Some(transmit) = session.transmit(now_ns)
            {
                let mut bytes = transmit.head.to_vec();
                session.sent(now_ns, &mut recorder);
                frames(&mut bytes, |letter, tag, body| {
                    if letter == b'P' {
                        queue.took(&mut wire, now_ns, id, tag, body);
                    }
                });
            }
            assert!(!session.settled(), "the whole grace is waited for");
        }
        now_ns += TICK_NS;
    }
    for session in &mut lines.sessions {
        session.finish(now_ns, &mut recorder);
    }
    let claims = std::mem::take(&mut recorder.claims);
    let text = serde_json::to_string(&claims).unwrap();
    let claims: Vec<Claim> = serde_json::from_str(&text).unwrap();
    let account = Account {
        ledger: &mut recorder.ledger,
        latency: &mut recorder.interval,
        began_ns: Some(0),
    };
    machines.settle(&claims, account);
    assert!(recorder.ledger.is_whole(), "{:?}", recorder.ledger);
    Shown {
        found: machines.found(),
        recorder,
    }
}

#[test]
fn a_broker_that_keeps_its_messages_loses_none_that_it_confirmed() {
    let queue = Queue {
        keeps: true,
        ..Queue::default()
    };
    let shown = crossed(queue, AWAY_NS);
    let replayed = shown.found.replayed.unwrap();
    let ledger = &shown.recorder.ledger;
    assert_eq!((ledger.confirmed_lost, replayed.crossed.lost), (Some(0), 0));
    // The window begins with the third second, and its middle is 2.5 s later; writers begin in the ramp.
    assert!(replayed.crossed.confirmed > 3_000, "{replayed:?}");
    // Each tick a writer may write; the answer takes two.
    let open = replayed.crossed.open;
    assert!((1..=4).contains(&open), "{replayed:?}");
    assert_eq!(replayed.crossed.recovered, open, "written is kept here");
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (4, 0));
    assert_eq!(replayed.crossing.lost, 4);
    let crash_ns = Crash::at_ns(&rig().profile.window());
    let open_ns = replayed.crossing.open_ns.unwrap() - crash_ns;
    assert!(
        (AWAY_NS..AWAY_NS + 15 * NS_PER_MS).contains(&open_ns),
        "{open_ns}"
    );
    assert!(replayed.crossing.first_ns.unwrap() >= crash_ns + AWAY_NS);
    assert_eq!(shown.found.tally.offered, 5_000, "as planned");
    assert_eq!(shown.found.tally.published, 5_000, "late, and not lost");
    assert!(shown.found.slope.is_none(), "over a crash it says nothing");
}

#[test]
fn what_was_due_meanwhile_waits_for_the_connection_and_the_client_is_not_to_blame() {
    let shown = crossed(Queue::default(), AWAY_NS);
    let waits = shown.found.waits;
    assert!(waits.crash_messages.abs_diff(300) < 20, "{waits:?}");
    let mean_ms = waits.crash_ns / waits.crash_messages / NS_PER_MS;
    assert!(mean_ms.abs_diff(150) < 20, "{mean_ms} ms");
    assert_eq!(waits.window_messages, 0);
    assert!(shown.ms(Series::ConfirmFromSchedule, 1.0) >= 300.0);
}

#[test]
fn a_broker_that_forgets_loses_what_it_confirmed_and_what_was_open_is_not_missing() {
    let shown = crossed(Queue::default(), AWAY_NS);
    let replayed = shown.found.replayed.unwrap();
    // A thousand a second for the 19 ms between the confirmation and the delivery.
    let lost = replayed.crossed.lost;
    assert!((15..=22).contains(&lost), "{replayed:?}");
    assert_eq!(shown.recorder.ledger.confirmed_lost, Some(lost));
    assert_eq!(replayed.crossed.recovered, 0);
    let missing = shown.found.tally.delivery.unwrap().missing;
    assert_eq!(missing - replayed.crossed.open_missing, lost);
}

#[test]
fn a_connection_that_does_not_come_back_died() {
    let shown = crossed(Queue::default(), u64::MAX / 2);
    let ledger = &shown.recorder.ledger;
    assert_eq!((ledger.sessions_started, ledger.sessions_died), (4, 4));
    assert_eq!(ledger.reasons["not open again after the crash"], 4);
    let replayed = shown.found.replayed.unwrap();
    assert_eq!(
        (replayed.crossing.open_ns, replayed.crossing.first_ns),
        (None, None)
    );
    let published = shown.found.tally.published;
    assert!(published.abs_diff(2_500) < 10, "{published}");
}

#[test]
fn a_connection_that_ends_before_the_crash_is_not_opened_again() {
    let rig = rig();
    let machines = machines(&rig);
    let crash_ns = Crash::at_ns(&rig.profile.window());
    let mut lines = Lines::of(&rig, &machines, crash_ns);
    let mut recorder = Recorder::default();
    let mut bytes = Vec::new();
    frame(&mut bytes, b'R', 0, b"");
    let session = &mut lines.sessions[0];
    session.received(0, &bytes, &mut recorder);
    session.disconnected(crash_ns - 1, Disconnect::Reset, &mut recorder);
    assert_eq!(session.unconnected(crash_ns - 1), Unconnected::Over);
    assert_eq!(recorder.ledger.sessions_died, 1);
    assert!(session.settled());
}
