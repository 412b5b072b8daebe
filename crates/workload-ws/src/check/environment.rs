//! Section 1 of the contract: the address, and bad values of variables.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use plimsoll_conformance::socket::Socket;
use plimsoll_conformance::subject::{Bench, Environment};
use plimsoll_conformance::{Trial, Verdict};

use super::setup::BASE;
use super::talk::usual;
use super::{Case, Site};
use crate::Dialect;

/// A target must have refused by then. The contract sets no time, and a virtual machine on a busy core takes its time to start.
const LIMIT: Duration = Duration::from_secs(30);

/// A delay of less can hardly make a refusal too late.
const TOLERANCE: Duration = Duration::from_secs(10);

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
    cases.extend(values.map(|(name, values)| {
        Case {
            id: format!("bad-value-{}", name.to_lowercase().replace('_', "-")).into(),
            title: format!(
                "A bad value of {name}: exit code 2 and one line that names the variable"
            )
            .into(),
            expected: format!("that, for {}", values.join(" and ")).into(),
            tolerance: TOLERANCE,
            trial: Trial::OnBench(Box::new(move |bench| refused(bench, name, values))),
        }
    }));
    cases
}

/// All of 127.0.0.0/8 is this machine, so a server that listens on 127.0.0.1 only is found out.
fn any_address(site: &Site<'_>) -> Verdict {
    let elsewhere = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let address = SocketAddr::new(elsewhere, site.address.port());
    Socket::open(address, &usual(site), site.next_number())?.accepted()?;
    Ok("101".to_owned())
}

fn refused(bench: &dyn Bench, name: &str, values: &[&str]) -> Verdict {
    for value in values {
        let environment = Environment::from([(name.to_owned(), (*value).to_owned())]);
        let ended = bench.start_refused(&environment, LIMIT)?;
        let printed = ended.output.lines();
        let lines: Vec<&str> = printed.filter(|line| !line.trim().is_empty()).collect();
        let code = ended
            .exit_code
            .map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let seen = format!(
            "{name}={value}: {code} and {} lines: {:?}",
            lines.len(),
            lines.first().unwrap_or(&"")
        );
        if ended.exit_code != Some(2) || lines.len() != 1 || !lines[0].contains(name) {
            return Err(seen);
        }
    }
    Ok(format!("exit code 2 and one line that names {name}"))
}
