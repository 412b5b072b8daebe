//! The bare loop of connections: connect, say what opens a connection, close.
//!
//! It opens connections by the clock, as the engine does. It reads from a connection only when the data must be there:
//! the answer when the connection's time is over, and the server's close several intervals of the sink later. So it
//! never has to wait.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_workload::calibrate::Connections;

use super::Settings;
use super::bare::{WARM_UP, failed, on_cpu, pace, read_some, us_each};
use super::sink::Sink;
use crate::error::Result;

/// Opens connections on one core. Returns the CPU time of each, µs.
///
/// # Errors
/// The sockets or the thread cannot be created.
pub(super) fn run(flow: Connections, sink: &Sink, settings: &Settings, cpu: u32) -> Result<f64> {
    let mut arrivals = BareArrivals::new(flow, sink.address());
    let duration = Duration::from_secs_f64(settings.seconds);
    let cost_us = on_cpu(cpu, move || {
        arrivals.open(WARM_UP)?;
        let cpu_ns = thread_cpu_ns();
        let opened = arrivals.open(duration)?;
        Ok(us_each(thread_cpu_ns() - cpu_ns, opened))
    })?;
    cost_us.map_err(failed)
}

/// Connections, each with the time of its next step, in the order of those times.
type Waiting = VecDeque<(Instant, TcpStream)>;

struct BareArrivals {
    flow: Connections,
    address: SocketAddr,
    read_buffer: Vec<u8>,
    open: Waiting,
    leaving: Waiting,
}

impl BareArrivals {
    fn new(flow: Connections, address: SocketAddr) -> Self {
        Self {
            flow,
            address,
            read_buffer: vec![0; 4_096],
            open: VecDeque::new(),
            leaving: VecDeque::new(),
        }
    }

    /// Opens connections for a while, and closes those whose time is over. Returns how many it opened.
    fn open(&mut self, duration: Duration) -> std::io::Result<u64> {
        let mut opened = 0;
        pace(duration, f64::from(self.flow.per_s), |due| {
            self.close_old()?;
            while opened < due {
                let mut stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                stream.write_all(&self.flow.request)?;
                let until = Instant::now() + self.flow.linger;
                self.open.push_back((until, stream));
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
            stream.write_all(&self.flow.close)?;
            self.leaving.push_back((now + self.flow.farewell, stream));
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
    use plimsoll_core::profile::Profile;
    use plimsoll_host::isolation::CpuList;
    use plimsoll_workload::calibrate::{After, Server, Speaker};

    const TIME: Duration = Duration::from_millis(20);

    /// Answers each request, and a close with the end.
    struct Polite;

    impl Speaker for Polite {
        fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
            out.extend_from_slice(bytes);
            if bytes == b"bye" {
                After::Close
            } else {
                After::GoOn
            }
        }
    }

    #[test]
    fn what_is_opened_is_closed_by_the_sink() {
        let cpus = CpuList::new(vec![0]).expect("a core");
        let server = Server::new(Duration::from_millis(1), || Polite);
        let sink = Sink::start(server, &Profile::quick(), &cpus, None).expect("a sink");
        let flow = Connections {
            per_s: 100,
            request: b"hello".to_vec(),
            close: b"bye".to_vec(),
            linger: TIME,
            farewell: TIME,
        };
        let mut arrivals = BareArrivals::new(flow, sink.address());
        let began = std::time::Instant::now();
        let opened = arrivals.open(Duration::from_millis(200)).expect("sockets");
        // On a busy machine it takes longer, and those that are due by then are opened, too.
        let due = began.elapsed().as_millis() as u64 / 10 + 1;
        assert!((10..=due).contains(&opened), "{opened} of {due}");
        assert!((arrivals.open.len() + arrivals.leaving.len()) as u64 <= due);
        std::thread::sleep(TIME);
        arrivals.close_old().expect("sockets");
        assert!(arrivals.open.is_empty() && !arrivals.leaving.is_empty());
        std::thread::sleep(TIME * 5);
        let (_, last) = arrivals.leaving.back().expect("one that leaves");
        let mut buffer = [0; 256];
        let answered = read_some(last, &mut buffer).expect("an answer");
        assert!(!answered && buffer.starts_with(b"bye"), "a close");
        assert!(read_some(last, &mut buffer).expect("the end"));
    }
}
