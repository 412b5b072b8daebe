//! The faults of other benchmarks, each shown fixed against a simulated broker that has one. No sockets, and a clock of
//! our own.

mod crash;

use std::collections::BTreeMap;

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, Spacing};
use plimsoll_core::session::{Account, Phase, Session, SessionMachines};

use crate::dialect::{Dialect, Fault, Heard};
use crate::link::{Links, told};
use crate::load::{BrokerLoad, Spoken, Test};
use crate::machines::{Connections, Found};
use crate::reader::Reader;
use crate::schedule::Schedule;
use crate::session::{BrokerSession, Claim};
use crate::writer::Writer;

/// How often the simulation looks.
const TICK_NS: u64 = NS_PER_MS / 2;

/// A protocol of frames: a letter, a number of 8 bytes, a length of 4 and so many bytes. `R`: ready; `P`: publish; `C`:
/// confirmed; `D`: delivered; `S`: settled.
#[derive(Debug, Default)]
struct Plain {
    rest: Vec<u8>,
}

fn frame(out: &mut Vec<u8>, letter: u8, number: u64, body: &[u8]) {
    out.push(letter);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    out.extend_from_slice(body);
}

/// Takes whole frames off the beginning.
fn frames(bytes: &mut Vec<u8>, mut each: impl FnMut(u8, u64, &[u8])) {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + 13) {
        let number = u64::from_le_bytes(head[1..9].try_into().unwrap());
        let length = u32::from_le_bytes(head[9..13].try_into().unwrap());
        let end = at + 13 + usize::try_from(length).unwrap();
        let Some(body) = bytes.get(at + 13..end) else {
            break;
        };
        each(bytes[at], number, body);
        at = end;
    }
    bytes.drain(..at);
}

impl Dialect for Plain {
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        frame(out, b'P', tag, body);
    }

    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        for handle in handles {
            frame(out, b'S', *handle, b"");
        }
    }

    fn received(
        &mut self,
        bytes: &[u8],
        _: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        self.rest.extend_from_slice(bytes);
        frames(&mut self.rest, |letter, number, body| match letter {
            b'R' => heard(Heard::Ready),
            b'C' => heard(Heard::Confirmed {
                tag: number,
                up_to: false,
            }),
            b'D' => heard(Heard::Delivered {
                payload: body,
                handle: number,
                redelivered: false,
            }),
            b'B' => heard(Heard::Blocked(number == 1)),
            other => panic!("{other}"),
        });
        Ok(())
    }

    fn close(&mut self, _: &mut Vec<u8>) {}

    fn held_bytes(&self) -> usize {
        self.rest.capacity()
    }
}

/// What a simulated broker sends, by when it arrives.
#[derive(Debug, Default)]
struct Wire {
    events: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    count: u64,
}

impl Wire {
    fn send(&mut self, at_ns: u64, session: usize, letter: u8, number: u64, body: &[u8]) {
        let mut bytes = Vec::new();
        frame(&mut bytes, letter, number, body);
        self.count += 1;
        self.events.insert((at_ns, self.count), (session, bytes));
    }

    fn confirm(&mut self, at_ns: u64, writer: usize, tag: u64) {
        self.send(at_ns, writer, b'C', tag, b"");
    }
}

/// A trial without sockets: two writers and some readers.
struct Rig {
    load: BrokerLoad,
    profile: Profile,
    rate: u32,
}

/// What it showed.
struct Shown {
    found: Found,
    recorder: Recorder<Claim>,
}

impl Shown {
    fn ms(&self, series: Series, quantile: f64) -> f64 {
        let us = self
            .recorder
            .interval
            .histogram(series)
            .value_at_quantile(quantile);
        f64::from(u32::try_from(us).unwrap()) / 1e3
    }
}

impl Rig {
    fn new(test: Test, readers: u32, window: Option<u32>, rate: u32) -> Self {
        Self {
            load: BrokerLoad {
                test,
                set: None,
                spoken: Some(Spoken::Fibril),
                level: "durable".to_owned(),
                confirm_at: None,
                deliver_at: None,
                writers: 2,
                readers,
                rate: None,
                message_bytes: 64,
                window,
                prefetch: 512,
                spacing: Spacing::Even,
                bursts: None,
                slow_ms: 0,
                preload: 0,
                crash: None,
                holds_readers: false,
            },
            profile: Profile {
                ramp_s: 1.0,
                warm_up_s: 1.0,
                measured_s: 5.0,
                grace_s: 2.0,
                ..Profile::quick()
            },
            rate,
        }
    }

    /// Runs the trial. `broker` is told of each message that was published: when, by whom, its tag and its body; it says
    /// what it sends. Readers are the sessions after the two writers.
    fn run(&self, mut broker: impl FnMut(&mut Wire, u64, usize, u64, &[u8])) -> Shown {
        let to = told(
            plimsoll_core::session::Endpoint {
                host: String::new(),
                path: String::new(),
                headers: Vec::new(),
            },
            7,
            None,
        );
        let links = Links::new(&self.load, &to, self.load.readers).unwrap();
        let machines = Connections::new(&self.load, links, 7, self.rate, &self.profile).unwrap();
        let mut recorder = Recorder::default();
        let mut sessions = self.sessions(&machines);
        let mut wire = Wire::default();
        for session in 0..sessions.len() {
            wire.send(0, session, b'R', 0, b"");
        }
        let window = self.profile.window();
        let mut now_ns = 0;
        while now_ns < window.grace_end_ns {
            while let Some(first) = wire.events.first_entry()
                && first.key().0 <= now_ns
            {
                let (session, bytes) = first.remove();
                sessions[session].received(now_ns, &bytes, &mut recorder);
            }
            for (number, session) in sessions.iter_mut().enumerate() {
                assert_eq!(session.phase(), Phase::Open);
                while let Some(transmit) = session.transmit(now_ns) {
                    let mut bytes = transmit.head.to_vec();
                    session.sent(now_ns, &mut recorder);
                    frames(&mut bytes, |letter, tag, body| {
                        if letter == b'P' {
                            broker(&mut wire, now_ns, number, tag, body);
                        }
                    });
                }
            }
            now_ns += TICK_NS;
        }
        for session in &mut sessions {
            session.finish(now_ns, &mut recorder);
        }
        let claims = std::mem::take(&mut recorder.claims);
        // As they come from another process.
        let text = serde_json::to_string(&claims).unwrap();
        let claims: Vec<Claim> = serde_json::from_str(&text).unwrap();
        machines.settle(
            &claims,
            Account {
                ledger: &mut recorder.ledger,
                latency: &mut recorder.interval,
                began_ns: Some(0),
            },
        );
        assert!(recorder.ledger.is_whole(), "{:?}", recorder.ledger);
        Shown {
            found: machines.found(),
            recorder,
        }
    }

    fn sessions(&self, machines: &Connections) -> Vec<BrokerSession> {
        let all = 2 + self.load.readers_of(self.rate);
        let plan = |id| machines.plan(id, all, &self.profile, 5);
        let shared = machines.shared();
        let window = self.profile.window();
        let messages_max = 1 << 20;
        let writer = |plan: &SessionPlan| {
            let schedule = Schedule::new(
                self.load.messages_of(self.rate),
                plan.id,
                &self.profile,
                plan.seed,
            );
            let most = self.load.window.map(u64::from);
            let writer = Writer::new(plan.id, plan.seed, schedule, window, messages_max, most);
            BrokerSession::of_writer(shared, Box::new(Plain::default()), writer)
        };
        let reader = |number: u32| {
            let reader = Reader::new(number, 2, messages_max, window, 0);
            BrokerSession::of_reader(shared, Box::new(Plain::default()), reader)
        };
        let writers = (0..2).map(|id| writer(&plan(id)));
        writers.chain((0..all - 2).map(reader)).collect()
    }
}

/// An honest queue: to the readers by turns, 100 µs later.
fn honest(wire: &mut Wire, now_ns: u64, writer: usize, tag: u64, body: &[u8]) {
    let later_ns = now_ns + NS_PER_MS / 10;
    wire.confirm(later_ns, writer, tag);
    let reader = 2 + usize::try_from(tag % 2).unwrap();
    wire.send(later_ns, reader, b'D', tag, body);
}

#[test]
fn an_honest_broker_is_clean_and_all_of_its_messages_are_there() {
    let shown = Rig::new(Test::Steady, 2, Some(1_024), 1_000).run(honest);
    let tally = &shown.found.tally;
    let delivery = tally.delivery.as_ref().unwrap();
    assert_eq!(
        (tally.offered, tally.published, tally.confirmed),
        (5_000, 5_000, 5_000)
    );
    assert_eq!(
        (
            delivery.in_window + delivery.drained,
            delivery.missing,
            delivery.lost
        ),
        (5_000, 0, 0)
    );
    assert_eq!((delivery.duplicated, delivery.reordered), (0, 0));
    let ledger = &shown.recorder.ledger;
    assert_eq!(
        (
            ledger.frames_due,
            ledger.frames_answered,
            ledger.frames_lost
        ),
        (5_000, 5_000, 0)
    );
    assert!(ledger.reasons.is_empty(), "{:?}", ledger.reasons);
    assert!(shown.ms(Series::NewestFromSchedule, 1.0) < 2.0);
    assert!(shown.ms(Series::ConfirmFromSchedule, 1.0) < 2.0);
    assert!(shown.found.slope.unwrap().share().abs() < 0.005);
    assert_eq!(shown.found.absent, 0);
}

/// Other benchmarks re-base the schedule after a stall of 5 ms, or stamp the send.
#[test]
fn a_stall_of_500_ms_is_in_the_latency_and_moves_no_message() {
    let stall = 4 * NS_PER_S..4 * NS_PER_S + 500 * NS_PER_MS;
    let shown =
        Rig::new(Test::Steady, 2, Some(16), 1_000).run(|wire, now_ns, writer, tag, body| {
            let answers_ns = if stall.contains(&now_ns) {
                stall.end
            } else {
                now_ns
            };
            honest(wire, answers_ns, writer, tag, body);
        });
    assert_eq!(shown.found.tally.offered, 5_000, "as planned");
    assert_eq!(shown.found.tally.published, 5_000);
    assert!(shown.ms(Series::NewestFromSchedule, 0.999) >= 400.0);
    assert!(shown.ms(Series::ConfirmFromSchedule, 0.999) >= 400.0);
    assert!(
        shown.found.waits.window_messages > 300,
        "{:?}",
        shown.found.waits
    );
}

/// In other benchmarks, the time that a message waits for a full window is in no latency.
#[test]
fn a_full_window_is_in_send_wait_and_in_the_latency() {
    let shown = Rig::new(Test::Steady, 2, Some(1), 20).run(|wire, now_ns, writer, tag, body| {
        honest(wire, now_ns + 200 * NS_PER_MS, writer, tag, body);
    });
    // A writer is due ten times a second and gets five answers, so it falls behind by half of the time.
    let waits = shown.found.waits;
    assert!(waits.window_messages >= 45, "{waits:?}");
    assert!(shown.ms(Series::ConfirmFromSchedule, 0.5) > 1_000.0);
    assert!(shown.found.tally.published < shown.found.tally.offered);
    assert!(shown.recorder.ledger.frames_lost > 0);
}

/// In other benchmarks the pacer was the limit.
#[test]
fn a_bare_sink_gets_exactly_what_is_offered() {
    let mut rig = Rig::new(Test::Publish, 0, None, 40_000);
    rig.load.window = None;
    let mut taken = 0_u64;
    let shown = rig.run(|_, _, _, _, _| taken += 1);
    assert_eq!(shown.found.tally.published, 200_000);
    assert_eq!(taken, 240_000, "with the warm-up");
}

/// Percentiles of survivors, and streams without "missing".
#[test]
fn a_thinned_reader_of_four_is_counted_exactly() {
    let shown =
        Rig::new(Test::Fanout, 4, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, body| {
            wire.confirm(now_ns, writer, tag);
            for reader in 0..4 {
                if reader != 3 || tag % 2 == 0 {
                    wire.send(now_ns + NS_PER_MS, 2 + reader, b'D', tag, body);
                }
            }
        });
    let delivery = shown.found.tally.delivery.as_ref().unwrap();
    assert_eq!((delivery.missing, delivery.lost), (2_500, 2_500));
    let missing: Vec<_> = delivery.readers.iter().map(|of| of.missing).collect();
    assert_eq!(missing, [Some(0), Some(0), Some(0), Some(2_500)]);
    assert_eq!(shown.recorder.ledger.frames_lost, 2_500);
    assert_eq!(shown.recorder.interval.censored(), 2_500);
    // An eighth never came, so the p99 is no latency but the time we waited.
    assert!(shown.ms(Series::NewestFromSchedule, 0.99) > 2_000.0);
}

/// What was drained afterwards counts as received.
#[test]
fn a_broker_that_delivers_four_fifths_has_a_backlog() {
    let (mut free_ns, per_message_ns) = (0, NS_PER_S / 800);
    let shown =
        Rig::new(Test::Steady, 2, Some(65_535), 1_000).run(|wire, now_ns, writer, tag, body| {
            wire.confirm(now_ns, writer, tag);
            free_ns = now_ns.max(free_ns) + per_message_ns;
            wire.send(free_ns, 2, b'D', tag, body);
        });
    let delivery = shown.found.tally.delivery.as_ref().unwrap();
    let slope = shown.found.slope.unwrap();
    assert!((slope.share() - 0.2).abs() < 0.01, "{slope:?}");
    assert!(slope.grows());
    let arrived = f64::from(u32::try_from(delivery.arrived_in_window).unwrap());
    assert!((arrived / 5_000.0 - 0.8).abs() < 0.01, "{arrived}");
    assert_eq!(delivery.missing, 0);
    assert!(delivery.drained > 900);
}

/// Wall clocks in milliseconds, with negative latencies cut to 0.
#[test]
fn nothing_arrives_before_it_is_due() {
    let shown =
        Rig::new(Test::Steady, 2, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, body| {
            wire.confirm(now_ns, writer, tag);
            wire.send(now_ns, 2, b'D', tag, body);
        });
    assert_eq!(shown.recorder.ledger.protocol_faults, 0);
    assert!(shown.ms(Series::NewestFromSchedule, 1.0) < 2.0);
    let forged =
        Rig::new(Test::Steady, 2, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, body| {
            honest(wire, now_ns, writer, tag, body);
            if tag == 600 && writer == 0 {
                let mut damaged = body.to_vec();
                damaged[20] ^= 1;
                wire.send(now_ns, 2, b'D', tag, &damaged);
                wire.send(now_ns, 2, b'D', tag, b"hello");
            }
        });
    let faults = &forged.found.faults;
    assert_eq!(
        (faults.get("damaged"), faults.get("foreign")),
        (Some(&1), Some(&1))
    );
    assert_eq!(forged.recorder.ledger.protocol_faults, 2);
}

/// Loss by a difference of counts.
#[test]
fn seven_dropped_doubled_and_swapped_are_three_sevens_through_the_machines() {
    let mut kept: Option<Vec<u8>> = None;
    let shown =
        Rig::new(Test::Steady, 1, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, body| {
            wire.confirm(now_ns, writer, tag);
            let mut deliver = |body: &[u8]| wire.send(now_ns + NS_PER_MS, 2, b'D', tag, body);
            // Writer 0 has 500 messages in its warm-up.
            match (writer, tag) {
                (0, 600..607) => {}
                (0, 700..707) => {
                    deliver(body);
                    deliver(body);
                }
                (0, 800..814) if tag % 2 == 0 => kept = Some(body.to_vec()),
                (0, 800..814) => {
                    deliver(body);
                    deliver(&kept.take().unwrap());
                }
                _ => deliver(body),
            }
        });
    let delivery = shown.found.tally.delivery.as_ref().unwrap();
    assert_eq!(
        (delivery.missing, delivery.duplicated, delivery.reordered),
        (7, 7, 7)
    );
    let ledger = &shown.recorder.ledger;
    assert_eq!(
        (
            ledger.frames_lost,
            ledger.frames_duplicated,
            ledger.frames_out_of_order
        ),
        (7, 7, 7)
    );
}

/// Flow control is send wait, and named.
#[test]
fn a_broker_that_asks_to_wait_is_waited_for() {
    let shown =
        Rig::new(Test::Steady, 2, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, body| {
            honest(wire, now_ns, writer, tag, body);
            if tag == 600 {
                wire.send(now_ns, writer, b'B', 1, b"");
                wire.send(now_ns + 300 * NS_PER_MS, writer, b'B', 0, b"");
            }
        });
    let waits = shown.found.waits;
    assert_eq!(waits.asked_to_wait, 2);
    assert!(
        (280..=310).contains(&waits.flow_control_messages),
        "{waits:?}"
    );
    assert_eq!(shown.found.tally.published, 5_000);
    assert_eq!(shown.recorder.ledger.frames_lost, 0);
}

/// What the broker never confirms counts with the time we waited.
#[test]
fn a_confirmation_that_never_comes_is_a_lower_bound() {
    let shown =
        Rig::new(Test::Publish, 0, Some(1_024), 1_000).run(|wire, now_ns, writer, tag, _| {
            if tag % 100 != 0 {
                wire.confirm(now_ns, writer, tag);
            }
        });
    let tally = &shown.found.tally;
    assert_eq!(
        (tally.published, tally.confirmed, tally.unanswered),
        (5_000, 4_950, 50)
    );
    assert_eq!(shown.recorder.ledger.frames_lost, 50);
    assert_eq!(shown.recorder.interval.unconfirmed(), 50);
    assert!(shown.ms(Series::ConfirmFromSchedule, 1.0) > 6_000.0);
}
