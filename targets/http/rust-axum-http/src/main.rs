//! HTTP/1.1 and HTTP/2 on Tokio and axum. Reads the configuration, starts the runtime, serves until SIGTERM or SIGINT,
//! drains.

mod app;
mod server;

use std::io;
use std::process::ExitCode;

use http_target::config::Config;
use http_target::versions::start_line;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use server::Server;

/// Connections that may wait to be accepted: a storm brings many at once. The kernel caps it at `somaxconn`.
const BACKLOG: u32 = 65_535;

fn main() -> ExitCode {
    let config = match Config::read(|name| std::env::var_os(name)) {
        Ok(config) => config,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    http_target::raise_descriptor_limit();
    let port = config.port;
    let served = runtime(config.worker_threads).and_then(|runtime| {
        let served = runtime.block_on(run(config));
        // Waits for nobody: the time is over.
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
    // Before anybody can know of this process: a signal must not find it without a handler.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = listen(config.port)?;
    println!("{}", start_line(&http_target::built!(Some("tokio")), config.port, config.worker_threads));

    let server = Server::new(config);
    tokio::select! {
        () = server.accept(&listener) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(listener);
    server.drain().await;
    Ok(())
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(([0, 0, 0, 0], port).into())?;
    socket.listen(BACKLOG)
}
