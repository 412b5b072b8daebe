//! The record of a calibration.
//!
//! There are two forms, because version 0.1 had one for each of two workloads, and others read them. The first says how
//! many sessions the client can drive on all its cores, and what a frame of one costs. The second says what each kind of
//! work costs one core. A workload has the first if its only work is measured on all cores, and otherwise the second.

use plimsoll_core::record::{Calibration, ClientCosts, SCHEMA_VERSION};
use plimsoll_lab::calibrate::{Measured, MeasuredWork, Settings};
use plimsoll_workload::Workload;
use plimsoll_workload::calibrate::Reach;

use crate::build;

/// The record of a calibration.
pub(super) enum Record {
    /// How many sessions the client can drive.
    Sessions(Calibration),
    /// What each kind of work costs.
    Costs(ClientCosts),
}

impl Record {
    /// The record of what was measured of this workload with these settings.
    pub(super) fn of(
        workload: &dyn Workload,
        measured: Measured,
        settings: &Settings,
        started_at: String,
    ) -> Self {
        match &measured.works[..] {
            [only] if only.reach == Reach::AllCores => {
                Self::Sessions(of_sessions(&measured, only, started_at))
            }
            _ => Self::Costs(of_costs(workload, measured, settings, started_at)),
        }
    }
}

fn of_sessions(measured: &Measured, only: &MeasuredWork, started_at: String) -> Calibration {
    let cost = &only.cost;
    let lag_us = cost.send_lag_p99_us;
    Calibration {
        build: build::of_this_program(),
        schema_version: SCHEMA_VERSION,
        bare_us_per_frame: cost.bare_cpu_us.median,
        engine_us_per_frame: cost.engine_cpu_us.median,
        ratio: cost.ratio.median,
        tls: cost.tls,
        max_sessions: cost.on_time_load.unwrap_or(0),
        send_lag_p99_us: lag_us.unwrap_or(only.least_load_lag_p99_us),
        timer_error_p99_us: measured.timer_error_p99_us,
        sessions: cost.load,
        engine_backend: measured.engine_backend.to_owned(),
        started_at,
    }
}

fn of_costs(
    workload: &dyn Workload,
    measured: Measured,
    settings: &Settings,
    started_at: String,
) -> ClientCosts {
    let costs = measured.works.into_iter().map(|work| work.cost);
    ClientCosts {
        workload: workload.about().name.to_owned(),
        build: build::of_this_program(),
        schema_version: SCHEMA_VERSION,
        costs: costs.collect(),
        timer_error_p99_us: measured.timer_error_p99_us,
        rounds: settings.rounds,
        seconds: settings.seconds,
        engine_backend: measured.engine_backend.to_owned(),
        started_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::record::{ClientCost, Spread};
    use plimsoll_host::isolation::CpuList;

    fn measured(reach: Reach, on_time: Option<(u32, f64)>) -> Measured {
        let spread = |median| Spread {
            median,
            ..Spread::default()
        };
        let cost = ClientCost {
            load: 1_000,
            bare_cpu_us: spread(2.0),
            engine_cpu_us: spread(3.0),
            ratio: spread(1.5),
            on_time_load: on_time.map(|(load, _)| load),
            send_lag_p99_us: on_time.map(|(_, lag_us)| lag_us),
            ..ClientCost::default()
        };
        Measured {
            works: vec![MeasuredWork {
                cost,
                reach,
                least_load_lag_p99_us: 5_000.0,
            }],
            timer_error_p99_us: 60.0,
            engine_backend: "epoll",
        }
    }

    fn record(reach: Reach, on_time: Option<(u32, f64)>) -> Record {
        let cpus = CpuList::new(vec![0]).expect("a core");
        let settings = Settings {
            client_cpus: cpus.clone(),
            sink_cpus: cpus,
            sessions: 1_000,
            rounds: 5,
            seconds: 3.0,
            sessions_max: 10_000,
            tls: false,
            cores_share: 1.0,
        };
        let workload = &plimsoll_workload_echo::Echo;
        Record::of(workload, measured(reach, on_time), &settings, String::new())
    }

    #[test]
    fn a_client_that_was_never_on_time_still_has_a_lag() {
        let sessions = |on_time| match record(Reach::AllCores, on_time) {
            Record::Sessions(record) => record,
            Record::Costs(record) => panic!("{record:?}"),
        };
        let good = sessions(Some((4_000, 900.0)));
        assert_eq!((good.max_sessions, good.send_lag_p99_us), (4_000, 900.0));
        assert_eq!((good.sessions, good.ratio), (1_000, 1.5));
        assert_eq!(
            (good.bare_us_per_frame, good.engine_us_per_frame),
            (2.0, 3.0)
        );
        let late = sessions(None);
        assert_eq!((late.max_sessions, late.send_lag_p99_us), (0, 5_000.0));
    }

    #[test]
    fn what_one_core_does_is_a_list_of_costs() {
        let Record::Costs(record) = record(Reach::OneCore, Some((4_000, 900.0))) else {
            panic!("a list of costs");
        };
        assert_eq!((record.costs.len(), record.rounds), (1, 5));
        assert_eq!(record.workload, "echo");
        assert_eq!(record.costs[0].on_time_load, Some(4_000));
        assert_eq!(record.timer_error_p99_us, 60.0);
    }
}
