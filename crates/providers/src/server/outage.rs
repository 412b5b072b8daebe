//! Times in which a provider is out, as those feel them that are under way.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_workload_voice::marks::BLOCK_MS;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{SILENT, Shared};
use crate::faults::{Faults, Outage};
use crate::profile::Provider;
use plimsoll_mock_server::http::{Connection, Gone};

impl Shared {
    /// Other faults from now on. Sessions look again, now and whenever an outage begins or ends; they may have no other reason
    /// to wake.
    pub(super) fn set_faults(self: &Arc<Self>, faults: Faults) {
        let (since, moments) = (Instant::now(), faults.moments());
        let shared = Arc::clone(self);
        let crier = tokio::spawn(async move {
            for moment in moments {
                sleep_until(since + moment).await;
                shared.changed.notify_waiters();
            }
        });
        let mut book = self.book();
        book.faults = faults;
        book.faults_since = Some(since);
        if let Some(old) = book.crier.replace(crier.abort_handle()) {
            old.abort();
        }
        drop(book);
        self.changed.notify_waiters();
    }

    /// How a provider is out now.
    pub(super) fn outage(&self, provider: Provider) -> Option<Outage> {
        self.book().outage(provider)
    }
}

/// How often a request that waits looks whether its provider is out. A reply that plays wakes as often anyway.
const LOOK: Duration = Duration::from_millis(BLOCK_MS);

/// Why a request is not answered any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// The gateway left.
    Gone,
    /// The provider is out, and refuses.
    Refused,
    /// The provider is out, and hung until the gateway left or had waited for 30 s.
    Hung,
}

/// Waits of one request.
pub(super) struct Wait<'a> {
    pub(super) connection: &'a mut Connection,
    shared: &'a Shared,
    provider: Provider,
    timer: Pin<Box<Sleep>>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        provider: Provider,
        connection: &'a mut Connection,
    ) -> Self {
        Self {
            connection,
            shared,
            provider,
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// Waits until a moment. While the provider hangs, time stands still for it: returns by how much that moves the moment.
    pub(super) async fn until(&mut self, moment: Instant) -> Result<Duration, Cut> {
        let mut hung = Duration::ZERO;
        loop {
            match self.shared.outage(self.provider) {
                Some(Outage::Refuse) => return Err(Cut::Refused),
                Some(Outage::Hang) => hung += self.hang().await?,
                Some(Outage::Slow) | None => {
                    let now = Instant::now();
                    // A timer would take a millisecond for what is due.
                    if moment + hung <= now {
                        return Ok(hung);
                    }
                    let look = (moment + hung).min(now + LOOK);
                    self.sleep(look).await.map_err(|Gone| Cut::Gone)?;
                }
            }
        }
    }

    /// Says nothing until a moment, or until the gateway leaves.
    pub(super) async fn silence(&mut self, until: Instant) {
        // Whoever leaves has had enough of the silence.
        let _ = self.sleep(until).await;
    }

    /// Waits until an outage is over; returns how long that was.
    async fn hang(&mut self) -> Result<Duration, Cut> {
        let began = Instant::now();
        while self.shared.outage(self.provider) == Some(Outage::Hang) {
            let gone = self.sleep(Instant::now() + LOOK).await.is_err();
            if gone || began.elapsed() >= SILENT {
                return Err(Cut::Hung);
            }
        }
        Ok(began.elapsed())
    }

    async fn sleep(&mut self, until: Instant) -> Result<(), Gone> {
        self.timer.as_mut().reset(until);
        self.connection.sleep(self.timer.as_mut()).await
    }
}
