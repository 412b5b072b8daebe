//! How a server of these tests starts, waits and ends.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_conformance::subject::{Ended, Environment};

use super::Defect;

/// How often a connection looks whether the server ends.
const POLL: Duration = Duration::from_millis(20);

/// A request that stays unfinished is given up after this.
const UNFINISHED: Duration = Duration::from_millis(900);

/// Where the defect is that it closes idle connections: after this.
const SHORT_IDLE: Duration = Duration::from_millis(100);

/// Where the defect is that it says too early that it is ready: by this.
const EARLY: Duration = Duration::from_millis(300);

pub(super) struct Life {
    defect: Defect,
    started: Instant,
    drain: Duration,
    pub(super) workers: u32,
    ends_at: Mutex<Option<Instant>>,
    draining: AtomicBool,
    /// Every connection, to be cut off.
    streams: Mutex<Vec<TcpStream>>,
    /// Where the defect is that one client holds up the others.
    turn: Mutex<()>,
}

impl Life {
    pub(super) fn new(defect: Defect, environment: &Environment) -> Self {
        let number = |name: &str, default: u32| {
            let given = environment.get(name).and_then(|text| text.parse().ok());
            given.unwrap_or(default)
        };
        Self {
            defect,
            started: Instant::now(),
            drain: Duration::from_millis(number("DRAIN_TIMEOUT_MS", 5000).into()),
            workers: number("WORKER_THREADS", 1),
            ends_at: Mutex::new(None),
            draining: AtomicBool::new(false),
            streams: Mutex::default(),
            turn: Mutex::new(()),
        }
    }

    pub(super) fn is_early(&self) -> bool {
        self.defect == Defect::ReadyTooEarly && self.started.elapsed() < EARLY
    }

    pub(super) fn keep(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut streams = self.streams.lock().expect("sound");
        streams.push(stream.try_clone()?);
        Ok(())
    }

    pub(super) fn begin_to_end(&self) {
        *self.ends_at.lock().expect("sound") = Some(Instant::now() + self.drain);
        self.draining.store(true, Ordering::SeqCst);
        if self.defect == Defect::DropsInFlight {
            self.cut_off();
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Whether a new connection is served.
    pub(super) fn accepts(&self) -> bool {
        !self.is_draining() || self.defect == Defect::KeepsAccepting
    }

    fn cut_off(&self) {
        for stream in self.streams.lock().expect("sound").drain(..) {
            // It may be gone.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The exit code, if it has ended.
    pub(super) fn exit_code(&self, open: u64) -> Option<i32> {
        let ends_at = *self.ends_at.lock().expect("sound");
        let late = Instant::now() >= ends_at? && self.defect != Defect::WaitsForEver;
        if open > 0 && !late {
            return None;
        }
        self.cut_off();
        Some(if self.defect == Defect::ExitsWith1 {
            1
        } else {
            0
        })
    }

    /// Waits for what a client that is in a request holds up.
    pub(super) fn take_turn(&self) {
        if self.defect == Defect::OneHoldsUpAll {
            drop(self.turn.lock());
        }
    }

    /// Reads what comes; `None` if the server closes the connection instead.
    pub(super) fn read(
        &self,
        stream: &mut TcpStream,
        buffer: &mut [u8],
        in_request: impl Fn() -> bool,
    ) -> std::io::Result<Option<usize>> {
        let held_up = in_request() && self.defect == Defect::OneHoldsUpAll;
        let _turn = held_up.then(|| self.turn.lock());
        let slow = self.defect == Defect::GivesUpSlowClients;
        stream.set_read_timeout(Some(if slow { POLL / 4 } else { POLL }))?;
        let begun = Instant::now();
        loop {
            match stream.read(buffer) {
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
                read => return read.map(Some),
            }
            let waited = begun.elapsed();
            let closes = if in_request() {
                let patient = [Defect::NeverGivesUp, Defect::WaitsForEver].contains(&self.defect);
                slow || (waited > UNFINISHED && !patient)
            } else {
                let idle = self.defect == Defect::ClosesIdle && waited > SHORT_IDLE;
                idle || (self.is_draining() && self.defect != Defect::KeepsIdle)
            };
            if closes {
                return Ok(None);
            }
        }
    }
}

/// How a start with these variables ends.
pub(super) fn refused(defect: Defect, environment: &Environment) -> Result<Ended, String> {
    let bad = |name: &str, value: &str| match name {
        "PORT" | "H2_PORT" => value.parse::<u16>().is_err(),
        "WORKER_THREADS" => value.parse::<u32>().map_or(true, |count| count == 0),
        _ => value.parse::<u32>().is_err(),
    };
    let mut variables = environment.iter();
    match variables.find(|(name, value)| bad(name, value)) {
        Some((name, _)) if defect != Defect::TakesAnyValue => Ok(Ended {
            exit_code: Some(2),
            output: format!("{name} is bad\n"),
        }),
        _ => Err("it still runs".to_owned()),
    }
}
