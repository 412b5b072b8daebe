//! Reads the configuration, starts the runtime, serves until SIGTERM or SIGINT, drains.

use std::io;
use std::process::ExitCode;

use rust_axum::config::Config;
use rust_axum::gateway::Gateway;
use rust_axum::{serve, versions};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Connections that may wait to be accepted; many sessions start at once. The kernel caps it at `somaxconn`.
const LISTEN_BACKLOG: u32 = 4096;

fn main() -> ExitCode {
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let port = config.port;
    let served = runtime(config.worker_threads).and_then(|runtime| {
        let served = runtime.block_on(run(config));
        // Waits for nobody, not even for a host name that is still being looked up.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One worker needs no work stealing, so it gets the scheduler that has none.
fn runtime(worker_threads: usize) -> io::Result<Runtime> {
    match worker_threads {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(worker_threads).enable_all().build(),
    }
}

async fn run(config: Config) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = listen(config.port)?;
    println!("{}", versions::start_line(config.port, config.worker_threads));

    let gateway = Gateway::new(config);
    // Goes on while draining, to answer 503.
    let server = tokio::spawn(serve(listener, gateway.clone()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    gateway.drain().await;
    server.abort();
    Ok(())
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(([0, 0, 0, 0], port).into())?;
    socket.listen(LISTEN_BACKLOG)
}
