//! The kernel's socket diagnostics, as bytes. Pure, so that it is tested on what a kernel once answered.
//!
//! Source: `sock_diag(7)`, `netlink(7)`, and the kernel's `linux/inet_diag.h` and `linux/tcp.h`. Numbers are in the
//! machine's own byte order, addresses and ports in the network's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Socket;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
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

/// `AF_INET` and `AF_INET6`: the kernel answers for one family at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4 = 2,
    V6 = 10,
}

/// Why a dump could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiagError {
    /// The kernel refused, with this `errno`.
    Refused(i32),
    /// The bytes are not a valid answer.
    Malformed,
}

/// A request for every TCP socket of a family with this local port, in these states (one bit each), with its
/// `tcp_info`.
pub(super) fn request(family: Family, local_port: u16, states: u32, sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    let length = u32::try_from(HEADER + REQUEST).unwrap_or(u32::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_DUMP.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // To the kernel.
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend([family as u8, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.extend(local_port.to_be_bytes());
    // Any other port, any addresses, any interface.
    bytes.extend([0; 2 + 16 + 16 + 4]);
    // No cookie.
    bytes.extend([0xff; 8]);
    bytes
}

/// Adds the sockets of one datagram of the answer to request `sequence`. Returns true if it was the last datagram.
pub(super) fn read(
    datagram: &[u8],
    sequence: u32,
    into: &mut Vec<Socket>,
) -> Result<bool, DiagError> {
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
    Ok(Socket {
        state: fixed[1],
        local: SocketAddr::new(address(family, &fixed[8..24])?, port(&fixed[4..6])),
        remote: SocketAddr::new(address(family, &fixed[24..40])?, port(&fixed[6..8])),
        receive_queue: u32_at(fixed, 56)?,
        send_queue: u32_at(fixed, 60)?,
        retransmits: attribute(&message[MESSAGE..], INET_DIAG_INFO)
            .and_then(|info| u32_at(info, TOTAL_RETRANS).ok()),
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
    let field = bytes
        .get(at..at + 2)
        .and_then(|field| field.try_into().ok());
    field.map(u16::from_ne_bytes).ok_or(DiagError::Malformed)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DiagError> {
    let field = bytes
        .get(at..at + 4)
        .and_then(|field| field.try_into().ok());
    field.map(u32::from_ne_bytes).ok_or(DiagError::Malformed)
}

#[cfg(test)]
#[path = "diag_tests.rs"]
mod tests;
