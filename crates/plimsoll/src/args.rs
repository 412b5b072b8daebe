//! The command line as you type it. Names and meanings are those of `docs/`. [`crate::setup`] checks which arguments go
//! together.

mod calibrate;
mod deploy;
mod fleet;
mod measurement;
mod parameters;

use std::path::PathBuf;

pub(crate) use calibrate::CalibrateArgs;
pub(crate) use deploy::{DeployArgs, Fleet, PodArgs, RenderArgs};
pub(crate) use fleet::{AgentArgs, FleetArgs};
pub(crate) use measurement::{
    GoalsArgs, LoadArgs, NetworkName, OutArgs, Where, Which, WorkloadArg,
};
pub(crate) use parameters::{ParameterArgs, PropertyArgs};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use plimsoll_core::secret::Secret;
use plimsoll_workload::Workload;

/// The highest load that you can ask for.
pub(crate) const LOAD_MAX: u32 = 1_000_000;

/// Finds the load line of a real-time server: how many sessions it carries per vCPU while every gate of its SLO holds.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version = crate::build::VERSION, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Arguments allowed with `find --resume`: consent to start what it starts, and the secrets that are not kept.
const BESIDE_RESUME: [&str; 5] = ["resume", "yes", "url", "header", "header_file"];

impl Args {
    /// Parses a command line.
    pub(crate) fn of<W>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error>
    where
        W: Into<std::ffi::OsString> + Clone,
    {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        if let Some(flag) = unwanted_beside_resume(&command, &matches) {
            let text =
                format!("--resume uses the flags that the search was started with; remove {flag}");
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
    let secrets = ParameterArgs::secret_ids();
    let unwanted = command
        .find_subcommand("find")?
        .get_arguments()
        .find(|argument| {
            let id = argument.get_id().as_str();
            !BESIDE_RESUME.contains(&id)
                && !secrets.iter().any(|secret| secret == id)
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
    /// Check this machine and show the command that fixes each problem
    Doctor(DoctorArgs),
    /// Measure how much load this machine's client can generate
    Calibrate(CalibrateArgs),
    /// Test conformance to the contract, case by case
    Check(CheckArgs),
    /// Run one trial at one load
    Run(RunArgs),
    /// Find the load line of each target
    Find(FindArgs),
    /// Compare two targets (with alternating trials) or two result folders: ratios of cost and load line, with
    /// intervals
    Compare(CompareArgs),
    /// Recreate every rendering of a result folder
    Report(ReportArgs),
    /// List results, show how a target's load line changed, or compare the newest result with an earlier one
    History(HistoryArgs),
    /// Serve results, and what is being measured now, as local web pages
    Serve(ServeArgs),
    /// Drive parts of loads for a command on another machine that was started with --agents
    Agent(AgentArgs),
    /// Run agents on a cluster: print what deploys them
    Fleet(DeployArgs),
    /// Write what is made from this command line's parser: manual pages, shell completions, the reference page
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Run as one process of a client that has several; the command starts itself this way
    #[command(hide = true, name = plimsoll_lab::trial::parts::SUBCOMMAND)]
    Engine,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Only the targets of this workload, with what each of them offers
    #[arg(long, value_name = "WORKLOAD", value_parser = crate::workloads::parser())]
    pub(crate) workload: Option<&'static dyn Workload>,
    /// Folder that contains targets/ [default: searched for from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Folder that contains targets/ [default: searched for from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Target name, as shown by `plimsoll list`
    #[arg(required_unless_present_any = ["all", "url", "manifest"], conflicts_with_all = ["all", "url", "manifest"])]
    pub(crate) target: Option<String>,
    /// Check every target of the workload that runs here, and report why the others do not
    #[arg(long, conflicts_with_all = ["url", "manifest", "token"])]
    pub(crate) all: bool,
    /// With --all: how many targets to check at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: Option<u32>,
    /// With --all: leave this target out. Repeatable
    #[arg(long, value_name = "TARGET", requires = "all")]
    pub(crate) except: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Bearer token for a --url that requires one. Others can read it in the process list
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<Secret>,
    /// File that holds the bearer token. Or set the environment variable PLIMSOLL_TOKEN
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) token_file: Option<PathBuf>,
    /// Run only the cases whose ID contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Leave out the cases that take a minute or so
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) properties: PropertyArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Target name, as shown by `plimsoll list`
    #[arg(required_unless_present_any = ["url", "manifest"], conflicts_with_all = ["url", "manifest"])]
    pub(crate) target: Option<String>,
    /// Number of sessions; with --workload ws, the load of its test. Needed but with --set and --test stages, which have loads of their own
    #[arg(long, visible_alias = "load", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) sessions: Option<u32>,
    /// Compare the trial with the one in this record, trial-NNN.json, as a search does with its baseline
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) goals: GoalsArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// How to search for a load line.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct SearchArgs {
    /// First load to try [default: 400; ws: storm 200, throughput 10000, fanout 100; http: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) start: Option<u32>,
    /// Highest load to try [default: 1.25 times what the client can drive, within descriptors and ports]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) max: Option<u32>,
    /// Required width of the edge's interval, high / low - 1 [default: 0.05 for profile quick, 0.02 otherwise]
    #[arg(long, value_name = "SHARE")]
    pub(crate) width: Option<f64>,
    /// Maximum number of trials to decide about a load at the edge [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=25))]
    pub(crate) repeats: Option<u32>,
    /// Start no further trial of a search after this many minutes; a resumed search has them anew [default: 6 for profile quick, otherwise no limit]
    #[arg(long, value_name = "MINUTES")]
    pub(crate) time_budget: Option<f64>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FindArgs {
    /// Target names, as shown by `plimsoll list`
    #[arg(required_unless_present_any = ["all", "url", "manifest", "resume"], conflicts_with_all = ["all", "url", "manifest"])]
    pub(crate) targets: Vec<String>,
    /// Measure and rank every target of the workload that runs here, and report why the others do not
    #[arg(long, conflicts_with_all = ["url", "manifest"])]
    pub(crate) all: bool,
    /// Load at which the costs of several targets are compared; 0 to skip [default: 80 % of the lowest load line,
    /// rounded down]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=LOAD_MAX.into()))]
    pub(crate) common_load: Option<u32>,
    /// Rounds of trials at the common load; each round has one trial of each target
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Resume the interrupted search or ranking in this result folder, with the flags it was started with. Secrets are not kept:
    /// give them again
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// With --resume: start what the search names, even if you did not begin it on this machine
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
    pub(crate) goals: GoalsArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// Ratios are B / A: A is the baseline.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompareArgs {
    /// Baseline: a target's name, a target.toml (or its folder), or a result folder
    pub(crate) a: String,
    /// What to compare with the baseline, given in the same way
    pub(crate) b: String,
    /// Compare only at this load: what it costs, and which targets carry it. No load lines are searched
    #[arg(long, visible_alias = "load", value_name = "N", conflicts_with_all = ["start", "max", "width", "repeats", "time_budget"], value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) sessions: Option<u32>,
    /// Pairs of trials for the cost [default: 8, which show a difference of 5 % in 95 of 100 cases if a trial's cost
    /// scatters by 2 %]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub(crate) pairs: Option<u32>,
    /// Joint confidence level of all intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Exit with 1 if this is the conclusion
    #[arg(long, value_enum, value_name = "CONCLUSION")]
    pub(crate) fail_if: Option<FailIf>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// Folder that contains targets/ [default: searched for from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArg,
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
    /// Result folder, or a file of packed records. Repeatable: several results get one table of their goals
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Folder for the pages of one result [default: the result folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Goals file that the results must have been measured with: refuse those measured with another one, or with none
    #[arg(long, value_name = "FILE")]
    pub(crate) goals: Option<PathBuf>,
    /// Replace the folder's loose record files with one archive, records.tar.gz, to keep or pass on
    #[arg(long, conflicts_with = "out")]
    pub(crate) pack: bool,
    /// Print the records as one JSON object on stdout, or as a list of several, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Filters select the results.
#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// Folder of results; result folders are found at any depth below it
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
    /// Only results started since this time: a date (2026-01-31), or how long ago (7d, 12h)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only results with this many vCPU for the target
    #[arg(long, value_name = "X")]
    pub(crate) vcpu: Option<f64>,
    /// Show at most this many results, the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Show this target's load lines over time, with their intervals. Results under different conditions form separate
    /// groups
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["against", "target", "kind", "limit"])]
    pub(crate) trend: Option<String>,
    /// Compare each target's newest result with this baseline: a result folder, `last` or `best` (of the same target
    /// under the same conditions)
    #[arg(long, value_name = "BASELINE", conflicts_with = "limit")]
    pub(crate) against: Option<String>,
    /// With --against: compare this result folder instead of the newest
    #[arg(long, value_name = "DIR", requires = "against")]
    pub(crate) result: Option<PathBuf>,
    /// With --against: exit with 1 if this is the conclusion for a result
    #[arg(long, value_enum, value_name = "CONCLUSION", requires = "against")]
    pub(crate) fail_if: Option<FailIf>,
    /// With --against: joint confidence level of the intervals of a comparison [default: 0.95]
    #[arg(long, value_name = "SHARE", requires = "against")]
    pub(crate) confidence: Option<f64>,
    /// Rebuild the index from the result folders first
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Print the results as JSON on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Folder of results; result folders are found at any depth below it
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Address to listen on. Any address other than the loopback requires the token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    pub(crate) listen: String,
    /// Require this token: at least 16 characters of A-Z, a-z, 0-9, - and _ [default: a random one if needed]. Others
    /// can read it in the process list
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<Secret>,
    /// File that holds the token. Or set the environment variable PLIMSOLL_SERVE_TOKEN
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
    /// Write one manual page for the command and one for each subcommand
    Man {
        /// Folder for the pages
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Write one completion file for each of bash, zsh, fish, elvish and PowerShell
    Completions {
        /// Folder for the files
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print the reference page docs/reference/cli.md on stdout
    Markdown,
    /// Write an image of static programs as an OCI archive. SOURCE_DATE_EPOCH is the time of its files
    Image {
        /// The archive
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Its name with a tag [default: the name that deploy/images gives it]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The programs. The first is what a container starts
        #[arg(value_name = "PROGRAM", required = true)]
        programs: Vec<PathBuf>,
    },
    /// Write what deploys: chart, images, compose file, and the page of the chart's values
    Deploy {
        /// Folder for the files: their paths are those of the repository
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Folder that contains targets/ [default: searched for from the current folder upwards]
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
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
    fn a_check_takes_what_a_target_is_and_no_load() {
        let parse = |line: &str| Args::try_parse_from(line.split(' '));
        assert!(parse("plimsoll check --url ws://h --dialect wse").is_ok());
        assert!(parse("plimsoll check x --dialect nonsense").is_err());
        for load in ["--test storm", "--message-bytes 5", "--token-secret x"] {
            let line = format!("plimsoll check --url ws://h {load}");
            assert!(parse(&line).is_err(), "{load}");
        }
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
            ("plimsoll find --resume d --dialect wse", "--dialect"),
            ("plimsoll find x --resume d", "the target"),
            ("plimsoll find --json --resume d", "--json"),
        ] {
            let text = parse(line).unwrap_err().to_string();
            assert!(text.contains(flag) && text.contains("--resume"), "{text}");
        }
        assert!(parse("plimsoll find x --yes").is_err());
    }
}
