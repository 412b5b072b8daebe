//! The session machine: a stream and its connection.

use std::sync::Arc;

use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use plimsoll_protocol::life::Life;

use crate::link::{Came, Link};
use crate::machines::Shared;
use crate::stream::{Claim, End, Stream};

/// A session of a trial.
#[derive(Debug)]
pub(crate) struct StreamSession {
    link: Link,
    stream: Stream,
    /// What [`Session::transmit`] gave last and the socket has not wholly taken.
    current: Option<Current>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Control {
        bytes: usize,
    },
    Frame {
        due_ns: u64,
    },
    /// Silence that only makes the server go on.
    Filler,
}

impl StreamSession {
    pub(crate) fn new(shared: &Arc<Shared>, plan: &SessionPlan) -> Self {
        let transport = shared.dialect.connect().transport;
        let seed = plan.seed ^ u64::from(plan.id);
        Self {
            link: Link::new(transport, &shared.endpoint, seed),
            stream: Stream::new(shared, plan),
            current: None,
        }
    }

    fn to_transmit(&self, now_ns: u64) -> Option<Current> {
        let control = self.link.control().len();
        if self.current.is_some() {
            return self.current;
        }
        if control > 0 {
            return Some(Current::Control { bytes: control });
        }
        if self.stream.life != Life::Open {
            return None;
        }
        match self.stream.end {
            End::NotYet => {
                let due_ns = self.stream.book.as_ref()?.next_due_ns()?;
                (due_ns <= now_ns).then_some(Current::Frame { due_ns })
            }
            End::Told { next_ns } => {
                let facts = self.stream.shared.dialect.facts();
                (next_ns <= now_ns && facts.silence_to_drain).then_some(Current::Filler)
            }
            End::Drained => None,
        }
    }

    /// Hands on what the stream wants to be written.
    fn post(&mut self) {
        for message in self.stream.out.drain(..) {
            self.link.queue(&message);
        }
        if std::mem::take(&mut self.stream.closes) {
            self.link.close();
        }
    }
}

impl Session for StreamSession {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        self.stream.life.phase()
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.stream.next_due_ns()
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match (&self.stream.book, self.stream.life) {
            (Some(book), Life::Open) => book.owed(now_ns),
            _ => 0,
        }
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.link.opens_at_once() {
            self.stream.greet(now_ns, recorder);
            self.post();
        }
    }

    fn woke(&mut self, now_ns: u64, _recorder: &mut Recorder<Claim>) {
        self.stream.woke(now_ns);
        self.post();
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.current = self.to_transmit(now_ns);
        let unscheduled = Transmit {
            head: &[],
            body: &[],
            due_ns: None,
            held_until_ns: None,
            measured: false,
        };
        let Stream {
            shared, plan, book, ..
        } = &self.stream;
        Some(match self.current? {
            Current::Control { bytes } => Transmit {
                head: &self.link.control()[..bytes],
                ..unscheduled
            },
            Current::Filler => Transmit {
                body: shared.frames.silence(),
                ..unscheduled
            },
            Current::Frame { due_ns } => Transmit {
                head: &[],
                body: shared.frames.of(book.as_ref()?.next_sound()),
                due_ns: Some(due_ns),
                // A turn's frames may be due before the server has taken the connection.
                held_until_ns: Some(self.stream.open_ns),
                measured: plan.window.contains(due_ns),
            },
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        match self.current.take() {
            Some(Current::Control { bytes }) => self.link.control_sent(bytes),
            Some(Current::Frame { .. }) => self.stream.said(write_ns, recorder),
            Some(Current::Filler) => self.stream.filled(),
            None => {}
        }
        self.post();
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        let Self { link, stream, .. } = self;
        link.received(bytes, |came| match came {
            Came::Opened => stream.greet(now_ns, recorder),
            Came::Message(incoming) => stream.came(incoming, now_ns, recorder),
            Came::Broken(reason) => stream.over(reason, recorder),
        });
        self.post();
    }

    fn held_bytes(&self) -> usize {
        self.link.held_bytes() + self.stream.held_bytes()
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        self.stream.disconnected(now_ns, how, recorder);
        self.link.abandon();
    }

    fn settled(&self) -> bool {
        self.stream.life != Life::Open
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        self.stream.finish(now_ns, recorder);
        self.post();
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
