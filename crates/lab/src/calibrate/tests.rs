//! What is made of the rounds. That loop and engine measure every work of every workload is tested where these are
//! known.

use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::session::Endpoint;
use plimsoll_workload::calibrate::{Flow, Server, Sessions};

use super::*;

/// Messages in bursts of eight.
#[derive(Debug)]
struct Bursts;

impl Work for Bursts {
    fn name(&self) -> &'static str {
        "bursts"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        amount * 16_000
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(175)
    }

    fn messages_per_write(&self) -> Option<u32> {
        Some(8)
    }

    fn usual_sessions(&self) -> u32 {
        100
    }

    fn amount(&self, sessions: u32) -> u32 {
        sessions / 4
    }

    fn flow(&self, _amount: u32) -> Flow {
        unreachable!("nothing is run")
    }

    fn server(&self) -> Server {
        unreachable!("nothing is run")
    }

    fn sessions(&self, _amount: u32, _to: Endpoint, _profile: &Profile) -> Sessions {
        unreachable!("nothing is run")
    }
}

/// Connections that are opened and closed.
#[derive(Debug)]
struct Doors;

impl Work for Doors {
    fn name(&self) -> &'static str {
        "doors"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::CONNECTIONS_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        amount
    }

    fn message_bytes(&self) -> Option<usize> {
        None
    }

    fn usual_sessions(&self) -> u32 {
        100
    }

    fn amount(&self, sessions: u32) -> u32 {
        sessions * 20
    }

    fn flow(&self, _amount: u32) -> Flow {
        unreachable!("nothing is run")
    }

    fn server(&self) -> Server {
        unreachable!("nothing is run")
    }

    fn sessions(&self, _amount: u32, _to: Endpoint, _profile: &Profile) -> Sessions {
        unreachable!("nothing is run")
    }
}

#[test]
fn a_cost_says_what_it_is_of() {
    let mut rounds = Rounds::default();
    rounds.add(Round {
        bare_us: 2.0,
        engine_us: 4.0,
        tls: None,
    });
    let burst = cost(&Bursts, 100, &rounds, Some((600_000, 900.0)));
    assert_eq!((burst.work.as_str(), burst.load), ("bursts", 400_000));
    assert_eq!(burst.load_unit, LoadUnit::MESSAGES_PER_SECOND);
    assert_eq!(
        (burst.connections, burst.messages_per_write),
        (Some(25), Some(8))
    );
    assert_eq!(burst.message_bytes, Some(175));
    assert!((burst.ratio.median - 2.0).abs() < 1e-9);
    assert!((burst.bare_per_core_second - 500_000.0).abs() < 1e-3);
    assert!((burst.engine_per_core_second - 250_000.0).abs() < 1e-3);
    assert_eq!(burst.on_time_load, Some(600_000));
    let opened = cost(&Doors, 100, &rounds, None);
    assert_eq!((opened.load, opened.connections), (2_000, None));
    assert_eq!((opened.message_bytes, opened.on_time_load), (None, None));
    assert_eq!(opened.messages_per_write, None);
}
