//! The command line as it is written. Names and meanings are those of `docs/`; what belongs together is checked in [`crate::setup`].

mod ws;

use std::path::PathBuf;

pub(crate) use ws::WsArgs;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use plimsoll_core::secret::Secret;

/// The greatest load that can be asked for.
pub(crate) const LOAD_MAX: u32 = 1_000_000;

/// Finds the load line of a real-time server: how many sessions it carries per vCPU while every gate of its SLO holds.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version = crate::build::VERSION, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What may be said beside `find --resume`: that it may start what it starts, and the secrets that are not kept.
const BESIDE_RESUME: [&str; 7] = [
    "resume",
    "yes",
    "url",
    "header",
    "header_file",
    "token_secret",
    "token_secret_file",
];

impl Args {
    /// Reads a command line.
    pub(crate) fn of<W>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error>
    where
        W: Into<std::ffi::OsString> + Clone,
    {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        if let Some(flag) = unwanted_beside_resume(&command, &matches) {
            let text = format!(
                "--resume goes on with the flags that the search was begun with; leave {flag} out"
            );
            return Err(command.error(ErrorKind::ArgumentConflict, text));
        }
        Self::from_arg_matches(&matches)
    }
}

fn unwanted_beside_resume(command: &clap::Command, matches: &ArgMatches) -> Option<String> {
    let ("find", given) = matches.subcommand()? else {
        return None;
    };
    given.get_one::<PathBuf>("resume")?;
    let unwanted = command
        .find_subcommand("find")?
        .get_arguments()
        .find(|argument| {
            let id = argument.get_id().as_str();
            !BESIDE_RESUME.contains(&id)
                && given.ids().any(|known| known == argument.get_id())
                && given.value_source(id) == Some(ValueSource::CommandLine)
        })?;
    Some(match unwanted.get_long() {
        Some(long) => format!("--{long}"),
        None => "the target".to_owned(),
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List targets, their tier, and whether this machine can build and run each
    List(ListArgs),
    /// Check this machine, and show the command that fixes each problem
    Doctor(DoctorArgs),
    /// Measure what this machine's client can generate
    Calibrate(CalibrateArgs),
    /// Test conformance to the contract, case by case
    Check(CheckArgs),
    /// Run one trial at one load
    Run(RunArgs),
    /// Find the load line of each target
    Find(FindArgs),
    /// Compare two targets, with alternating trials, or two result folders: ratios of cost and load line with intervals
    Compare(CompareArgs),
    /// Make every rendering of a result folder again
    Report(ReportArgs),
    /// List results, show how a target's load line changed, or compare the newest result with an earlier one
    History(HistoryArgs),
    /// Show results as local web pages, with what is being measured now
    Serve(ServeArgs),
    /// What is made from this command line's parser: manual pages, completions of shells, the reference page
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// One process of a client of several: the command starts itself so
    #[command(hide = true, name = plimsoll_lab::trial::processes::SUBCOMMAND)]
    Engine,
}

/// Which target.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Which {
    /// A server that runs already, ws://HOST:PORT/PATH
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A target.toml that lives anywhere
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) manifest: Option<PathBuf>,
    /// The folder that has targets/ (default: found from here upwards)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// What the sessions do
    #[arg(long, value_enum, default_value_t = WorkloadName::Stt)]
    pub(crate) workload: WorkloadName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadName {
    /// Streaming speech-to-text
    Stt,
    /// Any RFC 6455 server that sends every message back
    Echo,
    /// General WebSocket servers: eight tests, see --test
    Ws,
}

impl WorkloadName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stt => "stt",
            Self::Echo => "echo",
            Self::Ws => "ws",
        }
    }
}

/// Who runs where.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Where {
    /// What the target gets, in vCPU; fractions are set as a CPU quota
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) vcpu: f64,
    /// Period of the quota: 10 comes close to a slower core, 100 is what containers have
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) quota_period_ms: u64,
    /// Cores of the target, for example 2-3 (default: the last ones)
    #[arg(long, value_name = "LIST")]
    pub(crate) target_cpus: Option<String>,
    /// Cores of the load engine and the simulator (default: the others)
    #[arg(long, value_name = "LIST")]
    pub(crate) client_cpus: Option<String>,
    /// The network of a target that Plimsoll starts [default: own where it can be had]
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<NetworkName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkName {
    /// A namespace of its own behind a pair of virtual cards: each side's cores receive what comes to it
    Own,
    /// The loopback: the sender's cores do the receiver's work
    Loopback,
}

/// What is done to the target.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct LoadArgs {
    /// quick (development), standard (published numbers), soak (leaks and drift)
    #[arg(long, default_value = "quick", value_name = "NAME")]
    pub(crate) profile: String,
    /// Seconds over which sessions connect, in place of the profile's
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ramp: Option<f64>,
    /// Seconds before the measured window, in place of the profile's
    #[arg(long, value_name = "SECONDS")]
    pub(crate) warm_up: Option<f64>,
    /// Seconds of the measured window, in place of the profile's
    #[arg(long, value_name = "SECONDS")]
    pub(crate) measured: Option<f64>,
    /// Seconds to wait for answers after the window, in place of the profile's
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<f64>,
    /// Gates in place of the workload's: a TOML file with a table [gates]. May be repeated: all share one set of trials
    #[arg(long, value_name = "FILE")]
    pub(crate) slo: Vec<PathBuf>,
    /// What speech-to-text sessions say: a WAV file, 16 kHz mono 16 bit (default: synthetic frames)
    #[arg(long, value_name = "FILE.wav")]
    pub(crate) audio: Option<PathBuf>,
    /// Bytes of a message [default: echo 128, ws by its test]
    #[arg(long, value_name = "N")]
    pub(crate) message_bytes: Option<usize>,
    /// Milliseconds between two messages of a session [default: echo 100, ws by its test]
    #[arg(long, value_name = "N")]
    pub(crate) period_ms: Option<u64>,
    /// Where targets send their batches: `sim`, or the URL of a server of yours
    #[arg(long, value_name = "sim|URL", default_value = "sim")]
    pub(crate) inference: String,
    /// A further header of the upgrade request, "Name: value"; may be repeated. Others can read it in the process list
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<Secret>,
    /// Further headers in a file, a line "Name: value" each; # begins a comment. Or in the environment: PLIMSOLL_HEADERS
    #[arg(long, value_name = "FILE")]
    pub(crate) header_file: Vec<PathBuf>,
    /// Leave Nagle's algorithm on in the client's sockets, to show what it costs
    #[arg(long)]
    pub(crate) no_nodelay: bool,
    /// Frames due within this many microseconds are written together at its end
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(50..=10_000))]
    pub(crate) tick_us: u64,
    /// Seed of everything drawn; the same seed repeats the same load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Process whose resources are the target's, for --url
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pub(crate) pid: Option<i32>,
    /// Control group whose resources are the target's, for --url
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ws: WsArgs,
}

/// What becomes of the result.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OutArgs {
    /// The result folder (default: a new one below results/)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// The result as JSON on stdout, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Plain lines in place of the live view, and no live.json
    #[arg(long)]
    pub(crate) no_live: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// The folder that has targets/ (default: found from here upwards)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// The folder that has targets/ (default: found from here upwards)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CalibrateArgs {
    /// What the client does
    #[arg(long, value_enum, default_value_t = Calibrated::Stt)]
    pub(crate) workload: Calibrated,
    /// Cores of the client (default: all but the last)
    #[arg(long, value_name = "LIST")]
    pub(crate) client_cpus: Option<String>,
    /// Sessions on which the costs are measured [default: stt 1000; ws 100 connections, each with 500 messages a second]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) sessions: Option<u32>,
    /// How often bare loop and engine alternate
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Seconds that each of them runs
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// What can be calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Calibrated {
    /// Audio frames of speech-to-text sessions, and how many of those the client can drive
    Stt,
    /// Messages, echoes and connections of general WebSocket servers, and how many of each a core is on time with
    Ws,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Name of a target, as `plimsoll list` shows it
    #[arg(required_unless_present_any = ["all", "url", "manifest"], conflicts_with_all = ["all", "url", "manifest"])]
    pub(crate) target: Option<String>,
    /// Every target of the workload that runs here; says which do not, and why
    #[arg(long, conflicts_with_all = ["url", "manifest", "token"])]
    pub(crate) all: bool,
    /// How many targets are checked at a time, with --all [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// Leave this target out of --all; may be given several times
    #[arg(long, value_name = "TARGET", requires = "all")]
    pub(crate) except: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Bearer token, for a URL that demands one; others can read it in the process list
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<Secret>,
    /// The same, in a file. Or in the environment: PLIMSOLL_TOKEN
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) token_file: Option<PathBuf>,
    /// Only the cases whose id contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Name of a target, as `plimsoll list` shows it
    #[arg(required_unless_present_any = ["url", "manifest"], conflicts_with_all = ["url", "manifest"])]
    pub(crate) target: Option<String>,
    /// How many sessions; with --workload ws the load of its test
    #[arg(long, visible_alias = "load", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) sessions: u32,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// How a load line is searched.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct SearchArgs {
    /// The load to begin with [default: 400; ws: storm 200, throughput 10000, fanout 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) start: Option<u32>,
    /// The greatest load to try (default: what descriptors and ports allow)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) max: Option<u32>,
    /// How narrow the edge's interval must be, high / low - 1 (default: 0.05 quick, 0.02 otherwise)
    #[arg(long, value_name = "SHARE")]
    pub(crate) width: Option<f64>,
    /// How many trials may decide about a load at the edge [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=25))]
    pub(crate) repeats: Option<u32>,
    /// Begin no further trial of a search after this many minutes (default: 6 for the profile quick, no limit otherwise)
    #[arg(long, value_name = "MINUTES")]
    pub(crate) time_budget: Option<f64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FindArgs {
    /// Names of targets, as `plimsoll list` shows them
    #[arg(required_unless_present_any = ["all", "url", "manifest", "resume"], conflicts_with_all = ["all", "url", "manifest"])]
    pub(crate) targets: Vec<String>,
    /// Every target of the workload that runs here, ranked; says which do not, and why
    #[arg(long, conflicts_with_all = ["url", "manifest"])]
    pub(crate) all: bool,
    /// The load at which the costs of several targets are compared; 0 for none (default: 80 % of the lowest load line, rounded down)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=LOAD_MAX.into()))]
    pub(crate) common_load: Option<u32>,
    /// Rounds of trials at the common load, one trial of each target in each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Continue an interrupted search: its result folder. All other flags are those it was started with, except secrets, which are not kept
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// With --resume: start what it names, though you did not begin that search on this machine
    #[arg(long, requires = "resume")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// Ratios are B / A: A is the baseline.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompareArgs {
    /// The baseline: a target's name, a target.toml (or its folder), or a result folder
    pub(crate) a: String,
    /// What to compare with it: likewise
    pub(crate) b: String,
    /// Compare at this load only: what it costs, and who carries it; search no load lines
    #[arg(long, visible_alias = "load", value_name = "N", conflicts_with_all = ["start", "max", "width", "repeats", "time_budget"], value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) sessions: Option<u32>,
    /// Pairs of trials for the cost [default: 8: if a trial's cost scatters by 2 %, they show a difference of 5 % in 95 of 100 cases]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub(crate) pairs: Option<u32>,
    /// The confidence with which all intervals hold together
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Exit with 1 when the conclusion is this
    #[arg(long, value_enum, value_name = "CONCLUSION")]
    pub(crate) fail_if: Option<FailIf>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// The folder that has targets/ (default: found from here upwards)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// What the sessions do
    #[arg(long, value_enum, default_value_t = WorkloadName::Stt)]
    pub(crate) workload: WorkloadName,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailIf {
    /// B is worse than A
    Worse,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// The result folder, or a file with packed records
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Where the pages go (default: into the result folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Pack the folder's records into records.tar.gz, in place of the loose files, for keeping and passing on
    #[arg(long, conflicts_with = "out")]
    pub(crate) pack: bool,
    /// The records as one JSON object on stdout, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// The filters choose the results.
#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// The folder of results; result folders are found anywhere below it
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Only results of this target
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Only results of this workload
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Only results of this kind
    #[arg(long, value_name = "KIND", value_parser = ["find", "run", "compare", "ranking", "calibrate", "check"])]
    pub(crate) kind: Option<String>,
    /// Only results started since then: a date (2026-01-31), or how long ago (7d, 12h)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only results with this many vCPU for the target
    #[arg(long, value_name = "X")]
    pub(crate) vcpu: Option<f64>,
    /// At most this many, the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// The load lines of this target over time, with their intervals; what was measured under other conditions is a group of its own
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["against", "target", "kind", "limit"])]
    pub(crate) trend: Option<String>,
    /// Compare the newest result of each target with this: a result folder, `last` or `best` (of the same target under the same conditions)
    #[arg(long, value_name = "BASELINE", conflicts_with = "limit")]
    pub(crate) against: Option<String>,
    /// Compare this result folder instead of the newest
    #[arg(long, value_name = "DIR", requires = "against")]
    pub(crate) result: Option<PathBuf>,
    /// Exit with 1 when a result is this
    #[arg(long, value_enum, value_name = "CONCLUSION", requires = "against")]
    pub(crate) fail_if: Option<FailIf>,
    /// The confidence with which the intervals of a comparison hold together [default: 0.95]
    #[arg(long, value_name = "SHARE", requires = "against")]
    pub(crate) confidence: Option<f64>,
    /// Rebuild the index from the result folders first
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// As JSON on stdout, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The folder of results; result folders are found anywhere below it
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Where to listen; any address but one of this machine's own demands the token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    pub(crate) listen: String,
    /// Demand this token, at least 16 characters of A-Z, a-z, 0-9, - and _ (default: one is made up where it is needed). Others can read it in the process list
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<Secret>,
    /// The same, in a file. Or in the environment: PLIMSOLL_SERVE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) what: Generated,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generated {
    /// One manual page for the command and one for each subcommand
    Man {
        /// The folder that the pages are written to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// One file of completions for each of bash, zsh, fish, elvish and PowerShell
    Completions {
        /// The folder that the files are written to
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// The reference page docs/reference/cli.md, on stdout
    Markdown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_target_or_a_url_but_not_both() {
        let parse = |line: &str| Args::try_parse_from(line.split(' '));
        assert!(parse("plimsoll run rust-axum --sessions 5").is_ok());
        assert!(parse("plimsoll run --url ws://h:1/ --sessions 5").is_ok());
        assert!(parse("plimsoll run --sessions 5").is_err());
        assert!(parse("plimsoll run x --url ws://h:1/ --sessions 5").is_err());
        assert!(parse("plimsoll run x --sessions 0").is_err());
        assert!(parse("plimsoll run x --load 5").is_ok());
    }

    #[test]
    fn only_secrets_and_yes_go_beside_resume() {
        let parse = |line: &str| Args::of(line.split(' '));
        for fine in [
            "plimsoll find --resume d",
            "plimsoll find --resume d --yes --header-file f",
            "plimsoll find --resume d --url ws://h/?token=x --token-secret-file f",
            "plimsoll find x --seed 2",
        ] {
            assert!(parse(fine).is_ok(), "{fine}");
        }
        for (line, flag) in [
            ("plimsoll find --resume d --seed 2", "--seed"),
            ("plimsoll find x --resume d", "the target"),
            ("plimsoll find --json --resume d", "--json"),
        ] {
            let text = parse(line).unwrap_err().to_string();
            assert!(text.contains(flag) && text.contains("--resume"), "{text}");
        }
        assert!(parse("plimsoll find x --yes").is_err());
    }
}
