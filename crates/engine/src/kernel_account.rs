//! What the kernel itself counts of a TCP socket's bytes, to compare with the client's account.
//!
//! The engine asks the kernel by netlink (`sock_diag(7)`), with one request per socket, after the trial and before the
//! sockets are closed. `getsockopt(TCP_INFO)` has the same numbers, but the libraries used here have no safe wrapper
//! for it. The layouts are those of `linux/inet_diag.h` and `linux/tcp.h`, which never change.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use plimsoll_core::sanity::KernelBytes;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getpeername, getsockname,
    netlink, recv, send, socket_with,
};

const HEADER_BYTES: usize = 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
/// Attribute `INET_DIAG_INFO`, a `struct tcp_info`. Bit `INET_DIAG_INFO - 1` asks for it.
const INET_DIAG_INFO: u16 = 2;
/// Length of `struct inet_diag_msg`.
const DIAG_BYTES: usize = 72;
/// Offsets of the queues in it: unread bytes, and bytes not yet acknowledged.
const RECEIVE_QUEUE_AT: usize = 56;
const SEND_QUEUE_AT: usize = 60;
/// Offsets of `tcpi_bytes_acked` and `tcpi_bytes_received` in `struct tcp_info`.
const BYTES_ACKED_AT: usize = 120;
const BYTES_RECEIVED_AT: usize = 128;

/// Asks the kernel about sockets.
pub(crate) struct KernelAccount {
    netlink: OwnedFd,
}

impl KernelAccount {
    /// Opens the netlink socket; `None` where the kernel offers no `sock_diag`.
    pub(crate) fn open() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let netlink = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            flags,
            Some(netlink::SOCK_DIAG),
        );
        Some(Self {
            netlink: netlink.ok()?,
        })
    }

    /// The bytes of all sockets that ever existed; `None` unless every one of them still exists and the kernel reports
    /// its bytes.
    pub(crate) fn of_all<'a>(
        sockets: impl Iterator<Item = Option<&'a OwnedFd>>,
    ) -> Option<KernelBytes> {
        let kernel = Self::open()?;
        let mut total = KernelBytes::default();
        for socket in sockets {
            total.merge(&kernel.of(socket?)?);
        }
        Some(total)
    }

    /// The bytes that went through a connected socket; `None` if the kernel does not report them.
    pub(crate) fn of(&self, socket: &OwnedFd) -> Option<KernelBytes> {
        let local = SocketAddr::try_from(getsockname(socket).ok()?).ok()?;
        let remote = SocketAddr::try_from(getpeername(socket).ok()??).ok()?;
        send(&self.netlink, &question(local, remote), SendFlags::empty()).ok()?;
        let mut answer = [0; 4096];
        // The kernel has answered when the call above returns.
        let (length, _) = recv(&self.netlink, &mut answer[..], RecvFlags::empty()).ok()?;
        bytes_in(&answer[..length])
    }
}

/// `struct inet_diag_req_v2` for exactly this connection.
fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    let mut body = vec![
        if local.is_ipv4() { AF_INET } else { AF_INET6 },
        IPPROTO_TCP,
        1 << (INET_DIAG_INFO - 1),
        0,
    ];
    body.extend(u32::MAX.to_ne_bytes()); // any state
    body.extend(local.port().to_be_bytes());
    body.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        let mut sixteen = [0; 16];
        match address {
            IpAddr::V4(four) => sixteen[..4].copy_from_slice(&four.octets()),
            IpAddr::V6(six) => sixteen = six.octets(),
        }
        body.extend(sixteen);
    }
    body.extend(0_u32.to_ne_bytes()); // any interface
    body.extend([0xFF; 8]); // no cookie
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    message.extend(length.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]); // sequence number, port of the sender
    message.extend(body);
    message
}

/// The bytes in an answer; `None` if it is an error, or comes from a kernel before 4.1, which does not count them.
fn bytes_in(answer: &[u8]) -> Option<KernelBytes> {
    if u16_at(answer, 4)? != SOCK_DIAG_BY_FAMILY {
        return None;
    }
    let message = answer.get(HEADER_BYTES..)?;
    let unread = u64::from(u32_at(message, RECEIVE_QUEUE_AT)?);
    let unacknowledged = u64::from(u32_at(message, SEND_QUEUE_AT)?);
    let mut attributes = message.get(DIAG_BYTES..)?;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        if u16_at(attributes, 2)? == INET_DIAG_INFO {
            let info = attributes.get(4..length)?;
            // The SYN counts as one acknowledged byte on the side that connected.
            let acknowledged = u64_at(info, BYTES_ACKED_AT)?.checked_sub(1)?;
            return Some(KernelBytes {
                sent: acknowledged + unacknowledged,
                received: u64_at(info, BYTES_RECEIVED_AT)?.checked_sub(unread)?,
            });
        }
        attributes = attributes.get(length.next_multiple_of(4).max(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn account_of(address: &str) {
        let listener = TcpListener::bind(address).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let kernel = KernelAccount::open().expect("sock_diag");
        let client_fd = OwnedFd::from(client.try_clone().unwrap());
        assert_eq!(kernel.of(&client_fd), Some(KernelBytes::default()));

        client.write_all(&[1; 10_000]).unwrap();
        server.write_all(&[2; 3_000]).unwrap();
        let mut taken = [0; 1_000];
        client.read_exact(&mut taken).unwrap();
        // A part of what arrived is unread. The peer has read nothing of what was sent.
        let seen = KernelBytes {
            sent: 10_000,
            received: 1_000,
        };
        assert_eq!(kernel.of(&client_fd), Some(seen));
    }

    #[test]
    fn the_kernel_counts_what_was_written_and_read() {
        account_of("127.0.0.1:0");
    }

    #[test]
    fn over_ipv6_too() {
        if TcpListener::bind("[::1]:0").is_err() {
            plimsoll_testing::skipped!("no IPv6 loopback here");
            return;
        }
        account_of("[::1]:0");
    }

    #[test]
    fn a_socket_that_is_not_connected_has_no_account() {
        let listener = OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        assert_eq!(KernelAccount::open().unwrap().of(&listener), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(mut answer in prop::collection::vec(any::<u8>(), 0..400)) {
            if answer.len() > 6 {
                answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            }
            let _ = bytes_in(&answer);
        }
    }
}
