//! The environment variables that contracts define.

use plimsoll_host::data_folder::DATA_DIR;
use plimsoll_workload::Workload;

/// What every contract has, and what makes common runtimes verbose or tunes them.
const COMMON: [&str; 5] = [
    "PORT",
    "WORKER_THREADS",
    DATA_DIR,
    "RUST_LOG",
    "NODE_OPTIONS",
];

/// The environment variables of a workload's contract, and those that make common runtimes verbose or tune them. Plimsoll
/// removes them from a target's environment, because the user's shell must not change what a target does.
#[must_use]
pub fn variables(workload: &dyn Workload) -> Vec<String> {
    let own = workload.variables().iter();
    let all = COMMON.iter().chain(own);
    all.map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::plan;

    #[test]
    fn the_variables_of_its_contract_are_there() {
        for (line, name) in [
            ("stt", "PORT"),
            ("echo", "NODE_OPTIONS"),
            ("ws", "DATA_DIR"),
            ("stt", "INFERENCE_URL"),
            ("stt", "AUTH_TOKEN"),
            ("ws", "WSE_SECRET"),
        ] {
            let variables = variables(plan(line).workload());
            assert!(variables.iter().any(|known| known == name), "{line} {name}");
        }
    }
}
