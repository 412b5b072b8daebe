//! The mock providers as a program.

use std::process::ExitCode;

use plimsoll_mock_server::program::Program;
use plimsoll_providers::config::{Config, SETTINGS};
use plimsoll_providers::server::Mocks;

const PROGRAM: Program<Config> = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    title: "Mock speech providers for workload voice of Plimsoll",
    more: "Statistics: GET /stats. Faults: PUT /faults. crates/providers/README.md describes both.",
    settings: &SETTINGS,
};

fn main() -> ExitCode {
    PROGRAM.main(|config| {
        let mocks = Mocks::bind(config.clone())?;
        Ok((mocks.address(), mocks.run()))
    })
}
