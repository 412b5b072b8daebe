//! Connections: how they are accepted, served and ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http_target::config::Config;
use http_target::metrics::Metrics;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::app;

/// A client has so long to send the head of a request, and hyper counts from the end of the one before. So this is also
/// how long a connection may be idle, and the contract wants no less.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// What hyper reads ahead, and so the longest head; its default of some 400 KiB would take heads of that length.
const BUFFER_BYTES_MAX: usize = 32 * 1024;

/// How long nothing is accepted when that has failed, for want of descriptors most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// One per process.
pub(crate) struct Server {
    router: Router,
    metrics: Arc<Metrics>,
    builder: auto::Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    drain_timeout: Duration,
}

impl Server {
    /// A server without connections.
    pub(crate) fn new(config: Config) -> Self {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_BYTES_MAX)
            .http2()
            .timer(TokioTimer::new());
        let drain_timeout = config.drain_timeout;
        let metrics = Arc::default();
        Self {
            router: app::router(&config, &metrics),
            metrics,
            builder,
            graceful: GracefulShutdown::new(),
            drain_timeout,
        }
    }

    /// Accepts connections until the future is dropped.
    pub(crate) async fn accept(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream),
                // A client that has left already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Starts the connection's task.
    fn serve(&self, stream: TcpStream) {
        // Fails only on a socket that is dead already, which the next read shows.
        let _ = stream.set_nodelay(true);
        let open = self.metrics.connection();
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self.builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = self.graceful.watch(connection);
        tokio::spawn(async move {
            // An error is a client that left, or that does not speak HTTP.
            let _ = connection.await;
            drop(open);
        });
    }

    /// Answers what is in flight and closes the connections. Returns when the last one is closed or `DRAIN_TIMEOUT_MS` is
    /// nearly over.
    pub(crate) async fn drain(self) {
        // The last twentieth is for the exit itself. Out of time or done: the process ends either way.
        let _ = tokio::time::timeout(self.drain_timeout.mul_f64(0.95), self.graceful.shutdown()).await;
    }
}
