//! Section 4 of the contract: the dialect `wse`.

mod messages;
mod opening;
mod pings;
pub(super) mod session;
mod tokens;

use super::{Case, Site, case};

/// The cases of the dialect.
pub(super) fn cases() -> Vec<Case> {
    [
        opening::cases(),
        tokens::cases(),
        pings::cases(),
        messages::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
