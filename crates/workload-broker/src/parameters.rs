//! What a user can choose of workload `broker`. The test decides what the rest means, so a flag that the test does not use
//! is refused.

use plimsoll_workload::{Choice, Fit, Kind, Parameter, Usual};

use crate::load::{MESSAGE_MAX_BYTES, MESSAGE_MIN_BYTES};

const TESTS: [Choice; 9] = [
    Choice::new(
        "steady",
        "Writers and readers of a queue; the load is messages per second",
    ),
    Choice::new("publish", "Writers only; an answer is a confirmation"),
    Choice::new(
        "fanout",
        "Each reader gets every message; with --rate the load is readers",
    ),
    Choice::new("slow", "Steady with one reader that settles late"),
    Choice::new("sizes", "Steady in six message sizes, one trial each"),
    Choice::new("windows", "Steady with four windows, one trial each"),
    Choice::new(
        "drain",
        "Publish first, then read as fast as it goes; the load is readers",
    ),
    Choice::new("burst", "Publish as fast as it goes; the load is readers"),
    Choice::new(
        "replay",
        "Steady with a crash in the middle of the window; only for run",
    ),
];

const SETS: [Choice; 7] = [
    Choice::new("smoke", "1,000 messages per second"),
    Choice::new("baseline", "Five rates, unconfirmed"),
    Choice::new("confirmed", "Five rates, and four windows at one rate"),
    Choice::new("payload", "Six sizes at 4 MB/s"),
    Choice::new("tiers", "Three rates with a wide window, for one level"),
    Choice::new("fanout", "A stream to 1 to 256 readers"),
    Choice::new("backlog", "Beyond --load-line, also in long messages"),
];

const LEVELS: [Choice; 7] = [
    Choice::new("durable", "Confirmed and delivered when on disk"),
    Choice::new("speculative", "Confirmed when on disk, delivered earlier"),
    Choice::new(
        "ephemeral",
        "Confirmed before it is on disk, as the broker does by itself",
    ),
    Choice::new("async", "Confirmed before it is written"),
    Choice::new("memory", "Kept in memory only"),
    Choice::new(
        "stream",
        "The broker's stream type, where it has a type of its own",
    ),
    Choice::new(
        "exactly-once",
        "In memory, by the handshake of MQTT's QoS 2",
    ),
];

const DIALECTS: [Choice; 6] = [
    Choice::new("nats", "NATS with JetStream"),
    Choice::new("resp", "Streams of Redis and Valkey"),
    Choice::new("amqp", "AMQP 0-9-1, RabbitMQ"),
    Choice::new("mqtt", "MQTT 5"),
    Choice::new("fibril", "Fibril's protocol"),
    Choice::new("kafka", "Kafka's protocol"),
];

const CRASHES: [Choice; 2] = [
    Choice::new("kill", "kill -9; the kernel keeps what was written"),
    Choice::new(
        "power",
        "And what the disk has not got is lost, as in a power cut; as root",
    ),
];

const CONFIRMED: [Choice; 4] = [
    Choice::new("none", "Never"),
    Choice::new("memory", "When it is in the broker's memory"),
    Choice::new("cache", "When the kernel has it: it survives kill -9"),
    Choice::new("disk", "When it is on disk: it survives a power cut"),
];

const DELIVERED: [Choice; 3] = [
    Choice::new("memory", "When it is in the broker's memory"),
    Choice::new("cache", "When the kernel has it"),
    Choice::new("disk", "When it is on disk"),
];

/// Which tests a parameter is for.
const fn of_tests(among: &'static [&'static str]) -> Fit {
    Fit { of: "test", among }
}

/// Tests with a window of the user's choice.
const WITH_WINDOW: &[&str] = &[
    "steady", "publish", "fanout", "slow", "sizes", "drain", "burst", "replay",
];
/// Tests with readers.
const WITH_READERS: &[&str] = &["steady", "fanout", "slow", "sizes", "windows", "replay"];
/// Tests with a prefetch.
const WITH_PREFETCH: &[&str] = &[
    "steady", "fanout", "slow", "sizes", "windows", "drain", "burst", "replay",
];
/// Tests by the clock.
const WITH_RATE: &[&str] = &[
    "steady", "publish", "fanout", "slow", "sizes", "windows", "replay",
];
const BURST_MS: Kind = Kind::Whole {
    least: 1,
    most: 60_000,
};

/// The rows, each after those that it depends on.
pub(crate) const PARAMETERS: [Parameter; 24] = [
    Parameter {
        value_name: "TEST",
        usual: Usual::Value("steady"),
        ..Parameter::new(
            "test",
            Kind::OneOf(&TESTS),
            "Test to run; it decides what --sessions counts",
        )
    },
    Parameter {
        value_name: "SET",
        ..Parameter::new(
            "set",
            Kind::OneOf(&SETS),
            "Set of loads, each three times, in place of --sessions; only for run",
        )
    },
    Parameter {
        fits: &[Fit {
            of: "set",
            among: &["backlog"],
        }],
        ..Parameter::new(
            "load_line",
            Kind::Whole {
                least: 1,
                most: 10_000_000,
            },
            "Messages per second that the broker carries, for the set that goes beyond",
        )
    },
    Parameter {
        value_name: "LEVEL",
        usual: Usual::Value("durable"),
        ..Parameter::new(
            "level",
            Kind::OneOf(&LEVELS),
            "How the broker is set up; see plimsoll list",
        )
    },
    Parameter {
        value_name: "DIALECT",
        only_running: true,
        ..Parameter::new(
            "dialect",
            Kind::OneOf(&DIALECTS),
            "What the broker of --url speaks",
        )
    },
    Parameter {
        value_name: "WHERE",
        only_running: true,
        ..Parameter::new(
            "confirm_at",
            Kind::OneOf(&CONFIRMED),
            "When the broker of --url confirms a message",
        )
    },
    Parameter {
        value_name: "WHERE",
        only_running: true,
        ..Parameter::new(
            "deliver_at",
            Kind::OneOf(&DELIVERED),
            "When the broker of --url delivers a message",
        )
    },
    Parameter {
        usual: Usual::Value("2"),
        ..Parameter::new(
            "writers",
            Kind::Whole {
                least: 1,
                most: 10_000,
            },
            "Connections that publish",
        )
    },
    Parameter {
        usual: Usual::Value("2"),
        fits: &[of_tests(WITH_READERS)],
        ..Parameter::new(
            "readers",
            Kind::Whole {
                least: 1,
                most: 10_000,
            },
            "Connections that read",
        )
    },
    Parameter {
        fits: &[of_tests(&["fanout"])],
        ..Parameter::new(
            "rate",
            Kind::Number,
            "Messages per second; the load is then readers",
        )
    },
    Parameter {
        usual: Usual::Value("1024"),
        fits: &[of_tests(&[
            "steady", "publish", "fanout", "slow", "windows", "drain", "burst", "replay",
        ])],
        ..Parameter::new(
            "message_bytes",
            Kind::Whole {
                least: MESSAGE_MIN_BYTES,
                most: MESSAGE_MAX_BYTES,
            },
            "Size of a message",
        )
    },
    Parameter {
        usual: Usual::Value("1024"),
        fits: &[of_tests(WITH_WINDOW)],
        ..Parameter::new(
            "confirm",
            Kind::Whole {
                least: 1,
                most: 65_535,
            },
            "Most messages of a writer that the broker has not confirmed",
        )
    },
    Parameter {
        fits: &[of_tests(&["steady", "fanout", "slow", "sizes"])],
        ..Parameter::new("unconfirmed", Kind::Flag, "Ask for no confirmation")
    },
    Parameter {
        usual: Usual::Value("512"),
        fits: &[of_tests(WITH_PREFETCH)],
        ..Parameter::new(
            "prefetch",
            Kind::Whole {
                least: 1,
                most: 65_535,
            },
            "Most messages that a reader holds and has not settled",
        )
    },
    Parameter {
        usual: Usual::Value("1000"),
        fits: &[of_tests(&["slow"])],
        ..Parameter::new(
            "slow_ms",
            Kind::Whole {
                least: 1,
                most: 60_000,
            },
            "How long the slow reader keeps a message before it settles it",
        )
    },
    Parameter {
        usual: Usual::Value("100000"),
        fits: &[of_tests(&["drain"])],
        ..Parameter::new(
            "preload",
            Kind::Whole {
                least: 1,
                most: 100_000_000,
            },
            "Messages that are confirmed before the readers begin",
        )
    },
    Parameter {
        value_name: "CRASH",
        usual: Usual::Value("kill"),
        fits: &[of_tests(&["replay"])],
        ..Parameter::new(
            "crash",
            Kind::OneOf(&CRASHES),
            "What the broker loses in the middle of the window",
        )
    },
    Parameter {
        usual: Usual::Value("0"),
        fits: &[of_tests(&["replay"])],
        ..Parameter::new(
            "pause_ms",
            Kind::Whole {
                least: 0,
                most: 60_000,
            },
            "How long the broker stays away after its crash",
        )
    },
    Parameter {
        fits: &[of_tests(&["replay"])],
        ..Parameter::new(
            "hold_readers",
            Kind::Flag,
            "Readers begin only after the crash, so that the broker holds all messages then",
        )
    },
    Parameter {
        fits: &[of_tests(WITH_RATE)],
        ..Parameter::new("poisson", Kind::Flag, "Exponential gaps between messages")
    },
    Parameter {
        fits: &[of_tests(WITH_RATE)],
        ..Parameter::new(
            "burst_on_ms",
            BURST_MS,
            "Bursts: in each period, all messages are due in this time",
        )
    },
    Parameter {
        fits: &[of_tests(WITH_RATE)],
        ..Parameter::new(
            "burst_off_ms",
            BURST_MS,
            "Bursts: and none in this time after it",
        )
    },
    Parameter {
        value_name: "DIR",
        ..Parameter::new(
            "data_dir",
            Kind::File,
            "Empty folder on the disk that the broker keeps its data on",
        )
    },
    Parameter {
        value_name: "USER:PASSWORD",
        only_running: true,
        ..Parameter::new(
            "login_password",
            Kind::Secret,
            "Who we are to the broker of --url",
        )
    },
];
