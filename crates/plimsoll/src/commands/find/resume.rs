//! `plimsoll find --resume DIR`: resumes an interrupted search.

use std::path::Path;

use plimsoll_core::record::{Bracket, SCHEMA_VERSION, SearchPlan, Trial};
use plimsoll_core::secret::{REDACTED, Secret, redacted_command, redacted_url};
use plimsoll_host::machine::MachineFacts;
use plimsoll_host::timestamp;
use plimsoll_lab::find::Earlier;
use plimsoll_lab::trial::Conditions;
use plimsoll_report::{ResultFolder, load, load_search_plan};

use super::seal;
use plimsoll_workload::{Plan, Value};

use crate::args::{Args, Command, FindArgs, LoadArgs};
use crate::failure::Failure;
use crate::workloads::tellers;
use crate::{build, secrets, setup};

/// A search that was started before: its flags, and what it measured.
pub(super) struct Begun {
    /// The flags it was started with, for one target, with its folder as the result folder.
    pub(super) args: FindArgs,
    /// The target's name, unless the flags name it in another way.
    pub(super) name: Option<String>,
    pub(super) plan: SearchPlan,
    pub(super) earlier: Vec<Earlier>,
}

/// Reads the search in `folder` and changes to the folder where it was started, because its relative paths refer to
/// that. `beside` is the call that resumes it, which brings the secrets that were not kept.
pub(super) fn read(folder: &Path, beside: &FindArgs) -> Result<Begun, Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {}: {why}", folder.display()));
    let folder = &folder
        .canonicalize()
        .map_err(|error| refuse(&error.to_string()))?;
    let plan = load_search_plan(folder)?.ok_or_else(|| {
        refuse("no search in this folder; name a result folder of `plimsoll find`")
    })?;
    let earlier = earlier(folder, &plan, &refuse)?;
    let load = LoadArgs {
        // These paths are relative to the current folder, not to the one where the search was started.
        header_file: secrets::absolute(&beside.load.header_file),
        ..beside.load.clone()
    };
    let given_secrets = secrets::of_parameters(&load.parameters)?;
    std::env::set_current_dir(&plan.working_folder).map_err(|error| {
        refuse(&format!(
            "it was started in {}: {error}",
            plan.working_folder
        ))
    })?;
    let words = std::iter::once("plimsoll".to_owned()).chain(plan.command.clone());
    let parsed = Args::of(words).map_err(|_| {
        refuse("its flags are not those of this version of Plimsoll; start a new search")
    })?;
    let Command::Find(mut args) = parsed.command else {
        return Err(refuse("its plan is not that of a search"));
    };
    args.out.out = Some(folder.clone());
    let by_name = args.all || !args.targets.is_empty();
    let name = by_name.then(|| plan.target.clone());
    if let Some(earlier) = earlier.first() {
        must_be_this_machine(&earlier.trial).map_err(|why| refuse(&why))?;
    }
    must_have_the_same_goals(&args, &plan)?;
    let program = what_is_started(name.as_deref(), &args)?;
    if !beside.yes && !seal::is_ours(&plan) {
        return Err(refuse(&format!(
            "this search was not started by you on this machine, or its key is missing. It {program}, in {}; add --yes to trust it",
            plan.working_folder
        )));
    }
    let url = beside.which.url.as_deref();
    with_secrets(&mut args, &plan, &load, given_secrets, url).map_err(|why| refuse(&why))?;
    eprintln!("--resume {program}, in {}", plan.working_folder);
    if let Some(warning) = of_another_build(&earlier) {
        eprintln!("plimsoll: {warning}");
    }
    Ok(Begun {
        args,
        name,
        plan,
        earlier,
    })
}

/// The trials of the search so far.
fn earlier(
    folder: &Path,
    plan: &SearchPlan,
    refuse: &dyn Fn(&str) -> Failure,
) -> Result<Vec<Earlier>, Failure> {
    // A crash before the first trial leaves nothing but the plan.
    if ResultFolder::create(folder)?.last_trial_number()? <= plan.trials_before {
        return Ok(Vec::new());
    }
    let results = load(folder, tellers())?;
    let ended = |bracket: &Bracket| !bracket.interrupted && bracket.started_at >= plan.started_at;
    if results.bracket.as_ref().is_some_and(ended) {
        return Err(refuse("that search has ended; there is nothing to resume"));
    }
    Ok(results
        .trials
        .into_iter()
        .filter(|stored| number_of(&stored.stem) > plan.trials_before)
        .filter(|stored| !stored.trial.interrupted)
        .map(|stored| Earlier {
            file: format!("{}.json", stored.stem),
            trial: stored.trial,
        })
        .collect())
}

/// Refuses goals that were changed since the search began.
fn must_have_the_same_goals(args: &FindArgs, plan: &SearchPlan) -> Result<(), Failure> {
    let Some(file) = &args.goals.goals else {
        return Ok(());
    };
    let now = setup::goals::hash_of(file)?;
    if plan.goals_sha256.as_deref() == Some(now.as_str()) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--goals {}: the file was changed since the search began; put it back as it was, or start a new search",
        file.display()
    )))
}

/// Describes what resuming starts, because a folder from elsewhere may name anything.
fn what_is_started(name: Option<&str>, args: &FindArgs) -> Result<String, Failure> {
    if let Some(url) = &args.which.url {
        return Ok(format!(
            "starts no program, and connects to {}",
            redacted_url(url)
        ));
    }
    let manifest = setup::manifest_of(name, &args.which)?;
    let built = manifest.build.as_ref().map_or_else(String::new, |build| {
        format!("builds with {:?} and ", build.command.join(" "))
    });
    Ok(format!(
        "{built}starts {:?} of {}",
        manifest.run.command.join(" "),
        manifest.file.display()
    ))
}

/// Puts the secrets where the plan has none. The error names the missing ones and how to give them.
fn with_secrets(
    args: &mut FindArgs,
    plan: &SearchPlan,
    given: &LoadArgs,
    secrets_of_parameters: Vec<(&'static str, Secret)>,
    url: Option<&str>,
) -> Result<(), String> {
    let is_kept = |line: &Secret| !line.expose().contains(REDACTED);
    args.load.header.retain(is_kept);
    args.load.header.extend(given.header.iter().cloned());
    if !given.header_file.is_empty() {
        args.load.header_file.clone_from(&given.header_file);
    }
    let headers = secrets::headers(&args.load).map_err(|error| error.to_string())?;
    let is_missing = |name: &&String| {
        !headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let missing: Vec<&str> = plan
        .headers
        .iter()
        .filter(is_missing)
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "values of headers are not kept ({}); pass them again with --header-file FILE, or in PLIMSOLL_HEADERS",
            missing.join(", ")
        ));
    }
    for (name, secret) in secrets_of_parameters {
        args.load.parameters.set_secret(name, secret);
    }
    args.load.parameters.complete_fields(&given.parameters)?;
    let known = secrets::of_parameters(&args.load.parameters).map_err(|error| error.to_string())?;
    let mut rows = args.which.workload.parameters().iter();
    let missing = rows.find(|row| {
        let is_known = |(name, secret): &(&str, Secret)| *name == row.name && is_kept(secret);
        plan.secret_parameters.iter().any(|name| name == row.name) && !known.iter().any(is_known)
    });
    if let Some(row) = missing {
        return Err(format!(
            "the value of --{0} is not kept; pass it again with --{0}-file FILE",
            row.flag()
        ));
    }
    match (&args.which.url, url) {
        (Some(kept), Some(given)) if *kept == redacted_url(given) => {
            args.which.url = Some(given.to_owned());
            Ok(())
        }
        (_, Some(_)) => {
            Err("--url is not that of the search; give the same, or leave it out".to_owned())
        }
        (Some(kept), None) if kept.contains(REDACTED) => Err(format!(
            "what is secret in its URL is not kept; pass --url again: {kept}"
        )),
        (_, None) => Ok(()),
    }
}

/// The warning if trials of two builds are mixed.
fn of_another_build(earlier: &[Earlier]) -> Option<String> {
    let then = &earlier.first()?.trial.environment.build;
    then.warning(
        "the search so far",
        &build::of_this_program(),
        "this Plimsoll",
    )
}

/// The plan, written before a search's first trial: without secrets, sealed by this user.
pub(super) fn plan(
    subject: &str,
    max: u32,
    conditions: &Conditions,
    folder: &ResultFolder,
) -> Result<SearchPlan, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::Usage(format!("cannot determine the working folder: {error}")))?;
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let names = conditions.headers.iter().map(|(name, _)| name.clone());
    Ok(seal::sealed(SearchPlan {
        schema_version: SCHEMA_VERSION,
        command: redacted_command(&words),
        working_folder: here.to_string_lossy().into_owned(),
        target: subject.to_owned(),
        max,
        trials_before: folder.last_trial_number()?,
        started_at: timestamp::now(),
        headers: names.collect(),
        secret_parameters: secret_parameters(&*conditions.plan),
        goals_sha256: conditions.goals.as_ref().map(|goals| goals.sha256.clone()),
        seal: String::new(),
    }))
}

/// The parameters whose values are secrets.
fn secret_parameters(plan: &dyn Plan) -> Vec<String> {
    let values = plan.values().iter();
    let secrets = values.filter(|(_, value)| matches!(value, Value::Secret(_)));
    secrets.map(|(name, _)| name.to_owned()).collect()
}

fn number_of(stem: &str) -> u32 {
    let digits = stem.trim_start_matches("trial-");
    digits.parse().unwrap_or(0)
}

/// Refuses to continue on another machine or with another version: trials of two machines are not one search.
fn must_be_this_machine(earlier: &Trial) -> Result<(), String> {
    let here = MachineFacts::of_this_machine().facts();
    let there = &earlier.environment.machine;
    for fact in ["cpu_model", "cores", "kernel", "memory_bytes"] {
        let (was, is) = (there.get(fact), here.get(fact));
        if was != is {
            let told = |value: Option<&String>| value.map_or("unknown", String::as_str).to_owned();
            return Err(format!(
                "it was started on another machine ({fact}: {} then, {} now); start a new search",
                told(was),
                told(is)
            ));
        }
    }
    let now = env!("CARGO_PKG_VERSION");
    if earlier.environment.plimsoll_version == now {
        return Ok(());
    }
    Err(format!(
        "it was started by Plimsoll {}, this is {now}; start a new search",
        earlier.environment.plimsoll_version
    ))
}
