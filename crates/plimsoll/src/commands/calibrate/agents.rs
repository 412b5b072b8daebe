//! `plimsoll calibrate --agents N`: what load agents on other machines can generate soundly, each and all at once.

use std::process::ExitCode;

use plimsoll_core::record::{FleetCalibration, SCHEMA_VERSION};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::calibrate::{self, AgentsSettings, OfAgents};
use plimsoll_report::text;
use plimsoll_workload::Work;

use super::show;
use crate::args::CalibrateArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::{build, setup};

/// Calibrates the agents that were asked for. `first` is the first work of the workload.
pub(super) fn run(
    args: &CalibrateArgs,
    first: &dyn Work,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let theirs = [
        (
            "--client-cpus",
            args.client_cpus.is_some(),
            "start each agent on the CPUs that it should have (taskset)",
        ),
        (
            "--tls",
            args.tls,
            "measure what TLS adds with `plimsoll calibrate --tls` on one of their machines",
        ),
    ];
    for (flag, given, remedy) in theirs {
        if given {
            return Err(Failure::Usage(format!(
                "{flag}: does not go with --agents; leave it out, and {remedy}"
            )));
        }
    }
    let settings = AgentsSettings {
        sessions: args.sessions.unwrap_or(first.usual_sessions()),
        rounds: args.rounds,
        seconds: args.seconds,
    };
    let Some(fleet) = setup::fleet::calibrating(&args.fleet, stop)? else {
        return Err(Failure::Usage("--agents: give --token-file".to_owned()));
    };
    let folder = output::folder(&args.out, "calibrate", "agents")?;
    let started_at = timestamp::now();
    let works = args.workload.works().len();
    let found = calibrate::calibrate_agents(
        &fleet,
        args.workload,
        &settings,
        stop,
        |agent, work, step| {
            show(&format!("agent {agent}: "), work, works, step);
        },
    )?;
    let record = record(args, found, started_at);
    folder.write_fleet(&record)?;
    output::render(folder.path())?;
    if args.out.json {
        output::print_json(&record)?;
    } else {
        output::print(&text::fleet(&record));
        say!("result: {}", folder.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

fn record(args: &CalibrateArgs, found: OfAgents, started_at: String) -> FleetCalibration {
    FleetCalibration {
        schema_version: SCHEMA_VERSION,
        workload: args.workload.about().name.to_owned(),
        agents: found.agents,
        works: found.works,
        rounds: args.rounds,
        seconds: args.seconds,
        engine_backend: found.engine_backend.to_owned(),
        build: build::of_this_program(),
        started_at,
    }
}
