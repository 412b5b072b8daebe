//! Reads the configuration, serves until SIGTERM or SIGINT, drains.

use std::process::ExitCode;

use rust_axum::program::{self, Place};
use rust_axum::{built, versions};
use rust_axum_voice::config::Config;
use rust_axum_voice::gateway::Gateway;
use rust_axum_voice::{SEND_BUFFER_BYTES, serve};

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
    let Config { port, worker_threads, .. } = config;
    let place = Place { port, worker_threads, send_buffer_bytes: Some(SEND_BUFFER_BYTES) };
    let start_line = versions::start_line(&built!(), port, worker_threads);
    program::run(place, &start_line, |listener| {
        let gateway = Gateway::new(config);
        (serve(listener, gateway.clone()), async move { gateway.drain().await })
    })
}
