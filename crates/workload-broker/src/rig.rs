//! What the tests of all protocols share: a machine and its connection to a small server.

use crate::dialect::{Dialect, Fault, Heard};

/// Something heard that outlives the bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    Ready,
    Confirmed(u64),
    Refused(Option<u64>, String),
    Delivered {
        payload: Vec<u8>,
        handle: u64,
        redelivered: bool,
    },
}

fn event(heard: Heard<'_>) -> Event {
    match heard {
        Heard::Ready => Event::Ready,
        Heard::Confirmed { tag, up_to: false } => Event::Confirmed(tag),
        Heard::Refused { tag, why } => Event::Refused(tag, why.to_owned()),
        Heard::Delivered {
            payload,
            handle,
            redelivered,
        } => Event::Delivered {
            payload: payload.to_vec(),
            handle,
            redelivered,
        },
        other => panic!("{other:?}"),
    }
}

/// A server of the tests, with its connections by their numbers.
pub(crate) trait Server {
    /// A new connection.
    fn connect(&mut self) -> usize;
    /// Takes what a client wrote.
    fn received(&mut self, line: usize, bytes: &[u8]);
    /// What the server has written to a connection since.
    fn written(&mut self, line: usize) -> Vec<u8>;
}

/// A machine and its connection.
pub(crate) struct Peer<D> {
    pub(crate) line: usize,
    pub(crate) machine: D,
    /// Bytes reach the machine in pieces of this size.
    pub(crate) piece: usize,
}

impl<D: Dialect> Peer<D> {
    /// Connects, and writes the first bytes.
    pub(crate) fn new(server: &mut impl Server, mut machine: D) -> Self {
        let line = server.connect();
        let mut out = Vec::new();
        machine.open(&mut out);
        server.received(line, &out);
        Self {
            line,
            machine,
            piece: usize::MAX,
        }
    }

    /// The same, until the machine is ready.
    pub(crate) fn ready(server: &mut impl Server, machine: D) -> Self {
        let mut peer = Self::new(server, machine);
        assert_eq!(peer.talk(server).unwrap(), [Event::Ready]);
        peer
    }

    /// Carries bytes in both directions until nobody says anything more.
    pub(crate) fn talk(&mut self, server: &mut impl Server) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        loop {
            let bytes = server.written(self.line);
            if bytes.is_empty() {
                return Ok(events);
            }
            let mut out = Vec::new();
            for piece in bytes.chunks(self.piece) {
                let mut heard = |heard: Heard<'_>| events.push(event(heard));
                self.machine.received(piece, &mut out, &mut heard)?;
            }
            self.machine.flush(&mut out);
            server.received(self.line, &out);
        }
    }

    pub(crate) fn publish(&mut self, server: &mut impl Server, body: &[u8], tag: u64) {
        let mut out = Vec::new();
        self.machine.publish(&mut out, body, tag);
        self.machine.flush(&mut out);
        server.received(self.line, &out);
    }

    /// Publishes several messages by one write. Their tags count from `first` on.
    pub(crate) fn publish_all(
        &mut self,
        server: &mut impl Server,
        bodies: &[impl AsRef<[u8]>],
        first: u64,
    ) {
        let mut out = Vec::new();
        for (tag, body) in (first..).zip(bodies) {
            self.machine.publish(&mut out, body.as_ref(), tag);
        }
        self.machine.flush(&mut out);
        server.received(self.line, &out);
    }

    pub(crate) fn settle(&mut self, server: &mut impl Server, handles: &[u64]) {
        let mut out = Vec::new();
        self.machine.settle(&mut out, handles);
        self.machine.flush(&mut out);
        server.received(self.line, &out);
    }
}

/// The bodies that arrived.
pub(crate) fn bodies(events: &[Event]) -> Vec<&[u8]> {
    let bodies = events.iter().filter_map(|event| match event {
        Event::Delivered { payload, .. } => Some(&payload[..]),
        _ => None,
    });
    bodies.collect()
}

/// Their handles.
pub(crate) fn handles(events: &[Event]) -> Vec<u64> {
    let handles = events.iter().filter_map(|event| match event {
        Event::Delivered { handle, .. } => Some(*handle),
        _ => None,
    });
    handles.collect()
}
