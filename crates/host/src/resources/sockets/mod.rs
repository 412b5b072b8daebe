//! The target's ends of the sessions' connections, as the kernel counts them: what is unread, what is not acknowledged,
//! what was sent again, and what waits to be accepted.
//!
//! ```text
//! procfs  /proc/net/tcp, for kernels without socket diagnostics
//! series  samples over time, and what they say of a window
//! ```
//!
//! They are found by their local address, which the sessions connect to, in our own network namespace. A target on
//! another host or behind address translation has none there, so nothing is reported.

pub(crate) mod procfs;
mod series;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_core::sock_diag::{self, Family, Socket};
use socket2::{Domain, Protocol, Type};

use super::members::Members;
pub use series::{SocketSample, SocketSeries};

/// The kernel's numbers for TCP states, from `net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
pub(crate) const LISTEN: u8 = 10;
/// Established, and the states in which one side has closed: `FIN_WAIT1`, `FIN_WAIT2`, `CLOSE_WAIT`, `LAST_ACK`,
/// `CLOSING`. Not `TIME_WAIT`, which is nobody's connection any more.
const OPEN: [u8; 6] = [ESTABLISHED, 4, 5, 8, 9, 11];

/// `AF_NETLINK` and `NETLINK_SOCK_DIAG`.
const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
/// The kernel fills at most 32 KiB of a dump at a time.
const DATAGRAM_BYTES: usize = 64 * 1024;
/// The answer comes while the request is made. This timeout only keeps a fault from stopping the samples.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Watches the sockets behind one address.
#[derive(Debug)]
pub struct SocketWatch {
    address: SocketAddr,
    /// `None` once the kernel has refused; from then on, `/proc` is read.
    netlink: Option<socket2::Socket>,
    sequence: u32,
    buffer: Vec<u8>,
    /// Remote end → segments sent again.
    retransmits: Members<SocketAddr, 1>,
}

impl SocketWatch {
    /// Watches the sockets whose local address is `address`, which the sessions connect to.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        Self {
            address: SocketAddr::new(ip, address.port()),
            netlink: netlink().ok(),
            sequence: 0,
            buffer: vec![0; DATAGRAM_BYTES],
            retransmits: Members::default(),
        }
    }

    /// What there is now; `None` if there is neither a connection nor a listener. `at_ns` is the time given to the
    /// sample.
    pub fn take(&mut self, at_ns: u64) -> Option<SocketSample> {
        let mut sockets = self.dump();
        sockets.retain(|socket| self.is_ours(socket));
        let listening = |socket: &&Socket| socket.state == LISTEN;
        let listeners = sockets.iter().filter(listening);
        let waiting = listeners.map(|socket| u64::from(socket.receive_queue));
        let accept_queue = waiting.reduce(|sum, more| sum + more);
        let connections: Vec<&Socket> = sockets
            .iter()
            .filter(|socket| OPEN.contains(&socket.state))
            .collect();
        if connections.is_empty() && accept_queue.is_none() {
            return None;
        }
        let again = connections
            .iter()
            .filter_map(|socket| Some((socket.remote, [u64::from(socket.retransmits?)])));
        let [retransmits] = self.retransmits.update(again.collect());
        let mut sample = SocketSample {
            at_ns,
            connections: connections.len() as u64,
            retransmits: self.netlink.is_some().then_some(retransmits),
            accept_queue,
            ..SocketSample::default()
        };
        for socket in connections {
            sample.receive_queue.add(socket.receive_queue);
            sample.send_queue.add(socket.send_queue);
        }
        Some(sample)
    }

    fn is_ours(&self, socket: &Socket) -> bool {
        let ip = socket.local.ip();
        let any = self.address.ip().is_unspecified();
        let bound_to_all = socket.state == LISTEN && ip.is_unspecified();
        socket.local.port() == self.address.port()
            && (any || bound_to_all || ip == self.address.ip())
    }

    fn dump(&mut self) -> Vec<Socket> {
        if self.netlink.is_some() {
            match self.dump_netlink() {
                Ok(sockets) => return sockets,
                // A kernel without the module refuses each time. What `/proc` knows is better than nothing.
                Err(_) => self.netlink = None,
            }
        }
        let text = |name: &str| std::fs::read_to_string(format!("/proc/net/{name}"));
        let mut sockets = Vec::new();
        for name in ["tcp", "tcp6"] {
            sockets.extend(procfs::sockets(&text(name).unwrap_or_default()));
        }
        sockets
    }

    /// Asks for both families, because an IPv6 socket may carry IPv4.
    fn dump_netlink(&mut self) -> std::io::Result<Vec<Socket>> {
        let Some(netlink) = &mut self.netlink else {
            return Err(std::io::ErrorKind::Unsupported.into());
        };
        let states = OPEN
            .iter()
            .chain(&[LISTEN])
            .fold(0, |states, state| states | 1 << state);
        let mut sockets = Vec::new();
        for family in [Family::V4, Family::V6] {
            self.sequence = self.sequence.wrapping_add(1);
            let request =
                sock_diag::request_all(family, self.address.port(), states, self.sequence);
            netlink.write_all(&request)?;
            loop {
                let length = netlink.read(&mut self.buffer)?;
                let datagram = &self.buffer[..length];
                if sock_diag::read(datagram, self.sequence, &mut sockets)? {
                    break;
                }
            }
        }
        Ok(sockets)
    }
}

fn netlink() -> std::io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        Domain::from(AF_NETLINK),
        Type::RAW,
        Some(Protocol::from(NETLINK_SOCK_DIAG)),
    )?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    fn eventually(watch: &mut SocketWatch, what: &str, holds: impl Fn(&SocketSample) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let sample = watch.take(0).expect("a listener");
            if holds(&sample) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {sample:?}");
            std::thread::yield_now();
        }
    }

    /// A server that accepts one of two connections and reads from neither.
    fn a_server_that_does_not_read(listener: &TcpListener, connect_to: SocketAddr, netlink: bool) {
        let mut watch = SocketWatch::new(connect_to);
        if !netlink {
            watch.netlink = None;
        }
        let idle = watch.take(0).expect("a listener");
        assert_eq!((idle.connections, idle.accept_queue), (0, Some(0)));
        let mut reader = TcpStream::connect(connect_to).expect("connect");
        let (mut served, _) = listener.accept().expect("accept");
        let _waiting = TcpStream::connect(connect_to).expect("connect");
        reader.write_all(&[7; 10_000]).expect("write");
        served.write_all(&[7; 3]).expect("write");
        eventually(&mut watch, "what was sent lies unread", |sample| {
            sample.receive_queue.peak == 10_000 && sample.receive_queue.sum == 10_000
        });
        eventually(&mut watch, "the second one waits", |sample| {
            sample.connections == 2 && sample.accept_queue == Some(1)
        });
        let told = watch.take(0).expect("still there").retransmits;
        assert_eq!(told.is_some(), watch.netlink.is_some());
    }

    #[test]
    fn a_server_that_stops_reading_shows_its_receive_queue() {
        for netlink in [true, false] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
            let address = listener.local_addr().expect("bound");
            a_server_that_does_not_read(&listener, address, netlink);
        }
    }

    #[test]
    fn a_listener_for_both_families_is_found_by_its_ipv4_address() {
        // The standard library leaves IPV6_V6ONLY at the system's setting, mostly off. Without IPv6 there is nothing to
        // test.
        let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) else {
            return;
        };
        let port = listener.local_addr().expect("bound").port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpStream::connect(address).is_err() {
            return;
        }
        listener.accept().expect("the trial connection");
        for netlink in [true, false] {
            let mut watch = SocketWatch::new(address);
            // What the trial connection left behind is no longer open.
            eventually(&mut watch, "none is open", |sample| sample.connections == 0);
            a_server_that_does_not_read(&listener, address, netlink);
            // The connection that waited.
            listener.accept().expect("the second");
        }
    }

    #[test]
    fn an_address_where_nobody_is_says_nothing() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let address = free.local_addr().expect("bound");
        drop(free);
        assert_eq!(SocketWatch::new(address).take(0), None);
        // A host in the range for documentation: not this machine.
        let remote = SocketAddr::from(([192, 0, 2, 1], address.port()));
        assert_eq!(SocketWatch::new(remote).take(0), None);
    }
}
