//! Flags of workload `ws`. Which of them go together is checked in [`crate::setup`].

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_core::secret::Secret;
use plimsoll_workloads::ws::{Dialect, Format, Test};

/// What is done to a general WebSocket server.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Workload ws")]
pub(crate) struct WsArgs {
    /// Which test; what --sessions counts depends on it [default: ping]
    #[arg(long, value_name = "TEST", value_parser = test())]
    pub(crate) test: Option<Test>,
    /// What the server speaks [default: what its target.toml says, else echo]
    #[arg(long, value_name = "DIALECT", value_parser = dialect())]
    pub(crate) dialect: Option<Dialect>,
    /// Connections that share a rate of messages: throughput, matrix, formats [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Messages that are published each second: fanout [default: 10]
    #[arg(long, value_name = "X")]
    pub(crate) rate: Option<f64>,
    /// What messages are written in: throughput [default: json]
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) format: Option<Format>,
    /// Milliseconds that a connection stays open: storm [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub(crate) linger_ms: Option<u64>,
    /// Arrivals as a Poisson process has them, in place of even ones: storm
    #[arg(long)]
    pub(crate) poisson: bool,
    /// Afterwards the same as a closed loop, for comparison: ping, throughput. It decides nothing
    #[arg(long)]
    pub(crate) closed_loop: bool,
    /// Addresses that the client connects from, in turn, for example 127.0.0.1,127.0.0.2: each has ports of its own
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) source_addresses: Vec<IpAddr>,
    /// Secret that tokens are signed with, for --url and dialect wse; others can read it in the process list [default: that of the contract]
    #[arg(long, value_name = "SECRET", conflicts_with = "token_secret_file")]
    pub(crate) token_secret: Option<Secret>,
    /// The same, in a file. Or in the environment: PLIMSOLL_TOKEN_SECRET
    #[arg(long, value_name = "FILE")]
    pub(crate) token_secret_file: Option<PathBuf>,
}

impl WsArgs {
    /// The test that was asked for.
    pub(crate) fn test(&self) -> Test {
        self.test.unwrap_or(Test::Ping)
    }
}

fn test() -> impl TypedValueParser<Value = Test> {
    one_of(Test::ALL.map(|test| (test.name(), about(test), test)))
}

fn about(test: Test) -> &'static str {
    match test {
        Test::Storm => "Connections that arrive at a rate; the load is connections per second",
        Test::Ping => "A ping per connection and second; the load is connections",
        Test::Throughput => "Messages at a rate; the load is messages per second",
        Test::Matrix => "The same in six sizes, a trial for each",
        Test::Formats => "The same in three formats, a trial for each",
        Test::Hold => "Who survives: a ping per connection every 5 s; the load is connections",
        Test::Limit => "How many there can be: a ping every 10 s; the load is connections",
        Test::Fanout => "One publishes, all receive; the load is receivers",
    }
}

fn dialect() -> impl TypedValueParser<Value = Dialect> {
    one_of(Dialect::ALL.map(|dialect| {
        let about = match dialect {
            Dialect::Echo => "RFC 6455, and every message comes back",
            Dialect::Wse => "The protocol of the WSE engine",
        };
        (dialect.name(), about, dialect)
    }))
}

fn format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL.map(|format| {
        let about = match format {
            Format::Json => "JSON in a text message",
            Format::MsgpackPrefixed => "`M:` and MessagePack in a binary message",
            Format::Msgpack => "MessagePack in a binary message, on a session that asked for it",
            Format::Zlib => "`C:` and zlib in a binary message",
        };
        (format.name(), about, format)
    }))
}

/// Takes one of these names, each with what it means.
fn one_of<T, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.map(|(name, about, _)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names).map(move |given| {
        let named = values.iter().find(|(name, ..)| *name == given);
        named.map_or_else(
            || unreachable!("only these names are taken"),
            |(_, _, value)| *value,
        )
    })
}
