//! What a user can choose of workload `ws`. The test decides what the rest means, so a flag that the test does not use
//! is refused.

use plimsoll_workload::{Choice, Fit, Kind, Parameter, Usual};

/// The longest message that can be sent: as much as a target may keep unsent for a connection. A payload is made once
/// and held in memory.
const MESSAGE_MAX_BYTES: u64 = 16 << 20;

const TESTS: [Choice; 8] = [
    Choice::new(
        "storm",
        "Connections that arrive at a rate; the load is connections per second",
    ),
    Choice::new(
        "ping",
        "A ping per connection and second; the load is connections",
    ),
    Choice::new(
        "throughput",
        "Messages at a rate; the load is messages per second",
    ),
    Choice::new("matrix", "Throughput in six message sizes, one trial each"),
    Choice::new("formats", "Throughput in three formats, one trial each"),
    Choice::new(
        "hold",
        "Which connections survive: a ping per connection every 5 s; the load is connections",
    ),
    Choice::new(
        "limit",
        "How many connections are possible: a ping per connection every 10 s; the load is connections",
    ),
    Choice::new(
        "fanout",
        "One publishes, all receive; the load is receivers",
    ),
];

const DIALECTS: [Choice; 2] = [
    Choice::new("echo", "RFC 6455; the server echoes every message"),
    Choice::new("wse", "The protocol of the WSE engine"),
];

const FORMATS: [Choice; 4] = [
    Choice::new("json", "JSON in a text message"),
    Choice::new(
        "msgpack-prefixed",
        "`M:` and MessagePack in a binary message",
    ),
    Choice::new(
        "msgpack",
        "MessagePack in a binary message, on a session that asked for it",
    ),
    Choice::new("zlib", "`C:` and zlib in a binary message"),
];

/// Which tests a parameter is for.
const fn of_tests(among: &'static [&'static str]) -> Fit {
    Fit { of: "test", among }
}

/// The rows, each after those that it depends on.
pub(crate) const PARAMETERS: [Parameter; 12] = [
    Parameter {
        value_name: "TEST",
        usual: Usual::Value("ping"),
        ..Parameter::new(
            "test",
            Kind::OneOf(&TESTS),
            "Test to run; it decides what --sessions counts",
        )
    },
    Parameter {
        value_name: "DIALECT",
        usual: Usual::Value("echo"),
        of_target: Some("speaks"),
        ..Parameter::new(
            "dialect",
            Kind::OneOf(&DIALECTS),
            "Protocol above WebSocket that the server speaks; a target says it in its target.toml",
        )
    },
    Parameter {
        usual: Usual::Told("depends on the test"),
        fits: &[of_tests(&["ping", "throughput", "hold", "limit", "fanout"])],
        ..Parameter::new(
            "message_bytes",
            Kind::Whole {
                least: 0,
                most: MESSAGE_MAX_BYTES,
            },
            "Message size in bytes",
        )
    },
    Parameter {
        usual: Usual::Told("depends on the test"),
        fits: &[of_tests(&["ping", "hold", "limit"])],
        ..Parameter::new(
            "period_ms",
            Kind::Whole {
                least: 1,
                most: 3_600_000,
            },
            "Milliseconds between two messages of a session",
        )
    },
    Parameter {
        usual: Usual::Value("100"),
        fits: &[of_tests(&["throughput", "matrix", "formats"])],
        ..Parameter::new(
            "connections",
            Kind::Whole {
                least: 1,
                most: 1_000_000,
            },
            "Connections that share the message rate",
        )
    },
    Parameter {
        value_name: "X",
        usual: Usual::Value("10"),
        fits: &[of_tests(&["fanout"])],
        ..Parameter::new("rate", Kind::Number, "Messages published per second")
    },
    Parameter {
        value_name: "FORMAT",
        usual: Usual::Value("json"),
        fits: &[of_tests(&["throughput"])],
        ..Parameter::new("format", Kind::OneOf(&FORMATS), "Format of the messages")
    },
    Parameter {
        usual: Usual::Value("1000"),
        fits: &[of_tests(&["storm"])],
        ..Parameter::new(
            "linger_ms",
            Kind::Whole {
                least: 0,
                most: 600_000,
            },
            "Milliseconds that a connection stays open",
        )
    },
    Parameter {
        fits: &[of_tests(&["storm"])],
        ..Parameter::new(
            "poisson",
            Kind::Flag,
            "Arrivals as a Poisson process instead of evenly spaced",
        )
    },
    Parameter {
        fits: &[of_tests(&["ping", "throughput"])],
        ..Parameter::new(
            "closed_loop",
            Kind::Flag,
            "Afterwards run the same as a closed loop, for comparison. It does not affect the verdict",
        )
    },
    Parameter {
        value_name: "LIST",
        ..Parameter::new(
            "source_addresses",
            Kind::Addresses,
            "Addresses that the client connects from, in turn, for example 127.0.0.1,127.0.0.2; each has its own ports",
        )
    },
    Parameter {
        value_name: "SECRET",
        usual: Usual::Told("that of the contract"),
        fits: &[Fit {
            of: "dialect",
            among: &["wse"],
        }],
        only_running: true,
        ..Parameter::new(
            "token_secret",
            Kind::Secret,
            "Secret that tokens are signed with",
        )
    },
];
