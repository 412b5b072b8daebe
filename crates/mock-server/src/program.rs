//! A mock server as a program: what it prints, how it ends.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::settings::{self, Command, Setting};

/// Exit code for settings that cannot be used.
const USAGE: u8 = 2;
/// Connections that the kernel holds ready.
const BACKLOG: u32 = 4096;

/// What a program is called, and what it prints of itself.
#[derive(Debug, Clone, Copy)]
pub struct Program<C: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it is: the first line of `--help`.
    pub title: &'static str,
    /// The last line of `--help`.
    pub more: &'static str,
    /// All settings.
    pub settings: &'static [Setting<C>],
}

/// The line printed on start.
#[derive(Serialize)]
struct Started<'a, C> {
    name: &'static str,
    version: &'static str,
    address: String,
    config: &'a C,
}

impl<C: Default + Serialize> Program<C> {
    /// Reads the settings, and serves until SIGTERM or SIGINT. All is done by one thread.
    ///
    /// `bind` listens, and returns the address and what serves; its error is the line that is printed.
    pub fn main<S: Future<Output = ()>>(
        &self,
        bind: impl FnOnce(&C) -> Result<(SocketAddr, S), String>,
    ) -> ExitCode {
        let parsed = settings::parse(self.settings, std::env::args().skip(1), |name| {
            std::env::var(name).ok()
        });
        let outcome = match parsed {
            Ok(Command::Help) => say(&self.help()),
            Ok(Command::Version) => say(&format!("{} {}\n", self.name, self.version)),
            Ok(Command::Run(config)) => self.run(&config, bind),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(line) => {
                eprintln!("{}: {line}", self.name);
                ExitCode::from(USAGE)
            }
        }
    }

    /// The text of `--help`.
    #[must_use]
    pub fn help(&self) -> String {
        let settings = settings::help(self.settings);
        format!("{}\n\n{settings}\n{}\n", self.title, self.more)
    }

    fn run<S: Future<Output = ()>>(
        &self,
        config: &C,
        bind: impl FnOnce(&C) -> Result<(SocketAddr, S), String>,
    ) -> Result<(), String> {
        raise_file_limit();
        // One thread, so one number says whether it kept up: the share of time that its loop is busy.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start its event loop: {error}"))?;
        runtime.block_on(async {
            // Before listening: whoever sees the address may already send a signal.
            let handler =
                |kind| signal(kind).map_err(|error| format!("cannot handle signals: {error}"));
            let (mut terminate, mut interrupt) = (
                handler(SignalKind::terminate())?,
                handler(SignalKind::interrupt())?,
            );
            let (address, serving) = bind(config)?;
            let started = Started {
                name: self.name,
                version: self.version,
                address: address.to_string(),
                config,
            };
            let line = serde_json::to_string(&started).map_err(|error| error.to_string())?;
            say(&format!("{line}\n"))?;
            tokio::select! {
                () = serving => {}
                () = either(&mut terminate, &mut interrupt) => {}
            }
            Ok(())
        })
    }
}

/// Listens; port 0 takes a free one. Needs a tokio runtime.
///
/// # Errors
/// What the operating system says to creating, binding or listening, with the remedy.
pub fn listen(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listening = || {
        let socket = if wanted.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(wanted)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    listening().map_err(|error| {
        format!("cannot listen at {wanted}: {error}; give another --port or --bind")
    })
}

/// Hands each connection to `serve`, until dropped. `name` is that of the program.
pub async fn accept<F>(listener: &TcpListener, name: &str, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                tokio::spawn(serve(stream));
            }
            Err(error) => {
                // Out of descriptors, most likely: they come back when connections close.
                eprintln!("{name}: cannot accept a connection: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The clocks of a mock at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    /// Since the start.
    pub uptime: Duration,
    /// Of that, the event loop was not parked.
    pub loop_busy: Duration,
}

impl Clocks {
    /// Now, of a mock that runs since `started`. Needs a current-thread tokio runtime: its first worker is the loop.
    #[must_use]
    pub fn now(started: Instant) -> Self {
        let metrics = tokio::runtime::Handle::current().metrics();
        Self {
            uptime: started.elapsed(),
            loop_busy: metrics.worker_total_busy_duration(0),
        }
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// Writes to stdout at once, also where it is a pipe.
fn say(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("cannot write to stdout: {error}"))
}

/// Each client has a connection or two: takes as many descriptors as are allowed.
fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused the old limit stands, and running into it is reported when it happens.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}
