//! Where a target that we start is reached: its network and its ports.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_host::isolation::OwnNetwork;
use plimsoll_host::process::{Ready, choose_port, port_taken};
use plimsoll_workload::Plan;

use crate::error::Result;
use crate::manifest::METRICS_PORT;

/// Where to reach a target that we start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) ports: &'a Ports,
    /// Where sessions connect.
    pub(super) sessions: u16,
    /// `None` on the loopback.
    pub(super) network: Option<&'a OwnNetwork>,
}

impl Place<'_> {
    fn ip(&self) -> Ipv4Addr {
        self.network
            .map_or(Ipv4Addr::LOCALHOST, OwnNetwork::target_address)
    }

    pub(super) fn load(&self) -> SocketAddr {
        (self.ip(), self.sessions).into()
    }

    pub(super) fn http(&self) -> SocketAddr {
        (self.ip(), self.ports.http()).into()
    }

    /// A port that somebody else has taken in the meantime. In the target's own network there is nobody else.
    pub(super) fn taken(&self) -> Option<u16> {
        self.ports.taken().filter(|_| self.network.is_none())
    }

    /// What shows that the target is ready. One that has a speaker need not have HTTP.
    pub(super) fn ready(&self, plan: &dyn Plan) -> Ready {
        match plan.ask() {
            Some(ask) => Ready::Asked(self.load(), ask),
            None => Ready::Get(format!("http://{}{}", self.http(), plan.told().health_path)),
        }
    }

    /// Whether a target with its own network can be reached on the loopback inside that network and not from outside, at
    /// the port that shows whether it is ready. One that is slow to answer can be reached from outside.
    pub(super) fn listens_inside_only(&self, ready: &Ready) -> bool {
        let port = match ready {
            Ready::Asked(at, _) => at.port(),
            Ready::Get(_) => self.ports.http(),
        };
        let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let found = self.network.map(|network| network.within(listens));
        let refuses = || {
            let outside = TcpStream::connect_timeout(&(self.ip(), port).into(), REFUSES_WITHIN);
            outside.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        // The look from outside comes last: it may have begun to listen between the two.
        matches!(found, Some(Ok(true))) && refuses()
    }
}

/// A port at which nobody listens refuses a connection at once.
const REFUSES_WITHIN: Duration = Duration::from_secs(1);

/// What to do about a target that listens inside its network only.
pub(super) fn not_reached(name: &str) -> plimsoll_host::Error {
    plimsoll_host::Error::Usage(format!(
        "{name} listens on 127.0.0.1 only, which is not reached from outside its network; have it listen on 0.0.0.0, or measure with --network loopback"
    ))
}

/// The ports of a target that we start.
#[derive(Debug, Clone)]
pub(super) struct Ports {
    /// The port of `PORT`.
    pub(super) load: u16,
    /// Further ones, each with its variable.
    pub(super) others: Vec<(&'static str, u16)>,
}

impl Ports {
    pub(super) fn choose(variables: &[&'static str]) -> Result<Self> {
        let load = choose_port()?;
        let mut others: Vec<(&'static str, u16)> = Vec::new();
        for variable in variables {
            // None is bound yet, so one may be chosen twice.
            let port = loop {
                let port = choose_port()?;
                if port != load && others.iter().all(|(_, other)| *other != port) {
                    break port;
                }
            };
            others.push((variable, port));
        }
        Ok(Self { load, others })
    }

    /// The port of this variable, or that of `PORT` where there is none.
    pub(super) fn or_load(&self, variable: Option<&str>) -> u16 {
        let mut others = self.others.iter();
        let own = others.find(|(known, _)| Some(*known) == variable);
        own.map_or(self.load, |(_, port)| *port)
    }

    fn http(&self) -> u16 {
        self.or_load(Some(METRICS_PORT))
    }

    /// A port that somebody else has taken in the meantime.
    fn taken(&self) -> Option<u16> {
        let others = self.others.iter().map(|(_, port)| *port);
        std::iter::once(self.load)
            .chain(others)
            .find(|port| port_taken(*port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::manifest;

    #[test]
    fn a_library_that_owns_its_port_gets_another_one_for_the_rest() {
        let one = Ports::choose(&manifest("").ports).expect("a port");
        assert_eq!(one.http(), one.load);
        let two = manifest("separate_metrics_port = true").ports;
        let two = Ports::choose(&two).expect("ports");
        let metrics = two.http();
        assert_ne!(metrics, two.load);
        assert_eq!((one.taken(), two.taken()), (None, None));
        let held = std::net::TcpListener::bind(("127.0.0.1", metrics)).expect("free");
        assert_eq!(two.taken(), Some(metrics));
        drop(held);
    }

    #[test]
    fn sessions_go_to_the_port_that_the_plan_names_if_the_target_has_it() {
        let plain = Ports::choose(&[]).expect("a port");
        let own = Ports::choose(&[METRICS_PORT, "OTHER_PORT"]).expect("ports");
        assert_eq!(plain.or_load(Some("OTHER_PORT")), plain.load);
        assert_eq!(own.or_load(None), own.load);
        let other = own.or_load(Some("OTHER_PORT"));
        assert!(other != own.load && other != own.http(), "{own:?}");
    }
}
