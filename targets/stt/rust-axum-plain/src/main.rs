//! Reads the configuration, serves until SIGTERM or SIGINT, drains.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use anyhow::{Context, Result};
use axum::serve::ListenerExt;
use rust_axum_plain::config::Config;
use rust_axum_plain::gateway::Gateway;
use rust_axum_plain::{http, versions};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(config: Config) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(config.worker_threads).enable_all().build()?;
    let served = runtime.block_on(serve(config));
    // Waits for nobody: whoever was still connected had its time in the drain.
    runtime.shutdown_background();
    served
}

async fn serve(config: Config) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, config.port))
        .await
        .with_context(|| format!("cannot listen on port {}", config.port))?
        .tap_io(|socket| {
            if let Err(error) = socket.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was not set");
            }
        });
    println!("{}", versions::start_line());
    tracing::info!(port = config.port, workers = config.worker_threads, "listening");

    let gateway = Gateway::new(config)?;
    let shutdown = gateway.shutdown.clone().cancelled_owned();
    let server = axum::serve(listener, http::router(gateway.clone()));
    tokio::spawn(server.with_graceful_shutdown(shutdown).into_future());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("draining");
    gateway.drain().await;
    Ok(())
}
