//! Which cases a workload has, and how its targets are started for them.

use std::path::{Path, PathBuf};

use plimsoll_conformance::{Check, Laboratory, Program};
use plimsoll_host::isolation::Placement;
use plimsoll_host::signals::Stop;
use plimsoll_lab::contract::CONTRACT_VARIABLES;
use plimsoll_lab::manifest::{self, Manifest};
use plimsoll_lab::simulator;
use plimsoll_workload::Workload;
use plimsoll_workload_stt::InferenceTransport;
use plimsoll_workload_stt::check::{SimulatorProgram, SpeechSuite};
use plimsoll_workload_ws::Dialect;
use plimsoll_workload_ws::check::WebSocketSuite;

use crate::args::CheckArgs;
use crate::failure::Failure;

/// Where a target is checked.
pub(super) struct Place<'a> {
    pub(super) placement: &'a Placement,
    /// A folder for the logs of its processes.
    pub(super) logs: &'a Path,
    pub(super) stop: &'a Stop,
}

/// The cases that the user asks for.
pub(super) struct Suites {
    workload: &'static dyn Workload,
    /// The inference simulator's program, if targets of the workload are started that ask one.
    simulator: Option<PathBuf>,
}

/// The cases of a workload, and what its contract says about starting a target.
struct Chosen {
    suite: Box<dyn Check>,
    health_path: &'static str,
    /// The variable by which a target gets another port for HTTP about itself, if it wants one.
    http_port_variable: Option<&'static str>,
}

impl Suites {
    /// Those of the user's workload. A simulator is looked for only where one will be started.
    pub(super) fn of(args: &CheckArgs) -> Result<Self, Failure> {
        let workload = args.which.workload;
        let simulator = match workload.about().name {
            "stt" if args.which.url.is_none() => {
                let root = manifest::root_of_this_process(args.which.root.as_deref()).ok();
                Some(simulator::find_binary(root.as_deref())?)
            }
            _ => None,
        };
        let suites = Self {
            workload,
            simulator,
        };
        suites.choose(None)?;
        Ok(suites)
    }

    /// The cases for a server that is known by its URL only.
    pub(super) fn on_url(&self) -> Result<Box<dyn Check>, Failure> {
        Ok(self.choose(None)?.suite)
    }

    /// The cases for a target, and what starts it.
    pub(super) fn on_target(
        &self,
        target: &Manifest,
        place: &Place<'_>,
    ) -> Result<(Box<dyn Check>, Laboratory), Failure> {
        let chosen = self.choose(Some((target, place)))?;
        let program = Program {
            name: target.name.clone(),
            command: target.run.command.clone(),
            folder: target.folder().to_owned(),
            environment: target.run.env.clone(),
            unset: CONTRACT_VARIABLES.map(str::to_owned).to_vec(),
            health_path: chosen.health_path,
            http_port_variable: chosen.http_port_variable,
        };
        let laboratory = Laboratory::new(program, place.logs, place.stop)
            .on_cpus(place.placement.target_cpus.clone());
        Ok((chosen.suite, laboratory))
    }

    /// The one place that knows which workload has which cases.
    fn choose(&self, target: Option<(&Manifest, &Place<'_>)>) -> Result<Chosen, Failure> {
        match self.workload.about().name {
            "stt" => Ok(Chosen {
                suite: Box::new(match (target, &self.simulator) {
                    (Some((manifest, place)), Some(binary)) => {
                        let cpus = place.placement.client_cpus.clone();
                        let program =
                            SimulatorProgram::new(binary, place.logs, Some(cpus), place.stop);
                        let transport = manifest.property("inference_transport");
                        let transport = transport.and_then(InferenceTransport::by_name);
                        SpeechSuite::new(transport, program)
                    }
                    _ => SpeechSuite::on_url(),
                }),
                health_path: "/health",
                http_port_variable: None,
            }),
            "ws" => Ok(Chosen {
                suite: Box::new(WebSocketSuite::new(
                    target
                        .and_then(|(manifest, _)| manifest.property("dialect"))
                        .and_then(Dialect::by_name)
                        .unwrap_or_default(),
                )),
                health_path: "/healthz",
                http_port_variable: target
                    .filter(|(manifest, _)| manifest.separate_metrics_port)
                    .map(|_| "METRICS_PORT"),
            }),
            other => Err(Failure::Usage(format!(
                "workload {other} has no cases to check; stt and ws have some"
            ))),
        }
    }
}
