//! Turns the command line into what the laboratory takes: checked, resolved, with defaults. [`plan`] does this for the
//! workload and its parameters.

pub(crate) mod baseline;
pub(crate) mod deviations;
pub(crate) mod fleet;
pub(crate) mod goals;
pub(crate) mod plan;
pub(crate) mod proxies;
mod quota;
mod subject;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_core::drift::WINDOW_MIN_S;
use plimsoll_core::profile::Profile;
use plimsoll_core::secret::redacted_url;
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::{CpuList, Placement, can_be_own, no_own_network};
use plimsoll_host::machine::{MachineFacts, probe};
use plimsoll_lab::manifest;
use plimsoll_lab::trial::{BackEnd, Conditions, NetworkPlan, Subject};
use plimsoll_tls::{Trust, is_host_name};
use plimsoll_workload::{Plan, Workload};

use crate::args::{LoadArgs, NetworkName, Where, Which};
use crate::failure::Failure;
use crate::{build, secrets};

pub(crate) use subject::{bring_up_to_date, manifest_of, source, subject, subject_name};

/// What all trials of this subject have in common.
pub(crate) fn conditions(
    subject: &Subject,
    which: &Which,
    place: &Where,
    load: &LoadArgs,
    log_folder: PathBuf,
) -> Result<Conditions, Failure> {
    let manifest = match subject {
        Subject::Started(manifest) => Some(&**manifest),
        Subject::Running { .. } => None,
    };
    let plan = plan::spread_over_addresses(plan::plan(which, load, manifest)?, subject)?;
    if let Some(manifest) = manifest {
        deviations::must_be_known(plan.workload(), plan.values(), manifest)?;
    }
    if plan.unit().is_arrivals() && load.ramp.is_some() {
        return Err(Failure::Usage(
            "--ramp: connections of this load arrive all the time, from the warm-up on; leave the flag out".to_owned(),
        ));
    }
    let mut profile = profile(load, &*plan)?;
    plan.unit().shape(&mut profile);
    let mut slos = slos(&load.slo, plan.workload())?;
    if slos.is_empty() {
        slos.push(plan.slo());
        slos.extend(plan.further_slos());
    }
    let quota_period_us = quota::period_us(place, &*plan);
    if manifest.is_some() {
        quota::must_leave_room(place.vcpu, quota_period_us, &slos)?;
    }
    let mut slos = slos.into_iter();
    let headers = secrets::headers(load)?;
    let (trust, sni) = (trust(subject, load)?, sni(load)?);
    let back_end = back_end(which, load)?;
    let placement = placement(place)?;
    let network = network(
        subject,
        place,
        &*plan,
        &back_end,
        &placement,
        load.fleet.agents.is_some(),
    )?;
    // Everything that can be refused has been refused by now, in one line.
    secrets::warn_of_the_process_list();
    if which.url.is_some() {
        proxies::note_that_they_are_ignored();
    }
    Ok(Conditions {
        slo: slos.next().unwrap_or_else(|| plan.slo()),
        further_slos: slos.collect(),
        // The commands that take goals add them.
        goals: None,
        profile,
        seed: load.seed,
        nodelay: !load.no_nodelay,
        tick_us: tick_us(load, &*plan)?,
        secrets: secrets::known(&headers, plan.values(), which.url.as_deref()),
        headers,
        trust,
        sni,
        // The commands that take agents gather them.
        fleet: None,
        probe: Some(probe(&placement)?),
        placement,
        network,
        quota_period_us,
        back_end,
        configured: which.url.is_none(),
        log_folder,
        machine: MachineFacts::of_this_machine(),
        build: build::of_this_program(),
        baseline: None,
        plan,
    })
}

/// Whom the client believes. Only a server with TLS has to be believed.
fn trust(subject: &Subject, load: &LoadArgs) -> Result<Trust, Failure> {
    let secure = matches!(subject, Subject::Running { url, .. } if url.secure);
    for (flag, given) in [
        ("--tls-ca", load.tls_ca.is_some()),
        ("--tls-insecure", load.tls_insecure),
        ("--sni", load.sni.is_some()),
    ] {
        if given && !secure {
            return Err(Failure::Usage(format!(
                "{flag} is for a server with TLS (--url wss://HOST:PORT/PATH); leave the flag out"
            )));
        }
    }
    if load.tls_insecure {
        return Ok(Trust::Anyone);
    }
    let read = |file: &PathBuf| {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("--tls-ca {}: {error}", file.display())))
    };
    let added_pem = load.tls_ca.as_ref().map(read).transpose()?;
    Ok(Trust::Authorities { added_pem })
}

/// The name that a server with TLS is asked for, if it is not the URL's.
fn sni(load: &LoadArgs) -> Result<Option<String>, Failure> {
    match &load.sni {
        Some(name) if !is_host_name(name) => Err(Failure::Usage(format!(
            "--sni {name}: no host name; give one that the server's certificate is for, without a port (an address is never sent)"
        ))),
        name => Ok(name.clone()),
    }
}

/// Which CPUs target and client get.
pub(crate) fn placement(place: &Where) -> Result<Placement, Failure> {
    let allowed = CpuList::allowed_to_us()?;
    let target = cpus("--target-cpus", place.target_cpus.as_deref())?;
    let client = cpus("--client-cpus", place.client_cpus.as_deref())?;
    Ok(Placement::choose(place.vcpu, &allowed, target, client)?)
}

/// The network of a target that we start: its own, or the loopback if its own was not requested and is not possible.
fn network(
    subject: &Subject,
    place: &Where,
    plan: &dyn Plan,
    back_end: &BackEnd,
    placement: &Placement,
    agents: bool,
) -> Result<NetworkPlan, Failure> {
    let loopback = |why: &str| NetworkPlan::Loopback {
        why: why.to_owned(),
    };
    let asked = place.network;
    if asked == Some(NetworkName::Loopback) {
        return Ok(loopback("--network loopback"));
    }
    if asked.is_none() && agents && matches!(subject, Subject::Started(_)) {
        return Ok(loopback("agents reach it there"));
    }
    if matches!(subject, Subject::Running { .. }) {
        return match asked {
            Some(_) => Err(Failure::Usage(
                "--network own is for a target that Plimsoll starts; a server that runs already (--url) is reached as it is".to_owned(),
            )),
            None => Ok(loopback("it runs already")),
        };
    }
    let possible = if let BackEnd::Url(url) = back_end {
        Err(format!(
            "--inference {url} cannot be reached from the target's own network"
        ))
    } else if plan.source_addresses().is_empty() {
        can_be_own(placement)
    } else {
        Err("the target's own network does not have the addresses of --source-addresses".to_owned())
    };
    match (possible, asked) {
        (Ok(()), _) => Ok(NetworkPlan::Own),
        (Err(why), None) => Ok(loopback(&why)),
        (Err(why), Some(_)) => Err(no_own_network(&why).into()),
    }
}

/// The engine's tick: as requested, otherwise the usual one of the workload.
fn tick_us(load: &LoadArgs, plan: &dyn Plan) -> Result<u64, Failure> {
    const LEAST_US: u64 = 50;
    let usual_us = plan.tick_us();
    match load.tick_us {
        None => Ok(usual_us),
        Some(0) if usual_us == 0 => Ok(0),
        Some(tick_us) if tick_us < LEAST_US => Err(Failure::Usage(format!(
            "--tick-us {tick_us}: give at least {LEAST_US}{}",
            if usual_us == 0 { ", or 0 for none" } else { "" }
        ))),
        Some(tick_us) => Ok(tick_us),
    }
}

/// Parses a list of CPUs, if one is given.
pub(crate) fn cpus(flag: &str, list: Option<&str>) -> Result<Option<CpuList>, Failure> {
    list.map(|text| {
        text.parse::<CpuList>()
            .map_err(|error| Failure::Usage(format!("{flag} {text}: {error}")))
    })
    .transpose()
}

/// The name of the profile: the given one, otherwise the workload's.
pub(crate) fn profile_name<'a>(load: &'a LoadArgs, plan: &dyn Plan) -> &'a str {
    match &load.profile {
        Some(name) => name,
        None => plan.usual_profile(),
    }
}

fn is_soak(load: &LoadArgs, plan: &dyn Plan) -> bool {
    Profile::by_name(profile_name(load, plan)).is_some_and(|profile| profile.soak)
}

fn profile(load: &LoadArgs, plan: &dyn Plan) -> Result<Profile, Failure> {
    let name = profile_name(load, plan);
    let mut profile = Profile::by_name(name).ok_or_else(|| {
        Failure::Usage(format!(
            "--profile {name}: unknown; use quick, standard, speech or soak"
        ))
    })?;
    let phases = [
        ("--ramp", load.ramp, &mut profile.ramp_s, 0.0),
        ("--warm-up", load.warm_up, &mut profile.warm_up_s, 0.0),
        ("--measured", load.measured, &mut profile.measured_s, 1.0),
        ("--grace", load.grace, &mut profile.grace_s, 0.0),
    ];
    let mut changed = false;
    for (flag, given, phase, least_s) in phases {
        let Some(seconds) = given else { continue };
        if !seconds.is_finite() || seconds < least_s || seconds > 86_400.0 {
            return Err(Failure::Usage(format!(
                "{flag} {seconds}: give {least_s} to 86400 seconds"
            )));
        }
        *phase = seconds;
        changed = true;
    }
    if changed {
        profile.name = "custom".to_owned();
    }
    if profile.soak && profile.measured_s < WINDOW_MIN_S {
        return Err(Failure::Usage(format!(
            "--measured {}: a soak needs at least {WINDOW_MIN_S} s to tell a leak from noise",
            profile.measured_s
        )));
    }
    Ok(profile)
}

/// The given SLOs. Each must have its own name, because results are told apart by it.
fn slos(files: &[PathBuf], workload: &dyn Workload) -> Result<Vec<Slo>, Failure> {
    let slos: Vec<Slo> = files
        .iter()
        .map(|file| slo(file, workload))
        .collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    match slos.iter().find(|slo| !names.insert(slo.name.as_str())) {
        Some(slo) => Err(Failure::Usage(format!(
            "--slo: two SLOs are named `{}`; give one of them another `name = \"…\"`",
            slo.name
        ))),
        None => Ok(slos),
    }
}

fn slo(file: &Path, workload: &dyn Workload) -> Result<Slo, Failure> {
    let refuse = |why: String| Failure::Usage(format!("--slo {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| {
        refuse(format!(
            "{error}; give the path of a TOML file with a `[gates]` table, or leave the flag out for the workload's own SLO"
        ))
    })?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Slo::parse(&text, &name, workload.metrics()).map_err(|error| refuse(error.to_string()))
}

/// Whether this can be the URL of an inference server. Targets receive it, log it, and do not send a user, a password or a
/// query with it.
pub(crate) fn is_inference_url(url: &str) -> bool {
    let authority = url.strip_prefix("http://");
    authority.is_some_and(|rest| !rest.contains(['@', '?', '#']))
}

fn back_end(which: &Which, load: &LoadArgs) -> Result<BackEnd, Failure> {
    let is_simulator = load.back_end == "sim";
    let refuse = |why: &str| {
        let url = redacted_url(&load.back_end);
        Err(Failure::Usage(format!("--inference {url}: {why}")))
    };
    let Some(companions) = which.workload.companions() else {
        return if is_simulator {
            Ok(BackEnd::None)
        } else {
            refuse(&format!(
                "targets of workload {} ask no server; leave the flag out",
                which.workload.about().name
            ))
        };
    };
    if is_simulator && which.url.is_some() {
        return Ok(BackEnd::None);
    }
    if !is_simulator {
        if !is_inference_url(&load.back_end) {
            return refuse(
                "write `sim` or a URL without user, password and query, http://HOST:PORT",
            );
        }
        return Ok(BackEnd::Url(load.back_end.clone()));
    }
    let root = manifest::root_of_this_process(which.root.as_deref()).ok();
    Ok(BackEnd::Companion(companions.find(root.as_deref())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command, RunArgs};
    use clap::Parser;

    fn run_args(line: &str) -> RunArgs {
        let words = format!("plimsoll run --sessions 5 {line}");
        let args = Args::try_parse_from(words.split_whitespace()).unwrap();
        match args.command {
            Command::Run(run) => run,
            other => panic!("{other:?}"),
        }
    }

    fn profile_of(line: &str) -> Result<Profile, String> {
        let run = run_args(&format!("x {line}"));
        let plan = plan::plan(&run.which, &run.load, None).expect("a plan");
        profile(&run.load, &*plan).map_err(|error| error.to_string())
    }

    #[test]
    fn a_back_end_is_only_for_targets_that_ask_one() {
        let given = |line: &str| {
            let run = run_args(line);
            back_end(&run.which, &run.load).map_err(|error| error.to_string())
        };
        assert!(matches!(given("--url ws://h"), Ok(BackEnd::None)));
        assert!(matches!(given("x --workload ws"), Ok(BackEnd::None)));
        for line in ["x", "--url ws://h"] {
            let url = given(&format!("{line} --inference http://h:1"));
            assert!(matches!(url, Ok(BackEnd::Url(_))), "{url:?}");
        }
        for (line, words) in [
            ("--url ws://h --inference http://u:canary@h", "without user"),
            (
                "x --workload ws --inference http://u:canary@h",
                "workload ws",
            ),
            ("x --inference http://u:canary@h", "without user"),
            ("x --inference http://h/?key=canary", "without user"),
        ] {
            let text = given(line).unwrap_err();
            assert!(text.starts_with("--inference http://"), "{text}");
            assert!(text.contains(words) && !text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn a_changed_phase_makes_the_profile_custom() {
        assert_eq!(profile_of("").unwrap().name, "quick");
        let custom = profile_of("--profile standard --measured 5").unwrap();
        assert_eq!(
            (custom.name.as_str(), custom.measured_s, custom.ramp_s),
            ("custom", 5.0, 30.0)
        );
    }

    #[test]
    fn a_soak_stays_one_when_its_phases_are_changed() {
        assert!(profile_of("--profile soak").unwrap().soak);
        let short = profile_of("--profile soak --ramp 1 --measured 40").unwrap();
        assert!(short.soak && short.name == "custom");
        assert!(!profile_of("--measured 40").unwrap().soak);
        let text = profile_of("--profile soak --measured 29").unwrap_err();
        assert!(
            text.starts_with("--measured 29: ") && text.contains("30 s"),
            "{text}"
        );
    }

    #[test]
    fn bad_values_get_one_line_with_the_remedy() {
        for line in ["--profile fast", "--measured 0", "--grace NaN"] {
            let text = profile_of(line).unwrap_err();
            assert!(text.starts_with("--") && !text.contains('\n'), "{text}");
        }
    }
}
