//! What a network card does instead of the kernel's stack, as the kernel reports it.
//!
//! Source: `SIOCETHTOOL` in `netdevice(7)`, and the commands of the kernel's `linux/ethtool.h`.

use std::os::fd::AsRawFd;

use nix::libc::{c_char, ifreq};

/// `ethtool_value`: a command and its answer.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The name, as `ethtool -k` shows it, and the command that asks for it.
const OFFLOADS: [(&str, u32); 5] = [
    ("rx-checksumming", 0x14),
    ("tx-checksumming", 0x16),
    ("tcp-segmentation-offload", 0x1e),
    ("generic-segmentation-offload", 0x23),
    ("generic-receive-offload", 0x2b),
];

nix::ioctl_readwrite_bad!(ethtool, nix::libc::SIOCETHTOOL, ifreq);

/// Sets whether a card of our namespace segments what is sent, in place of the stack.
pub(super) fn set_segmentation(card: &str, on: bool) -> bool {
    const SET_TSO: u32 = 0x1f;
    set(card, SET_TSO, on)
}

/// Sets whether a card of our namespace joins what it receives.
pub(super) fn set_receive_joining(card: &str, on: bool) -> bool {
    const SET_GRO: u32 = 0x2c;
    set(card, SET_GRO, on)
}

fn set(card: &str, command: u32, on: bool) -> bool {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    socket.is_ok_and(|socket| call(&socket, card, command, on.into()).is_some())
}

/// The offloads of a card of our namespace that are on. One that the kernel does not report counts as off.
pub(super) fn of(card: &str) -> Vec<String> {
    let Ok(socket) = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)) else {
        return Vec::new();
    };
    let is_on = |command| call(&socket, card, command, 0) == Some(1);
    let on = OFFLOADS.iter().filter(|(_, command)| is_on(*command));
    on.map(|(name, _)| (*name).to_owned()).collect()
}

#[allow(unsafe_code)]
fn call(socket: &std::net::UdpSocket, card: &str, command: u32, data: u32) -> Option<u32> {
    let mut value = Value { command, data };
    // SAFETY: an `ifreq` consists of plain numbers and a union of numbers and a pointer. Zeroes are a valid value for
    // all of them.
    let mut request: ifreq = unsafe { std::mem::zeroed() };
    let name = card.as_bytes();
    // The last byte stays the terminating zero.
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = from.cast_signed() as c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the socket is open. `request` names a card by a zero-terminated text, and points to a `Value`, which
    // lives until the call returns and has the layout that these commands read and write.
    unsafe { ethtool(socket.as_raw_fd(), &raw mut request) }.ok()?;
    Some(value.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_segments_and_an_unknown_card_says_nothing() {
        let found = of("lo");
        assert!(
            found.iter().any(|name| name.contains("segmentation")),
            "{found:?}"
        );
        assert!(of("nowhere0").is_empty());
        assert!(of("a-name-that-is-much-too-long").is_empty());
    }
}
