//! The kernel's socket diagnostics, as bytes: what to write to a netlink socket, and what its answers say. Pure, so that
//! it is tested on what a kernel once answered. The engine asks about its own connections, and the sampling of resources
//! about a target's; each does it over its own socket.
//!
//! Source: `sock_diag(7)`, `netlink(7)`, and the kernel's `linux/inet_diag.h` and `linux/tcp.h`. Numbers are in the
//! machine's own byte order, addresses and ports in the network's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
/// All sockets that fit, rather than one: `NLM_F_ROOT | NLM_F_MATCH`.
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const IPPROTO_TCP: u8 = 6;
/// The attribute with a `struct tcp_info`. Bit `INET_DIAG_INFO - 1` asks for it.
const INET_DIAG_INFO: u16 = 2;
/// Length of a `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of a `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// Length of a `struct inet_diag_msg`.
const MESSAGE: usize = 72;
/// Offset of `tcpi_total_retrans` in a `struct tcp_info`; present since Linux 2.6.10.
const TOTAL_RETRANS: usize = 100;
/// Offsets of `tcpi_bytes_acked` and `tcpi_bytes_received` in it; present since Linux 4.1.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;

/// One TCP socket, as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// The kernel's number for its state.
    pub state: u8,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Bytes not yet read; for a listener, connections not yet accepted.
    pub receive_queue: u32,
    /// Bytes not yet acknowledged; for a listener, the most connections that may wait.
    pub send_queue: u32,
    /// Segments sent again since it was opened; `None` if the source does not report them.
    pub retransmits: Option<u32>,
    /// Bytes that the other end acknowledged, with one for the SYN on the side that connected; `None` if the source does
    /// not report them.
    pub bytes_acked: Option<u64>,
    /// Bytes that arrived, read or not; `None` if the source does not report them.
    pub bytes_received: Option<u64>,
}

/// `AF_INET` and `AF_INET6`: the kernel answers for one family at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4 = 2,
    /// IPv6, and IPv4 over an IPv6 socket.
    V6 = 10,
}

/// Why an answer could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagError {
    /// The kernel refused, with this `errno`.
    Refused(i32),
    /// The bytes are not a valid answer.
    Malformed,
}

impl From<DiagError> for std::io::Error {
    fn from(error: DiagError) -> Self {
        match error {
            DiagError::Refused(errno) => Self::from_raw_os_error(errno),
            DiagError::Malformed => Self::from(std::io::ErrorKind::InvalidData),
        }
    }
}

/// A request for every TCP socket of a family with this local port, in these states (one bit each), with its
/// `tcp_info`.
#[must_use]
pub fn request_all(family: Family, local_port: u16, states: u32, sequence: u32) -> Vec<u8> {
    let flags = NLM_F_REQUEST | NLM_F_DUMP;
    // Any other port, any addresses.
    let ends = [(local_port, [0; 16]), (0, [0; 16])];
    request(flags, sequence, family, states, ends)
}

/// A request for exactly this TCP connection, in any state, with its `tcp_info`.
#[must_use]
pub fn request_one(local: SocketAddr, remote: SocketAddr, sequence: u32) -> Vec<u8> {
    let family = if local.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    };
    let ends = [local, remote].map(|end| (end.port(), sixteen_bytes(end.ip())));
    request(NLM_F_REQUEST, sequence, family, u32::MAX, ends)
}

fn request(
    flags: u16,
    sequence: u32,
    family: Family,
    states: u32,
    ends: [(u16, [u8; 16]); 2],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    let length = u32::try_from(HEADER + REQUEST).unwrap_or(u32::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // To the kernel.
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend([family as u8, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.extend(ends.iter().flat_map(|(port, _)| port.to_be_bytes()));
    bytes.extend(ends.iter().flat_map(|(_, address)| address));
    // Any interface.
    bytes.extend(0u32.to_ne_bytes());
    // No cookie.
    bytes.extend([0xff; 8]);
    bytes
}

fn sixteen_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(four) => {
            let mut sixteen = [0; 16];
            sixteen[..4].copy_from_slice(&four.octets());
            sixteen
        }
        IpAddr::V6(six) => six.octets(),
    }
}

/// Adds the sockets of one datagram of the answer to request `sequence`. Returns true if it was the last datagram of
/// several; an answer to [`request_one`] is one datagram, and does not say so.
///
/// # Errors
/// The kernel refused, or this is not an answer of its socket diagnostics.
pub fn read(datagram: &[u8], sequence: u32, into: &mut Vec<Socket>) -> Result<bool, DiagError> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let length = u32_at(rest, 0)? as usize;
        let message = rest.get(..length).ok_or(DiagError::Malformed)?;
        let body = message.get(HEADER..).ok_or(DiagError::Malformed)?;
        let aligned = length.next_multiple_of(4).min(rest.len());
        rest = &rest[aligned..];
        // What is left of an earlier answer that was abandoned.
        if u32_at(message, 8)? != sequence {
            continue;
        }
        match u16_at(message, 4)? {
            NLMSG_DONE => return Ok(true),
            // The errno, negated.
            NLMSG_ERROR => {
                return Err(DiagError::Refused(
                    u32_at(body, 0)?.cast_signed().wrapping_neg(),
                ));
            }
            BY_FAMILY => into.push(socket(body)?),
            _ => {}
        }
    }
    Ok(false)
}

fn socket(message: &[u8]) -> Result<Socket, DiagError> {
    let fixed = message.get(..MESSAGE).ok_or(DiagError::Malformed)?;
    let family = fixed[0];
    let info = attribute(&message[MESSAGE..], INET_DIAG_INFO).unwrap_or_default();
    Ok(Socket {
        state: fixed[1],
        local: SocketAddr::new(address(family, &fixed[8..24])?, port(&fixed[4..6])),
        remote: SocketAddr::new(address(family, &fixed[24..40])?, port(&fixed[6..8])),
        receive_queue: u32_at(fixed, 56)?,
        send_queue: u32_at(fixed, 60)?,
        retransmits: u32_at(info, TOTAL_RETRANS).ok(),
        bytes_acked: u64_at(info, BYTES_ACKED).ok(),
        bytes_received: u64_at(info, BYTES_RECEIVED).ok(),
    })
}

/// The value of one attribute among several. Each attribute is its length, its kind, and its value, padded to four
/// bytes.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0).ok()?);
        let value = attributes.get(4..length)?;
        if u16_at(attributes, 2).ok()? == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// If an IPv6 socket carries an IPv4 address, returns the IPv4 address.
fn address(family: u8, bytes: &[u8]) -> Result<IpAddr, DiagError> {
    if family == Family::V4 as u8 {
        let octets: [u8; 4] = bytes[..4].try_into().map_err(|_| DiagError::Malformed)?;
        return Ok(Ipv4Addr::from(octets).into());
    }
    let octets: [u8; 16] = bytes.try_into().map_err(|_| DiagError::Malformed)?;
    Ok(IpAddr::from(Ipv6Addr::from(octets)).to_canonical())
}

fn port(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, DiagError> {
    field(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DiagError> {
    field(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, DiagError> {
    field(bytes, at).map(u64::from_ne_bytes)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], DiagError> {
    let field = bytes
        .get(at..at + N)
        .and_then(|field| field.try_into().ok());
    field.ok_or(DiagError::Malformed)
}

#[cfg(test)]
mod tests;
