//! Flags of `plimsoll fleet`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use plimsoll_workload::Workload;

use super::LOAD_MAX;

/// What deploys agents.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeployArgs {
    #[command(subcommand)]
    pub(crate) what: Fleet,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Print manifests of Kubernetes: agents, a coordinator that measures, and the target with what it asks
    Render(RenderArgs),
    /// Measure in a pod: wait for the target, write the termination message, keep the result until it is copied
    #[command(hide = true)]
    Pod(PodArgs),
}

/// Without `--sessions`, the coordinator searches the load line.
#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["target", "url"]))]
pub(crate) struct RenderArgs {
    /// How many agents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) agents: u32,
    /// Deploy and measure this target, as shown by `plimsoll list`
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Measure a server that runs already
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// What the sessions do [default: the target's workload, or the usual one for --url]
    #[arg(long, value_name = "WORKLOAD", value_parser = crate::workloads::parser())]
    pub(crate) workload: Option<&'static dyn Workload>,
    /// Run one trial with this many sessions, instead of a search
    #[arg(long, visible_alias = "load", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=LOAD_MAX.into()))]
    pub(crate) sessions: Option<u32>,
    /// vCPU for the target: its request and its limit
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) vcpu: f64,
    /// Let an agent beside the target measure its CPU time, memory and sockets
    #[arg(long, conflicts_with = "url")]
    pub(crate) observer: bool,
    /// Namespace of all objects [default: left to kubectl]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// What the names of all objects begin with. Two runs in one namespace need two names
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    pub(crate) name: String,
    /// Image of the command [default: the name that deploy/images gives it]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Image of the target [default: the name that deploy/images gives it]
    #[arg(long, value_name = "IMAGE", conflicts_with = "url")]
    pub(crate) target_image: Option<String>,
    /// Secret that exists and has the token under the key `token` [default: print one with a random token]
    #[arg(long, value_name = "NAME")]
    pub(crate) token_secret: Option<String>,
    /// Folder that contains targets/ [default: searched for from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// After `--`: further arguments of the coordinator's `run` or `find`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PodArgs {
    /// Wait until something accepts connections here. Repeatable
    #[arg(long = "await", value_name = "HOST:PORT")]
    pub(crate) awaited: Vec<String>,
    /// How long to keep the pod after the measurement, in seconds, unless the result is copied before
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) keep: u64,
    /// File whose content Kubernetes shows as the reason of the pod's end
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    pub(crate) message: PathBuf,
    /// After `--`: the measurement, with its --out
    #[arg(last = true, value_name = "ARGUMENT", required = true)]
    pub(crate) arguments: Vec<String>,
}
