//! Each work of each workload, in short runs.

use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_lab::calibrate::{self, Settings};
use plimsoll_testing::side_by_side;
use plimsoll_workload::{Values, Work};

use crate::workloads;

/// Works that are measured at once. Each takes a small share of a core.
const AT_ONCE: usize = 4;

/// As few sessions and as little time as show that something is measured.
fn settings() -> Settings {
    let cpus = CpuList::allowed_to_us().expect("a machine");
    Settings {
        client_cpus: cpus.clone(),
        sink_cpus: cpus,
        sessions: 20,
        rounds: 1,
        seconds: 0.5,
        sessions_max: 20,
        tls: false,
        cores_share: 1.0,
    }
}

/// One work of each workload, which stands for the others: TLS does not know what it carries.
#[test]
fn the_engine_does_a_work_of_each_workload_over_tls() {
    let settings = Settings {
        tls: true,
        ..settings()
    };
    let works = workloads::ALL.iter();
    let first = works.filter_map(|workload| workload.works().first());
    side_by_side(AT_ONCE, first, |work| {
        let round = calibrate::round(*work, &settings, &Stop::new(), |_| {});
        let round = round.unwrap_or_else(|error| panic!("{work:?}: {error}"));
        let over = round
            .tls
            .unwrap_or_else(|| panic!("{work:?}: not measured"));
        assert!(plausible(over.engine_us), "{work:?}: {over:?}");
        assert!(
            over.tls_us > 0.0 && over.tls_us < over.engine_us,
            "{work:?}: {over:?}"
        );
        assert!(over.handshake_us > 1.0, "{work:?}: {over:?}");
    });
}

fn plausible(cost_us: f64) -> bool {
    cost_us > 0.0 && cost_us < 10_000.0
}

#[test]
fn bare_loop_and_engine_do_every_work() {
    let works = workloads::ALL.iter().flat_map(|workload| workload.works());
    side_by_side(AT_ONCE, works, |work| {
        let round = calibrate::round(*work, &settings(), &Stop::new(), |_| {});
        let round = round.unwrap_or_else(|error| panic!("{work:?}: {error}"));
        assert!(plausible(round.bare_us), "{work:?}: {round:?}");
        assert!(plausible(round.engine_us), "{work:?}: {round:?}");
    });
}

/// The works of a workload share the number of sessions, and have one name each in the terminal.
#[test]
fn works_of_a_workload_fit_together() {
    for workload in workloads::ALL {
        let works = workload.works();
        let name = |work: &dyn Work| (work.name(), work.messages_per_write());
        for (place, work) in works.iter().enumerate() {
            assert_eq!(work.usual_sessions(), works[0].usual_sessions(), "{work:?}");
            let others = works[..place].iter();
            assert!(
                others
                    .map(|other| name(*other))
                    .all(|other| other != name(*work))
            );
        }
    }
}

/// A search estimates its reach from both.
#[test]
fn a_load_of_one_pace_has_a_work_with_a_cost() {
    side_by_side(AT_ONCE, workloads::ALL, |workload| {
        let plan = workload.plan(Values::default()).expect("a plan");
        let work = plan.work();
        assert_eq!(
            plan.frames_per_session_second().is_some(),
            work.is_some(),
            "{workload:?}"
        );
        if let Some(work) = work {
            let cost_us = calibrate::engine_us_per_frame(&*work, &settings(), None, &Stop::new());
            assert!(plausible(cost_us.expect("a cost")), "{work:?}");
        }
    });
}
