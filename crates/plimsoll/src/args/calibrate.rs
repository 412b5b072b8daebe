//! Flags of `plimsoll calibrate`.

use clap::Args as ClapArgs;
use plimsoll_lab::calibrate::ROUNDS_MAX;
use plimsoll_workload::Workload;

use super::{FleetArgs, OutArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct CalibrateArgs {
    /// What to calibrate
    #[arg(long, value_name = "WORKLOAD", value_parser = crate::workloads::parser(), default_value = crate::workloads::usual())]
    pub(crate) workload: &'static dyn Workload,
    /// CPUs of the client [default: all but the last]
    #[arg(long, value_name = "LIST")]
    pub(crate) client_cpus: Option<String>,
    #[arg(long, value_name = "N", help = sessions_to_calibrate(), value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) sessions: Option<u32>,
    /// How many times to alternate between the bare loop and the engine
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=i64::from(ROUNDS_MAX)))]
    pub(crate) rounds: u32,
    /// Length of each run of the bare loop and of the engine, and of each load of an inference server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub(crate) seconds: f64,
    /// Let the engine take a further turn over TLS: what it adds to a frame, and what a handshake costs
    #[arg(long)]
    pub(crate) tls: bool,
    /// Load the inference server at this URL alone, instead of calibrating the client: up to how many gateway sessions
    /// does it hold?
    #[arg(long, value_name = "URL", conflicts_with_all = ["tls", "rounds", "agents"])]
    pub(crate) inference: Option<String>,
    /// With --inference: how gateways speak to it
    #[arg(long, value_name = "TRANSPORT", value_parser = ["h2c", "http1"], default_value = "h2c", requires = "inference")]
    pub(crate) inference_transport: String,
    /// With --inference: process of the server, to measure its CPU time and that of its descendants
    #[arg(long, value_name = "PID", requires = "inference", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,
    /// With --inference: seed of the schedule
    #[arg(long, value_name = "N", default_value_t = 1, requires = "inference")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// The help of `calibrate --sessions`. Each workload has its own default.
fn sessions_to_calibrate() -> String {
    let usual = crate::workloads::ALL.iter().filter_map(|workload| {
        let sessions = workload.works().first()?.usual_sessions();
        Some(format!("{} {sessions}", workload.about().name))
    });
    let usual: Vec<_> = usual.collect();
    format!(
        "Sessions on which the costs are measured; with --inference, the first load to try [default: {}; --inference 10]",
        usual.join("; ")
    )
}
