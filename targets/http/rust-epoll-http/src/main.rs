//! Reads the configuration, starts the workers, waits for SIGTERM or SIGINT, drains.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use http_target::config::Config;
use http_target::versions::start_line;
use rust_epoll_http::server::Server;
use rust_epoll_http::worker::{Worker, listen};

fn main() -> ExitCode {
    let config = match Config::read(|name| std::env::var_os(name)) {
        Ok(config) => config,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let port = config.port;
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: Config) -> std::io::Result<()> {
    http_target::raise_descriptor_limit();
    // Before anybody can know of this process: a signal must not find it without a handler.
    let mut signals = signals()?;
    let line = start_line(&http_target::built!(None), config.port, config.worker_threads);
    let (port, workers) = (config.port, config.worker_threads);
    let server = Server::new(config)?;
    let listeners: Vec<_> = (0..workers).map(|_| listen(port)).collect::<Result<_, _>>()?;
    println!("{line}");
    let mut threads = Vec::new();
    for (number, listener) in listeners.into_iter().enumerate() {
        let worker = Worker::new(Arc::clone(&server), number, listener)?;
        let name = format!("worker {number}");
        threads.push(thread::Builder::new().name(name).spawn(move || worker.run())?);
    }
    signals.read_exact(&mut [0])?;
    server.drain(Instant::now());
    for thread in threads {
        thread.join().expect("a panic ends the process")?;
    }
    Ok(())
}

/// A socket that becomes readable when the process is told to end.
fn signals() -> std::io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader)
}
