//! `plimsoll calibrate`: what load this machine's client can generate soundly; or, in [`agents`], what load agents can; or, in
//! [`inference`], what load an inference server holds alone.

mod agents;
mod inference;
mod reach;
mod record;

use std::process::ExitCode;

use plimsoll_core::record::{Calibration, ClientCosts};
use plimsoll_host::isolation::Placement;
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::calibrate::{self, CalibrationStep, Settings};
use plimsoll_report::{ResultFolder, text};
use plimsoll_workload::Work;

use crate::args::{CalibrateArgs, Where};
use crate::failure::Failure;
use crate::output::{self, note, say};
use crate::setup;

pub(crate) use reach::{driver, quick_reach};
use record::Record;

pub(crate) fn run(args: &CalibrateArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    if !(0.5..=calibrate::SECONDS_MAX).contains(&args.seconds) {
        return Err(Failure::Usage(format!(
            "--seconds {}: give 0.5 to {}",
            args.seconds,
            calibrate::SECONDS_MAX
        )));
    }
    if let Some(url) = &args.inference {
        return inference::run(args, url, stop);
    }
    let works = args.workload.works();
    let Some(first) = works.first() else {
        return Err(Failure::Usage(format!(
            "--workload {}: nothing of it can be calibrated",
            args.workload.about().name
        )));
    };
    if args.fleet.agents.is_some() {
        return agents::run(args, *first, stop);
    }
    let placement = placement(args)?;
    let folder = output::folder(&args.out, "calibrate", "client")?;
    let settings = Settings {
        client_cpus: placement.client_cpus.clone(),
        sink_cpus: placement.target_cpus.clone(),
        sessions: args.sessions.unwrap_or(first.usual_sessions()),
        rounds: args.rounds,
        seconds: args.seconds,
        sessions_max: calibrate::sessions_max(),
        tls: args.tls,
        cores_share: 1.0,
    };
    if placement.shared() {
        note!(
            "client and sink share CPU {}: the costs include each other's disturbance",
            placement.client_cpus
        );
    }
    let started_at = timestamp::now();
    let measured = calibrate::calibrate(works, &settings, stop, |work, step| {
        show("", work, works.len(), step);
    })?;
    match Record::of(args.workload, measured, &settings, started_at) {
        Record::Sessions(calibration) => of_sessions(args, &calibration, &settings, &folder)?,
        Record::Costs(costs) => of_costs(args, &costs, &folder)?,
    }
    if !args.out.json {
        say!("result: {}", folder.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The client's cores, and the other ones.
fn placement(args: &CalibrateArgs) -> Result<Placement, Failure> {
    setup::placement(&Where {
        vcpu: 1.0,
        quota_period_ms: None,
        target_cpus: None,
        client_cpus: args.client_cpus.clone(),
        network: None,
    })
}

fn of_sessions(
    args: &CalibrateArgs,
    calibration: &Calibration,
    settings: &Settings,
    folder: &ResultFolder,
) -> Result<(), Failure> {
    folder.write_calibration(calibration)?;
    output::render(folder.path())?;
    if args.out.json {
        return output::print_json(calibration);
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
    if let Some(tls) = &calibration.tls {
        say!(
            "engine over TLS  {:>8.2} µs of CPU per frame ({:.2} more within a round, {:.2} of it timed as encryption), {:.0} µs per handshake",
            tls.engine_cpu_us.median,
            tls.added_cpu_us.median,
            tls.tls_cpu_us.median,
            tls.handshake_cpu_us.median
        );
    }
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

fn of_costs(
    args: &CalibrateArgs,
    costs: &ClientCosts,
    folder: &ResultFolder,
) -> Result<(), Failure> {
    folder.write_client_costs(costs)?;
    output::render(folder.path())?;
    if args.out.json {
        return output::print_json(costs);
    }
    output::print(&text::client_costs(costs));
    Ok(())
}

/// Shows a step after this name of whose it is. It names the work if there are several.
fn show(whose: &str, work: &dyn Work, works: usize, step: &CalibrationStep) {
    let told = told(step, &work.one(), &work.unit().name());
    if works == 1 {
        return note!("  {whose}{told}");
    }
    let at_a_write = work.messages_per_write();
    let at_a_write = at_a_write.map_or_else(String::new, |count| format!(", {count} at a write"));
    note!("  {whose}{}{at_a_write}: {told}", work.name());
}

fn told(step: &CalibrationStep, one: &str, unit: &str) -> String {
    match step {
        CalibrationStep::Bare { us_per_frame } => {
            format!("bare loop {us_per_frame:.2} µs per {one}")
        }
        CalibrationStep::Engine { us_per_frame } => {
            format!("engine    {us_per_frame:.2} µs per {one}")
        }
        CalibrationStep::EngineOverTls {
            us_per_frame,
            us_per_handshake,
        } => format!(
            "over TLS  {us_per_frame:.2} µs per {one}, {us_per_handshake:.0} µs per handshake"
        ),
        CalibrationStep::Load {
            load,
            send_lag_p99_us,
            busy_share,
            honest,
        } => format!(
            "{load} {unit}: send lag p99 {}, thread busy {:.0} %: {}",
            send_lag_p99_us.map_or_else(
                || "unknown".to_owned(),
                |lag_us| format!("{:.2} ms", lag_us / 1e3)
            ),
            busy_share * 100.0,
            if *honest { "on time" } else { "overloaded" }
        ),
    }
}

#[cfg(test)]
mod tests;
