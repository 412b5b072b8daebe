//! How much load this machine's client can drive, estimated in seconds. A search warns early with it.

use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_lab::calibrate::{self, Settings};
use plimsoll_lab::trial::{BackEnd, Conditions};
use plimsoll_workload::Work;

use super::sessions_max;
use crate::failure::Failure;

/// How much load the client can drive.
pub(crate) struct Reach {
    pub(crate) us_per_frame: f64,
    pub(crate) sessions: u32,
}

/// Calibrates the engine briefly with the work of the load's own frames, and estimates how many sessions it can drive on
/// these cores if each sends so many frames per second.
pub(crate) fn quick_reach(
    conditions: &Conditions,
    work: &dyn Work,
    frames_per_s: f64,
    stop: &Stop,
) -> Result<Reach, Failure> {
    let placement = &conditions.placement;
    let settings = Settings {
        client_cpus: placement.client_cpus.clone(),
        sink_cpus: placement.target_cpus.clone(),
        sessions: work.usual_sessions().min(sessions_max()),
        rounds: 1,
        seconds: 1.5,
        sessions_max: sessions_max(),
        tls: false,
    };
    let us_per_frame = calibrate::engine_us_per_frame(work, &settings, stop)?;
    let companions = conditions.plan.workload().companions();
    let companion_us = match (&conditions.back_end, companions) {
        (BackEnd::Companion(_), Some(companions)) => companions.cpu_us_per_session_second(),
        _ => 0.0,
    };
    let cores = cores(&placement.client_cpus);
    let sessions = sessions_within(cores, frames_per_s * us_per_frame + companion_us);
    Ok(Reach {
        us_per_frame,
        sessions,
    })
}

/// The sessions that the cores can drive if each costs so many µs of CPU per second.
fn sessions_within(cores: f64, us_per_session_second: f64) -> u32 {
    whole(cores * calibrate::BUSY_LIMIT * 1e6 / us_per_session_second)
}

#[expect(clippy::cast_precision_loss, reason = "a count of cores")]
fn cores(cpus: &CpuList) -> f64 {
    cpus.count() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of sessions; the cast saturates"
)]
fn whole(sessions: f64) -> u32 {
    sessions as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::{Plan, Value, Values, Workload};
    use std::sync::Arc;

    /// A session of workload `echo` sends a fifth of the frames of a speech session.
    #[test]
    fn the_reach_follows_from_the_pace_of_the_workload() {
        let sessions = |plan: Arc<dyn Plan>, us_per_frame| {
            let frames_per_s = plan.frames_per_session_second().expect("a pace");
            sessions_within(2.0, frames_per_s * us_per_frame)
        };
        let echo = |period_ms| {
            let values = Values::default().with("period_ms", Value::Whole(period_ms));
            plimsoll_workload_echo::Echo.plan(values).expect("a plan")
        };
        let stt = plimsoll_workload_stt::Stt.plan(Values::default());
        assert_eq!(sessions(stt.expect("a plan"), 4.0), 9_000);
        assert_eq!(sessions(echo(100), 4.0), 45_000);
        assert_eq!(sessions(echo(10), 4.0), 4_500);
        assert_eq!(sessions(echo(100), 6.0), 30_000);
    }
}
