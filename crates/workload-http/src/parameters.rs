//! What a user can choose of workload `http`. The test decides what the rest means, so a flag that the test does not use
//! is refused.

use plimsoll_workload::{Choice, Fit, Kind, Parameter, Usual};

/// The longest body that the contract has.
pub(crate) const BODY_MAX_BYTES: u64 = 1 << 20;

const TESTS: [Choice; 6] = [
    Choice::new("rate", "GET at a rate; the load is requests per second"),
    Choice::new("post", "POST /sum at a rate; the server sums the body"),
    Choice::new("json", "GET /json/K at a rate, with a drawn K"),
    Choice::new("connect", "A new connection for each request"),
    Choice::new("sizes", "Rate in six body sizes, one trial each"),
    Choice::new(
        "connections",
        "Rate on 10 to 10,000 connections, one trial each",
    ),
];

const PROTOCOLS: [Choice; 2] = [
    Choice::new("h1", "HTTP/1.1, one request at a time on a connection"),
    Choice::new("h2c", "HTTP/2 without TLS, by prior knowledge"),
];

const HEADERS: [Choice; 2] = [
    Choice::new("minimal", "Host only"),
    Choice::new("browser", "12 fields, about 700 B, as a browser sends them"),
];

const DISPATCH: [Choice; 2] = [
    Choice::new("pool", "To the connection that has been idle the longest"),
    Choice::new("fixed", "Request k to connection k mod N"),
];

/// Which tests a parameter is for.
const fn of_tests(among: &'static [&'static str]) -> Fit {
    Fit { of: "test", among }
}

/// Tests whose requests share connections that stay open.
const ON_OPEN_CONNECTIONS: &[&str] = &["rate", "post", "json", "sizes", "connections"];

/// The rows, each after those that it depends on.
pub(crate) const PARAMETERS: [Parameter; 12] = [
    Parameter {
        value_name: "TEST",
        usual: Usual::Value("rate"),
        ..Parameter::new(
            "test",
            Kind::OneOf(&TESTS),
            "Test to run; it decides what --sessions counts",
        )
    },
    Parameter {
        value_name: "PROTOCOL",
        usual: Usual::Value("h1"),
        ..Parameter::new(
            "protocol",
            Kind::OneOf(&PROTOCOLS),
            "Version of HTTP that the client speaks",
        )
    },
    Parameter {
        usual: Usual::Value("100"),
        fits: &[of_tests(&["rate", "post", "json", "connect", "sizes"])],
        ..Parameter::new(
            "connections",
            Kind::Whole {
                least: 1,
                most: 1_000_000,
            },
            "Connections that share the load; with --test connect, the most at once",
        )
    },
    Parameter {
        usual: Usual::Value("10"),
        fits: &[Fit {
            of: "protocol",
            among: &["h2c"],
        }],
        ..Parameter::new(
            "streams",
            Kind::Whole {
                least: 1,
                most: 1_000,
            },
            "Requests at once on a connection of HTTP/2",
        )
    },
    Parameter {
        usual: Usual::Told("2 for rate, which asks for /; 1024 for post"),
        fits: &[of_tests(&["rate", "post", "connect", "connections"])],
        ..Parameter::new(
            "body_bytes",
            Kind::Whole {
                least: 1,
                most: BODY_MAX_BYTES,
            },
            "Bytes of the body: of the answer, which makes the path /bytes/N; with --test post, of the request",
        )
    },
    Parameter {
        value_name: "WHICH",
        usual: Usual::Value("minimal"),
        ..Parameter::new(
            "headers",
            Kind::OneOf(&HEADERS),
            "Header fields of a request",
        )
    },
    Parameter {
        value_name: "HOW",
        usual: Usual::Value("pool"),
        fits: &[of_tests(ON_OPEN_CONNECTIONS)],
        ..Parameter::new(
            "dispatch",
            Kind::OneOf(&DISPATCH),
            "Which connection gets a request",
        )
    },
    Parameter {
        ..Parameter::new(
            "poisson",
            Kind::Flag,
            "Arrivals as a Poisson process instead of evenly spaced",
        )
    },
    Parameter {
        usual: Usual::Told("the full rate"),
        fits: &[of_tests(&["rate", "post", "json", "connect"])],
        ..Parameter::new(
            "warm_up_rate",
            Kind::Whole {
                least: 0,
                most: 1_000_000,
            },
            "Requests per second in the warm-up",
        )
    },
    Parameter {
        value_name: "FILE",
        fits: &[of_tests(&["rate"])],
        only_running: true,
        ..Parameter::new(
            "expect_body",
            Kind::File,
            "File with the body that the server of --url answers; otherwise its content is not checked",
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
        fits: &[of_tests(&["rate", "post", "json"])],
        ..Parameter::new(
            "closed_loop",
            Kind::Flag,
            "Afterwards run the same as a closed loop, for comparison. It does not affect the verdict",
        )
    },
];
