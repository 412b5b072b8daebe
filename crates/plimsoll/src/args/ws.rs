//! Flags of workload `ws`. [`crate::setup`] checks which of them go together.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_core::secret::Secret;
use plimsoll_workload_ws::{Dialect, Format, Test};

/// The load on a general WebSocket server.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Workload ws")]
pub(crate) struct WsArgs {
    /// Test to run; it decides what --sessions counts [default: ping]
    #[arg(long, value_name = "TEST", value_parser = test())]
    pub(crate) test: Option<Test>,
    /// Protocol above WebSocket that the server speaks [default: the one in its target.toml, otherwise echo]
    #[arg(long, value_name = "DIALECT", value_parser = dialect())]
    pub(crate) dialect: Option<Dialect>,
    /// For throughput, matrix and formats: connections that share the message rate [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// For fanout: messages published per second [default: 10]
    #[arg(long, value_name = "X")]
    pub(crate) rate: Option<f64>,
    /// For throughput: format of the messages [default: json]
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) format: Option<Format>,
    /// For storm: milliseconds that a connection stays open [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub(crate) linger_ms: Option<u64>,
    /// For storm: arrivals as a Poisson process instead of evenly spaced
    #[arg(long)]
    pub(crate) poisson: bool,
    /// For ping and throughput: afterwards run the same as a closed loop, for comparison. It does not affect the verdict
    #[arg(long)]
    pub(crate) closed_loop: bool,
    /// Addresses that the client connects from, in turn, for example 127.0.0.1,127.0.0.2; each has its own ports
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) source_addresses: Vec<IpAddr>,
    /// With --url and dialect wse: secret that tokens are signed with [default: that of the contract]. Others can read
    /// it in the process list
    #[arg(long, value_name = "SECRET", conflicts_with = "token_secret_file")]
    pub(crate) token_secret: Option<Secret>,
    /// File that holds the token secret. Or set the environment variable PLIMSOLL_TOKEN_SECRET
    #[arg(long, value_name = "FILE")]
    pub(crate) token_secret_file: Option<PathBuf>,
}

impl WsArgs {
    /// The requested test.
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
        Test::Matrix => "Throughput in six message sizes, one trial each",
        Test::Formats => "Throughput in three formats, one trial each",
        Test::Hold => {
            "Which connections survive: a ping per connection every 5 s; the load is connections"
        }
        Test::Limit => {
            "How many connections are possible: a ping per connection every 10 s; the load is connections"
        }
        Test::Fanout => "One publishes, all receive; the load is receivers",
    }
}

fn dialect() -> impl TypedValueParser<Value = Dialect> {
    one_of(Dialect::ALL.map(|dialect| {
        let about = match dialect {
            Dialect::Echo => "RFC 6455; the server echoes every message",
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

/// Accepts one of these names; each has a description for the help.
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
