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

/// How often sockets were looked at in the measured window, and how often too much lay unread in one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Looks at one socket each.
    pub samples: u64,
    /// Of those, the ones that found more than [`Session::unread_max_bytes`].
    pub behind: u64,
}

impl Unread {
    /// Adds what another thread or process saw.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.behind += other.behind;
    }

    /// The share of looks that found too much; `None` if nobody looked.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "looks in a trial, far below 2^53"
    )]
    pub fn behind_share(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.behind as f64 / self.samples as f64)
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
            seen: Unread::default(),
        }
    }

    pub(crate) fn seen(&self) -> Unread {
        self.seen
    }

    /// Called in each turn of the loop before it waits. A loop that keeps up has read everything by then, but for what came in
    /// the last moment. After the wait there would be more: a target that sends in bursts ends the wait with one.
    pub(crate) fn look<S>(&mut self, now_ns: u64, slots: &[Slot<S>]) {
        if now_ns < self.next_ns || !self.window.contains(now_ns) || self.asking.is_empty() {
            return;
        }
        self.next_ns = now_ns + PERIOD_NS;
        for _ in 0..self.asking.len().min(SOCKETS_MAX) {
            let (place, most_bytes) = self.asking[self.turn];
            self.turn = (self.turn + 1) % self.asking.len();
            let socket = slots.get(place).and_then(|slot| slot.socket.as_ref());
            if let Some(Ok(unread_bytes)) = socket.map(ioctl_fionread) {
                self.seen.samples += 1;
                self.seen.behind += u64::from(unread_bytes > most_bytes);
            }
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
    fn only_what_lies_unread_in_the_window_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (slot, mut client, mut server) = connected(Some(1_000), &listener);
        let (other, _, mut to_other) = connected(None, &listener);
        let slots = [slot, other];
        let mut watch = UnreadWatch::new(&slots, WINDOW);
        watch.look(0, &slots);
        let one = |behind| Unread { samples: 1, behind };
        assert_eq!(watch.seen(), one(0));
        server.write_all(&[7; 1_001]).unwrap();
        to_other.write_all(&[7; 5_000]).unwrap();
        // Too early, then late enough.
        watch.look(PERIOD_NS - 1, &slots);
        assert_eq!(watch.seen(), one(0));
        watch.look(PERIOD_NS, &slots);
        assert_eq!((watch.seen().samples, watch.seen().behind), (2, 1));
        client.read_exact(&mut [0]).unwrap();
        watch.look(2 * PERIOD_NS, &slots);
        assert_eq!((watch.seen().samples, watch.seen().behind), (3, 1));
        watch.look(WINDOW.end_ns, &slots);
        assert_eq!(watch.seen().samples, 3, "the window is over");
        assert_eq!(watch.seen().behind_share(), Some(1.0 / 3.0));
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
        assert_eq!(watch.seen().behind, 0);
        watch.look(PERIOD_NS, &slots);
        assert_eq!(watch.seen().behind, 1);
        assert_eq!(watch.seen().samples, 2 * SOCKETS_MAX as u64);
        drop(ends);
    }
}
