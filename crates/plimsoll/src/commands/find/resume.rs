//! `plimsoll find --resume DIR`: going on with a search that was interrupted.

use std::path::Path;

use clap::Parser;
use plimsoll_core::record::{SCHEMA_VERSION, SearchPlan, Trial};
use plimsoll_lab::find::Earlier;
use plimsoll_lab::machine::Environment;
use plimsoll_lab::timestamp;
use plimsoll_report::{ResultFolder, load, load_search_plan};

use crate::args::{Args, Command, FindArgs};
use crate::failure::Failure;

/// A search that was begun before: its flags, and what it measured.
pub(super) struct Begun {
    /// As it was begun, for one target, into its folder.
    pub(super) args: FindArgs,
    /// The target's name, unless the flags name it in another way.
    pub(super) name: Option<String>,
    pub(super) plan: SearchPlan,
    pub(super) earlier: Vec<Earlier>,
}

/// Reads what the search in `folder` was, and goes to where it was begun, for its relative paths count from there.
pub(super) fn read(folder: &Path) -> Result<Begun, Failure> {
    let refuse = |why: &str| Failure::Usage(format!("--resume {}: {why}", folder.display()));
    let folder = &folder
        .canonicalize()
        .map_err(|error| refuse(&error.to_string()))?;
    let plan = load_search_plan(folder)?.ok_or_else(|| {
        refuse("there is no search in it; name the result folder of a `plimsoll find`")
    })?;
    let mut earlier = Vec::new();
    // A crash before the first trial leaves nothing but the plan.
    if ResultFolder::create(folder)?.last_trial_number()? > plan.trials_before {
        let results = load(folder)?;
        let ended = |bracket: &plimsoll_core::record::Bracket| {
            !bracket.interrupted && bracket.started_at >= plan.started_at
        };
        if results.bracket.as_ref().is_some_and(ended) {
            return Err(refuse(
                "that search has ended; there is nothing to go on with",
            ));
        }
        earlier = results
            .trials
            .into_iter()
            .filter(|stored| number_of(&stored.stem) > plan.trials_before)
            .filter(|stored| !stored.trial.interrupted)
            .map(|stored| Earlier {
                file: format!("{}.json", stored.stem),
                trial: stored.trial,
            })
            .collect();
    }
    std::env::set_current_dir(&plan.working_folder)
        .map_err(|error| refuse(&format!("it was begun in {}: {error}", plan.working_folder)))?;
    let words = std::iter::once("plimsoll".to_owned()).chain(plan.command.clone());
    let parsed = Args::try_parse_from(words).map_err(|_| {
        refuse("its flags are not those of this version of Plimsoll; begin a new search")
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
    Ok(Begun {
        args,
        name,
        plan,
        earlier,
    })
}

/// What is written down before a search's first trial.
pub(super) fn plan(subject: &str, max: u32, folder: &ResultFolder) -> Result<SearchPlan, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::Usage(format!("the working folder cannot be told: {error}")))?;
    let words = std::env::args_os().skip(1);
    Ok(SearchPlan {
        schema_version: SCHEMA_VERSION,
        command: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        working_folder: here.to_string_lossy().into_owned(),
        target: subject.to_owned(),
        max,
        trials_before: folder.last_trial_number()?,
        started_at: timestamp::now(),
    })
}

fn number_of(stem: &str) -> u32 {
    let digits = stem.trim_start_matches("trial-");
    digits.parse().unwrap_or(0)
}

/// Trials of two machines are no search.
fn must_be_this_machine(earlier: &Trial) -> Result<(), String> {
    let here = Environment::of_this_machine().facts();
    let there = &earlier.environment.machine;
    for fact in ["cpu_model", "cores", "kernel", "memory_bytes"] {
        let (was, is) = (there.get(fact), here.get(fact));
        if was != is {
            let told = |value: Option<&String>| value.map_or("unknown", String::as_str).to_owned();
            return Err(format!(
                "it was begun on another machine ({fact}: {} then, {} now); begin a new search",
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
        "it was begun by Plimsoll {}, this is {now}; begin a new search",
        earlier.environment.plimsoll_version
    ))
}
