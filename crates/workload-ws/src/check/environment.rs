//! Section 1 of the contract: the address, and bad values of variables.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plimsoll_conformance::Verdict;
use plimsoll_conformance::socket::Socket;

use super::setup::BASE;
use super::talk::usual;
use super::{Case, Site};
use crate::Dialect;

/// Each variable with values that it must not take.
const BAD_VALUES: [(&str, &[&str]); 4] = [
    ("PORT", &["http", "70000"]),
    ("WORKER_THREADS", &["many", "0"]),
    ("DRAIN_TIMEOUT_MS", &["5s"]),
    ("MAX_MESSAGE_BYTES", &["1MiB"]),
];

/// A value of the one variable that only targets with a separate port have.
const BAD_METRICS_PORT: (&str, &[&str]) = ("METRICS_PORT", &["metrics"]);

pub(super) fn cases(dialect: Dialect) -> Vec<Case> {
    let mut cases = vec![
        Case::new(
            "any-address",
            "Clients come to PORT on any IPv4 address of the machine",
            "an upgrade at 127.0.0.2, too",
            &BASE,
            any_address,
        )
        .only_when_started(),
    ];
    let metrics_port = (dialect == Dialect::Wse).then_some(BAD_METRICS_PORT);
    let values = BAD_VALUES.into_iter().chain(metrics_port);
    cases.extend(values.map(|(name, values)| Case::of_bad_values(name, values)));
    cases
}

/// All of 127.0.0.0/8 is this machine, so a server that listens on 127.0.0.1 only is found out.
fn any_address(site: &Site<'_>) -> Verdict {
    let elsewhere = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let address = SocketAddr::new(elsewhere, site.address.port());
    Socket::open(address, &usual(site), site.next_number())?.accepted()?;
    Ok("101".to_owned())
}
