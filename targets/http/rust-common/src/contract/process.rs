//! The server as a process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::{Client, Program};

/// A running server. Dropped, it is killed.
#[derive(Debug)]
pub struct Target {
    /// Where it listens.
    pub port: u16,
    /// What it has printed on start.
    pub line: String,
    process: Child,
    _output: BufReader<ChildStdout>,
}

/// The program with no variable set that it reads.
pub fn command(program: Program) -> Command {
    let mut command = Command::new(program.path);
    for name in ["PORT", "WORKER_THREADS", "DRAIN_TIMEOUT_MS", "MAX_BODY_BYTES"] {
        command.env_remove(name);
    }
    command
}

impl Target {
    /// Starts it with `variables`; returns when it serves.
    pub fn start(program: Program, variables: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
        let mut process = command(program)
            .env("PORT", port.to_string())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut line = String::new();
        // It listens before it prints.
        output.read_line(&mut line).expect("a line");
        let target = Self { port, line, process, _output: output };
        assert_eq!(target.client().get("/healthz").body, b"ok");
        target
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// A line of the metrics.
    pub fn metric(&self, name: &str) -> u64 {
        let answer = self.client().get("/metrics");
        assert_eq!(
            answer.field("content-type").map(|value| value.starts_with("text/plain; version=0.0.4")),
            Some(true)
        );
        let text = String::from_utf8(answer.body).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    }

    /// Its resident memory in KiB.
    pub fn memory_kib(&self) -> u64 {
        memory_kib(self.process.id())
    }

    /// Tells it to end.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
    }

    /// Waits for its end.
    pub fn wait(mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The resident memory of a process in KiB.
pub fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
