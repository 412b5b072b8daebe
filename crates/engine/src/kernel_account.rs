//! What the kernel itself counts of a TCP socket's bytes, to compare with the client's account.
//!
//! The engine asks the kernel by netlink (`sock_diag(7)`), with one request per socket, after the trial and before the
//! sockets are closed. `getsockopt(TCP_INFO)` has the same numbers, but the libraries used here have no safe wrapper
//! for it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use plimsoll_core::sanity::KernelBytes;
use plimsoll_core::sock_diag;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getpeername, getsockname,
    netlink, recv, send, socket_with,
};

/// Each answer is read before the next request, so requests need no number of their own.
const SEQUENCE: u32 = 0;

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
        let request = sock_diag::request_one(local, remote, SEQUENCE);
        send(&self.netlink, &request, SendFlags::empty()).ok()?;
        let mut answer = [0; 4096];
        // The kernel has answered when the call above returns.
        let (length, _) = recv(&self.netlink, &mut answer[..], RecvFlags::empty()).ok()?;
        bytes_in(&answer[..length])
    }
}

/// The bytes in an answer; `None` if it is an error, or comes from a kernel before 4.1, which does not count them.
fn bytes_in(answer: &[u8]) -> Option<KernelBytes> {
    let mut sockets = Vec::new();
    sock_diag::read(answer, SEQUENCE, &mut sockets).ok()?;
    let socket = sockets.first()?;
    // The SYN counts as one acknowledged byte on the side that connected.
    let acknowledged = socket.bytes_acked?.checked_sub(1)?;
    let unread = u64::from(socket.receive_queue);
    Some(KernelBytes {
        sent: acknowledged.checked_add(u64::from(socket.send_queue))?,
        received: socket.bytes_received?.checked_sub(unread)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
