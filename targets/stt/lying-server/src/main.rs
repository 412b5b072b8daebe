//! The program: read the environment, say who we are, serve.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lying_server::config::Config;
use lying_server::lies::Lie;
use lying_server::net::server::{Server, Stopped};

/// The exit status of `LIE=die`: neither success nor a usage error.
const DIED: u8 = 1;
/// Bad configuration.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => serve(),
        [only] if only == "--lies" => {
            for (_, name) in Lie::ALL {
                println!("{name}");
            }
            ExitCode::SUCCESS
        }
        _ => fail(
            USAGE,
            "takes no argument but --lies, which lists them; the rest is in the environment, see the README",
        ),
    }
}

fn serve() -> ExitCode {
    let terminate = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&terminate)) {
            return fail(1, &format!("cannot handle signal {signal}: {error}"));
        }
    }
    // A value that is no UTF-8 is no number and no lie either: its replacement characters make it a bad value.
    let lookup = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let config = match Config::read(lookup) {
        Ok(config) => config,
        Err(error) => return fail(USAGE, &error.to_string()),
    };
    let mut server = match Server::bind(config) {
        Ok(server) => server,
        Err(error) => {
            let port = config.port;
            return fail(USAGE, &format!("PORT={port}: cannot listen: {error}"));
        }
    };
    println!("{}", start_line(&config, server.address().port()));
    match server.run(&terminate) {
        Ok(Stopped::Drained) => ExitCode::SUCCESS,
        Ok(Stopped::Died) => ExitCode::from(DIED),
        Err(error) => fail(1, &format!("poll failed: {error}")),
    }
}

fn fail(status: u8, text: &str) -> ExitCode {
    eprintln!("lying-server: {text}");
    ExitCode::from(status)
}

/// The one line that a gateway prints on start: who it is, of which versions, and here also how it lies.
fn start_line(config: &Config, port: u16) -> serde_json::Value {
    serde_json::json!({
        "event": "start",
        "target": env!("CARGO_PKG_NAME"),
        "port": port,
        "versions": {
            env!("CARGO_PKG_NAME"): env!("CARGO_PKG_VERSION"),
            "rustc": env!("RUSTC_VERSION"),
            "mio": env!("VERSION_MIO"),
            "tungstenite": env!("VERSION_TUNGSTENITE"),
        },
        "lie": config.plan.lie.name(),
        "lie_parameters": config.plan.parameters,
        "lie_seed": config.seed,
    })
}
