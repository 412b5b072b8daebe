//! The hub behind `/fanout`: what one connection sends goes to all, in one order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;

/// A connection with more than this in its queue loses what comes.
pub const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a message in a queue takes beside its payload, about: without it a queue of empty messages would have no end.
const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// One per process.
#[derive(Debug, Default)]
pub struct Hub {
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    next_number: u64,
    taken: HashMap<u64, Entrance>,
}

/// The end of a queue at which messages come in.
#[derive(Debug)]
struct Entrance {
    sender: UnboundedSender<Message>,
    queued_bytes: Arc<AtomicUsize>,
}

/// A connection's place at the hub, and the end of its queue at which messages come out. Dropped, it is free.
#[derive(Debug)]
pub struct Seat {
    hub: Arc<Hub>,
    number: u64,
    receiver: UnboundedReceiver<Message>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Hub {
    /// A place for one more connection.
    pub fn join(self: &Arc<Self>) -> Seat {
        let (sender, receiver) = unbounded_channel();
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        let mut seats = self.lock();
        let number = seats.next_number;
        seats.next_number += 1;
        seats.taken.insert(number, Entrance { sender, queued_bytes: Arc::clone(&queued_bytes) });
        Seat { hub: Arc::clone(self), number, receiver, queued_bytes }
    }

    /// Puts a message into all queues; how many had no room. The payload is shared, not copied.
    pub fn publish(&self, message: &Message) -> u64 {
        // Held while all get it, so that all have messages in the same order.
        let seats = self.lock();
        let mut dropped = 0;
        for Entrance { sender, queued_bytes } in seats.taken.values() {
            if queued_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX {
                dropped += 1;
                continue;
            }
            queued_bytes.fetch_add(weight(message), Ordering::Relaxed);
            // The receiver is dropped after its place has been given up.
            let _ = sender.send(message.clone());
        }
        dropped
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The next message.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Message> {
        // The other end is in the hub for as long as this one lives, so there is always a next one.
        match self.receiver.poll_recv(context) {
            Poll::Ready(Some(message)) => Poll::Ready(self.taken_out(message)),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.receiver.len()
    }

    /// The next message, if there is one already.
    pub fn try_next(&mut self) -> Option<Message> {
        let message = self.receiver.try_recv().ok()?;
        Some(self.taken_out(message))
    }

    fn taken_out(&self, message: Message) -> Message {
        self.queued_bytes.fetch_sub(weight(&message), Ordering::Relaxed);
        message
    }
}

/// What a message counts for in a queue.
fn weight(message: &Message) -> usize {
    message.len() + MESSAGE_OVERHEAD_BYTES
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_all_in_order() {
        let hub = Arc::new(Hub::default());
        let mut one = hub.join();
        assert_eq!(hub.publish(&Message::text("a")), 0);
        let mut two = hub.join();
        assert_eq!(hub.publish(&Message::text("b")), 0);
        assert_eq!([one.try_next(), one.try_next(), one.try_next()], [Some("a".into()), Some("b".into()), None]);
        drop(one);
        assert_eq!(hub.publish(&Message::text("c")), 0);
        assert_eq!([two.try_next(), two.try_next(), two.try_next()], [Some("b".into()), Some("c".into()), None]);
    }

    #[test]
    fn a_queue_that_is_too_long_takes_nothing() {
        let hub = Arc::new(Hub::default());
        let (mut slow, mut quick) = (hub.join(), hub.join());
        let message = Message::binary(vec![7; 4 * 1024 * 1024]);
        let mut dropped = 0;
        for _ in 0..10 {
            dropped += hub.publish(&message);
            assert!(quick.try_next().is_some());
        }
        assert_eq!((dropped, slow.waiting()), (6, 4), "the one that goes over the limit is kept, too");
        assert!(slow.try_next().is_some());
        assert_eq!(hub.publish(&message), 0);
    }

    #[test]
    fn empty_messages_take_room_too() {
        let hub = Arc::new(Hub::default());
        let slow = hub.join();
        let published = 300_000;
        let dropped: u64 = (0..published).map(|_| hub.publish(&Message::binary(Vec::new()))).sum();
        assert_eq!(slow.waiting() as u64 + dropped, published);
        assert!(dropped > 0);
    }
}
