//! The build that runs: what `build.rs` found out at compile time.

use plimsoll_core::record::Build;

/// The version that `--version` prints.
pub(crate) const VERSION: &str = env!("PLIMSOLL_BUILD_VERSION");

/// The build as records hold it.
pub(crate) fn of_this_program() -> Build {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Build {
        commit: known(env!("PLIMSOLL_BUILD_COMMIT")),
        dirty: env!("PLIMSOLL_BUILD_DIRTY").parse().ok(),
        compiler: known(env!("PLIMSOLL_BUILD_COMPILER")),
        profile: known(env!("PLIMSOLL_BUILD_PROFILE")),
    }
}
