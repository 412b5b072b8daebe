//! The program over real sockets, between callers and small mock providers: honest, and with each lie that they can see.
//!
//! Times are asserted from below, and from above only with much room: other programs run on the same machine.

mod admission;
mod blocks;
mod built_providers;
mod caller;
mod failures;
mod honest;
mod mocks;
mod process;
mod program;
mod replies;
mod results;
mod sessions;
mod vectors;

use caller::Caller;
use mocks::{Manner, Mocks};
use program::Gateway;

/// Mocks, a gateway with this lie, and its first caller.
fn lying(lie: &str, numbers: &[(&str, &str)], manner: Manner) -> (Mocks, Gateway, Caller) {
    let mocks = Mocks::start(manner);
    let gateway = Gateway::start(&mocks.url, &[&[("LIE", lie)], numbers].concat());
    let caller = Caller::start(&gateway, 1);
    (mocks, gateway, caller)
}
