//! Where Plimsoll keeps what it needs from one call to the next.

use std::path::PathBuf;

/// `$XDG_STATE_HOME/plimsoll`, by default below `~/.local/state`. It need not exist. `None` if the user has no home.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from)?;
        path.is_absolute().then_some(path)
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("plimsoll"))
}
