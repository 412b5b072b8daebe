//! What a plan of workload `broker` says: which test, and with which parameters.

use std::time::Duration;

use plimsoll_core::schedule::Spacing;
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_workload::{Crash, CrashKind, Refusal, Value, Values};

use crate::backlog::GROWS_SHARE;
use crate::dialect::Shape;
use crate::guarantee::{Confirm, Guarantee, Kept, Times};
use crate::message::HEADER_BYTES;
use crate::schedule::{Bursts, Closed, Load};
use crate::sets::Set;

/// The sizes of test `sizes`, one trial each, in bytes.
pub(crate) const SIZES_BYTES: [u64; 6] = [256, 1_024, 8_192, 65_536, 524_288, 1_048_576];
/// The windows of test `windows`, one trial each.
pub(crate) const WINDOWS: [u64; 4] = [1, 64, 1_024, 4_096];
/// The smallest message: a header without filler.
pub(crate) const MESSAGE_MIN_BYTES: u64 = HEADER_BYTES as u64;
/// The largest message that all brokers take.
pub(crate) const MESSAGE_MAX_BYTES: u64 = 4 << 20;
/// The usual window.
const WINDOW: u32 = 1_024;
/// The usual preload.
const PRELOAD: u64 = 100_000;
const DELIVER_P99_MS: f64 = 100.0;
const CONFIRM_P99_MS: f64 = 250.0;

/// What a broker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// NATS with JetStream.
    Nats,
    /// Streams of Redis and Valkey.
    Resp,
    /// AMQP 0-9-1.
    Amqp,
    /// MQTT 5.
    Mqtt,
    /// Fibril's protocol.
    Fibril,
    /// Kafka's protocol.
    Kafka,
}

impl Spoken {
    /// Their names in manifests, on the command line and in results.
    pub(crate) const NAMES: [&'static str; 6] = ["nats", "resp", "amqp", "mqtt", "fibril", "kafka"];
    const ALL: [Self; 6] = [
        Self::Nats,
        Self::Resp,
        Self::Amqp,
        Self::Mqtt,
        Self::Fibril,
        Self::Kafka,
    ];

    /// The one of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter().zip(Self::NAMES);
        all.find(|(_, known)| *known == name)
            .map(|(spoken, _)| spoken)
    }
}

/// A test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Writers and readers of a queue, at a rate.
    Steady,
    /// Writers only.
    Publish,
    /// Each reader gets every message.
    Fanout,
    /// `Steady` with a reader that settles late.
    Slow,
    /// `Steady` in several sizes.
    Sizes,
    /// `Steady` with several windows.
    Windows,
    /// Messages are confirmed first, then read as fast as it goes.
    Drain,
    /// Writers publish as fast as it goes.
    Burst,
    /// `Steady` with a crash of the broker in the middle of the window.
    Replay,
}

impl Test {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Steady, "steady"),
        (Self::Publish, "publish"),
        (Self::Fanout, "fanout"),
        (Self::Slow, "slow"),
        (Self::Sizes, "sizes"),
        (Self::Windows, "windows"),
        (Self::Drain, "drain"),
        (Self::Burst, "burst"),
        (Self::Replay, "replay"),
    ];

    /// The test of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == name).map(|(test, _)| *test)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        let named = all.find(|(test, _)| *test == self);
        named.map_or("", |(_, name)| name)
    }
}

/// A test of a broker, with its parameters.
#[derive(Debug, Clone)]
pub struct BrokerLoad {
    /// What is tested.
    pub test: Test,
    /// Several loads in place of one.
    pub set: Option<Set>,
    /// What the broker speaks; unknown until its manifest or the user says it.
    pub spoken: Option<Spoken>,
    /// How the broker is set up.
    pub level: String,
    /// How safe a message is when it is confirmed, if that is known.
    pub confirm_at: Option<Confirm>,
    /// How safe it is when it is delivered, if that is known.
    pub deliver_at: Option<Kept>,
    /// How many connections publish.
    pub writers: u32,
    /// How many connections read, unless the load says it.
    pub readers: u32,
    /// Messages per second, if the load counts readers.
    pub rate: Option<u32>,
    /// The size of a message.
    pub message_bytes: usize,
    /// The most unconfirmed messages of a writer; `None` if nothing is confirmed.
    pub window: Option<u32>,
    /// How many messages a reader may hold unsettled.
    pub prefetch: u32,
    /// How messages are spaced.
    pub spacing: Spacing,
    /// Whether they come in bursts.
    pub bursts: Option<Bursts>,
    /// How late reader 0 settles in test `slow`, in ms.
    pub slow_ms: u64,
    /// The messages that test `drain` reads.
    pub preload: u64,
    /// The crash of test `replay`.
    pub crash: Option<Crash>,
    /// Whether readers begin only after it.
    pub holds_readers: bool,
}

impl BrokerLoad {
    /// The test that these values say.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn of(values: &Values) -> Result<Self, Refusal> {
        let test = values.word("test").and_then(Test::by_name);
        let small = |name: &str| {
            values
                .whole(name)
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
        };
        let test = test.unwrap_or(Test::Steady);
        let bytes = values.whole("message_bytes").unwrap_or(1_024);
        if test == Test::Replay && values.word("set").is_some() {
            return Err(Refusal::new(
                "--set: none of its loads has a crash; leave --set or --test replay out",
            ));
        }
        Ok(Self {
            test,
            set: values.word("set").and_then(Set::by_name),
            spoken: values.word("dialect").and_then(Spoken::by_name),
            level: values.word("level").unwrap_or("durable").to_owned(),
            confirm_at: values.word("confirm_at").and_then(Confirm::by_name),
            deliver_at: values.word("deliver_at").and_then(Kept::by_name),
            writers: small("writers").unwrap_or(2),
            readers: small("readers").unwrap_or(2),
            rate: rate(values.number("rate"))?,
            message_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            window: (!values.flag("unconfirmed")).then(|| small("confirm").unwrap_or(WINDOW)),
            prefetch: small("prefetch").unwrap_or(512),
            spacing: if values.flag("poisson") {
                Spacing::Poisson
            } else {
                Spacing::Even
            },
            bursts: bursts(small("burst_on_ms"), small("burst_off_ms"))?,
            slow_ms: values.whole("slow_ms").unwrap_or(0),
            preload: values.whole("preload").unwrap_or(PRELOAD),
            crash: (test == Test::Replay).then(|| crash(values)),
            holds_readers: values.flag("hold_readers"),
        })
    }

    /// Who gets a message.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self.test {
            Test::Fanout => Shape::Stream,
            _ => Shape::Queue,
        }
    }

    /// Whether the load counts readers.
    #[must_use]
    pub fn counts_readers(&self) -> bool {
        (self.test == Test::Fanout && self.rate.is_some()) || self.closed().is_some()
    }

    /// Which closed loop it is, if it is one.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        match self.test {
            Test::Drain => Some(Closed::Preload(self.preload)),
            Test::Burst => Some(Closed::Flood),
            _ => None,
        }
    }

    /// Readers of a trial with this load.
    #[must_use]
    pub fn readers_of(&self, load: u32) -> u32 {
        match self.test {
            Test::Publish => 0,
            _ if self.counts_readers() => load,
            _ => self.readers,
        }
    }

    /// The messages of a trial with this load.
    #[must_use]
    pub fn messages_of(&self, load: u32) -> Load {
        Load {
            rate: self
                .rate
                .filter(|_| self.counts_readers())
                .unwrap_or(load)
                .max(1),
            writers: self.writers,
            spacing: self.spacing,
            bursts: self.bursts,
            closed: self.closed(),
        }
    }

    /// How often a message should arrive in a trial with this load.
    #[must_use]
    pub fn arrivals_of(&self, load: u32) -> u32 {
        match self.shape() {
            Shape::Stream => self.readers_of(load),
            Shape::Queue => 1,
        }
    }

    /// What is promised for a message, if that is known.
    #[must_use]
    pub fn guarantee(&self) -> Option<Guarantee> {
        let settles = self.shape() == Shape::Queue;
        Some(Guarantee {
            times: if self.window.is_some() && settles {
                Times::AtLeastOnce
            } else {
                Times::AtMostOnce
            },
            confirm: match self.window {
                Some(_) => self.confirm_at?,
                None => Confirm::None,
            },
            deliver: self.deliver_at?,
        })
    }

    /// The values with all that the load settles.
    pub(crate) fn complete(&self, values: Values) -> Values {
        values.with("level", Value::Word(self.level.clone()))
    }

    /// The SLO that applies unless another is given.
    pub(crate) fn slo(&self) -> Slo {
        if self.closed().is_some() {
            // A closed loop has no rate that it must keep: only the counts can be wrong.
            return Slo::from_gates("broker-counts", &[]);
        }
        if self.crash.is_some() {
            return over_a_crash();
        }
        let mut gates = Vec::new();
        if self.test != Test::Publish {
            gates.push((Metric::Newest(Percentile::P99), DELIVER_P99_MS));
        }
        if self.window.is_some() {
            gates.push((Metric::Confirm(Percentile::P99), CONFIRM_P99_MS));
        }
        if self.test != Test::Publish {
            gates.push((Metric::BacklogSlope, GROWS_SHARE));
        }
        gates.push((Metric::ErrorRate, 0.0));
        Slo::from_gates("broker", &gates)
    }
}

/// The gates that make sense over a crash. What was not confirmed may be lost, what was not settled comes again and out of
/// order, and all of it is late.
fn over_a_crash() -> Slo {
    let gates = [
        Metric::ConfirmedLost,
        Metric::SessionsFailed,
        Metric::SessionsDied,
        Metric::ContentWrong,
    ];
    Slo::of("broker-replay", &gates.map(|metric| (metric, 0.0)))
}

fn crash(values: &Values) -> Crash {
    Crash {
        kind: match values.word("crash") {
            Some("power") => CrashKind::Power,
            _ => CrashKind::Kill,
        },
        pause: Duration::from_millis(values.whole("pause_ms").unwrap_or(0)),
        asked_by: "--test replay",
    }
}

/// Whole messages per second; other workloads have fractions of them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number within these bounds"
)]
fn rate(given: Option<f64>) -> Result<Option<u32>, Refusal> {
    match given {
        None => Ok(None),
        Some(rate) if rate.fract() == 0.0 && (1.0..=1e7).contains(&rate) => Ok(Some(rate as u32)),
        Some(rate) => Err(Refusal(format!(
            "--rate {rate}: give a whole number of messages per second, from 1 to 10,000,000"
        ))),
    }
}

fn bursts(on_ms: Option<u32>, off_ms: Option<u32>) -> Result<Option<Bursts>, Refusal> {
    match (on_ms, off_ms) {
        (None, None) => Ok(None),
        (Some(on_ms), Some(off_ms)) => Bursts::new(on_ms, off_ms).map(Some).ok_or_else(|| {
            Refusal::new("--burst-on-ms and --burst-off-ms: give 1 to 60,000 ms each")
        }),
        _ => Err(Refusal::new(
            "--burst-on-ms and --burst-off-ms go together: give both",
        )),
    }
}
