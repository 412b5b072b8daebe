//! The bench of real processes: a target that is built.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::kill;
use nix::unistd::Pid;
use plimsoll_host::data_folder::{Data, DataFolder};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Ask, Child, Launch, Ready, StopSignal, choose_port};
use plimsoll_host::signals::Stop;

use super::subject::{Bench, Ended, Environment, Server, Subject};

/// A target's program, as its manifest and its workload's contract describe it.
#[derive(Debug, Clone)]
pub struct Program {
    /// The target's name.
    pub name: String,
    /// The command, run in `folder`.
    pub command: Vec<String>,
    /// The target's folder.
    pub folder: PathBuf,
    /// Its own variables. Those of a case go before them.
    pub environment: Environment,
    /// Variables of the caller's environment that it must not see.
    pub unset: Vec<String>,
    /// The signal that asks it to stop.
    pub stop_signal: StopSignal,
    /// The path that answers 200 once it is ready.
    pub health_path: &'static str,
    /// How it is asked over a connection whether it is ready, if it has no such path.
    pub ask: Option<Ask>,
    /// What it needs of a folder for its data, if it writes any. Each start gets a fresh one beside its log.
    pub data: Option<Data>,
    /// How long it may take until it is ready.
    pub start_timeout: Duration,
    /// The variables by which it gets further ports.
    pub ports: Vec<&'static str>,
    /// The one of them whose port is for HTTP about itself; where it is none of them, the main port is.
    pub http_port: &'static str,
}

/// Starts a target that is built.
#[derive(Debug)]
pub struct Laboratory {
    program: Program,
    logs: PathBuf,
    cpus: Option<CpuList>,
    stop: Stop,
    starts: AtomicU32,
}

impl Laboratory {
    /// A bench for the target, with a folder for logs: one folder in it for each start.
    #[must_use]
    pub fn new(program: Program, logs: &Path, stop: &Stop) -> Self {
        Self {
            program,
            logs: logs.into(),
            cpus: None,
            stop: stop.clone(),
            starts: AtomicU32::new(0),
        }
    }

    /// The same, with the CPUs that the target is bound to.
    #[must_use]
    pub fn on_cpus(mut self, cpus: CpuList) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// The target as a subject of a check.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        Subject::Target {
            name: self.program.name.clone(),
            bench: self,
        }
    }

    /// Starts the target. A variable of `environment` goes before its own.
    fn launch(&self, environment: &Environment) -> Result<Launched, String> {
        let program = &self.program;
        let port = choose_port().map_err(|error| error.to_string())?;
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let logs = self.logs.join(format!("{number:03}-target"));
        let log = logs.join("target.log");
        let data = program.data.as_ref();
        let data = data.map(|data| DataFolder::make(data, &logs)).transpose();
        let data = data.map_err(|error| error.to_string())?;
        let mut launch = Launch::new(&program.name, &program.command, &program.folder, &log);
        launch.env_remove.clone_from(&program.unset);
        launch.env = data.iter().map(DataFolder::variable).collect();
        launch.env.extend(pairs(&program.environment));
        launch.env.push(("PORT".into(), port.to_string()));
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut others = BTreeMap::new();
        for variable in &program.ports {
            let other =
                another_port(|free| free == port || others.values().any(|it| *it == at(free)))?;
            launch.env.push(((*variable).into(), other.to_string()));
            others.insert(*variable, at(other));
        }
        launch.env.extend(pairs(environment));
        launch.cpus.clone_from(&self.cpus);
        launch.secrets.add_of_environment(&program.environment);
        let child = launch.start(None).map_err(|error| error.to_string())?;
        Ok(Launched {
            child,
            address: at(port),
            http: *others.get(program.http_port).unwrap_or(&at(port)),
            others,
            data,
        })
    }
}

/// A process that was started and may not be ready.
struct Launched {
    child: Child,
    address: SocketAddr,
    http: SocketAddr,
    others: Others,
    // Declared after the child, so that it is dropped later.
    data: Option<DataFolder>,
}

impl Launched {
    /// What shows that it is ready.
    fn ready(&self, program: &Program) -> Ready {
        match &program.ask {
            Some(ask) => Ready::Asked(self.address, ask.clone()),
            None => Ready::Get(format!("http://{}{}", self.http, program.health_path)),
        }
    }
}

/// Further addresses by the variable of their port.
type Others = BTreeMap<&'static str, SocketAddr>;

/// A free port that is not taken by us: nobody listens there yet, so one may be chosen twice.
fn another_port(taken: impl Fn(u16) -> bool) -> Result<u16, String> {
    loop {
        let port = choose_port().map_err(|error| error.to_string())?;
        if !taken(port) {
            return Ok(port);
        }
    }
}

fn pairs(environment: &Environment) -> Vec<(String, String)> {
    environment
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl Bench for Laboratory {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        let mut launched = self.launch(environment)?;
        let ready = launched.ready(&self.program);
        launched
            .child
            .wait_ready(&ready, self.program.start_timeout, &self.stop)
            .map_err(|error| error.to_string())?;
        Ok(Box::new(Process::of(launched, self.program.stop_signal)))
    }

    fn start_refused(&self, environment: &Environment, limit: Duration) -> Result<Ended, String> {
        let mut launched = self.launch(environment)?;
        match wait(&mut launched.child, limit)? {
            None => Err(format!("it still runs after {} s", limit.as_secs())),
            Some(status) => Ok(Ended {
                exit_code: status.code(),
                output: std::fs::read_to_string(launched.child.log()).unwrap_or_default(),
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

/// A server that is a process of ours.
struct Process {
    child: Mutex<Child>,
    pid: i32,
    stop_signal: StopSignal,
    log: PathBuf,
    address: SocketAddr,
    http: SocketAddr,
    others: Others,
    // Declared after the child, so that it is dropped later.
    _data: Option<DataFolder>,
}

impl Process {
    fn of(launched: Launched, stop_signal: StopSignal) -> Self {
        let Launched {
            child,
            address,
            http,
            others,
            data,
        } = launched;
        Self {
            pid: child.pid(),
            log: child.log().to_owned(),
            child: Mutex::new(child),
            stop_signal,
            address,
            http,
            others,
            _data: data,
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        // A child is sound whatever panicked beside it.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server for Process {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn http(&self) -> SocketAddr {
        self.http
    }

    fn at(&self, variable: &str) -> Option<SocketAddr> {
        self.others.get(variable).copied()
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
            None => kill(Pid::from_raw(self.pid), self.stop_signal.signal())
                .map_err(|error| format!("{}: {error}", self.stop_signal)),
        }
    }

    fn wait(&self, limit: Duration) -> Result<Option<i32>, String> {
        let ended = wait(&mut self.child(), limit)?;
        Ok(ended.map(|status| status.code().unwrap_or(-1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::poll;
    use std::collections::BTreeSet;

    const LIMIT: Duration = Duration::from_secs(20);

    /// A target that is a line of shell.
    fn laboratory(folder: &Path, script: &str) -> Laboratory {
        let program = Program {
            name: "script".to_owned(),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            folder: folder.to_owned(),
            environment: Environment::from([("CPU_PASSES".to_owned(), "7".to_owned())]),
            unset: Vec::new(),
            stop_signal: StopSignal::Usr1,
            health_path: "/health",
            ask: None,
            data: None,
            start_timeout: LIMIT,
            ports: vec!["METRICS_PORT", "OTHER_PORT"],
            http_port: "METRICS_PORT",
        };
        Laboratory::new(program, folder, &Stop::new())
    }

    #[test]
    fn a_refusal_is_its_exit_code_and_all_that_it_printed() {
        let folder = tempfile::tempdir().expect("temp");
        let laboratory = laboratory(
            folder.path(),
            "echo \"$PORT and $CPU_PASSES\"; echo two >&2; exit 2",
        );
        let environment = Environment::from([("PORT".to_owned(), "http".to_owned())]);
        let ended = laboratory.start_refused(&environment, LIMIT).expect("ends");
        assert_eq!(ended.exit_code, Some(2));
        assert_eq!(
            ended.output, "http and 7\ntwo\n",
            "the case's PORT, the program's CPU_PASSES"
        );
    }

    #[test]
    fn a_program_that_does_not_refuse_is_an_error_and_does_not_live_on() {
        let folder = tempfile::tempdir().expect("temp");
        let laboratory = laboratory(folder.path(), "exec sleep 60");
        let error = laboratory
            .start_refused(&Environment::new(), Duration::from_millis(50))
            .expect_err("runs");
        assert!(error.contains("it still runs"), "{error}");
    }

    #[test]
    fn what_does_not_start_is_told_with_its_log() {
        let folder = tempfile::tempdir().expect("temp");
        let laboratory = laboratory(folder.path(), "echo no such model; exit 3");
        let error = laboratory.start(&Environment::new()).err().expect("ends");
        assert!(
            error.contains("exit code 3") && error.contains("no such model"),
            "{error}"
        );
    }

    #[test]
    fn a_program_gets_a_fresh_folder_for_its_data_at_each_start() {
        let folder = tempfile::tempdir().expect("temp");
        let script =
            "test -z \"$(ls -A \"$DATA_DIR\")\" && echo x >\"$DATA_DIR/0\"; echo \"$? $DATA_DIR\"";
        let mut laboratory = laboratory(folder.path(), script);
        laboratory.program.data = Some(Data {
            at: None,
            least_free_bytes: 1,
            on_disk: false,
            loses_power: false,
        });
        let started = || {
            let ended = laboratory.start_refused(&Environment::new(), LIMIT);
            let output = ended.expect("ends").output;
            let (code, path) = output.trim().split_once(' ').expect("two words");
            assert_eq!(code, "0", "{output}");
            PathBuf::from(path)
        };
        let (one, two) = (started(), started());
        assert!(one != two && one.starts_with(folder.path().canonicalize().expect("there")));
        assert!(!one.exists() && !two.exists());
    }

    #[test]
    fn a_program_has_its_own_time_to_become_ready() {
        let folder = tempfile::tempdir().expect("temp");
        let mut laboratory = laboratory(folder.path(), "exec sleep 60");
        laboratory.program.start_timeout = Duration::from_millis(50);
        let error = laboratory.start(&Environment::new()).err().expect("late");
        assert!(error.contains("was not ready within 50ms"), "{error}");
    }

    #[test]
    fn a_program_is_ended_by_its_own_signal() {
        let folder = tempfile::tempdir().expect("temp");
        let script =
            "trap 'exit 3' TERM; trap 'exit 0' USR1; echo up; while :; do sleep 0.01; done";
        let launched = laboratory(folder.path(), script).launch(&Environment::new());
        let process = Process::of(launched.expect("starts"), StopSignal::Usr1);
        let up = || Ok(((), process.output() == "up\n"));
        assert_eq!(poll(LIMIT, up), Ok(((), true)), "its traps are set");
        process.terminate().expect("runs");
        assert_eq!(process.wait(LIMIT), Ok(Some(0)));
    }

    #[test]
    fn a_program_may_have_further_ports() {
        let folder = tempfile::tempdir().expect("temp");
        let script = "echo \"$PORT $METRICS_PORT $OTHER_PORT\"; exec sleep 60";
        let launched = laboratory(folder.path(), script).launch(&Environment::new());
        let process = Process::of(launched.expect("starts"), StopSignal::Term);
        let printed = || Ok(((), process.output().ends_with('\n')));
        assert_eq!(poll(LIMIT, printed), Ok(((), true)));
        let other = process.at("OTHER_PORT").expect("asked for");
        let ports = [process.address(), process.http(), other].map(|at| at.port());
        let told = ports.map(|port| port.to_string()).join(" ");
        assert_eq!(process.output().trim(), told);
        assert_eq!(BTreeSet::from(ports).len(), 3, "{told}");
        assert_eq!(process.at("ANOTHER_PORT"), None);
    }
}
