//! Whether the machine has open files and ports for a load. A trial that ran out of them halfway would look like the
//! target's limit.

use std::net::IpAddr;

use plimsoll_core::record::Tls;
use plimsoll_host::data_folder::must_lose_power;
use plimsoll_host::machine::{Limits, Need, preflight};
use plimsoll_workload::Demand;

use super::conditions::Conditions;
use super::parts::{PROCESSES_MAX, processes_for};
use super::subject::Subject;
use crate::error::{Error, Result};
use crate::fleet::Fleet;

/// What there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    /// The sessions that the engine drives.
    pub(super) sessions: u32,
    /// The number of client processes that this takes.
    pub(super) processes: u32,
    /// What the machine has too little of for all requested sessions. If the test looks for the machine's limit, this
    /// ends the search instead of an error.
    pub(super) short_of: Option<String>,
}

impl Room {
    /// The room for this load.
    ///
    /// # Errors
    /// One line with the remedy, if there is no room.
    pub(super) fn of(conditions: &Conditions, load: u32) -> Result<Self> {
        Self::within(conditions, load, Limits::of_this_process())
    }

    fn within(conditions: &Conditions, load: u32, limits: Limits) -> Result<Self> {
        let Demand {
            sessions,
            concurrent,
            ..
        } = conditions.plan.demand(load, &conditions.profile);
        if let Some(fleet) = conditions.agents() {
            of_agents(fleet, concurrent)?;
            return Ok(Self {
                sessions,
                processes: 1,
                short_of: None,
            });
        }
        let of = |sessions: u32, short_of| {
            let several = processes_max(conditions) > 1;
            let open = if several {
                concurrent.min(sessions.into())
            } else {
                0
            };
            let cores = conditions.engine_cpus().len();
            Self {
                sessions,
                processes: processes_for(open, limits.sessions_of_a_process(), cores),
                short_of,
            }
        };
        let need = Need {
            sessions: concurrent,
            client_processes: processes_max(conditions),
            client_addresses: conditions.plan.source_addresses().len().max(1) as u64,
            further_connections: 0,
        };
        let Err(error) = preflight(need, limits) else {
            return Ok(of(sessions, None));
        };
        let room = limits.room(need);
        let within = u32::try_from(room.sessions).unwrap_or(u32::MAX);
        if !conditions.plan.looks_for_the_machines_limit() || within == 0 {
            return Err(error.into());
        }
        let short_of = format!(
            "{} (with those that there are, {within} connections of the {sessions} that were asked for can be open)",
            room.ends_by
        );
        Ok(of(sessions.min(within), Some(short_of)))
    }
}

/// Checks that each agent has open files for its part.
///
/// # Errors
/// One line with the remedy.
fn of_agents(fleet: &Fleet, sessions: u64) -> Result<()> {
    let each = sessions.div_ceil(u64::from(fleet.agents()));
    for agent in fleet.present() {
        let limits = Limits {
            fd_soft: agent.files(),
            fd_hard: agent.files(),
            ports: None,
        };
        preflight(Need::sessions(each), limits).map_err(|error| {
            Error::Usage(format!(
                "agent {}: {error}; or give it fewer sessions by more agents",
                agent.name()
            ))
        })?;
    }
    Ok(())
}

/// The most client processes that may drive a load together.
fn processes_max(conditions: &Conditions) -> u64 {
    // A target that we start has as many files as one client process. Unless the limit is what the test looks for, it is
    // better to refuse than to try.
    let several = !conditions.configured || conditions.plan.looks_for_the_machines_limit();
    if several { PROCESSES_MAX.into() } else { 1 }
}

/// Checks that connections from these addresses can reach a target there.
///
/// # Errors
/// One line with the remedy.
fn must_reach(source_addresses: &[IpAddr], target: IpAddr) -> Result<()> {
    let other_kind = |source: &&IpAddr| source.is_ipv4() != target.is_ipv4();
    match source_addresses.iter().find(other_kind) {
        Some(source) => Err(Error::Usage(format!(
            "--source-addresses: {source} cannot reach {target}; use addresses of the same kind"
        ))),
        None => Ok(()),
    }
}

/// Whether a trial of this load is possible at all, as far as this can be known without starting anything. Checks
/// open files, ports, the place of the target's data, and that something answers at a URL: with TLS, that client and
/// server agree.
///
/// # Errors
/// One line with the remedy.
pub fn must_be_possible(conditions: &Conditions, subject: &Subject, load: u32) -> Result<()> {
    possible(conditions, subject, load).map(drop)
}

/// The same. Returns what the client and a server with TLS agree on.
pub(super) fn possible(
    conditions: &Conditions,
    subject: &Subject,
    load: u32,
) -> Result<Option<Tls>> {
    if load == 0 {
        return Err(Error::Usage(
            "the load must not be 0; ask for at least 1".to_owned(),
        ));
    }
    Room::of(conditions, load)?;
    match subject {
        Subject::Started(_) => {
            let localhost = std::net::Ipv4Addr::LOCALHOST.into();
            must_reach(conditions.plan.source_addresses(), localhost)?;
            let data = conditions.plan.told().data;
            let place = conditions.data_place();
            data.map_or(Ok(()), |data| data.must_be_possible(place))?;
            if conditions.plan.loses_power() {
                must_lose_power()?;
            }
            Ok(None)
        }
        Subject::Running { url, .. } => {
            if let Some(crash) = conditions.plan.crash() {
                return Err(Error::Usage(format!(
                    "{} with --url: only a target that Plimsoll starts can be crashed; give its name instead",
                    crash.asked_by
                )));
            }
            must_reach(conditions.plan.source_addresses(), url.address.ip())?;
            let to = conditions.endpoint(url);
            conditions.plan.may_load(&to, load, &conditions.profile)?;
            url.must_answer(conditions)
        }
    }
}

/// Whether the machine has open files and ports for this load.
///
/// # Errors
/// One line: what it has too little of, and the remedy.
pub fn must_have_room(conditions: &Conditions, load: u32) -> Result<()> {
    Room::of(conditions, load).map(drop)
}

/// The greatest load, at most `most`, for which the machine has open files and ports; 0 if it has none for any load.
/// For a test that looks for the machine's limit, this is `most`.
#[must_use]
pub fn most_possible(conditions: &Conditions, most: u32) -> u32 {
    most_within(conditions, most, Limits::of_this_process())
}

fn most_within(conditions: &Conditions, most: u32, limits: Limits) -> u32 {
    let fits = |load| Room::within(conditions, load, limits).is_ok();
    if most == 0 || fits(most) {
        return most;
    }
    // The lower of the two fits, or is 0. The higher does not fit.
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::{conditions, plan};

    const LIMITS: Limits = Limits {
        fd_soft: 10_256,
        fd_hard: 10_256,
        ports: Some((32_768, 60_999)),
    };

    fn of(line: &str) -> Conditions {
        Conditions {
            plan: plan(line),
            ..conditions()
        }
    }

    #[test]
    fn what_has_room_is_driven_and_what_has_none_is_refused() {
        let room = Room::within(&of("ws test=hold"), 10_000, LIMITS).expect("room");
        assert_eq!((room.sessions, room.processes), (10_000, 1));
        assert_eq!(room.short_of, None);
        let refused = Room::within(&of("ws test=hold"), 10_001, LIMITS).expect_err("none");
        assert!(refused.to_string().contains("open files"), "{refused}");
        // A rate over connections needs no more connections at any load.
        let rate = Room::within(&of("ws test=throughput"), 4_000_000, LIMITS).expect("room");
        assert_eq!(rate.sessions, 100);
    }

    #[test]
    fn the_test_for_the_limit_takes_as_many_processes_as_it_needs() {
        let mut conditions = of("ws test=limit");
        let room = |conditions: &Conditions, load| {
            let room = Room::within(conditions, load, LIMITS).expect("an answer");
            (room.sessions, room.processes, room.short_of)
        };
        assert_eq!(room(&conditions, 10_000), (10_000, 1, None));
        assert_eq!(room(&conditions, 10_001), (10_001, 2, None));
        let (sessions, processes, short_of) = room(&conditions, 40_000);
        assert_eq!((sessions, processes), (28_232 - 512, 3));
        assert!(short_of.expect("ports").starts_with("ports"));
        // Each address has its own ports.
        let addresses: Vec<_> = (1..=100).map(|last| format!("127.0.0.{last}")).collect();
        let line = format!("ws test=limit source_addresses={}", addresses.join(","));
        conditions.plan = plan(&line);
        assert_eq!(room(&conditions, 40_000), (40_000, 4, None));
        let (sessions, processes, short_of) = room(&conditions, 1_000_000);
        assert_eq!((sessions, processes), (640_000, 64));
        assert!(short_of.expect("files").starts_with("open files"));
    }

    #[test]
    fn every_load_is_shared_by_several_processes_where_we_do_not_start_the_server() {
        for line in ["stt", "echo", "ws", "ws test=hold", "ws test=fanout"] {
            let mut conditions = of(line);
            assert!(Room::within(&conditions, 20_001, LIMITS).is_err());
            conditions.configured = false;
            let room = Room::within(&conditions, 20_001, LIMITS).expect("room");
            assert_eq!((room.sessions, room.processes), (20_001, 3));
            // There are ports for no more.
            assert!(Room::within(&conditions, 28_000, LIMITS).is_err());
        }
        let mut connections = of("ws test=throughput connections=20001");
        connections.configured = false;
        let room = Room::within(&connections, 100_000, LIMITS).expect("room");
        assert_eq!((room.sessions, room.processes), (20_001, 3));
    }

    #[test]
    fn arrivals_are_not_all_open_at_once() {
        let mut storm = of("ws test=storm");
        let room = Room::within(&storm, 1_000, LIMITS).expect("room");
        assert_eq!((room.sessions, room.processes), (13_000, 1));
        storm.configured = false;
        // Up to 7 s of them.
        let room = Room::within(&storm, 1_428, LIMITS).expect("room");
        assert_eq!(room.processes, 1);
        let room = Room::within(&storm, 2_900, LIMITS).expect("room");
        assert_eq!((room.sessions, room.processes), (37_700, 3));
    }

    #[test]
    fn the_greatest_possible_load_is_found() {
        assert_eq!(most_within(&of("ws test=hold"), 1_000_000, LIMITS), 10_000);
        assert_eq!(most_within(&of("ws test=hold"), 9_000, LIMITS), 9_000);
        assert_eq!(most_within(&of("ws test=limit"), 90_000, LIMITS), 90_000);
        // With 7 s of arrivals open at once.
        assert_eq!(
            most_within(&of("ws test=storm"), 1_000_000, LIMITS),
            10_000 / 7
        );
        let none = Limits {
            fd_soft: 200,
            ..LIMITS
        };
        assert_eq!(most_within(&of("ws test=limit"), 90_000, none), 0);
    }

    #[test]
    fn no_load_is_refused() {
        let subject = Subject::Running {
            url: crate::trial::TargetUrl::at(([127, 0, 0, 1], 1).into(), "/"),
            resources: None,
        };
        let refused = must_be_possible(&of("ws test=ping"), &subject, 0).expect_err("nothing");
        assert!(refused.to_string().contains("at least 1"));
    }

    #[test]
    fn sources_must_be_of_the_targets_kind() {
        let four: IpAddr = "127.0.0.1".parse().expect("an address");
        let sources = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse().expect("an address"));
        assert!(must_reach(&sources, four).is_ok());
        assert!(must_reach(&[], four).is_ok());
        let six: IpAddr = "::1".parse().expect("an address");
        let text = must_reach(&sources, six).expect_err("refused").to_string();
        assert!(text.contains("127.0.0.2 cannot reach ::1"), "{text}");
    }
}
