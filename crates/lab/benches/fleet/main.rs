//! What agents cost their coordinator: `cargo bench -p plimsoll-lab --bench fleet [-- AGENTS...]`
//!
//! For each number of agents, a process runs a whole trial of 10 s as `plimsoll run --agents` does, and a further process plays
//! the agents. These are simulated: each has a control connection of its own, over TLS on the loopback, and says what a real
//! agent with 200 sessions said, at the same moments. That was recorded before: a real part of a load, against an echo
//! server whose answers take 20 to 90 ms, so that they spread over many buckets of the histograms. Everything is on this one
//! machine, which needs nothing else to do.
//!
//! The columns, for seconds in the middle of the trial, and per agent and second where they say so:
//!
//! - CPU time of the coordinator, and of it what its main thread uses, which merges;
//! - peak memory of the coordinator, and what each further agent adds to that with one;
//! - bytes that an agent sends in a second, and all bytes on the loopback, both ways with their headers;
//! - threads of the coordinator;
//! - how long all agents took to join;
//! - the longest time from the moment when the last agent had said a second until that second was merged.

mod agents;
mod coordinator;
mod recording;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_fleet::Token;
use plimsoll_host::signals::Stop;
use plimsoll_lab::trial::parts::{self, SUBCOMMAND};
use plimsoll_workload_echo::Echo;
use serde::de::DeserializeOwned;

use agents::Played;
use coordinator::Measured;
use recording::Recording;

type AnyError = Box<dyn Error + Send + Sync>;

/// Numbers of agents that are measured unless others are given.
const AGENTS: [u32; 5] = [1, 10, 100, 300, 1_000];
/// Sessions of each agent.
const SESSIONS: u32 = 200;

/// The first word of a process that the benchmark starts.
const COORDINATOR: &str = "coordinator";
const RECORDER: &str = "recorder";
const PLAYER: &str = "player";

fn main() -> Result<(), AnyError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [SUBCOMMAND] => Ok(parts::serve(&[&Echo], &Stop::new())?),
        [COORDINATOR, server, agents, token] => {
            coordinator::run(server, agents.parse()?, &Token::read(Path::new(token))?)
        }
        [RECORDER, at, token, file] => {
            let recording = recording::record(at.parse()?, &Token::read(Path::new(token))?)?;
            Ok(std::fs::write(file, serde_json::to_vec(&recording)?)?)
        }
        [PLAYER, at, token, file, agents] => {
            let recording: Recording = serde_json::from_slice(&std::fs::read(file)?)?;
            let token = Token::read(Path::new(token))?;
            let played = agents::play(at.parse()?, &token, agents.parse()?, &recording)?;
            println!("{}", serde_json::to_string(&played)?);
            Ok(())
        }
        _ => measure_all(&words),
    }
}

fn measure_all(words: &[&str]) -> Result<(), AnyError> {
    // Cargo adds a flag.
    let mut numbers: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if numbers.is_empty() {
        numbers = AGENTS.to_vec();
    }
    let place = tempfile::tempdir()?;
    let (token, file) = (place.path().join("token"), place.path().join("recording"));
    Token::read_or_make(&token)?;
    let server = support::echo_server_that(Some(recording::delay));
    let scene = Scene {
        server: &server,
        token: &path(&token)?,
        file: &path(&file)?,
    };
    scene.recorded()?;
    println!(
        "agents | CPU ms/agent-s | of it merging | peak MiB | KiB/agent | sent B/agent-s | loopback B/agent-s | threads | joined in s | merged after ms"
    );
    let mut alone_kib = None;
    for agents in numbers {
        let (measured, played) = scene.measured(agents)?;
        let alone_kib = alone_kib.get_or_insert(measured.peak_kib);
        println!("{}", row(agents, &measured, &played, *alone_kib));
    }
    Ok(())
}

fn path(of: &Path) -> Result<String, AnyError> {
    let text = of.to_str().ok_or("the scratch folder is no UTF-8")?;
    Ok(text.to_owned())
}

/// What all trials of the benchmark share.
struct Scene<'a> {
    server: &'a str,
    token: &'a str,
    file: &'a str,
}

impl Scene<'_> {
    /// Runs a trial with one real part, and keeps what it says.
    fn recorded(&self) -> Result<(), AnyError> {
        let (mut coordinator, at) = self.coordinator(1)?;
        let recorder = ours(&[RECORDER, &at.to_string(), self.token, self.file]).spawn()?;
        ended(&mut coordinator)?;
        ended(&mut Process::of(recorder))
    }

    /// Runs a trial with simulated agents.
    fn measured(&self, agents: u32) -> Result<(Measured, Played), AnyError> {
        let (mut coordinator, at) = self.coordinator(agents)?;
        let (at, agents) = (at.to_string(), agents.to_string());
        let player = ours(&[PLAYER, &at, self.token, self.file, &agents]).spawn()?;
        let mut player = Process::of(player);
        Ok((coordinator.told()?, player.told()?))
    }

    /// Starts a coordinator, and returns where it listens.
    fn coordinator(&self, agents: u32) -> Result<(Process, SocketAddr), AnyError> {
        let agents = agents.to_string();
        let child = ours(&[COORDINATOR, self.server, &agents, self.token]).spawn()?;
        let mut coordinator = Process::of(child);
        let at = coordinator.line()?.trim().parse()?;
        Ok((coordinator, at))
    }
}

/// This program again, with these words.
fn ours(words: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = Command::new(program);
    command.args(words).stdout(Stdio::piped());
    command
}

/// A process that says lines. It is killed if it has not ended when this is dropped.
struct Process {
    child: Child,
    stdout: Option<BufReader<std::process::ChildStdout>>,
}

impl Process {
    fn of(mut child: Child) -> Self {
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdout }
    }

    /// The next line that it says.
    fn line(&mut self) -> Result<String, AnyError> {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().ok_or("its output is no pipe")?;
        match stdout.read_line(&mut line)? {
            0 => Err("a process of the benchmark said too little; see above".into()),
            _ => Ok(line),
        }
    }

    /// What it says last, once it has ended.
    fn told<T: DeserializeOwned>(&mut self) -> Result<T, AnyError> {
        let line = self.line()?;
        ended(self)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it has ended well.
fn ended(process: &mut Process) -> Result<(), AnyError> {
    if let Some(mut rest) = process.stdout.take() {
        std::io::copy(&mut rest.by_ref(), &mut std::io::sink())?;
    }
    let status = process.child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("a process of the benchmark ended with {status}").into()),
    }
}

/// A row of the table. `alone_kib` is the peak memory with the first number of agents.
fn row(agents: u32, measured: &Measured, played: &Played, alone_kib: u64) -> String {
    let each = f64::from(agents);
    let further = f64::from(agents.saturating_sub(1).max(1));
    let seconds = measured.seconds * each;
    let merged = measured.merged_ns.iter().zip(&played.said_ns);
    let after_ns = merged.map(|(merged_ns, said_ns)| merged_ns.saturating_sub(*said_ns));
    let expected = played.frames_due * u64::from(agents);
    let wrong = match measured.frames_due == expected && measured.lost == 0 {
        true => String::new(),
        false => format!(
            " (not as said: {} of {expected} frames, {} agents lost)",
            measured.frames_due, measured.lost
        ),
    };
    format!(
        "{agents:6} | {:14.3} | {:13.3} | {:8.1} | {:9.0} | {:14.0} | {:18.0} | {:7} | {:11.2} | {:15.0}{wrong}",
        measured.cpu_ns as f64 / 1e6 / seconds,
        measured.merging_ns as f64 / 1e6 / seconds,
        measured.peak_kib as f64 / 1024.0,
        measured.peak_kib.saturating_sub(alone_kib) as f64 / further,
        played.bytes_per_second,
        measured.loopback_bytes as f64 / seconds,
        measured.threads,
        measured.joined_s,
        after_ns.max().unwrap_or_default() as f64 / 1e6,
    )
}
