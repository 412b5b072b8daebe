//! Whose server it is. A public host may belong to a provider who charges for each minute, so Plimsoll sends it little
//! unless the user says that it is theirs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most sessions at a time that a public host gets without `--mine`.
pub const PUBLIC_SESSIONS_MAX: u64 = 3;

/// The most audio that a public host gets without `--mine`, in nanoseconds.
pub const PUBLIC_AUDIO_MAX_NS: u64 = 5 * 60 * 1_000_000_000;

/// Top-level names that no public server has: `localhost` and `test` (RFC 6761), `local` (RFC 6762), `internal` (which
/// ICANN keeps out of the public DNS), `home.arpa` (RFC 8375).
const PRIVATE_SUFFIXES: [&str; 5] = ["localhost", "test", "local", "internal", "home.arpa"];

/// Whether a host of a URL may be a stranger's: a name or an address, an IPv6 address with or without brackets.
///
/// A name without a dot is a name of this network (a container, an entry of `/etc/hosts`). Any other name counts as
/// public, whatever it resolves to, unless its end is reserved for private networks. So does a number, which resolvers
/// take for an IPv4 address in one piece.
#[must_use]
pub fn is_public(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    // A zone (`fe80::1%eth0`) is only for addresses of this link.
    let address = bare.split_once('%').map_or(bare, |(address, _)| address);
    match address.parse() {
        Ok(IpAddr::V4(address)) => is_public_v4(address),
        Ok(IpAddr::V6(address)) => is_public_v6(address),
        Err(_) => is_public_name(bare),
    }
}

fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_private = PRIVATE_SUFFIXES.iter().any(|suffix| {
        name.strip_suffix(suffix)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let is_number = name.starts_with("0x") || name.parse::<u64>().is_ok();
    (name.contains('.') || is_number) && !is_private
}

/// Not loopback, private (RFC 1918), shared by a carrier (RFC 6598), of a benchmark (RFC 2544), link-local or unspecified.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_of_a_benchmark = first == 198 && (18..20).contains(&second);
    let is_private = address.is_loopback() || address.is_private() || address.is_link_local();
    !(is_private || is_shared || is_of_a_benchmark || address.is_unspecified())
}

/// Not loopback, unique-local (RFC 4193), link-local or unspecified; an IPv4 address within is judged as such.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let is_private = address.is_unique_local() || address.is_unicast_link_local();
    !(is_private || address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn private_hosts_are_those_that_nobody_else_can_own() {
        for host in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.3.4",
            "100.64.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "100.127.255.255",
            "::1",
            "[::1]",
            "::",
            "fe80::1",
            "fe80::1%eth0",
            "[fe80::1%25eth0]",
            "fc00::1",
            "fd12:3456::1",
            "::ffff:10.0.0.1",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "stt.localhost",
            "whisper",
            "gpu.local",
            "stt.internal",
            "stt.svc.home.arpa",
        ] {
            assert!(!is_public(host), "{host}");
        }
    }

    #[test]
    fn every_other_host_is_public() {
        for host in [
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.167.1.1",
            "128.0.0.1",
            "2001:4860:4860::8888",
            "[2001:4860:4860::8888]",
            "fb00::1",
            "::ffff:8.8.8.8",
            "api.deepgram.com",
            "localhost.example.com",
            "notlocal.mylocal",
            "home.arpa.example.com",
            "127.0.0.1.example.com",
            "134744072",
            "0x08080808",
            "010.8.8.8",
        ] {
            assert!(is_public(host), "{host}");
        }
    }
}
