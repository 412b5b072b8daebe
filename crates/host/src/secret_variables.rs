//! Environment variables through which the command itself receives secrets. No process that it starts gets them.

use std::ffi::OsString;

use plimsoll_core::secret::is_secret_name;

/// Headers for the upgrade request, one `Name: value` per line.
pub const HEADERS_VARIABLE: &str = "PLIMSOLL_HEADERS";

/// Whether the command may receive a secret through the variable of this name. What begins with `PLIMSOLL_` and is named
/// after a secret is one, because a workload may have secrets that nothing here knows.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let own = name.strip_prefix("PLIMSOLL_");
    name == HEADERS_VARIABLE || own.is_some_and(is_secret_name)
}

/// Those that are set.
#[must_use]
pub fn set_now() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names
        .filter(|name| is_ours(&name.to_string_lossy()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_ours_is_told_by_its_name() {
        for name in [
            "PLIMSOLL_HEADERS",
            "PLIMSOLL_TOKEN",
            "PLIMSOLL_TOKEN_SECRET",
            "PLIMSOLL_SERVE_TOKEN",
            "PLIMSOLL_BROKER_PASSWORD",
        ] {
            assert!(is_ours(name), "{name}");
        }
        // What a target wants from the environment is its own business.
        for name in ["PLIMSOLL_ROOT", "WSE_SECRET", "GITHUB_TOKEN", "PATH"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
