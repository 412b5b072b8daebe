//! The agents of a command.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use plimsoll_fleet::Token;
use plimsoll_host::signals::Stop;
use plimsoll_lab::fleet::{Fleet, FleetSettings};
use plimsoll_lab::trial::Subject;
use plimsoll_workload::Plan;

use crate::args::{FleetArgs, LoadArgs};
use crate::build;
use crate::failure::Failure;
use crate::output::note;

/// Listens for the agents and the observer that were asked for, and waits until all have joined; `None` if none were.
pub(crate) fn gathered(
    load: &LoadArgs,
    subjects: &[&Subject],
    plan: &dyn Plan,
    stop: &Stop,
) -> Result<Option<Fleet>, Failure> {
    let Some(file) = &load.fleet.token_file else {
        return Ok(None);
    };
    if load.fleet.agents.is_some() {
        agents_can(plan)?;
    }
    let targets = subjects.iter().map(|subject| address(subject)).collect();
    joined(&load.fleet, file, load.observer, targets, stop).map(Some)
}

/// The same for agents that calibrate, each against a sink of its own.
pub(crate) fn calibrating(args: &FleetArgs, stop: &Stop) -> Result<Option<Fleet>, Failure> {
    let Some(file) = &args.token_file else {
        return Ok(None);
    };
    let itself = vec![Ipv4Addr::LOCALHOST.into()];
    joined(args, file, false, itself, stop).map(Some)
}

/// Listens, and waits until all have joined, who will be sent to these addresses.
fn joined(
    args: &FleetArgs,
    file: &Path,
    observer: bool,
    targets: Vec<IpAddr>,
    stop: &Stop,
) -> Result<Fleet, Failure> {
    let agents = args.agents.unwrap_or(0);
    let (token, made) = Token::read_or_make(file)
        .map_err(|error| Failure::Usage(format!("--token-file {}: {error}", file.display())))?;
    if made {
        note!(
            "plimsoll: a token was made in {}; copy the file to the agents",
            file.display()
        );
    }
    let fleet = Fleet::listen(FleetSettings {
        agents,
        observer,
        listen: args.listen,
        token,
        targets,
        build: build::of_this_program(),
    })?;
    note!(
        "plimsoll: waiting for {} at {}; certificate {}",
        named(agents, observer),
        fleet.address(),
        fleet.fingerprint()
    );
    fleet.gather(Duration::from_secs(args.join_timeout), stop)?;
    Ok(fleet)
}

/// Checks that agents can drive such a load.
///
/// # Errors
/// One line with the remedy.
fn agents_can(plan: &dyn Plan) -> Result<(), Failure> {
    if let Some(why) = plan.needs_one_clock() {
        return Err(Failure::Usage(format!(
            "--agents: {why}, and agents have clocks of their own; leave --agents out"
        )));
    }
    if let Some(name) = plan.values().names_a_file() {
        return Err(Failure::Usage(format!(
            "--agents: --{} names a file of this machine, which agents do not have; leave one of the two out",
            name.replace('_', "-")
        )));
    }
    Ok(())
}

/// Who is waited for.
fn named(agents: u32, observer: bool) -> String {
    let agents = match agents {
        0 => return "an observer".to_owned(),
        1 => "an agent".to_owned(),
        more => format!("{more} agents"),
    };
    match observer {
        true => format!("{agents} and an observer"),
        false => agents,
    }
}

/// Where agents will be sent. A target that we start in its own network gets its address only then.
fn address(subject: &Subject) -> IpAddr {
    match subject {
        Subject::Running { url, .. } => url.address.ip(),
        Subject::Started(_) => Ipv4Addr::LOCALHOST.into(),
    }
}
