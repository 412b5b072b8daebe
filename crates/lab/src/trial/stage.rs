//! Companion and target, started for one trial and ended after it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use plimsoll_core::bottleneck::TARGET_ENDED;
use plimsoll_core::record::{DiskProbe, FileSystem, MemoryAt, Network, NetworkMode, Target};
use plimsoll_core::secret::Secrets;
use plimsoll_host::data_folder::DataFolder;
use plimsoll_host::isolation::{Cgroup, OwnNetwork, no_own_network};
use plimsoll_host::process::Child;
use plimsoll_host::resources::{DEFAULT_INTERVAL, Monitor, Sampler, SocketWatch, Source, Watched};
use plimsoll_host::signals::Stop;

use plimsoll_workload::companion::{Companion, Start};

use super::conditions::{BackEnd, Conditions, NetworkPlan};
use super::crash::{Victim, keep_what_made_it_ready};
use super::place::{Place, Ports};
use super::started::Started;
use super::storage::probed;
use super::subject::{Subject, TargetUrl};
use crate::error::{Error, Result};
use crate::fleet::observer::Observer;
use crate::manifest::Manifest;

const STOP_GRACE: Duration = Duration::from_secs(7);
/// The name of the target's samples.
pub(crate) const TARGET: &str = "target";
/// The name of the companion's samples.
pub(super) const COMPANION: &str = "companion";
/// The name of our own samples.
pub(super) const CLIENT: &str = "client";

/// What runs during a trial.
pub(super) struct Staged {
    pub(super) url: TargetUrl,
    /// Where to ask the target for its metrics: name and port.
    pub(super) http_host: String,
    pub(super) target: Target,
    pub(super) companion: Option<Box<dyn Companion>>,
    /// The secrets of the call and of the target's manifest.
    pub(super) secrets: Secrets,
    started: Option<Started>,
    /// Who samples a target on another machine.
    observer: Option<Observer>,
    /// The target's memory before the first session.
    memory_idle: Option<MemoryAt>,
    /// Where the target's resources are read.
    source: Option<Source>,
    // Declared after what uses them, so that they are dropped later.
    data: Option<DataFolder>,
    disk_probe: Option<DiskProbe>,
    network: Option<OwnNetwork>,
}

impl Staged {
    /// Starts companion and target and waits until they are ready.
    pub(super) fn set(conditions: &Conditions, subject: &Subject, stop: &Stop) -> Result<Self> {
        let network = network(conditions, subject)?;
        let companion = companion(conditions, subject, network.as_ref(), stop)?;
        let back_end = match (&conditions.back_end, &companion) {
            (BackEnd::Url(url), _) => Some(url.as_str()),
            (_, Some(companion)) => Some(companion.url()),
            _ => None,
        };
        let workload = conditions.plan.workload();
        let contract = workload.about().contract;
        let of_back_end = workload
            .companions()
            .zip(back_end)
            .map_or_else(Vec::new, |(companions, url)| companions.told(url));
        match subject {
            Subject::Started(manifest) => {
                let ports = Ports::choose(&manifest.ports)?;
                let mut secrets = conditions.secrets.clone();
                secrets.add_of_environment(&manifest.run.env);
                let data = data_folder(conditions)?;
                let disk_probe = data
                    .as_ref()
                    .and_then(|data| probed(data.path(), data.file_system()?, stop));
                let mut further = of_back_end;
                further.extend(data.iter().map(DataFolder::variable));
                let told = environment(conditions, manifest, &ports, further);
                let at = Place {
                    sessions: ports.or_load(conditions.plan.told().port),
                    ports: &ports,
                    network: network.as_ref(),
                };
                let started = Started::start(conditions, manifest, &at, told, &secrets, stop)?;
                keep_what_made_it_ready(conditions, data.as_ref())?;
                Ok(Self {
                    url: TargetUrl::at(at.load(), &conditions.plan.told().path),
                    http_host: at.http().to_string(),
                    target: told_of(manifest, contract, &started.child, &secrets),
                    companion,
                    secrets,
                    memory_idle: memory_of(&started.source()),
                    source: Some(started.source()),
                    started: Some(started),
                    observer: None,
                    data,
                    disk_probe,
                    network,
                })
            }
            Subject::Running { url, resources } => {
                let fleet = conditions.fleet.as_ref();
                let observer = fleet.map(|fleet| Observer::meet(fleet, url.address, stop));
                let observer = observer.transpose()?.flatten();
                let observed = observer.as_ref().and_then(Observer::memory_seen);
                Ok(Self {
                    url: url.clone(),
                    http_host: url.host.clone(),
                    target: Target {
                        name: url.text.clone(),
                        tier: "url".to_owned(),
                        contract,
                        ..Target::default()
                    },
                    companion,
                    secrets: conditions.secrets.clone(),
                    started: None,
                    observer,
                    data: None,
                    disk_probe: None,
                    memory_idle: observed.or_else(|| resources.as_ref().and_then(memory_of)),
                    source: resources.clone(),
                    network,
                })
            }
        }
    }

    /// Begins to sample the target, the companion, ourselves together with the client's other processes, and the
    /// machine.
    pub(super) fn monitor(
        &self,
        conditions: &Conditions,
        client_processes: &[i32],
        epoch: Instant,
    ) -> Result<Monitor> {
        let target = self.source.clone().map(|source| (TARGET, source));
        let companion = self.companion.as_ref().and_then(|of| of.pid());
        let companion = companion.map(|pid| (COMPANION, Source::Process(pid)));
        let samplers = target
            .into_iter()
            .chain(companion)
            .chain([(CLIENT, Source::ourselves_and(client_processes))])
            .map(|(name, source)| (name.to_owned(), Sampler::new(source, epoch)))
            .collect();
        let watched = Watched {
            samplers,
            sockets: Some(self.socket_watch()?),
        };
        let cpus = Some(conditions.placement.client_cpus.clone());
        Ok(Monitor::start(watched, epoch, DEFAULT_INTERVAL, cpus)?)
    }

    /// Watches the target's ends of the connections, from the namespace that they are in.
    fn socket_watch(&self) -> Result<SocketWatch> {
        let open = || SocketWatch::new(self.url.address);
        match &self.network {
            Some(network) => Ok(network.within(open).map_err(|why| no_own_network(&why))?),
            None => Ok(open()),
        }
    }

    /// The network to a target that we started, as recorded in its results.
    pub(super) fn network_record(&self, conditions: &Conditions) -> Option<Network> {
        self.started.as_ref()?;
        let loopback = match &conditions.network {
            NetworkPlan::Loopback { why } => Some(why.clone()),
            NetworkPlan::Own => None,
        };
        let on_loopback = Network {
            mode: NetworkMode::Loopback,
            why: loopback,
            ..Network::default()
        };
        Some(
            self.network
                .as_ref()
                .map_or(on_loopback, OwnNetwork::record),
        )
    }

    /// The addresses that connections come from; none where the kernel chooses.
    pub(super) fn source_addresses(&self, conditions: &Conditions) -> Vec<IpAddr> {
        let asked = conditions.plan.source_addresses();
        match &self.network {
            Some(network) if !asked.is_empty() => network.client_addresses().to_vec(),
            _ => asked.to_vec(),
        }
    }

    /// Who samples a target on another machine, if somebody does.
    pub(super) fn observer(&self) -> Option<&Observer> {
        self.observer.as_ref()
    }

    /// Where the target's figures come from.
    pub(super) fn source_name(&self) -> Option<String> {
        if let Some(observer) = &self.observer {
            return observer.source_name();
        }
        let source = self.source.clone()?;
        let name = Sampler::new(source, Instant::now()).source_name();
        Some(name.to_owned())
    }

    /// The control group of a target that we started.
    pub(super) fn group(&self) -> Option<&Cgroup> {
        self.started.as_ref().map(|started| &started.group)
    }

    /// The memory of the target before the first session.
    pub(super) fn memory_idle(&self) -> Option<MemoryAt> {
        self.memory_idle
    }

    /// The memory of the target now; `None` if it is gone, or if nobody knows its processes.
    pub(super) fn memory_now(&self) -> Option<MemoryAt> {
        match &self.observer {
            Some(observer) => observer.memory(),
            None => self.source.as_ref().and_then(memory_of),
        }
    }

    /// The resident set, before the first session, of a target that we started, in bytes.
    pub(super) fn rss_idle_bytes(&self) -> Option<u64> {
        self.started.as_ref()?;
        self.memory_idle.map(|memory| memory.rss_bytes)
    }

    /// Time from the start of a target that we started until it showed that it is ready.
    pub(super) fn ready_after(&self) -> Option<Duration> {
        self.started.as_ref().map(|started| started.ready_after)
    }

    /// What the disk below the target's data can do; `None` if there is no folder for it, or if nobody could measure it.
    pub(super) fn disk_probe(&self) -> Option<&DiskProbe> {
        self.disk_probe.as_ref()
    }

    /// Where the target's resources are read.
    pub(super) fn source(&self) -> Option<Source> {
        self.source.clone()
    }

    /// The file system that the target's data is on.
    pub(super) fn data_file_system(&self) -> Option<&FileSystem> {
        self.data.as_ref().and_then(DataFolder::file_system)
    }

    /// Hands the target that we started, and its data, to who crashes it; `None` if we started none.
    pub(super) fn hand_over(&mut self) -> Option<Victim> {
        let started = self.started.take()?;
        let data = self.data.take();
        Some(Victim { started, data })
    }

    /// Takes both back.
    pub(super) fn take_back(&mut self, victim: Victim) {
        let Victim { started, data } = victim;
        self.started = Some(started);
        self.data = data;
    }

    /// How a target that we started ended by itself, if it did.
    pub(super) fn target_ended(&mut self) -> Result<Option<String>> {
        let Some(started) = &mut self.started else {
            return Ok(None);
        };
        let status = started.child.try_ended()?;
        Ok(status.map(|status| format!("{TARGET_ENDED}: {status}")))
    }

    /// Ends target and companion, and removes the target's data. A target that cannot be ended would disturb the next
    /// trial.
    pub(super) fn clear(mut self) -> Result<()> {
        if let Some(mut started) = self.started.take() {
            started.child.terminate(STOP_GRACE)?;
            // Its group goes here, and with it whatever else may write.
        }
        if let Some(companion) = self.companion.take() {
            companion.stop()?;
        }
        Ok(self.data.take().map_or(Ok(()), DataFolder::remove)?)
    }
}

/// What runs beside the target, ready, if anything does. It is started, or runs already.
fn companion(
    conditions: &Conditions,
    subject: &Subject,
    network: Option<&OwnNetwork>,
    stop: &Stop,
) -> Result<Option<Box<dyn Companion>>> {
    let Some(companions) = conditions.plan.workload().companions() else {
        return Ok(None);
    };
    let program = match (&conditions.back_end, subject) {
        (BackEnd::None, _) => return Ok(None),
        (BackEnd::Companion(program), _) => program,
        (BackEnd::Url(url), Subject::Started(_)) => return Ok(companions.at(url)),
        // A target that runs already does not need the URL, so it was given to be asked.
        (BackEnd::Url(url), Subject::Running { .. }) => {
            let none = || {
                let name = companions.terms().name;
                Error::Usage(format!(
                    "--inference {url}: {name} does not answer there; with --url the flag names one that the server asks, else leave it out"
                ))
            };
            return companions.at(url).ok_or_else(none).map(Some);
        }
    };
    let address = network.map(OwnNetwork::client_address);
    let how = Start {
        seed: conditions.seed,
        told: &conditions.plan.tells_companion(&conditions.profile),
        bind: address.map(IpAddr::V4),
        cpus: Some(&conditions.placement.client_cpus),
        log_folder: &conditions.log_folder,
        stop,
    };
    let companion = companions.start(program, &how)?;
    if let Some(pid) = companion.pid() {
        plimsoll_engine::prefer_process(pid);
    }
    Ok(Some(companion))
}

/// A fresh folder for the target's data, if its plan asks for one.
fn data_folder(conditions: &Conditions) -> Result<Option<DataFolder>> {
    let data = conditions.plan.told().data;
    let make = if conditions.plan.loses_power() {
        DataFolder::make_in_image
    } else {
        DataFolder::make
    };
    let made = data.map(|data| make(&data, conditions.data_place()));
    Ok(made.transpose()?)
}

/// What is recorded of a target that we started.
fn told_of(manifest: &Manifest, contract: Option<u32>, child: &Child, secrets: &Secrets) -> Target {
    let sizes = manifest.sizes();
    Target {
        name: manifest.name.clone(),
        tier: manifest.tier.word().to_owned(),
        contract,
        variant: manifest.variant().map(str::to_owned),
        settings: manifest.settings(),
        versions: versions(child, secrets),
        ships_bytes: sizes.ships_bytes,
        runtime_bytes: sizes.runtime_bytes,
        deviations: manifest.deviations.clone(),
    }
}

/// The memory of these processes now.
pub(crate) fn memory_of(source: &Source) -> Option<MemoryAt> {
    let memory = source.memory()?;
    Some(MemoryAt {
        rss_bytes: memory.rss_bytes,
        pss_bytes: memory.pss_bytes,
    })
}

/// The network of a target that we start, if it gets its own.
fn network(conditions: &Conditions, subject: &Subject) -> Result<Option<OwnNetwork>> {
    let own = conditions.network == NetworkPlan::Own;
    if !own || matches!(subject, Subject::Running { .. }) {
        return Ok(None);
    }
    let placement = &conditions.placement;
    let addresses = conditions.plan.source_addresses().len();
    let network = OwnNetwork::make(placement, addresses).map_err(|why| no_own_network(&why))?;
    Ok(Some(network))
}

fn environment(
    conditions: &Conditions,
    manifest: &Manifest,
    ports: &Ports,
    further: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let threads = manifest.worker_threads(conditions.placement.vcpu);
    let mut variables = vec![
        ("PORT".to_owned(), ports.load.to_string()),
        ("WORKER_THREADS".to_owned(), threads.to_string()),
    ];
    variables.extend(conditions.plan.told().variables);
    variables.extend(further);
    let others = ports.others.iter();
    variables.extend(others.map(|(variable, port)| ((*variable).to_owned(), port.to_string())));
    // What the manifest fixes takes precedence over what we would choose.
    for (name, value) in &manifest.run.env {
        variables.retain(|(ours, _)| ours != name);
        variables.push((name.clone(), value.clone()));
    }
    variables
}

/// The versions that the target's start line names: every text in its JSON object.
fn versions(child: &Child, secrets: &Secrets) -> BTreeMap<String, String> {
    let Some(serde_json::Value::Object(line)) = child.first_json_line() else {
        return BTreeMap::new();
    };
    let mut versions = BTreeMap::new();
    for (name, value) in line {
        flatten(&mut versions, name, &value);
    }
    let scrubbed = |text: String| secrets.scrub(&text).into_owned();
    versions
        .into_iter()
        .map(|(name, text)| (scrubbed(name), scrubbed(text)))
        .collect()
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
        // Ports, seeds and thread counts are not versions, and differ from start to start.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::{conditions, manifest, plan};
    use crate::manifest::METRICS_PORT;

    #[test]
    fn a_target_is_told_what_its_plan_says_unless_its_manifest_does() {
        let mut conditions = conditions();
        let mut told = |line: &str, keys: &str| {
            conditions.plan = plan(line);
            let ports = Ports {
                load: 1,
                others: vec![(METRICS_PORT, 2)],
            };
            let told = environment(&conditions, &manifest(keys), &ports, Vec::new());
            BTreeMap::from_iter(told)
        };
        for line in ["stt", "echo", "ws", "ws dialect=wse"] {
            let told = told(line, "separate_metrics_port = true");
            assert_eq!((&*told["PORT"], &*told["METRICS_PORT"]), ("1", "2"));
            assert_eq!(told.contains_key("CPU_PASSES"), line == "stt");
            assert_eq!(told.contains_key("WSE_SECRET"), line == "ws dialect=wse");
        }
    }
}
