//! Sockets of the client: opened without blocking, with errors told apart by whose fault they are.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use plimsoll_core::session::Disconnect;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};

/// Why a socket operation did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The client's own machine ran out of something; never the target's fault.
    Client(&'static str),
    /// The connection is gone.
    Connection(Disconnect),
}

/// Send buffer of a session's socket. Left to itself the kernel would take minutes of a session's audio in a target's stead, and back-pressure would
/// never show as send wait. The kernel doubles the value for its own bookkeeping; what is left holds one to two seconds of 648-byte frames.
const SEND_BUFFER_BYTES: usize = 32 * 1024;

/// Opens a socket and begins to connect it. The attempt has ended when the socket is writable; then ask [`connection_result`].
///
/// # Errors
/// [`Trouble`], by whose fault it is.
pub fn begin_connect(address: SocketAddr, nodelay: bool) -> Result<OwnedFd, Trouble> {
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
    sockopt::set_tcp_nodelay(&socket, nodelay).map_err(trouble)?;
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES).map_err(trouble)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(trouble(error)),
    }
}

/// How a connection attempt ended.
///
/// # Errors
/// [`Trouble`], by whose fault it is.
pub fn connection_result(socket: &OwnedFd) -> Result<(), Trouble> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) | Err(error) => Err(trouble(error)),
    }
}

/// Writes two slices with one call, from byte `skip` of both together on. Returns how many bytes the socket took; `None` when it is full.
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
    // `sendmsg` rather than `writev`: it passes by the file layer, which was measured at 4 % of a 648-byte write.
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

/// Reads what is there; `None` when nothing is.
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
}
