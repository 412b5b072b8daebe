//! Flags of every command that measures: the target, where it runs, the load on it, where the result goes.

use std::ops::Deref;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args as ClapArgs, Command, FromArgMatches, ValueEnum};
use plimsoll_core::secret::Secret;
use plimsoll_workload::{Value, Workload};

use super::ParameterArgs;
use super::fleet::FleetArgs;
use crate::workloads;

/// The target.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Which {
    /// Server that is already running, ws://HOST:PORT/PATH, or wss:// for TLS (except for `check`)
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Path of a target.toml in any folder
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) manifest: Option<PathBuf>,
    /// Folder that contains targets/ [default: searched for from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArg,
}

/// What the sessions do: the workload that is named, else the one that a given dialect implies, else the usual one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkloadArg(pub(crate) &'static dyn Workload);

/// The argument that names a workload.
const WORKLOAD: &str = "workload";

impl Deref for WorkloadArg {
    type Target = dyn Workload;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl ClapArgs for WorkloadArg {
    fn augment_args(command: Command) -> Command {
        let argument = Arg::new(WORKLOAD)
            .long(WORKLOAD)
            .value_name("WORKLOAD")
            .value_parser(workloads::parser())
            .help(format!(
                "What the sessions do [default: what --{} implies, otherwise {}]",
                workloads::IMPLYING,
                workloads::usual()
            ));
        command.arg(argument)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkloadArg {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = matches.get_one::<&'static dyn Workload>(WORKLOAD).copied();
        let implied = || {
            // A command without parameters does not have it.
            let given = matches.try_get_one::<Value>(workloads::IMPLYING);
            workloads::implied_by(given.ok().flatten()?)
        };
        let chosen = named.or_else(implied);
        let chosen = chosen.or_else(|| workloads::ALL.first().copied());
        let none = || clap::Error::raw(ErrorKind::InvalidValue, "this program has no workload\n");
        chosen.map(Self).ok_or_else(none)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// CPUs and network of target and client.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Where {
    /// vCPU for the target; a fraction is set as a CPU quota
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) vcpu: f64,
    /// Period of the CPU quota in milliseconds: 10 comes close to a slower core, 100 is what containers use [default: the
    /// workload's, 10 or the shortest possible]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) quota_period_ms: Option<u64>,
    /// CPUs of the target, for example 2-3 [default: the last ones]
    #[arg(long, value_name = "LIST")]
    pub(crate) target_cpus: Option<String>,
    /// CPUs of the load engine and the simulator [default: the others]
    #[arg(long, value_name = "LIST")]
    pub(crate) client_cpus: Option<String>,
    /// Network of a target that Plimsoll starts [default: own if possible, otherwise loopback]
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<NetworkName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkName {
    /// A separate network namespace behind a pair of virtual cards: each side's CPUs receive its own packets
    Own,
    /// The loopback: the sender's CPUs do the receiver's work
    Loopback,
}

/// The load on the target.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct LoadArgs {
    /// Length of the trials: quick (development), standard (published numbers), speech (speech recognisers), soak (leaks
    /// and drift) [default: the workload's, for most of them quick]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Seconds over which sessions connect; overrides the profile
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ramp: Option<f64>,
    /// Seconds of warm-up before the measured window; overrides the profile
    #[arg(long, value_name = "SECONDS")]
    pub(crate) warm_up: Option<f64>,
    /// Length of the measured window in seconds; overrides the profile
    #[arg(long, value_name = "SECONDS")]
    pub(crate) measured: Option<f64>,
    /// Seconds to wait for answers after the window; overrides the profile
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<f64>,
    /// TOML file with a `[gates]` table that replaces the workload's gates. Repeatable: all SLOs share one set of
    /// trials
    #[arg(long, value_name = "FILE")]
    pub(crate) slo: Vec<PathBuf>,
    /// Where targets ask for what they answer: `sim` (the workload's own simulator) or the URL of your server. With --url: a
    /// simulator that the server asks already, so that its queue and its lateness are seen
    #[arg(long = "inference", value_name = "sim|URL", default_value = "sim")]
    pub(crate) back_end: String,
    /// Add a header to the upgrade request, "Name: value". Repeatable. Others can read it in the process list
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<Secret>,
    /// File with more headers, one "Name: value" per line; lines that begin with # are comments. Or set the environment
    /// variable PLIMSOLL_HEADERS
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Vec<PathBuf>,
    /// At a URL with TLS: PEM file with the certificates of further CAs to trust, besides those that this machine trusts
    #[arg(long, value_name = "FILE", conflicts_with = "tls_insecure")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// At a URL with TLS: the host name that is sent (SNI) and that the certificate must be for, if the URL has another name
    /// or an address
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// At a URL with TLS: don't verify the server's certificate. Records say so
    #[arg(long)]
    pub(crate) tls_insecure: bool,
    /// Leave Nagle's algorithm on in the client's sockets, to show what it costs
    #[arg(long)]
    pub(crate) no_nodelay: bool,
    /// Tick in microseconds: frames due within one tick are written together at its end; 0 writes each when it is due, if
    /// the workload's sessions share the load [default: the workload's, 500 or 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(crate) tick_us: Option<u64>,
    /// Seed of all random draws; the same seed repeats the same load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// With --url: ID of the process whose resources are measured as the target's
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pub(crate) pid: Option<i32>,
    /// With --url: control group whose resources are measured as the target's
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// With --url: let an agent beside the target (`plimsoll agent --observe`) measure the target's CPU time, memory and sockets
    #[arg(long, group = "elsewhere", requires = "token_file", conflicts_with_all = ["pid", "cgroup"])]
    pub(crate) observer: bool,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) parameters: ParameterArgs,
}

/// What the user wants of the target.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct GoalsArgs {
    /// TOML file with a `[[goal]]` table for each goal: reports say which are met. The record keeps the file's SHA-256,
    /// and no verdict depends on it
    #[arg(long, value_name = "FILE")]
    pub(crate) goals: Option<PathBuf>,
}

/// Where the result goes.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OutArgs {
    /// Result folder [default: a new folder below results/]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the result as JSON on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Print plain lines instead of the live view, and write no live.json
    #[arg(long)]
    pub(crate) no_live: bool,
}

#[cfg(test)]
mod tests {
    use crate::args::{Args, Command};

    #[test]
    #[cfg(all(feature = "stt", feature = "ws", feature = "broker"))]
    fn a_dialect_implies_its_workload_and_a_named_workload_stands() {
        let workload = |line: &str| {
            let words = format!("plimsoll {line}");
            match Args::of(words.split(' ')).expect(line).command {
                Command::Run(run) => run.which.workload.about().name,
                Command::Find(find) => find.which.workload.about().name,
                Command::Check(check) => check.which.workload.about().name,
                Command::Compare(compare) => compare.workload.about().name,
                other => panic!("{other:?}"),
            }
        };
        for (line, name) in [
            ("run --url ws://h --sessions 5", "stt"),
            ("run --url ws://h --sessions 5 --dialect wse", "ws"),
            ("run --dialect=wse --url ws://h --sessions 5", "ws"),
            ("find --all --dialect wse", "ws"),
            ("find --url tcp://h:1 --dialect mqtt", "broker"),
            ("check --url ws://h --dialect wse", "ws"),
            ("compare a b --dialect wse", "ws"),
            ("compare a b", "stt"),
            ("find x --workload broker --dialect mqtt", "broker"),
            // It is refused later, with both flags in the line.
            ("find x --workload stt --dialect wse", "stt"),
            ("find x --workload ws --dialect mqtt", "ws"),
        ] {
            assert_eq!(workload(line), name, "{line}");
        }
    }
}
