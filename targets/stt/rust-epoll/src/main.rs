//! Reads the configuration, starts the workers, waits for SIGTERM or SIGINT, drains.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rust_epoll::config::Config;
use rust_epoll::gateway::Gateway;
use rust_epoll::versions;
use rust_epoll::worker::{Worker, listen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How often the inference server's name is looked up. An address needs no looking up.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(5);

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
    raise_descriptor_limit();
    // Before anybody can know of this process: a signal must not find it without a handler.
    let signals = signals()?;
    let line = versions::start_line(config.port, config.worker_threads);
    let port = config.port;
    let gateway = Gateway::new(config)?;
    gateway.resolve();
    let listeners: Vec<_> = gateway.workers.iter().map(|_| listen(port)).collect::<Result<_, _>>()?;
    println!("{line}");
    let mut threads = Vec::new();
    for (number, listener) in listeners.into_iter().enumerate() {
        let worker = Worker::new(Arc::clone(&gateway), number, listener)?;
        let name = format!("worker {number}");
        threads.push(thread::Builder::new().name(name).spawn(move || worker.run())?);
    }
    wait_for_signal(&signals, &gateway)?;
    gateway.drain(Instant::now());
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

/// Waits, and keeps the inference server's address up to date meanwhile, so that no worker has to wait for a name.
fn wait_for_signal(signals: &UnixStream, gateway: &Gateway) -> rustix::io::Result<()> {
    let has_name = gateway.config.inference.host.parse::<std::net::IpAddr>().is_err();
    let interval = Timespec::try_from(RESOLVE_INTERVAL).ok().filter(|_| has_name);
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)], interval.as_ref()) {
            Ok(0) => gateway.resolve(),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A session is a descriptor: takes as many as are allowed.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused the old limit stands, and running into it is told when it happens.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
