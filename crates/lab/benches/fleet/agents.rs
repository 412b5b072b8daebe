//! Agents that drive nothing, and say what one that did has said.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use plimsoll_core::record::Build;
use plimsoll_fleet::connection::monotonic_ns;
use plimsoll_fleet::frame::{Frame, encode};
use plimsoll_fleet::{Channel, Connection, Event, Side, Token, greet_coordinator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::AnyError;
use crate::recording::{Line, Recording};

/// How long an agent tries to join, and waits for what the coordinator says.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long an agent waits between two attempts, as real ones do.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// What the coordinator says to an agent, as far as these agents care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Order,
    Begin(u64),
    End,
    Other,
}

impl Told {
    pub(crate) fn of(json: &[u8]) -> Self {
        let told: Value = serde_json::from_slice(json).unwrap_or_default();
        if told.get("Order").is_some() {
            Self::Order
        } else if let Some(at_ns) = told["Begin"]["monotonic_ns"].as_u64() {
            Self::Begin(at_ns)
        } else if told == "End" {
            Self::End
        } else {
            Self::Other
        }
    }
}

/// What the agents saw.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Played {
    /// When the last of them had said each second, by the monotonic clock.
    pub(crate) said_ns: Vec<u64>,
    /// Bytes that each sends in a second, TLS not counted.
    pub(crate) bytes_per_second: f64,
    /// Frames that were due in the window of each.
    pub(crate) frames_due: u64,
}

/// Joins, and tries again as real agents do.
pub(crate) fn joined(at: SocketAddr, token: &Token) -> Result<Channel, AnyError> {
    let about = json!({
        "build": Build::default(), "host": "simulated", "kernel": "none", "cpus": "0", "boot": "another machine",
        "files": 20_000, "index": null, "observes": false,
    });
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stream = TcpStream::connect(at)?;
        match greet_coordinator::<_, Value>(stream, None, token, about.clone()) {
            Ok((_, channel)) => return Ok(channel),
            Err(error) if error.is_final() || Instant::now() > deadline => {
                return Err(error.into());
            }
            Err(_) => std::thread::sleep(AGAIN_AFTER),
        }
    }
}

/// Plays so many agents until the coordinator needs them no more.
pub(crate) fn play(
    at: SocketAddr,
    token: &Token,
    agents: u32,
    recording: &Recording,
) -> Result<Played, AnyError> {
    let (sender, heard) = channel();
    let joining = |sender: Sender<Option<Told>>| {
        let connection = Connection::start(joined(at, token)?, Side::Answers, move |event| {
            let told = match event {
                Event::Message(json) => Some(Told::of(&json)),
                Event::Gone(_) => None,
            };
            let _ = sender.send(told);
        });
        Ok(connection?)
    };
    // All at once, and each hears its coordinator from the first moment on: one that is silent for 3 s is gone.
    let connections = std::thread::scope(|scope| {
        let join = |_| {
            let sender = sender.clone();
            scope.spawn(|| joining(sender))
        };
        let all: Vec<_> = (0..agents).map(join).collect();
        let all = all.into_iter().map(|one| match one.join() {
            Ok(joined) => joined,
            Err(_) => Err("a simulated agent panicked".into()),
        });
        all.collect::<Result<Vec<Connection>, AnyError>>()
    })?;
    drop(sender);
    let company = Company { connections, heard };
    let said_ns = company.perform(recording)?;
    let seconds = || recording.0.iter().filter(|line| line.is_second());
    let sent: usize = seconds().map(Line::sent_bytes).sum();
    let report = recording.0.iter().find_map(|line| line.content("Report"));
    let report = report.ok_or("the recording has no report")?;
    Ok(Played {
        said_ns,
        bytes_per_second: sent as f64 / seconds().count().max(1) as f64,
        frames_due: report["part"]["report"]["ledger"]["frames_due"]
            .as_u64()
            .ok_or("its report has no ledger")?,
    })
}

impl Line {
    /// Whether it tells of a second.
    fn is_second(&self) -> bool {
        self.json.get().starts_with("{\"Second\"")
    }

    /// Its length as a frame.
    fn sent_bytes(&self) -> usize {
        let frame = Frame::Message(self.json.get().as_bytes().to_vec());
        encode(&frame).map_or(0, |bytes| bytes.len())
    }
}

/// All agents.
struct Company {
    connections: Vec<Connection>,
    /// What any of them hears; `None` if its coordinator is gone.
    heard: Receiver<Option<Told>>,
}

impl Company {
    /// Says everything in its time, and waits for the end. Returns when each second had been said by all.
    fn perform(&self, recording: &Recording) -> Result<Vec<u64>, AnyError> {
        self.all_hear(|told| told == Told::Order)?;
        let mut begins_ns = None;
        let mut may_end = false;
        let mut said_ns = Vec::new();
        for line in &recording.0 {
            if let Some(at_ns) = line.at_ns {
                if begins_ns.is_none() {
                    begins_ns = self.begins_ns()?;
                }
                if line.may_end && !may_end {
                    self.all_hear(|told| told == Told::End)?;
                    may_end = true;
                }
                let due_ns = begins_ns.unwrap_or_default() + at_ns;
                let wait_ns = due_ns.saturating_sub(monotonic_ns());
                std::thread::sleep(Duration::from_nanos(wait_ns));
            }
            for connection in &self.connections {
                connection.say(&line.json)?;
            }
            if line.is_second() {
                said_ns.push(monotonic_ns());
            }
        }
        while let Ok(Some(_)) = self.heard.recv_timeout(PATIENCE) {}
        Ok(said_ns)
    }

    /// Waits until each agent has heard this.
    fn all_hear(&self, is_it: impl Fn(Told) -> bool) -> Result<Option<Told>, AnyError> {
        let mut last = None;
        for _ in &self.connections {
            loop {
                let told = self.heard.recv_timeout(PATIENCE);
                let told = told.map_err(|_| "the coordinator says nothing more")?;
                let told = told.ok_or("the coordinator is gone")?;
                if is_it(told) {
                    last = Some(told);
                    break;
                }
            }
        }
        Ok(last)
    }

    /// When the trial begins.
    fn begins_ns(&self) -> Result<Option<u64>, AnyError> {
        match self.all_hear(|told| matches!(told, Told::Begin(_)))? {
            Some(Told::Begin(at_ns)) => Ok(Some(at_ns)),
            _ => Err("nobody said when the trial begins".into()),
        }
    }
}
