//! Turns the command line into what the laboratory takes: checked, resolved, with defaults. [`ws`] does this for
//! workload `ws`.

pub(crate) mod ws;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_core::drift::WINDOW_MIN_S;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::LoadUnit;
use plimsoll_core::secret::redacted_url;
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::{CpuList, GroupView, Layout, Placement, can_be_own, no_own_network};
use plimsoll_host::machine::{MachineFacts, probe};
use plimsoll_host::resources::Source;
use plimsoll_host::signals::Stop;
use plimsoll_lab::build::build as build_target;
use plimsoll_lab::manifest::{self, Manifest};
use plimsoll_lab::simulator;
use plimsoll_lab::trial::conditions::AudioSource;
use plimsoll_lab::trial::{Conditions, Inference, Load, NetworkPlan, Subject, TargetUrl};
use plimsoll_workload_echo::Echo;

use crate::args::{LoadArgs, NetworkName, Where, Which, WorkloadName};
use crate::failure::Failure;
use crate::{build, secrets};

/// The manifest of a target by name or by file.
pub(crate) fn manifest_of(target: Option<&str>, which: &Which) -> Result<Manifest, Failure> {
    if let Some(file) = &which.manifest {
        return Ok(Manifest::read(file)?);
    }
    let root = manifest::root_of_this_process(which.root.as_deref())?;
    let name = target.ok_or_else(|| Failure::Usage("name a target, or give --url".to_owned()))?;
    Ok(manifest::find(&root, which.workload.word(), name)?)
}

/// What is measured. Nothing is built or started yet; see [`bring_up_to_date`].
pub(crate) fn subject(
    target: Option<&str>,
    which: &Which,
    load: &LoadArgs,
) -> Result<Subject, Failure> {
    let Some(url) = &which.url else {
        // clap ignores a `requires` if its argument conflicts with one that is present, so the target's name would hide
        // this.
        for (flag, given) in [
            ("--pid", load.pid.is_some()),
            ("--cgroup", load.cgroup.is_some()),
        ] {
            if given {
                return Err(Failure::Usage(format!(
                    "{flag} is for a server that runs already (--url); the resources of a target that Plimsoll starts are measured anyway"
                )));
            }
        }
        let manifest = manifest_of(target, which)?;
        if manifest.workload != which.workload.word() {
            return Err(Failure::Usage(format!(
                "{} is a target of workload {}; add --workload {}",
                manifest.name, manifest.workload, manifest.workload
            )));
        }
        return Ok(Subject::Started(Box::new(manifest)));
    };
    let default_path = workload(which.workload, load, None)?.default_path();
    let resources = match (load.pid, &load.cgroup) {
        (Some(pid), _) if !Path::new(&format!("/proc/{pid}")).exists() => {
            return Err(Failure::Usage(format!("--pid {pid}: no such process")));
        }
        (Some(pid), _) => Some(Source::Tree(pid)),
        (None, Some(path)) => Some(Source::Group(GroupView::open(
            path,
            &Layout::of_this_machine(),
        )?)),
        (None, None) if Profile::by_name(&load.profile).is_some_and(|profile| profile.soak) => {
            return Err(Failure::Usage(
                "a soak looks for leaks: give --pid or --cgroup, to measure the server's memory (or --profile standard --measured 1800, without that gate)".to_owned(),
            ));
        }
        (None, None) => None,
    };
    Ok(Subject::Running {
        url: TargetUrl::parse(url, default_path)?,
        resources,
    })
}

/// The name of what is measured, for folders and messages: the target's name, or the URL without its secrets.
pub(crate) fn subject_name(target: Option<&str>, which: &Which) -> String {
    match (target, &which.url) {
        (Some(name), _) => name.to_owned(),
        (None, Some(url)) => redacted_url(url),
        (None, None) => "manifest".to_owned(),
    }
}

/// Builds a target that has a manifest.
pub(crate) fn bring_up_to_date(
    subject: &Subject,
    log_folder: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    if let Subject::Started(manifest) = subject {
        build_target(manifest, log_folder, stop)?;
    }
    Ok(())
}

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
    let mut workload = workload(which.workload, load, manifest)?;
    match &mut workload {
        // Refuse a file of the wrong format before anything is started.
        Load::Stt { audio } => drop(audio.table()?),
        Load::Echo { .. } => {}
        Load::Ws(ws) => ws::spread_over_addresses(ws, subject),
    }
    let mut profile = profile(load)?;
    workload.shape(&mut profile);
    let mut slos = slos(&load.slo)?.into_iter();
    let headers = secrets::headers(load)?;
    let token_secret = secrets::token_secret(&load.ws)?;
    let inference = inference(which, load)?;
    let placement = placement(place)?;
    let network = network(subject, place, load, &inference, &placement)?;
    // Everything that can be refused has been refused by now, in one line.
    secrets::warn_of_the_process_list();
    Ok(Conditions {
        slo: slos.next().unwrap_or_else(|| workload.default_slo()),
        further_slos: slos.collect(),
        profile,
        seed: load.seed,
        nodelay: !load.no_nodelay,
        tick_us: load.tick_us,
        secrets: secrets::known(&headers, token_secret.as_ref(), which.url.as_deref()),
        headers,
        probe: Some(probe(&placement)?),
        placement,
        network,
        quota_period_us: quota_period_us(place),
        inference,
        configured: which.url.is_none(),
        log_folder,
        machine: MachineFacts::of_this_machine(),
        build: build::of_this_program(),
        load: workload,
    })
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
    load: &LoadArgs,
    inference: &Inference,
    placement: &Placement,
) -> Result<NetworkPlan, Failure> {
    let loopback = |why: &str| NetworkPlan::Loopback {
        why: why.to_owned(),
    };
    let asked = place.network;
    if asked == Some(NetworkName::Loopback) {
        return Ok(loopback("--network loopback"));
    }
    if matches!(subject, Subject::Running { .. }) {
        return match asked {
            Some(_) => Err(Failure::Usage(
                "--network own is for a target that Plimsoll starts; a server that runs already (--url) is reached as it is".to_owned(),
            )),
            None => Ok(loopback("it runs already")),
        };
    }
    let possible = if let Inference::Url(url) = inference {
        Err(format!(
            "--inference {url} cannot be reached from the target's own network"
        ))
    } else if load.ws.source_addresses.is_empty() {
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

/// The quota's period: as requested, or longer if the quota would otherwise be below the millisecond that the kernel
/// demands.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds of a period; the placement refuses a vCPU below 0.01"
)]
fn quota_period_us(place: &Where) -> u64 {
    let least_us = (1_000.0 / place.vcpu).ceil() as u64;
    (place.quota_period_ms * 1_000).max(least_us)
}

/// Parses a list of CPUs, if one is given.
pub(crate) fn cpus(flag: &str, list: Option<&str>) -> Result<Option<CpuList>, Failure> {
    list.map(|text| {
        text.parse::<CpuList>()
            .map_err(|error| Failure::Usage(format!("{flag} {text}: {error}")))
    })
    .transpose()
}

/// The load, for a target with this manifest or for a server that is already running.
fn workload(
    name: WorkloadName,
    load: &LoadArgs,
    manifest: Option<&Manifest>,
) -> Result<Load, Failure> {
    if name != WorkloadName::Ws {
        ws::must_be_unused(name, load)?;
    }
    let workload = match name {
        WorkloadName::Stt => Load::Stt {
            audio: match &load.audio {
                Some(file) => AudioSource::File(file.clone()),
                None => AudioSource::Synthetic,
            },
        },
        WorkloadName::Echo => Load::Echo {
            message_bytes: load.message_bytes.unwrap_or(Echo::MESSAGE_BYTES),
            period_ms: load.period_ms.unwrap_or(Echo::PERIOD_MS),
        },
        WorkloadName::Ws => Load::Ws(Box::new(ws::load(load, manifest)?)),
    };
    workload.check()?;
    Ok(workload)
}

/// What a load of this workload counts.
pub(crate) fn unit(workload: WorkloadName, load: &LoadArgs) -> LoadUnit {
    match workload {
        WorkloadName::Stt | WorkloadName::Echo => LoadUnit::SESSIONS,
        WorkloadName::Ws => load.ws.test().load_unit(),
    }
}

fn profile(load: &LoadArgs) -> Result<Profile, Failure> {
    let mut profile = Profile::by_name(&load.profile).ok_or_else(|| {
        Failure::Usage(format!(
            "--profile {}: unknown; use quick, standard or soak",
            load.profile
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
fn slos(files: &[PathBuf]) -> Result<Vec<Slo>, Failure> {
    let slos: Vec<Slo> = files
        .iter()
        .map(|file| slo(file))
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

fn slo(file: &Path) -> Result<Slo, Failure> {
    let refuse = |why: String| Failure::Usage(format!("--slo {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Slo::parse(&text, &name).map_err(|error| refuse(error.to_string()))
}

fn inference(which: &Which, load: &LoadArgs) -> Result<Inference, Failure> {
    if which.url.is_some() || which.workload != WorkloadName::Stt {
        // A running server has its own back end.
        return Ok(Inference::None);
    }
    if load.inference != "sim" {
        let authority = load.inference.strip_prefix("http://");
        // Targets receive this URL, log it, and do not send a user, a password or a query with it.
        if authority.is_none_or(|rest| rest.contains(['@', '?', '#'])) {
            return Err(Failure::Usage(format!(
                "--inference {}: write `sim` or a URL without user, password and query, http://HOST:PORT",
                redacted_url(&load.inference)
            )));
        }
        return Ok(Inference::Url(load.inference.clone()));
    }
    let root = manifest::root_of_this_process(which.root.as_deref()).ok();
    Ok(Inference::Simulator(simulator::find_binary(
        root.as_deref(),
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;
    use plimsoll_core::schedule::Spacing;

    fn load_args(line: &str) -> LoadArgs {
        let words = format!("plimsoll run x --sessions 5 {line}");
        let args = Args::try_parse_from(words.split_whitespace()).unwrap();
        match args.command {
            Command::Run(run) => run.load,
            other => panic!("{other:?}"),
        }
    }

    /// The load of workload `ws` against a server that is already running.
    fn ws_load(line: &str) -> Result<Load, String> {
        workload(WorkloadName::Ws, &load_args(line), None).map_err(|error| error.to_string())
    }

    #[test]
    fn a_changed_phase_makes_the_profile_custom() {
        assert_eq!(profile(&load_args("")).unwrap().name, "quick");
        let custom = profile(&load_args("--profile standard --measured 5")).unwrap();
        assert_eq!(
            (custom.name.as_str(), custom.measured_s, custom.ramp_s),
            ("custom", 5.0, 30.0)
        );
    }

    #[test]
    fn a_soak_stays_one_when_its_phases_are_changed() {
        assert!(profile(&load_args("--profile soak")).unwrap().soak);
        let short = profile(&load_args("--profile soak --ramp 1 --measured 40")).unwrap();
        assert!(short.soak && short.name == "custom");
        assert!(!profile(&load_args("--measured 40")).unwrap().soak);
        let text = profile(&load_args("--profile soak --measured 29"))
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("--measured 29: ") && text.contains("30 s"),
            "{text}"
        );
    }

    #[test]
    fn bad_values_get_one_line_with_the_remedy() {
        for line in ["--profile fast", "--measured 0", "--grace NaN"] {
            let text = profile(&load_args(line)).unwrap_err().to_string();
            assert!(text.starts_with("--") && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn a_test_of_ws_has_its_own_defaults() {
        for (line, path, unit) in [
            ("", "/", LoadUnit::CONNECTIONS),
            ("--test storm", "/", LoadUnit::CONNECTIONS_PER_SECOND),
            ("--test fanout", "/fanout", LoadUnit::RECEIVERS),
            (
                "--test throughput --dialect wse --format msgpack",
                "/wse?format=msgpack&protocol_version=1",
                LoadUnit::MESSAGES_PER_SECOND,
            ),
        ] {
            let load = ws_load(line).unwrap();
            assert_eq!((load.default_path(), load.unit()), (path, unit), "{line}");
            let told = unit_of(line);
            assert_eq!(told, unit, "{line}");
        }
        let Load::Ws(ws) = ws_load("--test hold --period-ms 250 --message-bytes 99").unwrap()
        else {
            panic!("a load of ws");
        };
        assert_eq!((ws.period_ns, ws.message_bytes), (250_000_000, 99));
        let Load::Ws(ws) = ws_load("--test storm --linger-ms 0 --poisson").unwrap() else {
            panic!("a load of ws");
        };
        assert_eq!((ws.linger_ns, ws.spacing), (0, Spacing::Poisson));
    }

    fn unit_of(line: &str) -> LoadUnit {
        unit(WorkloadName::Ws, &load_args(line))
    }

    #[test]
    fn a_flag_that_the_test_has_no_use_for_is_refused() {
        for (line, words) in [
            ("--rate 5", "--rate is for --test fanout, this is ping"),
            (
                "--test storm --connections 5",
                "throughput, matrix, formats",
            ),
            ("--test formats --format zlib", "--test throughput"),
            ("--test matrix --message-bytes 99", "--message-bytes"),
            ("--test hold --closed-loop", "--test ping, throughput"),
            ("--test throughput --period-ms 5", "--period-ms"),
            (
                "--test throughput --dialect wse --format msgpack --message-bytes 99",
                "msgpack messages always have 137 bytes",
            ),
            ("--dialect wse --message-bytes 99", "leave the flag out"),
            ("--token-secret x", "--dialect wse"),
            ("--dialect wse --token-secret x", "32"),
            ("--message-bytes 5", "--message-bytes"),
            ("--audio x.wav", "--workload stt"),
            ("--test fanout --rate 0", "--rate 0"),
            ("--period-ms 0", "--period-ms 0"),
            ("--test storm --ramp 1", "from the warm-up on"),
        ] {
            let text = ws_load(line).unwrap_err();
            assert!(
                text.contains(words) && !text.contains('\n'),
                "{line}: {text}"
            );
        }
        let text = workload(WorkloadName::Echo, &load_args("--test storm"), None);
        let text = text.unwrap_err().to_string();
        assert_eq!(text, "--test is for --workload ws, this is echo");
    }

    #[test]
    fn several_loads_in_one_are_no_search() {
        let refused = |line: &str| {
            let load = load_args(line);
            ws::must_be_one_load(WorkloadName::Ws, &load, "a search takes")
                .map_err(|error| error.to_string())
        };
        assert!(refused("--test throughput").is_ok());
        let text = refused("--test matrix").unwrap_err();
        assert!(
            text.ends_with("--test throughput --message-bytes N"),
            "{text}"
        );
        let text = refused("--test formats").unwrap_err();
        assert!(text.ends_with("--test throughput --format F"), "{text}");
        let text = refused("--test ping --closed-loop").unwrap_err();
        assert!(text.ends_with("with `plimsoll run`"), "{text}");
    }
}
