//! "The program ends", as a value that costs a plain load to look at and wakes each connection once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// One per process.
#[derive(Debug, Default)]
pub struct Drain {
    has_begun: AtomicBool,
    wake: Notify,
}

impl Drain {
    /// Begins to drain. There is no way back.
    pub fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        self.wake.notify_waiters();
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// What wakes a task when it begins, once [`Self::watch`] has been given it, for as long as it lives.
    pub fn waker(&self) -> Notified<'_> {
        self.wake.notified()
    }

    /// Has this task woken when draining begins. Polled this once only: a second poll, for every message, would lock a list
    /// that all connections share. What the wake was for is told by the flag.
    pub async fn watch(mut waker: Pin<&mut Notified<'_>>) {
        poll_fn(|context| {
            let _ = waker.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for `poll`, in a task that watches; `None` when draining has begun.
    pub async fn unless_begun<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|context| if self.has_begun() { Poll::Ready(None) } else { poll(context).map(Some) }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;

    #[tokio::test]
    async fn what_waits_is_woken() {
        let drain = Arc::new(Drain::default());
        let waiting = Arc::clone(&drain);
        let task = tokio::spawn(async move {
            let mut waker = pin!(waiting.waker());
            Drain::watch(waker.as_mut()).await;
            waiting.unless_begun(|_| Poll::<()>::Pending).await
        });
        tokio::task::yield_now().await;
        assert_eq!(drain.unless_begun(|_| Poll::Ready(7)).await, Some(7));
        drain.begin();
        assert_eq!(task.await.expect("no panic"), None);
        assert_eq!(drain.unless_begun(|_| Poll::Ready(7)).await, None);
    }
}
