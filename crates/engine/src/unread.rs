//! What has arrived and lies unread in the client's sockets. A client that keeps up with reading finds little there; one that
//! does not would count its own delay as the target's.

use plimsoll_core::profile::{NS_PER_MS, Window};
use plimsoll_core::session::Session;
use rustix::io::ioctl_fionread;
use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// How often the loop looks at most.
const PERIOD_NS: u64 = 10 * NS_PER_MS;
/// At how many sockets it looks each time: that takes some tens of microseconds at most.
const SOCKETS_MAX: usize = 64;

/// For how long sockets were watched in the measured window, and for how long too much lay unread in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// The time that the threads watched, summed.
    pub watched_ns: u64,
    /// Of that, the time in which more than [`Session::unread_max_bytes`] lay in a socket. If some of the sockets were looked
    /// at and only a part of these had so much, that part of the time.
    pub behind_ns: u64,
}

impl Unread {
    /// Adds what another thread or process saw.
    pub fn merge(&mut self, other: &Self) {
        self.watched_ns += other.watched_ns;
        self.behind_ns += other.behind_ns;
    }

    /// The share of the time in which too much lay unread; `None` if nobody watched.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a trial, far below 2^53"
    )]
    pub fn behind_share(&self) -> Option<f64> {
        (self.watched_ns > 0).then(|| self.behind_ns as f64 / self.watched_ns as f64)
    }
}

/// Looks at the sockets of a thread, by turns.
#[derive(Debug)]
pub(crate) struct UnreadWatch {
    window: Window,
    /// The sessions that ask for it, by place, and what may lie unread in each.
    asking: Vec<(usize, u64)>,
    turn: usize,
    next_ns: u64,
    /// The last look, if it found too much: when it was, how many sockets had too much, and of how many.
    behind: Option<(u64, u64, u64)>,
    seen: Unread,
}

impl UnreadWatch {
    pub(crate) fn new<S: Session>(slots: &[Slot<S>], window: Window) -> Self {
        let asks =
            |(place, slot): (usize, &Slot<S>)| Some((place, slot.session.unread_max_bytes()?));
        Self {
            window,
            asking: slots.iter().enumerate().filter_map(asks).collect(),
            turn: 0,
            next_ns: window.start_ns,
            behind: None,
            seen: Unread::default(),
        }
    }

    pub(crate) fn seen(&self) -> Unread {
        self.seen
    }

    /// Called in each turn of the loop before it waits. A loop that keeps up has read everything by then, but for what came in
    /// the last moment. A target that sends in bursts makes the loop turn just when much arrives, so what counts is not how
    /// often too much lies there, but for how long: until the next turn.
    pub(crate) fn look<S>(&mut self, now_ns: u64, slots: &[Slot<S>]) {
        if let Some((since_ns, behind, looked)) = self.behind.take() {
            let until_ns = now_ns.min(self.window.end_ns);
            self.seen.behind_ns += until_ns.saturating_sub(since_ns) * behind / looked;
        }
        if self.asking.is_empty() || now_ns < self.window.start_ns {
            return;
        }
        self.seen.watched_ns = now_ns.min(self.window.end_ns) - self.window.start_ns;
        if now_ns < self.next_ns || !self.window.contains(now_ns) {
            return;
        }
        self.next_ns = now_ns + PERIOD_NS;
        let (mut behind, mut looked) = (0, 0);
        for _ in 0..self.asking.len().min(SOCKETS_MAX) {
            let (place, most_bytes) = self.asking[self.turn];
            self.turn = (self.turn + 1) % self.asking.len();
            let socket = slots.get(place).and_then(|slot| slot.socket.as_ref());
            if let Some(Ok(unread_bytes)) = socket.map(ioctl_fionread) {
                looked += 1;
                behind += u64::from(unread_bytes > most_bytes);
            }
        }
        if behind > 0 {
            self.behind = Some((now_ns, behind, looked));
            // A loop that is behind all the time is seen to be in each turn.
            self.next_ns = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_core::recorder::Recorder;
    use plimsoll_core::schedule::session_plan;
    use plimsoll_core::session::{Disconnect, Phase, Transmit};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    /// A session that asks, or not.
    struct Asks(Option<u64>);

    impl Session for Asks {
        type Claim = ();
        fn phase(&self) -> Phase {
            Phase::Open
        }
        fn next_due_ns(&self) -> Option<u64> {
            None
        }
        fn owed(&self, _: u64) -> u64 {
            0
        }
        fn transmit(&mut self, _: u64) -> Option<Transmit<'_>> {
            None
        }
        fn sent(&mut self, _: u64, _: &mut Recorder<()>) {}
        fn received(&mut self, _: u64, _: &[u8], _: &mut Recorder<()>) {}
        fn unread_max_bytes(&self) -> Option<u64> {
            self.0
        }
        fn disconnected(&mut self, _: u64, _: Disconnect, _: &mut Recorder<()>) {}
        fn settled(&self) -> bool {
            true
        }
        fn finish(&mut self, _: u64, _: &mut Recorder<()>) {}
    }

    const WINDOW: Window = Window {
        start_ns: 0,
        end_ns: 1_000_000_000,
        grace_end_ns: 1_000_000_000,
    };

    fn connected(asks: Option<u64>, listener: &TcpListener) -> (Slot<Asks>, TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let plan = session_plan(0, 1, &Profile::quick(), 1);
        let mut slot = Slot::new(&plan, Asks(asks));
        slot.socket = Some(OwnedFd::from(client.try_clone().unwrap()));
        (slot, client, server)
    }

    #[test]
    fn only_the_time_in_which_too_much_lies_unread_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (slot, mut client, mut server) = connected(Some(1_000), &listener);
        let (other, _, mut to_other) = connected(None, &listener);
        let slots = [slot, other];
        let mut watch = UnreadWatch::new(&slots, WINDOW);
        watch.look(0, &slots);
        server.write_all(&[7; 1_001]).unwrap();
        to_other.write_all(&[7; 5_000]).unwrap();
        // Too early, then late enough.
        watch.look(PERIOD_NS - 1, &slots);
        watch.look(PERIOD_NS, &slots);
        assert_eq!(watch.seen().behind_ns, 0);
        // It lay there until the next turn, and until the one after that.
        watch.look(PERIOD_NS + 300, &slots);
        assert_eq!(watch.seen().behind_ns, 300);
        client.read_exact(&mut [0]).unwrap();
        watch.look(PERIOD_NS + 500, &slots);
        watch.look(3 * PERIOD_NS, &slots);
        let expected = Unread {
            watched_ns: 3 * PERIOD_NS,
            behind_ns: 500,
        };
        assert_eq!(watch.seen(), expected);
        // A long turn at the end of the window counts until that end.
        server.write_all(&[7; 1_001]).unwrap();
        watch.look(WINDOW.end_ns - 100, &slots);
        watch.look(WINDOW.end_ns + 900, &slots);
        let expected = Unread {
            watched_ns: WINDOW.end_ns,
            behind_ns: 600,
        };
        assert_eq!(watch.seen(), expected);
        assert_eq!(watch.seen().behind_share(), Some(6e-7));
        assert_eq!(Unread::default().behind_share(), None);
    }

    #[test]
    fn many_sockets_take_turns() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let all: Vec<_> = (0..SOCKETS_MAX + 1)
            .map(|number| {
                // The last one has something.
                let connected = connected(Some(10), &listener);
                if number == SOCKETS_MAX {
                    (&connected.2).write_all(&[7; 11]).unwrap();
                }
                connected
            })
            .collect();
        let (slots, ends): (Vec<_>, Vec<_>) = all
            .into_iter()
            .map(|(slot, client, server)| (slot, (client, server)))
            .unzip();
        let mut watch = UnreadWatch::new(&slots, WINDOW);
        watch.look(0, &slots);
        assert_eq!(watch.behind, None);
        watch.look(PERIOD_NS, &slots);
        assert_eq!(watch.behind, Some((PERIOD_NS, 1, SOCKETS_MAX as u64)));
        drop(ends);
    }
}
