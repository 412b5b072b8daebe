//! Starts a command and spends a stated share of its CPU time on top of it. See the README.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// How often the tax is collected.
const PERIOD: Duration = Duration::from_millis(10);
/// The tax, unless `TAX_SHARE` says otherwise.
const SHARE: f64 = 0.05;
/// Bad usage.
const USAGE: u8 = 2;
/// The command cannot be watched.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        return fail(USAGE, "name a command: taxed-axum COMMAND [ARGUMENT…]");
    };
    let share = match share(std::env::var_os("TAX_SHARE").map(|value| value.to_string_lossy().into_owned())) {
        Ok(share) => share,
        Err(error) => return fail(USAGE, &error),
    };
    // The last signal that came and was not passed on yet; 0 is none.
    let pending = Arc::new(AtomicUsize::new(0));
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let number = signal as usize;
        if let Err(error) = signal_hook::flag::register_usize(signal as i32, Arc::clone(&pending), number) {
            return fail(FAILED, &format!("cannot handle {signal}: {error}"));
        }
    }
    let mut command = Command::new(&program);
    command.args(arguments).process_group(0);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return fail(USAGE, &format!("cannot start {}: {error}", program.to_string_lossy())),
    };
    match tax(child, share, &pending) {
        Ok(status) => code_of(status),
        Err(error) => fail(FAILED, &error),
    }
}

/// The share that is taken, from the variable's text.
fn share(text: Option<String>) -> Result<f64, String> {
    let Some(text) = text else {
        return Ok(SHARE);
    };
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("TAX_SHARE={text}: give a share from 0 to 1, for example 0.05")),
    }
}

/// Taxes the child until it ends, and passes signals on.
fn tax(mut child: Child, share: f64, pending: &AtomicUsize) -> Result<ExitStatus, String> {
    // Process ids are at most 2^22 on Linux.
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let clock = clock_getcpuclockid(pid).map_err(|error| format!("cannot read the CPU clock of {pid}: {error}"))?;
    let mut used = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("cannot wait for {pid}: {error}"))? {
            report(used);
            return Ok(status);
        }
        let signal = i32::try_from(pending.swap(0, Ordering::Relaxed)).unwrap_or(0);
        if signal != 0 {
            // It fails only when the child has just ended, which the next round sees.
            let _ = Signal::try_from(signal).map(|signal| kill(pid, signal));
        }
        // A child that has just ended has no clock any more: it keeps what it had used by then.
        used = cpu_time(clock).unwrap_or(used);
        spin_until(used.mul_f64(share));
        std::thread::sleep(PERIOD);
    }
}

/// Spends CPU time until this process has used that much since it began.
fn spin_until(owed: Duration) {
    while cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID).is_some_and(|own| own < owed) {
        for _ in 0..1_000 {
            std::hint::spin_loop();
        }
    }
}

fn cpu_time(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).ok().map(Duration::from)
}

/// What was used and taken, for whoever wants to check.
fn report(used: Duration) {
    let own = cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default();
    eprintln!("taxed-axum: the command used {} us of CPU time, the tax was {} us", used.as_micros(), own.as_micros());
}

/// The child's exit code, or 128 and the signal that killed it, as shells have it.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

fn fail(code: u8, text: &str) -> ExitCode {
    eprintln!("taxed-axum: {text}");
    ExitCode::from(code)
}
