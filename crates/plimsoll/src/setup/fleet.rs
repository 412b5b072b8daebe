//! The agents of a command.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use plimsoll_fleet::Token;
use plimsoll_host::signals::Stop;
use plimsoll_lab::fleet::{Fleet, FleetSettings};
use plimsoll_lab::trial::Subject;
use plimsoll_workload::Plan;

use crate::args::FleetArgs;
use crate::build;
use crate::failure::Failure;
use crate::output::note;

/// Listens for the agents and the observer that were asked for, and waits until all have joined; `None` if none were.
pub(crate) fn gathered(
    args: &FleetArgs,
    subjects: &[&Subject],
    plan: &dyn Plan,
    stop: &Stop,
) -> Result<Option<Fleet>, Failure> {
    let Some(file) = &args.token_file else {
        return Ok(None);
    };
    if args.agents.is_some() {
        agents_can(plan)?;
    }
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
        observer: args.observer,
        listen: args.listen,
        token,
        targets: subjects.iter().map(|subject| address(subject)).collect(),
        build: build::of_this_program(),
    })?;
    note!(
        "plimsoll: waiting for {} at {}; certificate {}",
        named(agents, args.observer),
        fleet.address(),
        fleet.fingerprint()
    );
    fleet.gather(Duration::from_secs(args.join_timeout), stop)?;
    Ok(Some(fleet))
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
