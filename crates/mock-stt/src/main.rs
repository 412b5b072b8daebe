//! The mock speech-to-text server as a program.

use std::process::ExitCode;

use plimsoll_mock_server::program::Program;
use plimsoll_mock_stt::config::{Config, SETTINGS};
use plimsoll_mock_stt::server::Mock;

const PROGRAM: Program<Config> = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    title: "A mock speech-to-text server in nine dialects, for workload stt-real of Plimsoll",
    more: "Statistics: GET /stats. Ready: GET /health. crates/mock-stt/README.md describes both, and each fault.",
    settings: &SETTINGS,
};

fn main() -> ExitCode {
    PROGRAM.main(|config| {
        let mock = Mock::bind(config.clone())?;
        Ok((mock.address(), mock.run()))
    })
}
