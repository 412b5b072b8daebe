//! Reads the configuration, serves until SIGTERM or SIGINT, drains.

use std::process::ExitCode;

use rust_axum::config::Config;
use rust_axum::gateway::Gateway;
use rust_axum::program::{self, Place};
use rust_axum::{built, serve, versions};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = match Config::from_env() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let place = Place { port: config.port, worker_threads: config.worker_threads, send_buffer_bytes: None };
    let start_line = versions::start_line(&built!(), config.port, config.worker_threads);
    program::run(place, &start_line, |listener| {
        let gateway = Gateway::new(config);
        (serve(listener, gateway.clone()), async move { gateway.drain().await })
    })
}
