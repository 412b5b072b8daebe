//! The orderly end.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::limit::Limit;

/// "Shut down", as a value that costs a plain load to look at and a notification that wakes the idle.
#[derive(Debug, Default)]
pub struct Drain {
    give_up_at: OnceLock<Instant>,
    /// Wakes every session once when draining begins.
    pub wake: Notify,
}

impl Drain {
    /// Begins to drain; there is no way back. What is in flight is waited for until `give_up_at`.
    pub fn begin(&self, give_up_at: Instant) {
        // A second call changes nothing: the first promise stands.
        let _ = self.give_up_at.set(give_up_at);
        self.wake.notify_waiters();
    }

    /// Begins to drain, and returns when the last of `sockets` is closed or `timeout` is nearly over.
    pub async fn run(&self, timeout: Duration, sockets: &Limit) {
        const POLL_INTERVAL: Duration = Duration::from_millis(5);
        // What is in flight gets four fifths of the time, so that a session which gives up can still say so; a twentieth is kept for the exit of
        // the process itself.
        self.begin(Instant::now() + timeout.mul_f64(0.8));
        let patience = timeout.mul_f64(0.95);
        let all_closed = async {
            while sockets.in_use() > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        // Out of time or done: the process ends either way.
        let _ = tokio::time::timeout(patience, all_closed).await;
    }

    /// Until when what is in flight is waited for; `None` while the gateway is not draining.
    pub fn give_up_at(&self) -> Option<Instant> {
        self.give_up_at.get().copied()
    }

    /// Whether the gateway is draining.
    pub fn has_begun(&self) -> bool {
        self.give_up_at().is_some()
    }
}
