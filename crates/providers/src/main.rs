//! The mock providers as a program.

use std::io::Write as _;
use std::process::ExitCode;

use plimsoll_providers::config::{self, Command, Config};
use plimsoll_providers::server::Mocks;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code for settings that cannot be used.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let parsed = config::parse(std::env::args().skip(1), |name| std::env::var(name).ok());
    let outcome = match parsed {
        Ok(Command::Help) => say(&config::help()),
        Ok(Command::Version) => say(concat!(
            "plimsoll-providers ",
            env!("CARGO_PKG_VERSION"),
            "\n"
        )),
        Ok(Command::Run(config)) => run(config),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            eprintln!("plimsoll-providers: {line}");
            ExitCode::from(USAGE)
        }
    }
}

/// The line printed on start.
#[derive(Serialize)]
struct Started<'a> {
    name: &'static str,
    version: &'static str,
    address: String,
    config: &'a Config,
}

fn run(config: Config) -> Result<(), String> {
    raise_file_limit();
    // One thread: see the library's documentation.
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
        let mocks = Mocks::bind(config.clone()).map_err(|error| {
            format!(
                "cannot listen at {}:{}: {error}; give another --port or --bind",
                config.bind, config.port
            )
        })?;
        let started = Started {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            address: mocks.address().to_string(),
            config: &config,
        };
        let line = serde_json::to_string(&started).map_err(|error| error.to_string())?;
        say(&format!("{line}\n"))?;
        tokio::select! {
            () = mocks.run() => {}
            () = either(&mut terminate, &mut interrupt) => {}
        }
        Ok(())
    })
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

/// A gateway has a connection or two for each caller: takes as many descriptors as are allowed.
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
