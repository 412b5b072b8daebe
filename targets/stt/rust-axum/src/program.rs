//! What a gateway's `main` does once it has its configuration: runtime, port, signals, the end.

use std::io;
use std::process::ExitCode;

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Connections that may wait to be accepted; many sessions start at once. The kernel caps it at `somaxconn`.
const LISTEN_BACKLOG: u32 = 4096;

/// Where and how a gateway runs.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The port at 0.0.0.0.
    pub port: u16,
    /// `WORKER_THREADS`.
    pub worker_threads: usize,
    /// What the kernel may hold back of what is written to a client, in bytes; the kernel's choice if there is none.
    pub send_buffer_bytes: Option<u32>,
}

/// Runs until SIGTERM or SIGINT and drains. `start` takes the port and returns the server, which goes on while draining,
/// and the drain, which is what ends it.
pub fn run<Server, Drained>(
    place: Place,
    start_line: &str,
    start: impl FnOnce(TcpListener) -> (Server, Drained),
) -> ExitCode
where
    Server: Future + Send + 'static,
    Server::Output: Send,
    Drained: Future<Output = ()>,
{
    let served = runtime(place.worker_threads).and_then(|runtime| {
        let served = runtime.block_on(serve(place, start_line, start));
        // Waits for nobody, not even for a host name that is still being looked up.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on port {}: {error}", place.port);
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

async fn serve<Server, Drained>(
    place: Place,
    start_line: &str,
    start: impl FnOnce(TcpListener) -> (Server, Drained),
) -> io::Result<()>
where
    Server: Future + Send + 'static,
    Server::Output: Send,
    Drained: Future<Output = ()>,
{
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = listen(place)?;
    println!("{start_line}");

    let (server, drained) = start(listener);
    let server = tokio::spawn(server);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drained.await;
    server.abort();
    Ok(())
}

fn listen(place: Place) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = place.send_buffer_bytes {
        // Accepted sockets have what the listening one has.
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind(([0, 0, 0, 0], place.port).into())?;
    socket.listen(LISTEN_BACKLOG)
}
