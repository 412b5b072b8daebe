//! Measures what the messages and connections of workload `ws` cost this machine's client, and how many of them one
//! core handles on time.
//!
//! For each kind of [`Work`], a bare loop and the engine take turns, as for speech. The kinds are messages that are
//! written, echoes that are also read, and connections that are opened and closed.

mod arrivals;
mod work;

use plimsoll_core::record::{ClientCost, SCHEMA_VERSION, WsCalibration};
use plimsoll_host::signals::Stop;

use super::rounds::{Rounds, per_core_second};
use super::{
    BUSY_LIMIT, CalibrationStep, ENGINE_BACKEND, Settings, Tried, bare, reach, us_per_frame,
};
use crate::error::Result;

pub use work::Work;

/// The most loads to try for each kind of work. They let the search go down by a third from the guess, or up by half.
const LOADS: u32 = 5;

/// Runs the calibration on the first of the client's cores, and calls `on_step` for each step. [`Settings::sessions`]
/// is the number of connections that send messages one at a time; the other loads follow from it.
///
/// # Errors
/// Sockets or threads cannot be created, or the run is interrupted.
pub fn calibrate(
    settings: &Settings,
    started_at: String,
    stop: &Stop,
    mut on_step: impl FnMut(Work, &CalibrationStep),
) -> Result<WsCalibration> {
    let cpu = settings.client_cpus.as_slice()[0];
    let timer_error_p99_us = bare::timer_error_p99_us(cpu)?;
    let mut measured = Work::ALL.map(|work| (work, Rounds::default()));
    // Each round goes through all kinds of work, so that a bad minute of the machine does not affect only one.
    for _ in 0..settings.rounds {
        for (work, rounds) in &mut measured {
            let amount = work.amount(settings.sessions);
            let bare_us = work.bare_us(amount, settings, cpu, stop)?;
            on_step(
                *work,
                &CalibrationStep::Bare {
                    us_per_frame: bare_us,
                },
            );
            let engine_us = us_per_frame(&work.drive(amount, settings, cpu, stop)?.report)?;
            on_step(
                *work,
                &CalibrationStep::Engine {
                    us_per_frame: engine_us,
                },
            );
            rounds.add(bare_us, engine_us);
        }
    }
    let mut costs = Vec::new();
    for (work, rounds) in &measured {
        let engine_us = rounds.engine_us().median;
        let most = most(*work, engine_us, settings, cpu, stop, &mut |step| {
            on_step(*work, step);
        })?;
        costs.push(cost(*work, settings.sessions, rounds, most));
    }
    Ok(WsCalibration {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        costs,
        timer_error_p99_us,
        rounds: settings.rounds,
        seconds: settings.seconds,
        engine_backend: ENGINE_BACKEND.to_owned(),
        started_at,
    })
}

/// The highest load that one core handles on time, and its send lag (99th percentile, µs) there.
fn most(
    work: Work,
    engine_us: f64,
    settings: &Settings,
    cpu: u32,
    stop: &Stop,
    on_step: &mut impl FnMut(&CalibrationStep),
) -> Result<Option<(u32, f64)>> {
    let search = reach::Search {
        guess: BUSY_LIMIT * per_core_second(engine_us) / f64::from(work.load(1)),
        grain: work.grain(),
        max: work.amount_max(settings.sessions_max),
        loads: LOADS,
    };
    let found = search.greatest(|amount| {
        let run = work.drive(amount, settings, cpu, stop)?;
        let ledger = &run.report.ledger;
        let all_there = ledger.sessions_started == u64::from(run.sessions)
            && ledger.frames_answered == ledger.frames_due;
        let tried = Tried::of(&run.report, all_there);
        on_step(&tried.as_step(work.load(amount)));
        Ok(tried.on_time())
    })?;
    Ok(found.map(|(amount, send_lag_p99_us)| (work.load(amount), send_lag_p99_us)))
}

fn cost(work: Work, sessions: u32, rounds: &Rounds, most: Option<(u32, f64)>) -> ClientCost {
    let amount = work.amount(sessions);
    let (bare_cpu_us, engine_cpu_us) = (rounds.bare_us(), rounds.engine_us());
    let content = work.content();
    ClientCost {
        work: work.name().to_owned(),
        load_unit: work.load_unit(),
        load: work.load(amount),
        connections: content.as_ref().map(|_| amount),
        message_bytes: content.map(|content| content.bytes.len() as u64),
        messages_per_write: work.messages_per_write(),
        bare_cpu_us,
        engine_cpu_us,
        ratio: rounds.ratio(),
        bare_per_core_second: per_core_second(bare_cpu_us.median),
        engine_per_core_second: per_core_second(engine_cpu_us.median),
        on_time_load: most.map(|(load, _)| load),
        send_lag_p99_us: most.map(|(_, send_lag_p99_us)| send_lag_p99_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::record::LoadUnit;

    #[test]
    fn a_cost_says_what_it_is_of() {
        let mut rounds = Rounds::default();
        rounds.add(2.0, 4.0);
        let burst = cost(Work::ALL[1], 100, &rounds, Some((600_000, 900.0)));
        assert_eq!((burst.work.as_str(), burst.load), ("json", 400_000));
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
        let opened = cost(Work::Connections, 100, &rounds, None);
        assert_eq!((opened.load, opened.connections), (2_000, None));
        assert_eq!((opened.message_bytes, opened.on_time_load), (None, None));
    }
}
