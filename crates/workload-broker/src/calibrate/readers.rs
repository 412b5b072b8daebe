//! The engine's side of deliveries: readers of the workload, without the writers. What they must get follows from the
//! clock of the sink.

use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, NoArrivals, SessionMachines};

use super::peer::{measured_messages, messages_max};
use crate::dialect::Shape;
use crate::link::Links;
use crate::message::Messages;
use crate::reader::Reader;
use crate::session::{BrokerSession, Claim, Shared};

/// Readers that each have a queue of their own, with one writer.
#[derive(Debug)]
pub(super) struct Readers {
    shared: Arc<Shared>,
    links: Links,
    /// What all of them together must get.
    measured: u64,
    messages_max: u64,
}

impl Readers {
    /// So many readers in a run with this profile.
    pub(super) fn new(links: Links, messages: Messages, readers: u32, profile: &Profile) -> Self {
        let measured = measured_messages(readers, profile);
        Self {
            shared: Arc::new(Shared {
                messages,
                shape: Shape::Queue,
                writers: 1,
                readers,
                is_closed: false,
                awaited: i64::try_from(measured).unwrap_or(i64::MAX).into(),
            }),
            links,
            measured,
            messages_max: messages_max(profile),
        }
    }
}

impl SessionMachines for Readers {
    type Session = BrokerSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> BrokerSession {
        let dialect = self.links.reader(plan.id);
        let dialect = dialect.unwrap_or_else(|refusal| unreachable!("always the same: {refusal}"));
        let reader = Reader::new(plan.id, 1, self.messages_max, plan.window, 0);
        BrokerSession::of_reader(&self.shared, dialect, reader)
    }

    /// What did not come is lost, and the load was not there.
    fn settle(&self, _claims: &[Claim], account: Account<'_>) {
        let ledger = account.ledger;
        ledger.frames_due = self.measured;
        ledger.frames_sent = self.measured;
        ledger.frames_lost = self.measured.saturating_sub(ledger.frames_answered);
    }
}
