//! The bare loop of deliveries: it waits for messages that the sink sends by its clock, reads them, and writes a settlement
//! for each batch.
//!
//! It makes the same system calls as the engine: a wait for all connections, a read of what is there, a write. The
//! settlements are made ready before, and it looks at none of the bytes that it reads.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use plimsoll_engine::Company;
use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_engine::readiness::{Epoll, Event, Readiness};
use plimsoll_workload::calibrate::Deliveries;

use super::Settings;
use super::bare::{READ_BUFFER_BYTES, WARM_UP, failed, on_cpu, open, us_each};
use super::sink::Sink;
use crate::error::Result;

/// Takes messages on one core. Returns the CPU time of each, µs.
///
/// # Errors
/// The sockets or the thread cannot be created.
pub(super) fn run(flow: Deliveries, sink: &Sink, settings: &Settings, cpu: u32) -> Result<f64> {
    let connections = connect(&flow, sink.address()).map_err(failed)?;
    sink.begin().map_err(failed)?;
    let duration = Duration::from_secs_f64(settings.seconds);
    let cost_us = on_cpu(cpu, move || {
        let mut taking = Taking::new(flow, connections)?;
        taking.go_on(WARM_UP)?;
        let cpu_ns = thread_cpu_ns();
        let messages = taking.go_on(duration)?;
        Ok(us_each(thread_cpu_ns() - cpu_ns, messages))
    })?;
    cost_us.map_err(failed)
}

fn connect(flow: &Deliveries, address: SocketAddr) -> std::io::Result<Vec<Connection>> {
    let connections = (0..flow.connections).map(|_| {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        open(&mut stream, &flow.opening)?;
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, begun: 0 })
    });
    connections.collect()
}

struct Connection {
    stream: TcpStream,
    /// The bytes that have come of a batch that is not whole yet.
    begun: usize,
}

struct Taking {
    flow: Deliveries,
    connections: Vec<Connection>,
    readiness: Epoll,
    events: Vec<Event>,
    read_buffer: Vec<u8>,
}

impl Taking {
    fn new(flow: Deliveries, connections: Vec<Connection>) -> std::io::Result<Self> {
        let mut readiness = Epoll::new()?;
        for (id, connection) in (0..).zip(&connections) {
            readiness.register(connection.stream.as_fd(), id)?;
        }
        Ok(Self {
            flow,
            connections,
            readiness,
            events: Vec::with_capacity(1024),
            read_buffer: vec![0; READ_BUFFER_BYTES],
        })
    }

    /// Takes for a while what comes. Returns how many messages came.
    fn go_on(&mut self, duration: Duration) -> std::io::Result<u64> {
        let start = Instant::now();
        let mut batches = 0;
        while let Some(left) = duration.checked_sub(start.elapsed()) {
            // Without a time it would not wait.
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX).max(1);
            self.readiness.wait(left_ns, &mut self.events)?;
            for event in self.events.drain(..).filter(|event| event.readable) {
                let place = usize::try_from(event.id).unwrap_or(usize::MAX);
                let connection = &mut self.connections[place];
                batches += connection.take(&self.flow, &mut self.read_buffer)?;
            }
        }
        Ok(batches * u64::from(self.flow.batch))
    }
}

impl Connection {
    /// Reads what is there, and settles what is whole. Returns how many batches that were.
    fn take(&mut self, flow: &Deliveries, buffer: &mut [u8]) -> std::io::Result<u64> {
        let mut batches = 0;
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    let bytes = self.begun + count;
                    self.begun = bytes % flow.batch_bytes;
                    for _ in 0..bytes / flow.batch_bytes {
                        self.stream.write_all(&flow.settlement)?;
                        batches += 1;
                    }
                    // A short read has emptied the socket, as in the engine.
                    if count < buffer.len() {
                        return Ok(batches);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(batches),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_core::speaker::{After, Speaker};
    use plimsoll_host::isolation::CpuList;
    use plimsoll_workload::calibrate::{Opening, Server};

    /// The bytes of a batch: more than one read takes.
    const BATCH_BYTES: usize = 100_000;

    /// Sends a batch when the last one is settled, and ends the connection at once if a settlement is another.
    struct OneAtATime {
        is_settled: bool,
    }

    impl Speaker for OneAtATime {
        fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
            match &*bytes {
                b"hello" => out.extend_from_slice(b"welcome"),
                b"settled" if !self.is_settled => self.is_settled = true,
                _ => return After::Close,
            }
            After::GoOn
        }

        fn unasked(&mut self, _now_ns: u64, _profile: &Profile, out: &mut Vec<u8>) {
            if std::mem::take(&mut self.is_settled) {
                out.resize(out.len() + BATCH_BYTES, b'.');
            }
        }
    }

    #[test]
    fn each_batch_is_settled_once() {
        let cpus = CpuList::allowed_to_us().expect("a machine");
        let server = Server::new(Duration::from_millis(1), || OneAtATime { is_settled: true });
        let sink = Sink::start(server, &Profile::quick(), &cpus, None).expect("a sink");
        let flow = Deliveries {
            connections: 3,
            period_ns: 1_000_000,
            batch: 16,
            batch_bytes: BATCH_BYTES,
            opening: Opening {
                request: b"hello".to_vec(),
                answer_end: b"welcome",
            },
            settlement: b"settled".to_vec(),
        };
        let connections = connect(&flow, sink.address()).expect("connections");
        sink.begin().expect("a clock");
        let mut taking = Taking::new(flow, connections).expect("epoll");
        let mut messages = 0;
        let start = Instant::now();
        // A batch that was not settled, or settled twice, would be the last one of its connection.
        while messages < 3 * 16 * 4 && start.elapsed() < Duration::from_secs(20) {
            messages += taking.go_on(Duration::from_millis(20)).expect("sockets");
        }
        assert!(messages >= 3 * 16 * 4, "{messages}");
        assert_eq!(messages % 16, 0);
    }
}
