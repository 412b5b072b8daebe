//! The body of an answer: whole, or audio block by block.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use plimsoll_workload_voice::marks::{BLOCK_MS, REPLY_BLOCK_BYTES, ReplyMark};
use tokio::time::{Instant, Sleep, sleep_until};

use super::socket::{Reset, Socket};
use super::{SILENT, Shared};
use crate::profile::Provider;
use crate::stats::End;

const BLOCK: Duration = Duration::from_millis(BLOCK_MS);

/// A body.
#[derive(Debug)]
pub(super) enum Reply {
    /// In one piece.
    Whole(Full<Bytes>),
    /// As it is spoken.
    Spoken(Box<Answer>),
}

/// How a reply goes on after its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// To its end.
    Whole,
    /// Nothing after the first block.
    Stalls,
    /// It breaks off in the middle.
    Breaks,
}

/// A reply that is being spoken.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) shared: Arc<Shared>,
    pub(super) socket: Socket,
    pub(super) provider: Provider,
    /// Of the next block; `handed_ns` is set when it is handed over.
    pub(super) mark: ReplyMark,
    pub(super) course: Course,
    /// When the first block is due.
    pub(super) first: Instant,
    pub(super) timer: Pin<Box<Sleep>>,
    pub(super) ended: bool,
}

impl Answer {
    /// When the next block is due.
    fn due(&self) -> Instant {
        if self.shared.config.paced {
            self.first + BLOCK * (self.mark.block - 1)
        } else {
            self.first
        }
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        self.shared.book().stats.end(self.provider, end);
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Reset>>> {
        let begun = self.mark.block > 1;
        if self.ended {
            return Poll::Ready(None);
        }
        if self.course == Course::Stalls && begun {
            let until = self.first + SILENT;
            if self.timer.deadline() != until {
                self.timer.as_mut().reset(until);
            }
            ready!(self.timer.as_mut().poll(context));
            self.end(End::Stalled);
            self.socket.reset_when_closed();
            return Poll::Ready(Some(Err(Reset)));
        }
        if self.course == Course::Breaks && self.mark.block > self.mark.blocks / 2 {
            self.end(End::Dropped);
            self.socket.reset_when_closed();
            return Poll::Ready(Some(Err(Reset)));
        }
        if self.mark.block > self.mark.blocks {
            self.end(End::Completed);
            return Poll::Ready(None);
        }
        let due = self.due();
        if self.timer.deadline() != due {
            self.timer.as_mut().reset(due);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Some(Ok(self.block(due))))
    }

    fn block(&mut self, due: Instant) -> Bytes {
        self.mark.handed_ns = Shared::now_ns();
        let mut block = Vec::with_capacity(REPLY_BLOCK_BYTES);
        block.extend_from_slice(&self.mark.bytes());
        block.resize(REPLY_BLOCK_BYTES, 0);
        let late = due.elapsed();
        let mut book = self.shared.book();
        book.stats.spoke(self.provider, REPLY_BLOCK_BYTES);
        if self.mark.block == 1 {
            let took = Duration::from_nanos(self.mark.handed_ns - self.mark.read_ns);
            book.stats.answered(self.provider, took, late);
        } else {
            book.stats.late(late);
        }
        drop(book);
        self.mark.block += 1;
        block.into()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.ended {
            self.end(End::Cancelled);
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Reset;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Reset>>> {
        match self.get_mut() {
            Self::Whole(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})))
            }
            Self::Spoken(answer) => {
                let block = ready!(answer.next(context));
                Poll::Ready(block.map(|block| block.map(Frame::data)))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            // Chunked, as providers send audio whose length they do not know yet.
            Self::Spoken(_) => SizeHint::default(),
        }
    }
}

/// The timer of a reply whose first block is due then.
pub(super) fn timer(first: Instant) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(first))
}
