//! The program: read the environment, say who we are, serve.

use std::io::Write as _;
use std::process::ExitCode;

use lying_voice::config::Config;
use lying_voice::lies::LIES;
use lying_voice::server::Server;
use serde_json::{Value, json};

/// Bad configuration.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [] => serve(),
        [only] if only == "--lies" => say(&LIES.map(|(_, name, _)| name).join("\n")).map_err(|error| (1, error)),
        _ => {
            let told = "takes no argument but --lies, which lists them; the rest is in the environment, see the README";
            Err((USAGE, told.to_owned()))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, line)) => {
            eprintln!("lying-voice: {line}");
            ExitCode::from(code)
        }
    }
}

fn serve() -> Result<(), (u8, String)> {
    // A value that is no UTF-8 is no good one either: its replacement characters make it a bad value.
    let lookup = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let config = Config::read(&lookup).map_err(|line| (USAGE, line))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| (1, format!("cannot start its event loop: {error}")))?;
    runtime.block_on(async {
        let (port, plan) = (config.port, config.plan);
        let server = Server::bind(config).map_err(|error| (USAGE, format!("PORT={port}: cannot listen: {error}")))?;
        let start = start_line(server.address().port(), plan.lie.name(), json!(plan.numbers));
        say(&start.to_string()).map_err(|error| (1, error))?;
        server.run().await.map_err(|error| (1, format!("cannot serve: {error}")))
    })
}

/// The one line that a gateway prints on start: who it is, of which versions, and here also how it lies.
fn start_line(port: u16, lie: &str, numbers: Value) -> Value {
    json!({
        "event": "start",
        "target": env!("CARGO_PKG_NAME"),
        "port": port,
        "versions": {
            env!("CARGO_PKG_NAME"): env!("CARGO_PKG_VERSION"),
            "rustc": env!("RUSTC_VERSION"),
            "hyper": env!("VERSION_HYPER"),
            "tokio": env!("VERSION_TOKIO"),
            "tungstenite": env!("VERSION_TUNGSTENITE"),
        },
        "lie": lie,
        "lie_parameters": numbers,
    })
}

/// Writes a line to stdout at once, also where it is a pipe.
fn say(line: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    let said = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    said.map_err(|error| format!("cannot write to stdout: {error}"))
}
