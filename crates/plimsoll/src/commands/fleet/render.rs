//! `plimsoll fleet render`: manifests of Kubernetes, without Helm.

use std::process::ExitCode;

use plimsoll_deploy::settings::{Settings, Subject, Token, image};
use plimsoll_lab::manifest;

use super::{catalogue, mistake};
use crate::args::{Args, RenderArgs};
use crate::failure::Failure;
use crate::{output, workloads};

/// What the coordinator's pod sets itself.
const OWN: [&str; 8] = [
    "--agents",
    "--listen",
    "--token-file",
    "--out",
    "--url",
    "--workload",
    "--sessions",
    "--load",
];

/// Names of Services have 63 characters at most, and `-coordinator-1` is added.
const NAME_MAX: usize = 40;

pub(super) fn run(args: &RenderArgs) -> Result<ExitCode, Failure> {
    for (flag, name) in [
        ("--name", Some(&args.name)),
        ("--namespace", args.namespace.as_ref()),
    ] {
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(Failure::Usage(format!(
                "{flag} {name}: give at most {NAME_MAX} lower-case letters, digits and dashes, beginning with a letter"
            )));
        }
    }
    if !(0.05..=1024.0).contains(&args.vcpu) {
        return Err(Failure::Usage(format!(
            "--vcpu {}: give 0.05 to 1024",
            args.vcpu
        )));
    }
    if args.arguments.iter().any(|word| word == "--help") {
        let verb = if args.sessions.is_some() {
            "run"
        } else {
            "find"
        };
        let help = Args::of(["plimsoll", verb, "--help"]).err();
        output::print(&help.map_or_else(String::new, |help| help.to_string()));
        return Ok(ExitCode::SUCCESS);
    }
    let subject = subject(args)?;
    check_arguments(args, &subject)?;
    let token = match &args.token_secret {
        Some(secret) => Token::In(secret.clone()),
        None => Token::Made(random_token()?.digits()),
    };
    let settings = Settings {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone().unwrap_or_else(|| image("plimsoll")),
        target_image: args.target_image.clone(),
        agents: args.agents,
        subject,
        sessions: args.sessions,
        arguments: args.arguments.clone(),
        vcpu: args.vcpu,
        observer: args.observer,
        token,
    };
    output::print(&plimsoll_deploy::render(&settings));
    Ok(ExitCode::SUCCESS)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(plain)
}

fn subject(args: &RenderArgs) -> Result<Subject, Failure> {
    if let Some(url) = &args.url {
        let workload = args
            .workload
            .map_or_else(workloads::usual, |workload| workload.about().name);
        return Ok(Subject::Url {
            url: url.clone(),
            workload: workload.to_owned(),
        });
    }
    let name = args.target.as_deref().unwrap_or_default();
    let root = manifest::root_of_this_process(args.root.as_deref())?;
    let known = catalogue::of_root(&root)?;
    let wanted = args.workload.map(|workload| workload.about().name);
    let fits = |of: &str| wanted.is_none_or(|wanted| wanted == of);
    if let Some((_, why)) = known.left_out.iter().find(|(left_out, _)| left_out == name) {
        return Err(Failure::Usage(format!(
            "--target {name}: it cannot be deployed: {why}"
        )));
    }
    let mut all = known.catalogue.targets.into_iter();
    match all.find(|target| target.name == name && fits(&target.workload)) {
        Some(target) => Ok(Subject::Target(Box::new(target))),
        None => Err(Failure::Usage(format!(
            "--target {name}: there is no such target{}; see plimsoll list",
            wanted.map_or_else(String::new, |wanted| format!(" of workload {wanted}"))
        ))),
    }
}

/// Refuses here what the coordinator would refuse on the cluster.
fn check_arguments(args: &RenderArgs, subject: &Subject) -> Result<(), Failure> {
    let own = args.arguments.iter().find(|word| {
        let flag = word.split('=').next().unwrap_or_default();
        OWN.contains(&flag)
    });
    if let Some(own) = own {
        return Err(Failure::Usage(format!(
            "after --: the coordinator's pod sets {own} itself; leave it out, or use the flag of `fleet render`"
        )));
    }
    let sessions = args.sessions.map(|sessions| sessions.to_string());
    let (url, workload) = match subject {
        Subject::Url { url, workload } => (url.as_str(), workload.as_str()),
        Subject::Target(target) => ("http://target:3000", target.workload.as_str()),
    };
    let mut words = vec!["plimsoll"];
    match &sessions {
        Some(sessions) => words.extend(["run", "--sessions", sessions]),
        None => words.push("find"),
    }
    words.extend(["--url", url, "--workload", workload]);
    words.extend(args.arguments.iter().map(String::as_str));
    let Err(error) = Args::of(words) else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "after --: the coordinator would refuse this: {}",
        mistake(&error)
    )))
}

fn random_token() -> Result<plimsoll_fleet::Token, Failure> {
    plimsoll_fleet::Token::random().map_err(|error| {
        Failure::Usage(format!(
            "{error}; name a secret that exists with --token-secret"
        ))
    })
}
