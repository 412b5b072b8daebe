//! A connection of a sink that delivers messages by the clock, and when they are due.

use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_workload::calibrate::{After, Speaker};

use crate::fibril::{NotOurs, Server};
use crate::message::{Messages, Stamp};

/// Messages that are due together on a connection. They go out in one write, so they come with one read.
pub(super) const BATCH: u32 = 16;
/// Time between two batches of a connection, ns.
pub(super) const BATCH_PERIOD_NS: u64 = 4 * NS_PER_MS;

/// A connection of the sink. It delivers the messages of a writer of its own.
#[derive(Debug)]
pub(super) struct Peer {
    server: Server,
    connection: u32,
    messages: Arc<Messages>,
    next_batch: u64,
    /// The message that is being made.
    payload: Vec<u8>,
}

impl Peer {
    /// A connection with this number, from 0.
    pub(super) fn new(connection: u32, messages: Arc<Messages>) -> Self {
        Self {
            server: Server::default(),
            connection,
            messages,
            next_batch: 0,
            payload: Vec::new(),
        }
    }

    /// The bytes of a batch for a client that begins like this.
    pub(super) fn batch_bytes(greeting: &[u8]) -> usize {
        let mut peer = Self::new(0, Arc::new(super::messages()));
        let (mut answers, mut batch) = (Vec::new(), Vec::new());
        let received = peer.server.received(greeting, &mut answers);
        received.unwrap_or_else(|_| unreachable!("our own client"));
        peer.deliver_batch(0, false, &mut batch);
        batch.len()
    }

    fn deliver_batch(&mut self, due_ns: u64, measured: bool, out: &mut Vec<u8>) {
        let first = self.next_batch * u64::from(BATCH);
        for sequence in (first..).take(BATCH as usize) {
            let stamp = Stamp {
                writer: 0,
                sequence,
                intended_ns: due_ns,
                late_us: 0,
                measured,
            };
            self.messages.encode(&stamp, &mut self.payload);
            self.server.deliver(&self.payload, out);
        }
        self.next_batch += 1;
    }
}

impl Speaker for Peer {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        after(self.server.received(bytes, out))
    }

    /// Delivers the batches that are due and that the client has room for. The others stay due: a client that is late gets
    /// them late, with the time when they were due.
    fn unasked(&mut self, now_ns: u64, profile: &Profile, out: &mut Vec<u8>) {
        let first_due_ns = first_due_ns(self.connection, profile);
        loop {
            let due_ns = first_due_ns + self.next_batch * BATCH_PERIOD_NS;
            if due_ns > now_ns || self.server.room() < u64::from(BATCH) {
                return;
            }
            self.deliver_batch(due_ns, profile.window().contains(due_ns), out);
        }
    }
}

/// What becomes of a connection after this.
pub(super) fn after(received: Result<(), NotOurs>) -> After {
    match received {
        Ok(()) => After::GoOn,
        Err(NotOurs) => After::Close,
    }
}

/// When the first batch of a connection is due: after the ramp, when all clients are there. The batches of many connections
/// are spread evenly over a period, however many there are, by the golden ratio.
fn first_due_ns(connection: u32, profile: &Profile) -> u64 {
    const GOLDEN_RATIO_FRACTION: u32 = 0x9E37_79B9;
    let phase = u64::from(connection.wrapping_mul(GOLDEN_RATIO_FRACTION));
    profile.ramp_end_ns() + ((phase * BATCH_PERIOD_NS) >> 32)
}

/// Messages that are due in the measured window, on so many connections together.
pub(super) fn measured_messages(connections: u32, profile: &Profile) -> u64 {
    let window = profile.window();
    let batches = (0..connections).map(|connection| {
        let before = |time_ns: u64| {
            let since_ns = time_ns.saturating_sub(first_due_ns(connection, profile));
            since_ns.div_ceil(BATCH_PERIOD_NS)
        };
        before(window.end_ns) - before(window.start_ns)
    });
    batches.sum::<u64>() * u64::from(BATCH)
}

/// More messages than a connection delivers in a run.
pub(super) fn messages_max(profile: &Profile) -> u64 {
    (profile.window().grace_end_ns / BATCH_PERIOD_NS + 2) * u64::from(BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{dialect, messages};
    use crate::dialect::{Dialect, Heard};
    use crate::load::Test;

    fn profile() -> Profile {
        Profile {
            ramp_s: 0.01,
            warm_up_s: 0.02,
            measured_s: 0.1,
            ..Profile::quick()
        }
    }

    /// A reader of the engine, and its connection.
    struct Line {
        reader: Box<dyn Dialect>,
        peer: Peer,
    }

    impl Line {
        /// They have greeted each other.
        fn new(connection: u32) -> Self {
            let mut line = Self {
                reader: dialect(Test::Steady, |links| links.reader(0)),
                peer: Peer::new(connection, Arc::new(messages())),
            };
            let mut out = Vec::new();
            line.reader.open(&mut out);
            while !out.is_empty() {
                let mut answers = Vec::new();
                assert_eq!(line.peer.heard(&mut out, &mut answers), After::GoOn);
                out.clear();
                let heard = line.reader.received(&answers, &mut out, &mut |_| {});
                heard.expect("no fault");
            }
            line
        }

        /// What comes at this time: its stamps and its handles.
        fn at(&mut self, now_ns: u64) -> (Vec<Stamp>, Vec<u64>) {
            let (mut bytes, mut out) = (Vec::new(), Vec::new());
            self.peer.unasked(now_ns, &profile(), &mut bytes);
            let (mut stamps, mut handles) = (Vec::new(), Vec::new());
            let heard = self.reader.received(&bytes, &mut out, &mut |heard| {
                let Heard::Delivered {
                    payload,
                    handle,
                    redelivered: false,
                } = heard
                else {
                    panic!("{heard:?}");
                };
                stamps.push(messages().check(payload).expect("one of ours").stamp);
                handles.push(handle);
            });
            heard.expect("no fault");
            (stamps, handles)
        }

        fn settle(&mut self, handles: &[u64]) {
            let (mut ack, mut out) = (Vec::new(), Vec::new());
            self.reader.settle(&mut ack, handles);
            assert_eq!(self.peer.heard(&mut ack, &mut out), After::GoOn);
            assert!(out.is_empty());
        }
    }

    #[test]
    fn what_comes_in_the_window_is_what_is_expected() {
        let connections = 5;
        let mut measured = 0;
        for connection in 0..connections {
            let mut line = Line::new(connection);
            let mut sequence = 0..;
            // Looks at odd times, until the window is over.
            for now_ns in (0..140_000_000).step_by(777_777) {
                let (stamps, handles) = line.at(now_ns);
                for stamp in &stamps {
                    assert_eq!(Some(stamp.sequence), sequence.next());
                    assert!(stamp.intended_ns <= now_ns && now_ns - stamp.intended_ns < 777_777);
                    assert_eq!(
                        stamp.measured,
                        profile().window().contains(stamp.intended_ns)
                    );
                    measured += u64::from(stamp.measured);
                }
                assert_eq!(stamps.len() % BATCH as usize, 0);
                line.settle(&handles);
            }
            assert!(sequence.start < messages_max(&profile()));
        }
        assert_eq!(measured, measured_messages(connections, &profile()));
        let each = 100 / 4 * u64::from(BATCH);
        assert!(measured.abs_diff(each * u64::from(connections)) <= u64::from(BATCH * connections));
    }

    #[test]
    fn what_a_client_does_not_settle_holds_the_rest_back() {
        let mut line = Line::new(0);
        let (stamps, handles) = line.at(1_000_000_000);
        // The prefetch of a reader, unless the user gives another.
        assert_eq!(stamps.len(), 512);
        assert!(line.at(1_000_000_000).0.is_empty());
        line.settle(&handles[..40]);
        let (late, _) = line.at(1_000_000_000);
        assert_eq!(late.len(), 32);
        // They keep the time when they were due.
        assert_eq!(
            late[0].intended_ns,
            stamps[0].intended_ns + 32 * BATCH_PERIOD_NS
        );
    }

    #[test]
    fn batches_of_many_connections_are_spread_over_a_period() {
        let mut firsts: Vec<u64> = (0..25)
            .map(|number| first_due_ns(number, &profile()))
            .collect();
        firsts.sort_unstable();
        let gaps = firsts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max().expect("gaps") < BATCH_PERIOD_NS / 12);
        assert!(firsts[24] - firsts[0] < BATCH_PERIOD_NS);
        assert_eq!(firsts[0], 10_000_000);
    }
}
