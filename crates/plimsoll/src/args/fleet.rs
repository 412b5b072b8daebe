//! Flags about agents: of the command that coordinates them, and of the agent itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs};
use plimsoll_fleet::Fingerprint;
use plimsoll_fleet::allow::Network;

/// Agents on other machines.
#[derive(Debug, Clone, ClapArgs)]
#[command(group(ArgGroup::new("elsewhere").multiple(true)))]
pub(crate) struct FleetArgs {
    /// Let so many agents on other machines drive the load (`plimsoll agent`), each a part of it
    #[arg(long, value_name = "N", group = "elsewhere", requires = "token_file", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) agents: Option<u32>,
    /// Where to listen for agents
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        requires = "elsewhere",
        default_value = "127.0.0.1:7117"
    )]
    pub(crate) listen: SocketAddr,
    /// File with the token that agents must have. Without such a file a token is made and written there
    #[arg(long, value_name = "FILE", requires = "elsewhere")]
    pub(crate) token_file: Option<PathBuf>,
    /// How many seconds to wait until all agents have joined
    #[arg(long, value_name = "SECONDS", requires = "elsewhere", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) join_timeout: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AgentArgs {
    /// Where the coordinator listens
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) join: String,
    /// File with the token that the coordinator has, too
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Believe only a coordinator with this certificate: the digits that it prints. Without it, its proof of the token is
    /// enough
    #[arg(long, value_name = "SHA256")]
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Its number, from 0 [default: any that is free]
    #[arg(long, value_name = "I", env = "JOB_COMPLETION_INDEX")]
    pub(crate) index: Option<u32>,
    /// Network or address of targets to which it lets itself be sent. Repeatable [default: the addresses that the
    /// coordinator's certificate lists]
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow: Vec<Network>,
    /// Drive nothing, and measure the target's CPU time, memory and sockets: of the server that listens on this machine where
    /// the load goes
    #[arg(long, conflicts_with_all = ["index", "allow"])]
    pub(crate) observe: bool,
    /// With --observe: ID of the process that is the target, with its descendants
    #[arg(
        long,
        value_name = "PID",
        requires = "observe",
        conflicts_with = "cgroup"
    )]
    pub(crate) pid: Option<i32>,
    /// With --observe: control group that is the target
    #[arg(long, value_name = "PATH", requires = "observe")]
    pub(crate) cgroup: Option<PathBuf>,
    /// How many seconds to wait for a coordinator that has not called yet
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) idle: u64,
}
