//! Reads the configuration and the fault, serves until SIGTERM or SIGINT, drains.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use http_target::config::Config;
use http_target::versions::start_line;
use lying_http::fault::{Fault, Kind};
use lying_http::server::{End, Server};

fn main() -> ExitCode {
    let config = Config::read(|name| std::env::var_os(name)).map_err(|problem| problem.to_string());
    let fault = Fault::read(|name| std::env::var_os(name));
    let (config, fault) = match config.and_then(|config| Ok((config, fault?))) {
        Ok(both) => both,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let port = config.port;
    match serve(config, fault) {
        Ok(End::Drained) => ExitCode::SUCCESS,
        Ok(End::Died) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot serve on port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: Config, fault: Fault) -> std::io::Result<End> {
    http_target::raise_descriptor_limit();
    // Before anybody can know of this process: a signal must not find it without a handler.
    let signals = signals()?;
    let line = start_line(&http_target::built!(None), config.port, config.worker_threads);
    let is_honest = fault.kind == Kind::None;
    let about = format!("{:?}, every answer {:?} late", fault.kind, fault.delay);
    let server = Server::new(config, fault, signals)?;
    if !is_honest {
        eprintln!("lying-http: {about}");
    }
    println!("{line}");
    Ok(server.run()?)
}

/// A socket that becomes readable when the process is told to end.
fn signals() -> std::io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}
