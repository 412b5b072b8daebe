//! Simulator and target, started for one trial and gone after it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_core::record::Target;

use super::conditions::{CPU_PASSES, Conditions, Inference, MODEL_DELAY_MS};
use super::subject::{Subject, TargetUrl};
use crate::contract::CONTRACT_VARIABLES;
use crate::error::{Error, Result};
use crate::isolation::{Cgroup, Layout};
use crate::manifest::Manifest;
use crate::process::{Child, Launch, choose_port, port_taken};
use crate::resources::{DEFAULT_INTERVAL, Monitor, Sampler, SocketWatch, Source, Watched};
use crate::signals::Stop;
use crate::simulator::Simulator;

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_GRACE: Duration = Duration::from_secs(7);
/// The name of the target's samples.
pub(super) const TARGET: &str = "target";
/// The name of the simulator's.
pub(super) const SIMULATOR: &str = "simulator";
/// The name of our own.
pub(super) const CLIENT: &str = "client";

/// What stands while a trial runs.
pub(super) struct Stage {
    pub(super) url: TargetUrl,
    pub(super) target: Target,
    pub(super) simulator: Option<Simulator>,
    started: Option<Started>,
    /// Where the target's resources are read.
    source: Option<Source>,
}

/// A target that we started.
struct Started {
    child: Child,
    // After the child, so that it is dropped after it.
    group: Cgroup,
    /// Resident set before the first session.
    rss_idle_bytes: Option<u64>,
}

impl Stage {
    /// Starts simulator and target and waits until they are ready.
    pub(super) fn set(conditions: &Conditions, subject: &Subject, stop: &Stop) -> Result<Self> {
        let simulator = match &conditions.inference {
            Inference::Simulator(binary) => {
                let settings = [
                    ("MODEL_SEED".to_owned(), conditions.seed.to_string()),
                    ("MODEL_DELAY_MS".to_owned(), MODEL_DELAY_MS.to_string()),
                ];
                let cpus = Some(conditions.placement.client_cpus.clone());
                let simulator =
                    Simulator::start(binary, &settings, cpus, &conditions.log_folder, stop)?;
                plimsoll_engine::prefer_process(simulator.pid());
                Some(simulator)
            }
            Inference::Url(_) | Inference::None => None,
        };
        let inference_url = match (&conditions.inference, &simulator) {
            (Inference::Url(url), _) => Some(url.clone()),
            (_, Some(simulator)) => Some(simulator.url().to_owned()),
            _ => None,
        };
        match subject {
            Subject::Started(manifest) => {
                let port = choose_port()?;
                let started =
                    Started::start(conditions, manifest, port, inference_url.as_deref(), stop)?;
                Ok(Self {
                    url: TargetUrl::of_port(port, conditions.load.default_path()),
                    target: Target {
                        name: manifest.name.clone(),
                        tier: manifest.tier.word().to_owned(),
                        versions: versions(&started.child),
                    },
                    simulator,
                    source: Some(started.source()),
                    started: Some(started),
                })
            }
            Subject::Running { url, resources } => Ok(Self {
                url: url.clone(),
                target: Target {
                    name: url.text.clone(),
                    tier: "url".to_owned(),
                    versions: BTreeMap::new(),
                },
                simulator,
                started: None,
                source: resources.clone(),
            }),
        }
    }

    /// Begins to sample the target, the simulator, ourselves and the machine.
    pub(super) fn monitor(&self, conditions: &Conditions, epoch: Instant) -> Result<Monitor> {
        let target = self.source.clone().map(|source| (TARGET, source));
        let simulator = self
            .simulator
            .as_ref()
            .map(|simulator| (SIMULATOR, Source::Process(simulator.pid())));
        let samplers = target
            .into_iter()
            .chain(simulator)
            .chain([(CLIENT, Source::ourselves())])
            .map(|(name, source)| (name.to_owned(), Sampler::new(source, epoch)))
            .collect();
        let watched = Watched {
            samplers,
            sockets: Some(SocketWatch::new(self.url.address)),
        };
        let cpus = Some(conditions.placement.client_cpus.clone());
        Monitor::start(watched, epoch, DEFAULT_INTERVAL, cpus)
    }

    /// Where the target's numbers come from.
    pub(super) fn source_name(&self) -> Option<&'static str> {
        let source = self.source.clone()?;
        Some(Sampler::new(source, Instant::now()).source_name())
    }

    /// The control group of a target that we started.
    pub(super) fn group(&self) -> Option<&Cgroup> {
        self.started.as_ref().map(|started| &started.group)
    }

    /// Its resident set before the first session.
    pub(super) fn rss_idle_bytes(&self) -> Option<u64> {
        self.started.as_ref()?.rss_idle_bytes
    }

    /// How a target that we started ended by itself, if it has.
    pub(super) fn target_ended(&mut self) -> Result<Option<String>> {
        let Some(started) = &mut self.started else {
            return Ok(None);
        };
        let status = started.child.try_ended()?;
        Ok(status.map(|status| format!("the target ended during the trial: {status}")))
    }

    /// Ends both. A target that cannot be ended would disturb the next trial.
    pub(super) fn clear(mut self) -> Result<()> {
        if let Some(started) = &mut self.started {
            started.child.terminate(STOP_GRACE)?;
        }
        if let Some(simulator) = self.simulator.take() {
            simulator.stop()?;
        }
        Ok(())
    }
}

impl Started {
    fn start(
        conditions: &Conditions,
        manifest: &Manifest,
        port: u16,
        inference_url: Option<&str>,
        stop: &Stop,
    ) -> Result<Self> {
        if port_taken(port) {
            return Err(Error::Usage(format!(
                "port {port} is taken; free it or run again"
            )));
        }
        let group = Cgroup::create(
            &conditions.placement,
            conditions.quota_period_us,
            &Layout::of_this_machine(),
        );
        let log = conditions.log_folder.join(format!("{}.log", manifest.name));
        let mut launch = Launch::new(
            &manifest.name,
            &manifest.run.command,
            manifest.folder(),
            &log,
        );
        launch.env_remove = CONTRACT_VARIABLES.map(str::to_owned).to_vec();
        launch.env = environment(conditions, manifest, port, inference_url);
        launch.cpus = Some(conditions.placement.target_cpus.clone());
        let mut child = launch.start(Some(&group))?;
        let health = format!("http://127.0.0.1:{port}/health");
        child.wait_ready(&health, READY_TIMEOUT, stop)?;
        let mut started = Self {
            child,
            group,
            rss_idle_bytes: None,
        };
        let idle = Sampler::new(started.source(), Instant::now()).sample_light();
        started.rss_idle_bytes = idle.map(|sample| sample.rss_bytes);
        Ok(started)
    }

    fn source(&self) -> Source {
        let view = self.group.view();
        if view.is_empty() {
            Source::Tree(self.child.pid())
        } else {
            Source::Group(view.clone())
        }
    }
}

fn environment(
    conditions: &Conditions,
    manifest: &Manifest,
    port: u16,
    inference_url: Option<&str>,
) -> Vec<(String, String)> {
    let threads = manifest.worker_threads(conditions.placement.vcpu);
    let mut variables = vec![
        ("PORT".to_owned(), port.to_string()),
        ("WORKER_THREADS".to_owned(), threads.to_string()),
        ("CPU_PASSES".to_owned(), CPU_PASSES.to_string()),
        ("MODEL_DELAY_MS".to_owned(), MODEL_DELAY_MS.to_string()),
    ];
    variables.extend(inference_url.map(|url| ("INFERENCE_URL".to_owned(), url.to_owned())));
    // What the manifest fixes goes before what we would choose.
    for (name, value) in &manifest.run.env {
        variables.retain(|(ours, _)| ours != name);
        variables.push((name.clone(), value.clone()));
    }
    variables
}

/// The versions that the target's start line names: every text of its JSON object.
fn versions(child: &Child) -> BTreeMap<String, String> {
    let Some(serde_json::Value::Object(line)) = child.first_json_line() else {
        return BTreeMap::new();
    };
    let mut versions = BTreeMap::new();
    for (name, value) in line {
        flatten(&mut versions, name, &value);
    }
    versions
}

fn flatten(into: &mut BTreeMap<String, String>, name: String, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                flatten(into, format!("{name}.{field}"), value);
            }
        }
        serde_json::Value::String(text) => {
            into.insert(name, text.clone());
        }
        // Ports, seeds and thread counts are no versions, and differ from start to start.
        _ => {}
    }
}
