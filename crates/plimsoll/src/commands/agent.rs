//! `plimsoll agent`: drives parts of loads for a command on another machine, or observes the target for it.

use std::process::ExitCode;
use std::time::Duration;

use plimsoll_fleet::{Allowed, Token};
use plimsoll_host::signals::Stop;
use plimsoll_lab::fleet::agent::{AgentSettings, Duty, serve};

use crate::args::AgentArgs;
use crate::failure::Failure;
use crate::output::note;
use crate::{build, setup, workloads};

/// The exit code of what was interrupted, as of every other command.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(args: &AgentArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    let file = &args.token_file;
    let token = Token::read(file)
        .map_err(|error| Failure::Usage(format!("--token-file {}: {error}", file.display())))?;
    let duty = match args.observe {
        true => Duty::Observe(setup::source(args.pid, args.cgroup.as_deref())?),
        false => Duty::Drive,
    };
    let settings = AgentSettings {
        join: args.join.clone(),
        token,
        fingerprint: args.fingerprint,
        index: args.index,
        allowed: Allowed::of(args.allow.clone()),
        idle: Duration::from_secs(args.idle),
        build: build::of_this_program(),
        workloads: workloads::ALL,
        duty,
    };
    serve(&settings, stop, &|line| note!("plimsoll: {line}"))?;
    // What starts agents anew must see that this one did not end by itself.
    Ok(match stop.requested() {
        true => ExitCode::from(INTERRUPTED),
        false => ExitCode::SUCCESS,
    })
}
