//! The environment variables that the workloads' contracts define (`docs/stt/contract.md`, section 8;
//! `docs/ws/contract.md`, sections 1 and 4).

use plimsoll_workload_stt::simulator::CONTRACT_VARIABLES as SPEECH;
use plimsoll_workload_ws::CONTRACT_VARIABLES as WEBSOCKET;

/// What every contract has, and what makes common runtimes verbose or tunes them.
const COMMON: [&str; 4] = ["PORT", "WORKER_THREADS", "RUST_LOG", "NODE_OPTIONS"];

/// All environment variables of the contracts, and those that make common runtimes verbose or tune them. Plimsoll
/// removes them from a target's environment, because the user's shell must not change what a target does.
pub const CONTRACT_VARIABLES: [&str; COMMON.len() + SPEECH.len() + WEBSOCKET.len()] = {
    let parts: [&[&str]; 3] = [&COMMON, &SPEECH, &WEBSOCKET];
    let mut all = [""; COMMON.len() + SPEECH.len() + WEBSOCKET.len()];
    let (mut filled, mut part) = (0, 0);
    // A constant can be made with `while` only.
    while part < parts.len() {
        let mut place = 0;
        while place < parts[part].len() {
            all[filled] = parts[part][place];
            (filled, place) = (filled + 1, place + 1);
        }
        part += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_every_contract_are_there() {
        for name in [
            "PORT",
            "NODE_OPTIONS",
            "INFERENCE_URL",
            "AUTH_TOKEN",
            "WSE_SECRET",
        ] {
            assert!(CONTRACT_VARIABLES.contains(&name), "{name}");
        }
        assert!(!CONTRACT_VARIABLES.contains(&""));
    }
}
