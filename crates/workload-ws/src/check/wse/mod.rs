//! Section 4 of the contract: the dialect `wse`.

mod messages;
mod opening;
mod pings;
pub(super) mod session;
mod tokens;

use plimsoll_conformance::Verdict;

use super::setup::BASE;
use super::{Case, Site};

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

fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: fn(&Site<'_>) -> Verdict,
) -> Case {
    Case::new(id, title, expected, &BASE, run)
}
