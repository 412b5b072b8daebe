//! Listening ports for children.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};
use crate::machine::ephemeral_ports;

/// How many ports are tried before the kernel is asked for one.
const TRIES: u32 = 200;

/// The lowest port to choose. Those below are for well-known services.
const LOWEST: u16 = 10_000;

/// Chooses a port that nobody listens on. If possible, the port is outside the range from which the kernel takes ports
/// for outgoing connections. Otherwise a connection of a load engine could take the port between our choice and the
/// child's bind.
///
/// # Errors
/// No port can be bound.
pub fn choose_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (low, high) = ephemeral_ports().unwrap_or((32_768, 60_999));
    let below = LOWEST..low.max(LOWEST);
    if !below.is_empty() {
        let size = u32::from(below.end - below.start);
        // Different processes start at different ports. One process continues where it left off, so that it does not
        // reuse a port while connections to the former owner linger.
        let first = std::process::id()
            .wrapping_mul(97)
            .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let candidates = (0..TRIES.min(size))
            .filter_map(|step| u16::try_from(first.wrapping_add(step) % size).ok());
        if let Some(port) = candidates
            .map(|offset| below.start + offset)
            .find(|port| !port_taken(*port))
        {
            return Ok(port);
        }
    }
    let listener =
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|listener| listener.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|source| Error::Io {
            what: format!("finding a free port (none is free outside {low}-{high})"),
            source,
        })
}

/// Whether something listens on `port`, on any address of this machine.
#[must_use]
pub fn port_taken(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_port_is_free_and_outside_the_ephemeral_range() {
        let port = choose_port().expect("some port");
        assert!(!port_taken(port));
        let (low, high) = ephemeral_ports().expect("linux");
        if low > LOWEST + 1000 {
            assert!(port < low || port > high, "{port}");
        }
        assert_ne!(choose_port().expect("another"), port);
    }

    #[test]
    fn a_port_with_a_listener_is_taken() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        assert!(port_taken(listener.local_addr().expect("address").port()));
    }
}
