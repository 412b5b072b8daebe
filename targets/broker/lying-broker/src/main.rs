//! The broker with the fault that `FAULT` names.

use std::process::ExitCode;

use lying_broker::faults::Faults;

fn main() -> ExitCode {
    rust_log::run::main(rust_log::built!(), |variable| {
        let faults = Faults::read(variable)?;
        if let Some(about) = faults.about() {
            eprintln!("lying-broker: {about}");
        }
        Ok(faults)
    })
}
