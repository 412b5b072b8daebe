//! `plimsoll calibrate`: what load this machine's client can generate soundly.

use std::process::ExitCode;

use plimsoll_host::isolation::CpuList;
use plimsoll_host::machine::Limits;
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::calibrate::ws::Work;
use plimsoll_lab::calibrate::{self, CalibrationStep, Settings};
use plimsoll_lab::trial::{Conditions, Inference};
use plimsoll_report::{ResultFolder, text};

use crate::args::{CalibrateArgs, Calibrated, Where};
use crate::failure::Failure;
use crate::output::{self, note, say};
use crate::{build, setup};

/// Speech sessions on which costs are measured.
const STT_SESSIONS: u32 = 1_000;
/// Connections on which the costs of workload `ws` are measured: as many as share its messages in a trial.
const WS_CONNECTIONS: u32 = 100;

pub(crate) fn run(args: &CalibrateArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    if !(0.5..=600.0).contains(&args.seconds) {
        return Err(Failure::Usage(format!(
            "--seconds {}: give 0.5 to 600",
            args.seconds
        )));
    }
    let sessions = match args.workload {
        Calibrated::Stt => STT_SESSIONS,
        Calibrated::Ws => WS_CONNECTIONS,
    };
    let placement = setup::placement(&Where {
        vcpu: 1.0,
        quota_period_ms: 10,
        target_cpus: None,
        client_cpus: args.client_cpus.clone(),
        network: None,
    })?;
    let folder = output::folder(&args.out, "calibrate", "client")?;
    let settings = Settings {
        client_cpus: placement.client_cpus.clone(),
        sink_cpus: placement.target_cpus.clone(),
        sessions: args.sessions.unwrap_or(sessions),
        rounds: args.rounds,
        seconds: args.seconds,
        sessions_max: sessions_max(),
    };
    if placement.shared() {
        note!(
            "client and sink share CPU {}: the costs include each other's disturbance",
            placement.client_cpus
        );
    }
    match args.workload {
        Calibrated::Stt => of_stt(args, &settings, &folder, stop)?,
        Calibrated::Ws => of_ws(args, &settings, &folder, stop)?,
    }
    if !args.out.json {
        say!("result: {}", folder.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

fn of_stt(
    args: &CalibrateArgs,
    settings: &Settings,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut calibration = calibrate::calibrate(settings, timestamp::now(), stop, show)?;
    calibration.build = build::of_this_program();
    folder.write_calibration(&calibration)?;
    output::render(folder.path())?;
    if args.out.json {
        return output::print_json(&calibration);
    }
    say!(
        "bare loop        {:>8.2} µs of CPU per frame ({} connections)",
        calibration.bare_us_per_frame,
        calibration.sessions
    );
    say!(
        "engine           {:>8.2} µs of CPU per frame (sending, receiving, accounting; {})",
        calibration.engine_us_per_frame,
        calibration.engine_backend
    );
    say!("engine / bare    {:>8.2}", calibration.ratio);
    say!(
        "timer error p99  {:>8.0} µs",
        calibration.timer_error_p99_us
    );
    say!(
        "most sessions    {:>8} on CPU {} (send lag p99 {:.2} ms)",
        calibration.max_sessions,
        settings.client_cpus,
        calibration.send_lag_p99_us / 1e3
    );
    Ok(())
}

fn of_ws(
    args: &CalibrateArgs,
    settings: &Settings,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut calibration = calibrate::ws::calibrate(settings, timestamp::now(), stop, show_ws)?;
    calibration.build = build::of_this_program();
    folder.write_ws_calibration(&calibration)?;
    output::render(folder.path())?;
    if args.out.json {
        return output::print_json(&calibration);
    }
    output::print(&text::client_costs(&calibration));
    Ok(())
}

fn show(step: &CalibrationStep) {
    note!("  {}", told(step, "frame", "sessions"));
}

fn show_ws(work: Work, step: &CalibrationStep) {
    let at_a_write = work.messages_per_write();
    let at_a_write = at_a_write.map_or_else(String::new, |count| format!(", {count} at a write"));
    let one = match work {
        Work::Messages { .. } | Work::Echoes => "message",
        Work::Connections => "connection",
    };
    let told = told(step, one, &work.load_unit().name());
    note!("  {}{at_a_write}: {told}", work.name());
}

fn told(step: &CalibrationStep, one: &str, unit: &str) -> String {
    match step {
        CalibrationStep::Bare { us_per_frame } => {
            format!("bare loop {us_per_frame:.2} µs per {one}")
        }
        CalibrationStep::Engine { us_per_frame } => {
            format!("engine    {us_per_frame:.2} µs per {one}")
        }
        CalibrationStep::Load {
            load,
            send_lag_p99_us,
            busy_share,
            honest,
        } => format!(
            "{load} {unit}: send lag p99 {:.2} ms, thread busy {:.0} %: {}",
            send_lag_p99_us / 1e3,
            busy_share * 100.0,
            if *honest { "on time" } else { "overloaded" }
        ),
    }
}

/// How much load the client can drive.
pub(crate) struct Reach {
    pub(crate) us_per_frame: f64,
    pub(crate) sessions: u32,
}

/// Calibrates the engine briefly with the workload's own frames, and estimates how many sessions it can drive on these
/// cores if each sends so many frames per second.
pub(crate) fn quick_reach(
    conditions: &Conditions,
    frames_per_s: f64,
    stop: &Stop,
) -> Result<Reach, Failure> {
    let placement = &conditions.placement;
    let settings = Settings {
        client_cpus: placement.client_cpus.clone(),
        sink_cpus: placement.target_cpus.clone(),
        // Enough sessions to keep the core busy: a frame costs twice as much if the core sleeps after each one.
        sessions: 1_000.min(sessions_max()),
        rounds: 1,
        seconds: 1.5,
        sessions_max: sessions_max(),
    };
    let us_per_frame = calibrate::engine_us_per_frame(&*conditions.plan, &settings, stop)?;
    let companions = conditions.plan.workload().companions();
    let companion_us = match (&conditions.inference, companions) {
        (Inference::Simulator(_), Some(companions)) => companions.cpu_us_per_session_second(),
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

/// The most sessions that descriptors allow. Client and sink are one process here, so a session takes two descriptors.
fn sessions_max() -> u32 {
    let descriptors = Limits::of_this_process().fd_soft.saturating_sub(512) / 2;
    u32::try_from(descriptors).unwrap_or(u32::MAX).min(10_000)
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
            (&plimsoll_workload_echo::Echo as &dyn Workload)
                .planned(values)
                .expect("a plan")
        };
        let stt = plimsoll_workload_stt::Stt.plan(Values::default());
        assert_eq!(sessions(stt.expect("a plan"), 4.0), 9_000);
        assert_eq!(sessions(echo(100), 4.0), 45_000);
        assert_eq!(sessions(echo(10), 4.0), 4_500);
        assert_eq!(sessions(echo(100), 6.0), 30_000);
    }
}
