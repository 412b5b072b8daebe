//! `plimsoll find --resume DIR`: resumes an interrupted search, or an interrupted ranking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_core::record::{Bracket, SCHEMA_VERSION, SearchPlan, Trial};
use plimsoll_core::secret::{REDACTED, Secret, redacted_command, redacted_url};
use plimsoll_host::machine::MachineFacts;
use plimsoll_host::timestamp;
use plimsoll_lab::campaign::KeptTrial;
use plimsoll_lab::manifest;
use plimsoll_lab::trial::Conditions;
use plimsoll_report::{ReportError, ResultFolder, load, load_search_plan};

use super::seal;
use plimsoll_workload::{Plan, Value};

use crate::args::{Args, Command, FindArgs, LoadArgs};
use crate::failure::Failure;
use crate::workloads::tellers;
use crate::{build, secrets, setup};

/// What was begun before, and the flags it was started with, with its folder as the result folder.
pub(super) struct Resumed {
    pub(super) args: FindArgs,
    pub(super) what: What,
}

pub(super) enum What {
    /// The search of one target: its name, unless the flags name it in another way.
    Search(Option<String>, Box<Begun>),
    Ranking(BegunRanking),
}

/// A search that was begun before.
pub(super) struct Begun {
    pub(super) plan: SearchPlan,
    /// What it measured.
    pub(super) earlier: Vec<KeptTrial>,
}

/// A ranking that was begun before.
#[derive(Default)]
pub(super) struct BegunRanking {
    /// When its first search began.
    pub(super) started_at: Option<String>,
    /// The targets whose searches have begun, by name.
    pub(super) targets: BTreeMap<String, SoFar>,
}

/// How far the search of a target is.
pub(super) enum SoFar {
    /// It has ended. The trials are all that its folder has.
    Found {
        brackets: Vec<Bracket>,
        trials: Vec<KeptTrial>,
    },
    Begun(Begun),
}

/// What the call that resumes brings: its paths refer to the folder where it was made.
struct Beside<'a> {
    args: &'a FindArgs,
    load: LoadArgs,
    secrets: Vec<(&'static str, Secret)>,
    folder: PathBuf,
}

impl Beside<'_> {
    fn refuse(&self, why: &str) -> Failure {
        Failure::Usage(format!("--resume {}: {why}", self.folder.display()))
    }
}

/// Reads what was begun in `folder`, and changes to the folder where it was started, because its relative paths refer to
/// that. `args` is the call that resumes it, which brings the secrets that were not kept.
pub(super) fn read(folder: &Path, args: &FindArgs) -> Result<Resumed, Failure> {
    let load = LoadArgs {
        header_file: secrets::absolute(&args.load.header_file),
        ..args.load.clone()
    };
    let mut beside = Beside {
        args,
        secrets: secrets::of_parameters(&load.parameters)?,
        load,
        folder: folder.to_owned(),
    };
    beside.folder = folder
        .canonicalize()
        .map_err(|error| beside.refuse(&error.to_string()))?;
    match load_search_plan(&beside.folder)? {
        Some(plan) => search(&beside, plan),
        None => ranking(&beside),
    }
}

fn search(beside: &Beside<'_>, plan: SearchPlan) -> Result<Resumed, Failure> {
    let SoFar::Begun(begun) = so_far(beside, &beside.folder, plan)? else {
        return Err(beside.refuse("that search has ended; there is nothing to resume"));
    };
    let mut args = flags(beside, &begun.plan)?;
    let by_name = args.all || !args.targets.is_empty();
    let name = by_name.then(|| begun.plan.target.clone());
    let program = what_is_started(name.as_deref(), &args)?;
    admit(beside, &mut args, &[&begun.plan], &program)?;
    if let Some(warning) = of_another_build(&begun.earlier) {
        eprintln!("plimsoll: {warning}");
    }
    let what = What::Search(name, Box::new(begun));
    Ok(Resumed { args, what })
}

/// The ranking whose searches have their folders in this one.
fn ranking(beside: &Beside<'_>) -> Result<Resumed, Failure> {
    let plans = plans_within(&beside.folder)?;
    let none =
        || beside.refuse("no search in this folder; name a result folder of `plimsoll find`");
    let (_, first) = plans.first().ok_or_else(none)?;
    let alike = |plan: &SearchPlan| {
        (&plan.command, &plan.working_folder) == (&first.command, &first.working_folder)
    };
    if !plans.iter().all(|(_, plan)| alike(plan)) {
        return Err(beside.refuse("its searches are not of one ranking; name the folder of one"));
    }
    let mut args = flags(beside, first)?;
    if !args.all && args.targets.len() < 2 {
        return Err(none());
    }
    let ranking = match load(&beside.folder, tellers()) {
        // It was killed in its first search.
        Err(ReportError::NoResult(_)) => None,
        results => results?.ranking,
    };
    if ranking.is_some_and(|ranking| !ranking.interrupted) {
        return Err(beside.refuse("that ranking has ended; there is nothing to resume"));
    }
    let program = if args.all {
        let root = manifest::root_of_this_process(args.which.root.as_deref())?;
        format!("builds and starts the targets below {}", root.display())
    } else {
        let each = args.targets.iter();
        let each: Vec<_> = each
            .map(|name| what_is_started(Some(name), &args))
            .collect::<Result<_, _>>()?;
        each.join("; ")
    };
    let sealed: Vec<&SearchPlan> = plans.iter().map(|(_, plan)| plan).collect();
    admit(beside, &mut args, &sealed, &program)?;
    let mut begun = BegunRanking {
        started_at: sealed.iter().map(|plan| plan.started_at.clone()).min(),
        targets: BTreeMap::new(),
    };
    for (folder, plan) in plans {
        let name = plan.target.clone();
        begun.targets.insert(name, so_far(beside, &folder, plan)?);
    }
    let mut trials = begun.targets.values().map(|so_far| match so_far {
        SoFar::Found { trials, .. } => trials,
        SoFar::Begun(begun) => &begun.earlier,
    });
    if let Some(warning) = trials.find_map(|trials| of_another_build(trials)) {
        eprintln!("plimsoll: {warning}");
    }
    let what = What::Ranking(begun);
    Ok(Resumed { args, what })
}

/// The plans of the searches in the folders right below this one, with those folders.
fn plans_within(folder: &Path) -> Result<Vec<(PathBuf, SearchPlan)>, Failure> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders.retain(|path| path.is_dir());
    let mut plans = Vec::new();
    for folder in folders {
        if let Some(plan) = load_search_plan(&folder)? {
            plans.push((folder, plan));
        }
    }
    Ok(plans)
}

/// The flags of a search or ranking. This changes to the folder where it was started.
fn flags(beside: &Beside<'_>, plan: &SearchPlan) -> Result<FindArgs, Failure> {
    let folder = &plan.working_folder;
    std::env::set_current_dir(folder)
        .map_err(|error| beside.refuse(&format!("it was started in {folder}: {error}")))?;
    let words = std::iter::once("plimsoll".to_owned()).chain(plan.command.clone());
    let parsed = Args::of(words).map_err(|_| {
        beside.refuse("its flags are not those of this version of Plimsoll; start a new search")
    })?;
    let Command::Find(mut args) = parsed.command else {
        return Err(beside.refuse("its plan is not that of a search"));
    };
    args.out.out = Some(beside.folder.clone());
    must_have_the_same_goals(&args, plan)?;
    Ok(args)
}

/// Refuses plans of strangers, unless the user says that he trusts them. Then completes the flags by the secrets, and says
/// which program is started where. The plans are those of one command.
fn admit(
    beside: &Beside<'_>,
    args: &mut FindArgs,
    plans: &[&SearchPlan],
    program: &str,
) -> Result<(), Failure> {
    let working_folder = &plans[0].working_folder;
    if !beside.args.yes && !plans.iter().all(|plan| seal::is_ours(plan)) {
        return Err(beside.refuse(&format!(
            "this search was not started by you on this machine, or its key is missing. It {program}, in {working_folder}; add --yes to trust it"
        )));
    }
    with_secrets(args, plans[0], beside).map_err(|why| beside.refuse(&why))?;
    eprintln!("--resume {program}, in {working_folder}");
    Ok(())
}

/// What the search with this plan has measured.
fn so_far(beside: &Beside<'_>, folder: &Path, plan: SearchPlan) -> Result<SoFar, Failure> {
    let earlier = Vec::new();
    // A crash before the first trial leaves nothing but the plan.
    if ResultFolder::create(folder)?.last_trial_number()? <= plan.trials_before {
        return Ok(SoFar::Begun(Begun { plan, earlier }));
    }
    let results = load(folder, tellers())?;
    let stored = results.trials.into_iter();
    let earlier: Vec<_> = stored
        .filter(|stored| number_of(&stored.stem) > plan.trials_before)
        .filter(|stored| !stored.trial.interrupted)
        .map(|stored| KeptTrial {
            file: format!("{}.json", stored.stem),
            trial: stored.trial,
        })
        .collect();
    if let Some(earlier) = earlier.first() {
        must_be_this_machine(&earlier.trial).map_err(|why| beside.refuse(&why))?;
    }
    let ended = |bracket: &Bracket| !bracket.interrupted && bracket.started_at >= plan.started_at;
    Ok(match results.bracket.filter(ended) {
        Some(bracket) => SoFar::Found {
            brackets: [bracket]
                .into_iter()
                .chain(results.further_brackets)
                .collect(),
            trials: earlier,
        },
        None => SoFar::Begun(Begun { plan, earlier }),
    })
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
fn with_secrets(args: &mut FindArgs, plan: &SearchPlan, beside: &Beside<'_>) -> Result<(), String> {
    let given = &beside.load;
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
    for (name, secret) in &beside.secrets {
        args.load.parameters.set_secret(name, secret.clone());
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
    match (&args.which.url, beside.args.which.url.as_deref()) {
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
fn of_another_build(earlier: &[KeptTrial]) -> Option<String> {
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
