//! Which addresses an agent lets itself be sent to: networks in the notation of RFC 4632 (`10.0.0.0/8`) and single addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// What an agent may be sent to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Network>);

impl Allowed {
    /// These networks.
    #[must_use]
    pub fn of(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether nothing was allowed by hand.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this address is in one of the networks.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address))
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        let (mine, other, bits) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(mine), IpAddr::V4(other)) => {
                (u128::from(mine.to_bits()), u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(mine), IpAddr::V6(other)) => (mine.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let host_bits = bits - self.prefix;
        // A shift by all 128 bits is none at all.
        host_bits == 128 || mine >> host_bits == other >> host_bits
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let wrong = || format!("{text}: give an address or a network, for example 10.0.0.0/8");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= bits),
            None => Some(bits),
        };
        Ok(Self {
            address: address.to_canonical(),
            prefix: prefix.ok_or_else(wrong)?,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_their_networks() {
        for (network, inside, outside) in [
            ("198.18.0.0/15", "198.19.255.255", "198.20.0.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("10.1.2.3/24", "10.1.2.200", "10.1.3.1"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "127.0.0.1"),
        ] {
            let allowed = Allowed::of(vec![network.parse().expect(network)]);
            assert!(
                allowed.has(inside.parse().expect(inside)),
                "{inside} in {network}"
            );
            assert!(
                !allowed.has(outside.parse().expect(outside)),
                "{outside} in {network}"
            );
        }
        let mapped = Allowed::of(vec!["127.0.0.0/8".parse().expect("a network")]);
        assert!(mapped.has("::ffff:127.0.0.1".parse().expect("an address")));
        assert!(!Allowed::default().has("127.0.0.1".parse().expect("an address")));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/x",
            "10.0.0/8",
            "1.2.3.4/",
        ] {
            let refused = text.parse::<Network>().expect_err(text);
            assert!(refused.contains("10.0.0.0/8"), "{refused}");
        }
    }
}
