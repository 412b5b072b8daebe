//! The bench of real processes: a target of the catalogue, and the simulator.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Child, Launch, choose_port};
use plimsoll_host::signals::Stop;

use super::subject::{Bench, Ended, Environment, Gateway, Simulator, Subject};
use crate::contract::CONTRACT_VARIABLES;
use crate::manifest::Manifest;
use crate::simulator::{self, SeenRequest, Stats};

/// Until a gateway is ready. The contract sets no time, and a virtual machine that shares its core with a compiler takes its time.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Requests that are asked of the simulator: all that it remembers.
const REMEMBERED_REQUESTS: usize = 1024;

/// Starts a target that is built, and simulators for it.
#[derive(Debug)]
pub struct Laboratory<'a> {
    manifest: &'a Manifest,
    simulator: PathBuf,
    logs: PathBuf,
    target_cpus: Option<CpuList>,
    client_cpus: Option<CpuList>,
    stop: Stop,
    starts: AtomicU32,
}

impl<'a> Laboratory<'a> {
    /// A bench for the target, with the simulator's program and a folder for logs: one folder in it for each start.
    #[must_use]
    pub fn new(manifest: &'a Manifest, simulator: &Path, logs: &Path, stop: &Stop) -> Self {
        Self {
            manifest,
            simulator: simulator.into(),
            logs: logs.into(),
            target_cpus: None,
            client_cpus: None,
            stop: stop.clone(),
            starts: AtomicU32::new(0),
        }
    }

    /// The same, with the CPUs that the target and the simulator are bound to.
    #[must_use]
    pub fn on_cpus(mut self, target: CpuList, client: CpuList) -> Self {
        (self.target_cpus, self.client_cpus) = (Some(target), Some(client));
        self
    }

    /// The target as a subject of a check.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        Subject::Target {
            name: self.manifest.name.clone(),
            transport: self.manifest.inference_transport,
            bench: self,
        }
    }

    fn log_folder(&self, what: &str) -> PathBuf {
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        self.logs.join(format!("{number:03}-{what}"))
    }

    /// Starts the target. A variable of `environment` goes before the manifest's.
    fn launch(&self, environment: &Environment) -> Result<(Child, SocketAddr), String> {
        let port = choose_port().map_err(|error| error.to_string())?;
        let log = self.log_folder("target").join("target.log");
        let mut launch = Launch::new(
            &self.manifest.name,
            &self.manifest.run.command,
            self.manifest.folder(),
            &log,
        );
        launch.env_remove = CONTRACT_VARIABLES.map(str::to_owned).to_vec();
        launch.env = pairs(&self.manifest.run.env);
        launch.env.push(("PORT".into(), port.to_string()));
        launch.env.extend(pairs(environment));
        launch.cpus.clone_from(&self.target_cpus);
        launch.secrets.add_of_environment(&self.manifest.run.env);
        let child = launch.start(None).map_err(|error| error.to_string())?;
        Ok((child, SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }
}

fn pairs(environment: &Environment) -> Vec<(String, String)> {
    environment
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl Bench for Laboratory<'_> {
    fn start_simulator(&self, environment: &Environment) -> Result<Box<dyn Simulator>, String> {
        let settings = pairs(environment);
        let folder = self.log_folder("inference");
        let cpus = self.client_cpus.clone();
        let simulator =
            simulator::Simulator::start(&self.simulator, &settings, cpus, &folder, &self.stop);
        match simulator {
            Ok(simulator) => Ok(Box::new(simulator)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn start_gateway(&self, environment: &Environment) -> Result<Box<dyn Gateway>, String> {
        let (mut child, address) = self.launch(environment)?;
        child
            .wait_ready(
                &format!("http://{address}/health"),
                READY_TIMEOUT,
                &self.stop,
            )
            .map_err(|error| error.to_string())?;
        let (pid, log) = (child.pid(), child.log().to_owned());
        Ok(Box::new(Process {
            child: Mutex::new(child),
            pid,
            log,
            address,
        }))
    }

    fn start_refused(&self, environment: &Environment, limit: Duration) -> Result<Ended, String> {
        let (mut child, _) = self.launch(environment)?;
        match wait(&mut child, limit)? {
            None => Err(format!("it still runs after {} s", limit.as_secs())),
            Some(status) => Ok(Ended {
                exit_code: status.code(),
                output: std::fs::read_to_string(child.log()).unwrap_or_default(),
            }),
        }
    }
}

/// Waits for a child's end; `None` when it did not come within `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<std::process::ExitStatus>, String> {
    let deadline = Instant::now() + limit;
    loop {
        let ended = child.try_ended().map_err(|error| error.to_string())?;
        if ended.is_some() || Instant::now() >= deadline {
            return Ok(ended);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A gateway that is a process of ours.
struct Process {
    child: Mutex<Child>,
    pid: i32,
    log: PathBuf,
    address: SocketAddr,
}

impl Process {
    fn child(&self) -> MutexGuard<'_, Child> {
        // A child is sound whatever panicked beside it.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway for Process {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn process(&self) -> Option<i32> {
        Some(self.pid)
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// To the one process that was started, as a supervisor does; it must see to what it started itself.
    fn terminate(&self) -> Result<(), String> {
        let mut child = self.child();
        // Its number is somebody else's once it was waited for.
        match child.try_ended().map_err(|error| error.to_string())? {
            Some(_) => Err("it has ended by itself".to_owned()),
            None => kill(Pid::from_raw(self.pid), Signal::SIGTERM)
                .map_err(|error| format!("SIGTERM: {error}")),
        }
    }

    fn wait(&self, limit: Duration) -> Result<Option<i32>, String> {
        let ended = wait(&mut self.child(), limit)?;
        Ok(ended.map(|status| status.code().unwrap_or(-1)))
    }
}

impl Simulator for simulator::Simulator {
    fn url(&self) -> String {
        self.url().to_owned()
    }

    fn process(&self) -> Option<i32> {
        Some(self.pid())
    }

    fn set_faults(&self, faults: &serde_json::Value) -> Result<(), String> {
        self.set_faults(faults).map_err(|error| error.to_string())
    }

    fn stats(&self) -> Result<Stats, String> {
        self.stats().map_err(|error| error.to_string())
    }

    fn reset_stats(&self) -> Result<(), String> {
        self.reset_stats().map_err(|error| error.to_string())
    }

    fn requests(&self) -> Result<Vec<SeenRequest>, String> {
        self.requests(REMEMBERED_REQUESTS)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// A target that is a line of shell.
    fn manifest(folder: &Path, script: &str) -> Manifest {
        let text = format!(
            "name = \"script\"\nworkload = \"stt\"\ntier = \"test\"\nlanguage = \"sh\"\ndescription = \"a script\"\n\
             inference_transport = \"http1\"\n[run]\ncommand = [\"sh\", \"-c\", '''{script}''']\n[run.env]\nCPU_PASSES = \"7\"\n"
        );
        Manifest::parse(&text, &folder.join("target.toml")).expect("valid")
    }

    fn laboratory<'a>(manifest: &'a Manifest, folder: &Path) -> Laboratory<'a> {
        Laboratory::new(manifest, Path::new("/nowhere"), folder, &Stop::new())
    }

    #[test]
    fn a_refusal_is_its_exit_code_and_all_that_it_printed() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest(
            folder.path(),
            "echo \"$PORT and $CPU_PASSES\"; echo two >&2; exit 2",
        );
        let laboratory = laboratory(&manifest, folder.path());
        let environment = Environment::from([("PORT".to_owned(), "http".to_owned())]);
        let ended = laboratory.start_refused(&environment, LIMIT).expect("ends");
        assert_eq!(ended.exit_code, Some(2));
        assert_eq!(
            ended.output, "http and 7\ntwo\n",
            "the case's PORT, the manifest's CPU_PASSES"
        );
    }

    #[test]
    fn a_program_that_does_not_refuse_is_an_error_and_does_not_live_on() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest(folder.path(), "exec sleep 60");
        let laboratory = laboratory(&manifest, folder.path());
        let error = laboratory
            .start_refused(&Environment::new(), Duration::from_millis(50))
            .expect_err("runs");
        assert!(error.contains("it still runs"), "{error}");
    }

    #[test]
    fn what_does_not_start_is_told_with_its_log() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest(folder.path(), "echo no such model; exit 3");
        let laboratory = laboratory(&manifest, folder.path());
        let error = laboratory
            .start_gateway(&Environment::new())
            .err()
            .expect("ends");
        assert!(
            error.contains("exit code 3") && error.contains("no such model"),
            "{error}"
        );
        assert!(laboratory.start_simulator(&Environment::new()).is_err());
    }
}
