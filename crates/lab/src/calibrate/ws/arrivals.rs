//! The bare loop of connections: connect, request the upgrade, close.
//!
//! It opens connections by the clock, as the engine does. It reads from a connection only when the data must be there:
//! the answer when the connection's time is over, and the server's close several intervals of the sink later. So it
//! never has to wait.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_host::signals::Stop;
use plimsoll_protocol::websocket::{Opcode, append_client_frame, close};

use super::work::LINGER;
use crate::calibrate::bare::{WARM_UP, failed, on_cpu, pace, read_some, upgrade_bytes, us_each};
use crate::calibrate::sink::{Sink, SinkKind};
use crate::calibrate::{Settings, go_on};
use crate::error::Result;

/// How long the sink has to answer a close.
pub(super) const FAREWELL: Duration = Duration::from_millis(20);

/// Opens this many connections per second on one core. Returns the CPU time of each, µs.
///
/// # Errors
/// The sockets or the thread cannot be created.
pub(super) fn run(per_s: u32, settings: &Settings, cpu: u32, stop: &Stop) -> Result<f64> {
    go_on(stop)?;
    let sink = Sink::start(SinkKind::Echo, &settings.sink_cpus)?;
    let mut arrivals = BareArrivals::new(sink.address());
    let duration = Duration::from_secs_f64(settings.seconds);
    let cost_us = on_cpu(cpu, move || {
        arrivals.open(WARM_UP, per_s)?;
        let cpu_ns = thread_cpu_ns();
        let opened = arrivals.open(duration, per_s)?;
        Ok(us_each(thread_cpu_ns() - cpu_ns, opened))
    })?;
    cost_us.map_err(failed)
}

/// Connections, each with the time of its next step, in the order of those times.
type Waiting = VecDeque<(Instant, TcpStream)>;

struct BareArrivals {
    address: SocketAddr,
    request: Vec<u8>,
    close: Vec<u8>,
    read_buffer: Vec<u8>,
    open: Waiting,
    leaving: Waiting,
}

impl BareArrivals {
    fn new(address: SocketAddr) -> Self {
        let mut close = Vec::new();
        let payload = close::payload(close::NORMAL, "");
        append_client_frame(&mut close, true, Opcode::Close, &payload, [7; 4]);
        Self {
            address,
            request: upgrade_bytes(),
            close,
            read_buffer: vec![0; 4_096],
            open: VecDeque::new(),
            leaving: VecDeque::new(),
        }
    }

    /// Opens connections for a while, and closes those whose time is over. Returns how many it opened.
    fn open(&mut self, duration: Duration, per_s: u32) -> std::io::Result<u64> {
        let mut opened = 0;
        pace(duration, f64::from(per_s), |due| {
            self.close_old()?;
            while opened < due {
                let mut stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                stream.write_all(&self.request)?;
                self.open.push_back((Instant::now() + LINGER, stream));
                opened += 1;
            }
            Ok(())
        })?;
        Ok(opened)
    }

    fn close_old(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        while let Some(mut stream) = next(&mut self.open, now) {
            read_some(&stream, &mut self.read_buffer)?;
            stream.write_all(&self.close)?;
            self.leaving.push_back((now + FAREWELL, stream));
        }
        while let Some(stream) = next(&mut self.leaving, now) {
            // First the answer to the close, then the end.
            if !read_some(&stream, &mut self.read_buffer)? {
                read_some(&stream, &mut self.read_buffer)?;
            }
        }
        Ok(())
    }
}

/// The first connection, if its time has come.
fn next(waiting: &mut Waiting, now: Instant) -> Option<TcpStream> {
    let (at, _) = waiting.front()?;
    if *at > now {
        return None;
    }
    waiting.pop_front().map(|(_, stream)| stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_host::isolation::CpuList;

    #[test]
    fn what_is_opened_is_closed_by_the_sink() {
        let cpus = CpuList::new(vec![0]).expect("a core");
        let sink = Sink::start(SinkKind::Echo, &cpus).expect("a sink");
        let mut arrivals = BareArrivals::new(sink.address());
        let opened = arrivals
            .open(Duration::from_millis(200), 100)
            .expect("sockets");
        assert!((10..=20).contains(&opened), "{opened}");
        assert!(arrivals.open.len() + arrivals.leaving.len() < 20);
        std::thread::sleep(LINGER);
        arrivals.close_old().expect("sockets");
        assert!(arrivals.open.is_empty() && !arrivals.leaving.is_empty());
        std::thread::sleep(FAREWELL * 5);
        let (_, last) = arrivals.leaving.back().expect("one that leaves");
        let mut buffer = [0; 256];
        let answered = read_some(last, &mut buffer).expect("an answer");
        assert!(!answered && buffer[0] == 0x88, "a close");
        assert!(read_some(last, &mut buffer).expect("the end"));
    }
}
