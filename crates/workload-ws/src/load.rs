//! What a plan of workload `ws` says: which test, and with which parameters.

use std::net::IpAddr;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::schedule::{Arrivals, Spacing};
use plimsoll_workload::{Demand, Refusal, Value, Values};

use crate::jwt::Credentials;
#[cfg(test)]
use crate::parameters::PARAMETERS;
use crate::{Content, Dialect, EchoMessages, Fanout, Format, Test, message_period_ns, wse};

/// Bytes of the number with which an echo's message begins.
const NUMBER_BYTES: usize = 24;
/// The longest message that a connection takes back, in bytes.
const ECHO_MAX_BYTES: usize = 1 << 20;
/// The shortest secret, in bytes, that may sign a token by HS256.
const SECRET_MIN_BYTES: usize = 32;
/// The most barriers per second of a connection in dialect `wse`. Each barrier answers all messages before it.
const BARRIERS_PER_S: f64 = 10.0;
/// How long an arrival may take to open, in ns.
const OPEN_WITHIN_NS: u64 = 5 * NS_PER_S;
/// How long a connection of a storm may take to say its farewell, in ns.
const FAREWELL_NS: u64 = NS_PER_S;

/// A test of a general WebSocket server, with its parameters.
#[derive(Debug, Clone)]
pub struct WsLoad {
    /// What is tested.
    pub test: Test,
    /// What the server speaks.
    pub dialect: Dialect,
    /// Connections that share a rate of messages.
    pub connections: u32,
    /// Messages that are published per second.
    pub rate_per_s: f64,
    /// The size of a message, in bytes, if the test does not fix it. In dialect `echo` this includes a number of 24
    /// bytes. A format other than JSON has only one size.
    pub message_bytes: usize,
    /// The format of messages that are sent at a rate.
    pub format: Format,
    /// Time between two pings of a connection, in ns.
    pub period_ns: u64,
    /// How long a connection that arrives stays open, in ns.
    pub linger_ns: u64,
    /// How arrivals are spaced.
    pub spacing: Spacing,
    /// How long an arrival may take to open, in ns.
    pub open_within_ns: u64,
    /// The client's credentials, in dialect `wse`. A client process receives the token that they make, and not them.
    pub credentials: Credentials,
    /// The addresses that connections come from; none where the kernel chooses.
    pub source_addresses: Vec<IpAddr>,
    /// Whether a closed loop is run after the trial, for comparison.
    pub closed_loop: bool,
}

impl WsLoad {
    /// A test with its usual values.
    #[cfg(test)]
    pub(crate) fn new(test: Test, dialect: Dialect) -> Self {
        let word = |name: &str| Value::Word(name.to_owned());
        let values = Values::default()
            .with("test", word(test.name()))
            .with("dialect", word(dialect.name()));
        let values = values.or_usual(&PARAMETERS);
        Self::of(&values).expect("a load")
    }

    /// The test that these values say. A value that the test has no use for is 0.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn of(values: &Values) -> Result<Self, Refusal> {
        let test = values.word("test").and_then(Test::by_name);
        let test = test.unwrap_or(Test::Ping);
        let milliseconds = |name| values.whole(name).map(|ms| ms.saturating_mul(NS_PER_MS));
        let given_bytes = values.whole("message_bytes");
        let given_bytes = given_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let format = values.word("format").and_then(Format::by_name);
        let connections = values.whole("connections").unwrap_or_default();
        let mut load = Self {
            test,
            dialect: values
                .word("dialect")
                .and_then(Dialect::by_name)
                .unwrap_or_default(),
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            rate_per_s: values.number("rate").unwrap_or_default(),
            message_bytes: given_bytes.unwrap_or(match test {
                Test::Throughput | Test::Matrix | Test::Formats => 175,
                Test::Fanout => 128,
                Test::Ping | Test::Hold | Test::Limit | Test::Storm => 64,
            }),
            format: format.unwrap_or_default(),
            period_ns: milliseconds("period_ms")
                .or(test.ping_period_ns())
                .unwrap_or_default(),
            linger_ns: milliseconds("linger_ms").unwrap_or_default(),
            spacing: if values.flag("poisson") {
                Spacing::Poisson
            } else {
                Spacing::Even
            },
            open_within_ns: OPEN_WITHIN_NS,
            credentials: Credentials::default(),
            source_addresses: values.addresses("source_addresses").to_vec(),
            closed_loop: values.flag("closed_loop"),
        };
        if let Some(secret) = values.secret("token_secret") {
            load.credentials.secret = secret.clone();
        }
        if given_bytes.is_some() {
            load.must_have_that_length()?;
        }
        load.check()?;
        Ok(load)
    }

    /// The same object in another format has exactly one length, which may be given explicitly. A wse ping has one, too.
    fn must_have_that_length(&self) -> Result<(), Refusal> {
        if self.pings() && self.dialect == Dialect::Wse {
            return Err(Refusal::new(
                "--message-bytes: a wse ping has a fixed length; leave the flag out",
            ));
        }
        let length = self.bytes_of_a_message();
        if self.format != Format::Json && length != Some(self.message_bytes) {
            return Err(Refusal(format!(
                "--message-bytes: only json messages can have any length; {} messages always have {} bytes",
                self.format.name(),
                length.unwrap_or_default()
            )));
        }
        Ok(())
    }

    /// These values, and those that the test chose itself.
    pub(crate) fn complete(&self, mut values: Values) -> Values {
        let word = |name: &str| Value::Word(name.to_owned());
        values.set("test", word(self.test.name()));
        values.set("dialect", word(self.dialect.name()));
        if let Some(bytes) = self.bytes_of_a_message() {
            values.set("message_bytes", Value::Whole(bytes as u64));
        }
        if self.streams() {
            values.set("connections", Value::Whole(self.connections.into()));
            values.set("format", word(self.format.name()));
        }
        if self.pings() {
            values.set("period_ms", Value::Whole(self.period_ns / NS_PER_MS));
        }
        if self.test == Test::Fanout {
            values.set("rate", Value::Number(self.rate_per_s));
        }
        if self.test == Test::Storm {
            values.set("linger_ms", Value::Whole(self.linger_ns / NS_PER_MS));
            values.set("poisson", Value::Flag(self.spacing == Spacing::Poisson));
        }
        values
    }

    /// Whether connections send messages at a rate that they share.
    #[must_use]
    pub fn streams(&self) -> bool {
        matches!(self.test, Test::Throughput | Test::Matrix | Test::Formats)
    }

    /// Whether connections ping.
    #[must_use]
    pub fn pings(&self) -> bool {
        matches!(self.test, Test::Ping | Test::Hold | Test::Limit)
    }

    /// Whether every frame of the load is a message that the server hands to its application, which can then count it.
    ///
    /// In dialect `wse`, pings end in the engine. An arrival is not a message, and one message that is fanned out is
    /// many deliveries.
    #[must_use]
    pub fn frames_reach_the_application(&self) -> bool {
        self.streams() || (self.pings() && self.dialect == Dialect::Echo)
    }

    /// Whether the format counts as opaque unless the server shows that it decodes it. An echo shows nothing.
    #[must_use]
    pub fn asks_for_decoding(&self) -> bool {
        self.streams() && (self.dialect == Dialect::Wse || self.one_size_of_format())
    }

    pub(crate) fn demand(&self, load: u32, profile: &Profile) -> Demand {
        Demand {
            sessions: self.sessions_for(load, profile),
            concurrent: self.concurrent_for(load, profile),
            answers_per_second: self.answers_per_second(load),
        }
    }

    fn sessions_for(&self, load: u32, profile: &Profile) -> u32 {
        match self.test {
            Test::Storm => self.arrivals(load).count(profile),
            Test::Throughput | Test::Matrix | Test::Formats => self.connections,
            Test::Ping | Test::Hold | Test::Limit | Test::Fanout => load,
        }
    }

    fn concurrent_for(&self, load: u32, profile: &Profile) -> u64 {
        let sessions = u64::from(self.sessions_for(load, profile));
        if self.test != Test::Storm {
            return sessions;
        }
        let stays_ns = [self.open_within_ns, self.linger_ns, FAREWELL_NS]
            .into_iter()
            .fold(0, u64::saturating_add);
        let at_once = u128::from(load) * u128::from(stays_ns);
        let at_once = at_once.div_ceil(u128::from(NS_PER_S));
        u64::try_from(at_once).unwrap_or(u64::MAX).min(sessions)
    }

    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a period")]
    fn answers_per_second(&self, load: u32) -> f64 {
        let load = f64::from(load);
        let connections = f64::from(self.connections.max(1));
        match self.test {
            Test::Ping | Test::Hold | Test::Limit => {
                load * NS_PER_S as f64 / self.period_ns.max(1) as f64
            }
            Test::Throughput | Test::Matrix | Test::Formats => match self.dialect {
                Dialect::Echo => load,
                Dialect::Wse => connections * BARRIERS_PER_S.min(load / connections),
            },
            Test::Storm => load,
            Test::Fanout => load * self.rate_per_s,
        }
    }

    pub(crate) fn default_path(&self) -> &'static str {
        match (self.dialect, self.test) {
            (Dialect::Wse, _) if self.streams() => wse::path(self.format),
            (Dialect::Wse, _) => wse::path(Format::Json),
            (Dialect::Echo, Test::Fanout) => "/fanout",
            (Dialect::Echo, _) => "/",
        }
    }

    /// The size of a message, in bytes, if the test has messages of one size.
    #[must_use]
    pub fn bytes_of_a_message(&self) -> Option<usize> {
        match self.test {
            Test::Storm => None,
            Test::Fanout => Some(self.message_bytes),
            Test::Ping | Test::Hold | Test::Limit => {
                (self.dialect == Dialect::Echo).then_some(self.message_bytes)
            }
            Test::Throughput | Test::Matrix | Test::Formats => {
                let content = self.content().ok()?;
                let number = match self.dialect {
                    Dialect::Echo => NUMBER_BYTES,
                    Dialect::Wse => 0,
                };
                Some(content.bytes.len() + number)
            }
        }
    }

    /// How a storm's connections arrive.
    pub(crate) fn arrivals(&self, load: u32) -> Arrivals {
        Arrivals {
            rate_per_s: f64::from(load),
            spacing: self.spacing,
            open_within_ns: self.open_within_ns,
        }
    }

    /// Time between two messages, in ns: those of one connection if connections share the load, otherwise those of the
    /// publisher.
    pub(crate) fn message_period_ns(&self, load: u32) -> u64 {
        match self.test {
            Test::Fanout => message_period_ns(1, self.rate_per_s),
            _ => message_period_ns(self.connections, f64::from(load)),
        }
    }

    /// What messages at a rate contain. In dialect `echo` a number goes before it.
    ///
    /// # Errors
    /// No message has the size asked for.
    pub(crate) fn content(&self) -> Result<Content, Refusal> {
        if self.one_size_of_format() {
            return Ok(self.format.trade_update());
        }
        let content = match self.dialect {
            Dialect::Echo => EchoMessages::content_of(self.message_bytes),
            Dialect::Wse => Content::json_of(self.message_bytes),
        };
        content.map_err(|error| Refusal(format!("--message-bytes: {error}")))
    }

    /// The same for a loop that does not number its messages: as many bytes on the wire.
    ///
    /// # Errors
    /// No message has the size asked for.
    pub(crate) fn flood_content(&self) -> Result<Content, Refusal> {
        match (self.dialect, self.bytes_of_a_message()) {
            (Dialect::Echo, Some(bytes)) => Ok(Content::filler(bytes)),
            _ => self.content(),
        }
    }

    /// Whether all messages are the same object, as long as the format makes it.
    fn one_size_of_format(&self) -> bool {
        self.test == Test::Formats || self.format != Format::Json
    }

    /// What pings in dialect `echo` contain.
    ///
    /// # Errors
    /// No message has the size asked for.
    pub(crate) fn ping_content(message_bytes: usize) -> Result<Content, Refusal> {
        EchoMessages::content_of(message_bytes)
            .map_err(|error| Refusal(format!("--message-bytes: {error}")))
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal(text));
        let name = self.test.name();
        if self.streams() && self.connections == 0 {
            return refuse(format!(
                "--connections 0: {name} needs at least one connection"
            ));
        }
        if self.test == Test::Fanout && !(self.rate_per_s.is_finite() && self.rate_per_s > 0.0) {
            return refuse(format!(
                "--rate {}: give the number of messages published per second, for example 10",
                self.rate_per_s
            ));
        }
        if self.pings() && self.period_ns == 0 {
            return refuse("--period-ms 0: give at least 1".to_owned());
        }
        if self.closed_loop && !matches!(self.test, Test::Ping | Test::Throughput) {
            return refuse(format!(
                "--closed-loop is for the tests ping and throughput; leave it out of {name}"
            ));
        }
        if self.dialect == Dialect::Wse && self.credentials.secret.expose().len() < SECRET_MIN_BYTES
        {
            return refuse(format!(
                "--token-secret: give {SECRET_MIN_BYTES} bytes or more"
            ));
        }
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), Refusal> {
        if self.message_bytes > ECHO_MAX_BYTES && self.dialect == Dialect::Echo {
            return Err(Refusal(format!(
                "--message-bytes {}: an echo has at most {ECHO_MAX_BYTES}",
                self.message_bytes
            )));
        }
        if self.streams() {
            self.content()?;
        }
        if self.pings() && self.dialect == Dialect::Echo {
            Self::ping_content(self.message_bytes)?;
        }
        let least = Fanout::MESSAGE_MIN_BYTES;
        if self.test == Test::Fanout && self.message_bytes < least {
            return Err(Refusal(format!(
                "--message-bytes {}: a message that is fanned out has at least {least}",
                self.message_bytes
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
