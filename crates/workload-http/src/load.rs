//! What a plan of workload `http` says: which test, and with which parameters.

use std::net::IpAddr;

use plimsoll_core::schedule::Spacing;
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_workload::{Refusal, Value, Values};

use crate::arrivals::Dispatch;
use crate::check::{Protocol, Route};
use crate::schedule::Rates;

/// The usual body of a POST.
const POST_BYTES: u64 = 1_024;
/// The connections of test `connections`, one trial each.
pub(crate) const CONNECTIONS: [u32; 4] = [10, 100, 1_000, 10_000];
/// The body sizes of test `sizes`, one trial each: `/`, and those that every target has.
pub(crate) const SIZES_BYTES: [u64; 6] = [2, 64, 1_024, 16_384, 65_536, 1_048_576];
/// What `/` answers.
const ROOT_BYTES: u64 = 2;

/// A test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// GET at a rate.
    Rate,
    /// POST at a rate.
    Post,
    /// JSON at a rate.
    Json,
    /// A connection for each request.
    Connect,
    /// `Rate` in several sizes.
    Sizes,
    /// `Rate` on several numbers of connections.
    Connections,
}

impl Test {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Rate, "rate"),
        (Self::Post, "post"),
        (Self::Json, "json"),
        (Self::Connect, "connect"),
        (Self::Sizes, "sizes"),
        (Self::Connections, "connections"),
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

    /// The route of the contract that it asks for, with this body.
    fn route(self, body_bytes: u64) -> Route {
        match self {
            Self::Post => Route::Sum,
            Self::Json => Route::Json,
            _ if body_bytes == ROOT_BYTES => Route::Root,
            _ => Route::Bytes,
        }
    }
}

/// A test of an HTTP server, with its parameters.
#[derive(Debug, Clone)]
pub struct HttpLoad {
    /// What is tested.
    pub test: Test,
    /// What the client speaks.
    pub protocol: Protocol,
    /// Connections that share the load, or the most at once.
    pub connections: u32,
    /// Requests at once on a connection.
    pub streams: u32,
    /// Bytes of the answer's body, or of the request's in test `post`. In test `json` it is not used.
    pub body_bytes: u64,
    /// Whether requests have a browser's fields.
    pub browser: bool,
    /// Which connection gets a request.
    pub dispatch: Dispatch,
    /// How requests are spaced.
    pub spacing: Spacing,
    /// Requests per second in the warm-up, if that is not the full rate.
    pub warm_up_rate: Option<u32>,
    /// The body that a server of a URL answers, if it is given.
    pub expected_body: Option<Vec<u8>>,
    /// The addresses that connections come from; none where the kernel chooses.
    pub source_addresses: Vec<IpAddr>,
    /// Whether a closed loop is run after the trial, for comparison.
    pub closed_loop: bool,
}

impl HttpLoad {
    /// The test that these values say.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn of(values: &Values) -> Result<Self, Refusal> {
        let test = values.word("test").and_then(Test::by_name);
        let test = test.unwrap_or(Test::Rate);
        let protocol = match values.word("protocol") {
            Some("h2c") => Protocol::H2c,
            _ => Protocol::H1,
        };
        let small = |name: &str| {
            values
                .whole(name)
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
        };
        let expected_body = match values.file("expect_body") {
            None => None,
            Some(file) => Some(std::fs::read(file).map_err(|error| {
                Refusal(format!(
                    "--expect-body {}: {error}; give a file that can be read",
                    file.display()
                ))
            })?),
        };
        let load = Self {
            test,
            protocol,
            connections: small("connections").unwrap_or(100),
            streams: match protocol {
                Protocol::H1 => 1,
                Protocol::H2c => small("streams").unwrap_or(10),
            },
            body_bytes: values.whole("body_bytes").unwrap_or(match test {
                Test::Post => POST_BYTES,
                _ => ROOT_BYTES,
            }),
            browser: values.word("headers") == Some("browser"),
            dispatch: match values.word("dispatch") {
                Some("fixed") => Dispatch::Fixed,
                _ => Dispatch::Pool,
            },
            spacing: if values.flag("poisson") {
                Spacing::Poisson
            } else {
                Spacing::Even
            },
            warm_up_rate: small("warm_up_rate"),
            expected_body,
            source_addresses: values.addresses("source_addresses").to_vec(),
            closed_loop: values.flag("closed_loop"),
        };
        load.check()?;
        Ok(load)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.test == Test::Connect && self.protocol == Protocol::H2c {
            return Err(Refusal::new(
                "--test connect: a connection for each request is a test of HTTP/1.1; leave --protocol h2c out",
            ));
        }
        if self.expected_body.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refusal::new(
                "--expect-body: the file is empty; give the body that the server answers",
            ));
        }
        Ok(())
    }

    /// These values, and those that the test chose itself.
    pub(crate) fn complete(&self, mut values: Values) -> Values {
        if !matches!(self.test, Test::Json | Test::Sizes) {
            values.set("body_bytes", Value::Whole(self.body_bytes));
        }
        values
    }

    /// When requests are due at this load.
    #[must_use]
    pub fn rates(&self, load: u32) -> Rates {
        Rates {
            measured: load,
            warm_up: self.warm_up_rate.unwrap_or(load),
            spacing: self.spacing,
            whole_seconds: false,
        }
    }

    /// What is asked on this path, in words.
    #[must_use]
    pub(crate) fn request(&self, path: &str) -> String {
        match self.test {
            Test::Post => format!("POST {path}"),
            Test::Json => format!("GET {path}K"),
            _ => format!("GET {path}"),
        }
    }

    /// The path of the contract that it asks for; of `/json/K` without the number.
    #[must_use]
    pub fn path(&self) -> String {
        match self.test.route(self.body_bytes) {
            Route::Root => "/".to_owned(),
            Route::Sum => "/sum".to_owned(),
            Route::Json => "/json/".to_owned(),
            Route::Bytes => format!("/bytes/{}", self.body_bytes),
        }
    }

    /// The routes that its trials ask for.
    pub(crate) fn routes(&self) -> Vec<Route> {
        match self.test {
            Test::Sizes => vec![Route::Root, Route::Bytes],
            test => vec![test.route(self.body_bytes)],
        }
    }

    /// The sizes of `/bytes` that its trials ask for.
    pub(crate) fn bytes_asked(&self) -> Vec<u64> {
        let asked = match self.test {
            Test::Sizes => SIZES_BYTES.to_vec(),
            _ => vec![self.body_bytes],
        };
        let of_bytes =
            |bytes: &u64| self.test == Test::Sizes || self.test.route(*bytes) == Route::Bytes;
        asked
            .into_iter()
            .filter(of_bytes)
            .filter(|bytes| *bytes != ROOT_BYTES)
            .collect()
    }
}

/// The gates of workload `http`: a limit of the newest p99, at most one request in a thousand failed or lost, nothing
/// wrong, and at most one in a hundred not completed.
pub(crate) fn slo(name: &str, newest_p99_ms: f64) -> Slo {
    let gates = [
        (Metric::Newest(Percentile::P99), newest_p99_ms),
        (Metric::ErrorRate, 0.001),
        (Metric::ContentWrong, 0.0),
        (Metric::Shortfall, 0.01),
    ];
    Slo::of(name, &gates)
}
