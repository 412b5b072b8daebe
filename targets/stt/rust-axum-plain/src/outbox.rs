//! Messages that the client has not taken yet.

use std::collections::VecDeque;

use axum::extract::ws::Message;

/// A queue. Its first message may be on its way, and counts until the kernel has all of it.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: VecDeque<Message>,
    sending: bool,
}

impl Outbox {
    pub fn push(&mut self, text: String) {
        self.waiting.push_back(Message::text(text));
    }

    /// Messages that the kernel does not have.
    pub fn unsent(&self) -> usize {
        self.waiting.len() + usize::from(self.sending)
    }

    /// The next message to send. It counts as unsent until [`Self::sent`].
    pub fn begin(&mut self) -> Option<Message> {
        let message = self.waiting.pop_front();
        self.sending = message.is_some();
        message
    }

    /// What [`Self::begin`] gave, if anything, has left.
    pub fn sent(&mut self) {
        self.sending = false;
    }
}
