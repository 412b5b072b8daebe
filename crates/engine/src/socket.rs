//! The client's sockets. They are opened without blocking, and their errors are classified by whose fault they are.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use plimsoll_core::session::Disconnect;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};

/// Why a socket operation did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The client's own machine ran out of something. This is never the target's fault.
    Client(&'static str),
    /// The connection is gone.
    Connection(Disconnect),
}

/// How a socket is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The address of this machine that the socket comes from; `None` leaves the choice to the kernel.
    pub source: Option<IpAddr>,
    /// Whether it has `TCP_NODELAY`.
    pub nodelay: bool,
    /// Its send buffer in bytes, which the kernel doubles for its own bookkeeping.
    pub send_buffer_bytes: usize,
    /// Its receive buffer in bytes, which the kernel doubles too; `None` leaves the choice to the kernel.
    pub receive_buffer_bytes: Option<usize>,
}

/// Opens a socket and begins to connect it. The attempt has ended when the socket is writable; then call
/// [`connection_result`].
///
/// # Errors
/// [`Trouble`], which says whose fault it is.
pub fn begin_connect(address: SocketAddr, setup: &Setup) -> Result<OwnedFd, Trouble> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        Some(ipproto::TCP),
    )
    .map_err(trouble)?;
    sockopt::set_tcp_nodelay(&socket, setup.nodelay).map_err(trouble)?;
    sockopt::set_socket_send_buffer_size(&socket, setup.send_buffer_bytes).map_err(trouble)?;
    if let Some(bytes) = setup.receive_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(&socket, bytes).map_err(trouble)?;
    }
    if let Some(source) = setup.source {
        bind(&socket, source)?;
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(trouble(error)),
    }
}

/// Takes a port of an address of this machine; each address has its own range of ports. The target has no part in this,
/// so any refusal is the client's fault.
fn bind(socket: &OwnedFd, source: IpAddr) -> Result<(), Trouble> {
    let any_port = SocketAddr::new(source, 0);
    rustix::net::bind(socket, &any_port).map_err(|error| match trouble(error) {
        Trouble::Connection(_) => Trouble::Client("bind"),
        client => client,
    })
}

/// How a connection attempt ended.
///
/// # Errors
/// [`Trouble`], which says whose fault it is.
pub fn connection_result(socket: &OwnedFd) -> Result<(), Trouble> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) | Err(error) => Err(trouble(error)),
    }
}

/// Writes two slices with one call, starting at byte `skip` of the two together. Returns how many bytes the socket
/// took, or `None` if it is full.
///
/// # Errors
/// [`Trouble::Connection`] when the connection is gone.
pub fn write_both(
    socket: &OwnedFd,
    head: &[u8],
    body: &[u8],
    skip: usize,
) -> Result<Option<usize>, Trouble> {
    let head_rest = &head[skip.min(head.len())..];
    let body_rest = &body[skip.saturating_sub(head.len())..];
    // `sendmsg` instead of `writev`: it bypasses the file layer, which was measured at 4 % of a 648-byte write.
    let slices = [IoSlice::new(head_rest), IoSlice::new(body_rest)];
    let written = rustix::net::sendmsg(
        socket,
        &slices,
        &mut SendAncillaryBuffer::default(),
        SendFlags::NOSIGNAL,
    );
    match written {
        Ok(written) => Ok(Some(written)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(trouble(error)),
    }
}

/// Reads what is available; `None` if nothing is.
///
/// # Errors
/// [`Trouble::Connection`] when the connection is gone or the peer closed it.
pub fn read(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<usize>, Trouble> {
    match rustix::io::read(socket, buffer) {
        Ok(0) => Err(Trouble::Connection(Disconnect::Closed)),
        Ok(read) => Ok(Some(read)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(trouble(error)),
    }
}

fn trouble(error: Errno) -> Trouble {
    match error {
        Errno::MFILE => Trouble::Client("EMFILE"),
        Errno::NFILE => Trouble::Client("ENFILE"),
        Errno::ADDRNOTAVAIL => Trouble::Client("EADDRNOTAVAIL"),
        // A bound socket gets this error where an unbound one gets the error above: the range of ports is used up.
        Errno::ADDRINUSE => Trouble::Client("EADDRINUSE"),
        Errno::NOBUFS => Trouble::Client("ENOBUFS"),
        Errno::NOMEM => Trouble::Client("ENOMEM"),
        Errno::CONNREFUSED => Trouble::Connection(Disconnect::Refused),
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => {
            Trouble::Connection(Disconnect::Reset)
        }
        Errno::TIMEDOUT => Trouble::Connection(Disconnect::TimedOut),
        _ => Trouble::Connection(Disconnect::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_own_troubles_are_not_the_targets() {
        let ours = [
            (Errno::MFILE, "EMFILE"),
            (Errno::NFILE, "ENFILE"),
            (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
            (Errno::ADDRINUSE, "EADDRINUSE"),
            (Errno::NOBUFS, "ENOBUFS"),
            (Errno::NOMEM, "ENOMEM"),
        ];
        for (error, name) in ours {
            assert_eq!(trouble(error), Trouble::Client(name));
        }
        assert_eq!(
            trouble(Errno::CONNREFUSED),
            Trouble::Connection(Disconnect::Refused)
        );
    }

    #[test]
    fn a_socket_is_set_up_as_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let source = IpAddr::from([127, 0, 0, 9]);
        for (nodelay, send_buffer_bytes) in [(true, 32 * 1024), (false, 64 * 1024)] {
            let setup = Setup {
                source: Some(source),
                nodelay,
                send_buffer_bytes,
                receive_buffer_bytes: Some(8 * 1024),
            };
            let socket = begin_connect(listener.local_addr().unwrap(), &setup).unwrap();
            assert_eq!(listener.accept().unwrap().1.ip(), source);
            assert_eq!(sockopt::tcp_nodelay(&socket), Ok(nodelay));
            // The kernel doubles it for its own bookkeeping.
            let bytes = sockopt::socket_send_buffer_size(&socket);
            assert_eq!(bytes, Ok(2 * send_buffer_bytes));
            let bytes = sockopt::socket_recv_buffer_size(&socket);
            assert_eq!(bytes, Ok(16 * 1024));
        }
    }

    #[test]
    fn an_address_that_is_not_this_machines_is_the_clients_trouble() {
        let from = |source: &str| {
            let setup = Setup {
                source: Some(source.parse().unwrap()),
                nodelay: true,
                send_buffer_bytes: 32 * 1024,
                receive_buffer_bytes: None,
            };
            begin_connect("127.0.0.1:9".parse().unwrap(), &setup).map(drop)
        };
        // An address block that belongs to nobody (RFC 5737), and an address family other than the socket's.
        assert_eq!(from("192.0.2.1"), Err(Trouble::Client("EADDRNOTAVAIL")));
        assert_eq!(from("::1"), Err(Trouble::Client("bind")));
    }
}
