//! Parses `/proc/net/tcp` and `/proc/net/tcp6`, for kernels without socket diagnostics and for whoever wants a socket's
//! inode. Pure. Source:
//! `proc_net_tcp.rst` in the kernel's documentation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plimsoll_core::sock_diag::Socket;

/// The sockets in such a text. Lines that it does not understand are skipped, including the heading. Retransmits are
/// unknown: the column of that name counts only those since the last acknowledgement.
pub(super) fn sockets(text: &str) -> impl Iterator<Item = Socket> {
    text.lines().filter_map(socket)
}

/// The inode of the socket on a line, by which the kernel names it in `/proc/PID/fd`.
pub(crate) fn inode(line: &str) -> Option<u64> {
    line.split_whitespace().nth(9)?.parse().ok()
}

/// The socket on a line.
pub(crate) fn socket(line: &str) -> Option<Socket> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let (send, receive) = fields.next()?.split_once(':')?;
    Some(Socket {
        state,
        local,
        remote,
        receive_queue: u32::from_str_radix(receive, 16).ok()?,
        send_queue: u32::from_str_radix(send, 16).ok()?,
        retransmits: None,
        bytes_acked: None,
        bytes_received: None,
    })
}

/// `0100007F:0BB8`: the address in words of 32 bits, each printed as the machine reads the network's bytes, then the
/// port as a number.
fn address(field: &str) -> Option<SocketAddr> {
    let (words, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |index: usize| {
        let digits = words.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip: IpAddr = match words.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut octets = [0; 16];
            for (index, place) in octets.chunks_exact_mut(4).enumerate() {
                place.copy_from_slice(&word(index)?);
            }
            IpAddr::from(Ipv6Addr::from(octets)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The texts are as a little-endian machine printed them.
    #[cfg(target_endian = "little")]
    #[test]
    fn both_families_are_read() {
        let v4 = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000:07E8 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 1610 1 000000007c5851ff 100 0 0 10 0\n";
        let listener = Socket {
            state: 10,
            local: "0.0.0.0:2024".parse().expect("address"),
            remote: "0.0.0.0:0".parse().expect("address"),
            receive_queue: 2,
            send_queue: 0,
            retransmits: None,
            bytes_acked: None,
            bytes_received: None,
        };
        assert_eq!(sockets(v4).collect::<Vec<_>>(), [listener]);
        let v6 = "   2: 0000000000000000FFFF00000100007F:A7D1 0000000000000000FFFF00000100007F:D046 01 00000003:000003E8 00:00000000 00000000     0        0 1461044 1 000000003b4f407f 20 4 32 10 -1\n   1: 00000000000000000000000001000000:A7D1 00000000000000000000000001000000:A442 01 00000000:00000000 00:00000000 00000000     0        0 0 1 00000000838017ff 20 0 0 10 -1\n";
        let read: Vec<Socket> = sockets(v6).collect();
        let mapped = Socket {
            state: 1,
            local: "127.0.0.1:42961".parse().expect("address"),
            remote: "127.0.0.1:53318".parse().expect("address"),
            receive_queue: 1000,
            send_queue: 3,
            retransmits: None,
            bytes_acked: None,
            bytes_received: None,
        };
        assert_eq!(read[0], mapped);
        assert_eq!(read[1].remote, "[::1]:42050".parse().expect("address"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r"[0-9A-F: \nλ]{0,200}") {
            prop_assert!(sockets(&text).count() <= text.lines().count());
        }
    }
}
