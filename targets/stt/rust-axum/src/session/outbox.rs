//! Messages that the client has not taken yet.

use std::collections::VecDeque;

/// A queue of which the first message may already be on its way into the socket; it stays unsent until the socket took
/// its last byte.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: VecDeque<String>,
    sending: bool,
}

impl Outbox {
    /// Puts a message at the end.
    pub fn push(&mut self, message: String) {
        self.waiting.push_back(message);
    }

    /// Messages not wholly handed to the kernel.
    pub fn unsent(&self) -> usize {
        self.waiting.len() + usize::from(self.sending)
    }

    /// The next message to write, unless one is being written. It counts as unsent until [`Self::sent`].
    pub fn next_to_send(&mut self) -> Option<String> {
        if self.sending {
            return None;
        }
        let message = self.waiting.pop_front();
        self.sending = message.is_some();
        message
    }

    /// Whatever [`Self::next_to_send`] gave has left.
    pub fn sent(&mut self) {
        self.sending = false;
    }
}
