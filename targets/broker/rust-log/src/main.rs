//! The honest broker.

use std::process::ExitCode;

use rust_log::conduct::Honest;

fn main() -> ExitCode {
    rust_log::run::main(rust_log::built!(), |_| Ok(Honest))
}
