//! What messages cost the client: publishing them, one and several at a write, and taking them from a queue.
//!
//! They go by Fibril's protocol, because its frames have no text to read or write: so the costs are those of the engine and
//! of the account rather than those of a codec.

#[cfg(test)]
mod allocations;
mod peer;
mod readers;

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_engine::Options;
use plimsoll_workload::calibrate::{
    After, Answers, Counts, Deliveries, Flow, Messages as Writes, Opening, Server, Sessions,
    Speaker,
};
use plimsoll_workload::{Job, Plan, Refusal, Value, Values, Work, machines};

use crate::dialect::Dialect;
use crate::fibril;
use crate::link::Links;
use crate::load::{BrokerLoad, Test};
use crate::message::{Messages, Stamp};
use crate::parameters::PARAMETERS;
use crate::plan::BrokerPlan;
use peer::{BATCH, BATCH_PERIOD_NS, Peer};
use readers::Readers;

/// Connections on which the costs are measured.
const USUAL_CONNECTIONS: u32 = 100;
/// The size of each message.
const MESSAGE_BYTES: usize = 1_024;
/// Time between two messages of a connection that are written one at a time. It is long enough that two are hardly ever
/// due in one tick.
const PERIOD_NS: u64 = 2 * NS_PER_MS;
/// The engine's tick: what is due within it goes out together.
const TICK_NS: u64 = Options::DEFAULT_TICK_US * 1_000;
/// Messages of a connection that go out together, where there are several.
const BURST: u32 = 8;
/// Time between two looks of a sink that confirms. What arrives in between fits into a socket.
const CONFIRM_PACE: Duration = Duration::from_millis(1);
/// Time between two looks of a sink that delivers. It is a part of how late messages are taken, so it is short.
const DELIVER_PACE: Duration = Duration::from_micros(500);

/// All works, in the order of the report.
pub(crate) static WORKS: [&dyn Work; 3] = [
    &Publishing { burst: 1 },
    &Publishing { burst: BURST },
    &Taking,
];

/// Confirmed messages.
#[derive(Debug)]
struct Publishing {
    /// How many messages of a connection are due together and go out in one write.
    burst: u32,
}

impl Publishing {
    /// Time between two messages of a connection, ns. Those of a burst are due within one tick.
    fn period_ns(&self) -> u64 {
        match self.burst {
            1 => PERIOD_NS,
            burst => TICK_NS / u64::from(burst),
        }
    }

    fn plan(writers: u32) -> BrokerPlan {
        BrokerPlan::new(values(Test::Publish).with("writers", Value::Whole(writers.into())))
            .unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"))
    }
}

impl Work for Publishing {
    fn name(&self) -> &'static str {
        "publish 1 KiB"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        amount.saturating_mul(per_second(self.period_ns()))
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(MESSAGE_BYTES)
    }

    fn messages_per_write(&self) -> Option<u32> {
        Some(self.burst)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    /// Bursts go out on a quarter of the connections, which write four times as often, so both kinds make the same
    /// number of writes.
    fn amount(&self, sessions: u32) -> u32 {
        match self.burst {
            1 => sessions,
            _ => (sessions / 4).max(1),
        }
    }

    fn flow(&self, amount: u32) -> Flow {
        let mut writer = dialect(Test::Publish, |links| links.writer(0));
        let request = greeting(&mut *writer);
        let (mut message, mut frame) = (Vec::new(), Vec::new());
        messages().encode(&stamp(), &mut message);
        writer.publish(&mut frame, &message, 0);
        Flow::Messages(Writes {
            connections: amount,
            period_ns: self.period_ns(),
            frame,
            number: None,
            share_a_write: true,
            answers: Answers::Read(Opening {
                request,
                // The answer to the declaration: the status, and one partition.
                answer_end: b"created\0\0\0\x01",
            }),
        })
    }

    fn server(&self) -> Server {
        Server::new(CONFIRM_PACE, Confirming::default)
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let job = Job {
            load: self.load(amount),
            seed: 0,
            to,
            started: true,
        };
        let machines = Self::plan(amount).machines(&job, profile);
        Sessions {
            machines: machines.unwrap_or_else(|refusal| unreachable!("{refusal}")),
            count: amount,
        }
    }
}

/// Messages that the broker delivers by itself, and that are settled.
#[derive(Debug)]
struct Taking;

impl Work for Taking {
    fn name(&self) -> &'static str {
        "deliver 1 KiB with settling, 16 a read"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        let batches = amount.saturating_mul(per_second(BATCH_PERIOD_NS));
        batches.saturating_mul(BATCH)
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(MESSAGE_BYTES)
    }

    /// What is written is settlements, one for each read.
    fn messages_per_write(&self) -> Option<u32> {
        None
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    /// A quarter of the connections carry twice as many messages as all of them do one at a write.
    fn amount(&self, sessions: u32) -> u32 {
        (sessions / 4).max(1)
    }

    fn counts(&self) -> Counts {
        Counts::Taken
    }

    fn flow(&self, amount: u32) -> Flow {
        let mut reader = dialect(Test::Steady, |links| links.reader(0));
        let request = greeting(&mut *reader);
        let mut settlement = Vec::new();
        let handles: Vec<u64> = (0..BATCH).map(u64::from).collect();
        reader.settle(&mut settlement, &handles);
        Flow::Deliveries(Deliveries {
            connections: amount,
            period_ns: BATCH_PERIOD_NS,
            batch: BATCH,
            batch_bytes: Peer::batch_bytes(&request),
            opening: Opening {
                request,
                // The answer to the subscription: partition, no group, a prefetch of 512, and what is absent.
                answer_end: b"\0\0\0\0\0\0\0\x02\0\0\0\0",
            },
            settlement,
        })
    }

    fn server(&self) -> Server {
        let mut connections = 0..;
        let messages = Arc::new(messages());
        Server::new(DELIVER_PACE, move || {
            Peer::new(
                connections.next().unwrap_or_default(),
                Arc::clone(&messages),
            )
        })
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let readers = Readers::new(links(Test::Steady, &to), messages(), amount, profile);
        Sessions {
            machines: machines(readers),
            count: amount,
        }
    }
}

/// A connection of a sink that confirms.
#[derive(Debug, Default)]
struct Confirming(fibril::Server);

impl Speaker for Confirming {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        peer::after(self.0.received(bytes, out))
    }
}

fn per_second(period_ns: u64) -> u32 {
    u32::try_from(NS_PER_S / period_ns).unwrap_or(u32::MAX)
}

/// The values of a test by Fibril's protocol.
fn values(test: Test) -> Values {
    let word = |text: &str| Value::Word(text.to_owned());
    Values::default()
        .with("test", word(test.name()))
        .with("dialect", word("fibril"))
        .or_usual(&PARAMETERS)
}

fn links(test: Test, to: &Endpoint) -> Links {
    let links = BrokerLoad::of(&values(test)).and_then(|load| Links::new(&load, to, 1));
    links.unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"))
}

/// A machine that a bare loop takes its bytes from.
fn dialect(
    test: Test,
    of: impl FnOnce(&Links) -> Result<Box<dyn Dialect>, Refusal>,
) -> Box<dyn Dialect> {
    let nowhere = Endpoint {
        host: String::new(),
        path: "/".to_owned(),
        headers: Vec::new(),
    };
    of(&links(test, &nowhere)).unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"))
}

/// All that a connection says before it carries messages. The bare loop says it in one piece.
fn greeting(dialect: &mut dyn Dialect) -> Vec<u8> {
    let mut server = fibril::Server::default();
    let (mut said, mut out, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    dialect.open(&mut out);
    while !out.is_empty() {
        said.extend_from_slice(&out);
        let received = server.received(&out, &mut answers);
        received.unwrap_or_else(|_| unreachable!("our own client"));
        out.clear();
        let received = dialect.received(&answers, &mut out, &mut |_| {});
        received.unwrap_or_else(|fault| unreachable!("our own server: {fault:?}"));
        answers.clear();
    }
    said
}

/// The messages of every run: as of a trial without a number.
fn messages() -> Messages {
    Messages::new(0, 0, MESSAGE_BYTES).unwrap_or_else(|size| unreachable!("{size}"))
}

/// The stamp of a message of which only the size matters.
fn stamp() -> Stamp {
    Stamp {
        writer: 0,
        sequence: 0,
        intended_ns: 0,
        late_us: 0,
        measured: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Heard;

    #[test]
    fn a_burst_is_due_in_a_tick() {
        let period_ns = |burst| Publishing { burst }.period_ns();
        assert_eq!(period_ns(BURST) * u64::from(BURST), TICK_NS);
        assert!(period_ns(1) > 2 * TICK_NS);
    }

    #[test]
    fn both_kinds_of_messages_make_as_many_writes() {
        let writes = |burst| {
            let work = Publishing { burst };
            work.load(work.amount(100)) / burst
        };
        assert_eq!((writes(1), writes(BURST)), (50_000, 50_000));
        assert_eq!(Taking.load(Taking.amount(100)), 100_000);
        let of_two = |work: &dyn Work| work.amount(2);
        assert_eq!(WORKS.map(of_two), [2, 1, 1]);
    }

    #[test]
    fn a_flow_makes_its_load() {
        for work in WORKS {
            let flow = work.flow(25);
            assert!((flow.per_second() - f64::from(work.load(25))).abs() < 1e-6);
        }
    }

    /// What a sink answers to one piece.
    fn answer(work: &dyn Work, bytes: &[u8]) -> Vec<u8> {
        let Server { mut speakers, .. } = work.server();
        let mut out = Vec::new();
        let after = speakers().heard(&mut bytes.to_vec(), &mut out);
        assert_eq!(after, After::GoOn);
        out
    }

    #[test]
    fn the_sink_answers_as_the_bare_loop_expects() {
        for work in WORKS {
            let (opening, then) = match work.flow(1) {
                Flow::Messages(Writes {
                    answers: Answers::Read(opening),
                    frame,
                    ..
                }) => (opening, frame),
                Flow::Deliveries(Deliveries {
                    opening,
                    settlement,
                    ..
                }) => (opening, settlement),
                other => panic!("{other:?}"),
            };
            let answered = answer(work, &opening.request);
            assert!(answered.ends_with(opening.answer_end), "{work:?}");
            let ends = answered.windows(opening.answer_end.len());
            assert_eq!(
                ends.filter(|end| *end == opening.answer_end).count(),
                1,
                "{work:?}"
            );
            // A message is confirmed, and a settlement is not answered.
            let all = answer(work, &[opening.request, then].concat());
            let more = all.len() - answered.len();
            assert_eq!(
                more,
                if work.counts() == Counts::Written {
                    32
                } else {
                    0
                },
                "{work:?}"
            );
        }
    }

    /// The bytes of a message in the bare loop are those that a writer of the engine writes.
    #[test]
    fn a_bare_message_is_one_of_ours() {
        let Flow::Messages(flow) = WORKS[0].flow(1) else {
            panic!("it writes");
        };
        let Answers::Read(opening) = &flow.answers else {
            panic!("it reads");
        };
        // The machine of a reader takes it, once a broker has made a delivery of it.
        let payload = &flow.frame[flow.frame.len() - 1 - MESSAGE_BYTES..flow.frame.len() - 1];
        assert!(messages().check(payload).is_ok());
        let confirmed = answer(WORKS[0], &[&opening.request[..], &flow.frame].concat());
        let mut writer = dialect(Test::Publish, |links| links.writer(0));
        let (mut out, mut tags) = (Vec::new(), Vec::new());
        writer.open(&mut out);
        let heard = writer.received(&confirmed, &mut out, &mut |heard| {
            if let Heard::Confirmed { tag, .. } = heard {
                tags.push(tag);
            }
        });
        heard.expect("no fault");
        assert_eq!(tags, [0]);
    }
}
