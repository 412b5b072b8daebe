//! `plimsoll compare A B`: compares two targets with interleaved trials, or two result folders.

pub(crate) mod folders;
mod what;

use std::process::ExitCode;

use plimsoll_core::record::{Comparison, Conclusion, LiveCommand};
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::Contender;
use plimsoll_lab::compare::{At, ComparePlan, Compared, compare};
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::trial::{self, Conditions, Subject};
use plimsoll_report::{ResultFolder, text};

use crate::args::{self, CompareArgs, FailIf};
use crate::commands::find;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::setup;
use what::What;

/// Default number of pairs. If a trial's cost scatters by 2 %, they show a difference of 5 % in 95 of 100 comparisons
/// (`cargo run --release -p plimsoll-core --example bootstrap-coverage`).
const PAIRS: u32 = 8;
/// Costs are compared at this share of the lower load line, which both targets carry with room to spare.
const SHARE_OF_LOAD_LINE: f64 = 0.7;

pub(crate) fn run(args: &CompareArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    confidence_of(args.confidence)?;
    let which = which(args);
    let both = (What::named(&args.a, &which)?, What::named(&args.b, &which)?);
    match both {
        (What::Target(a), What::Target(b)) => targets(args, [*a, *b], stop),
        (What::Folder(a), What::Folder(b)) => {
            let comparison = folders::compare(args, &a, &b)?;
            let path = output::path(&args.out, "compare", &subject(&comparison));
            let folder = ResultFolder::create(path)?;
            kept_and_shown(args, &folder, &comparison)?;
            Ok(code_of(args, &comparison))
        }
        (What::Folder(_), What::Target(_)) | (What::Target(_), What::Folder(_)) => {
            Err(Failure::Usage(format!(
                "{} and {}: one is a target, the other a result folder; name two targets, or two folders",
                args.a, args.b
            )))
        }
    }
}

/// The requested confidence, if intervals can be made with it.
pub(crate) fn confidence_of(share: f64) -> Result<f64, Failure> {
    if (0.5..=0.999).contains(&share) {
        Ok(share)
    } else {
        Err(Failure::Usage(format!(
            "--confidence {share}: give a share from 0.5 to 0.999, for example 0.95"
        )))
    }
}

/// Compares two targets.
fn targets(args: &CompareArgs, manifests: [Manifest; 2], stop: &Stop) -> Result<ExitCode, Failure> {
    setup::plan::must_be_alike(&which(args), &args.load, &manifests)?;
    let names = format!("{}-{}", manifests[0].name, manifests[1].name);
    let subjects = manifests.map(|manifest| {
        let which = args::Which {
            manifest: Some(manifest.file),
            ..which(args)
        };
        setup::subject(None, &which, &args.load)
    });
    let [a, b] = subjects;
    let subjects = [a?, b?];
    let path = output::path(&args.out, "compare", &names);
    let logs = path.join("logs");
    let mut conditions = setup::conditions(
        &subjects[0],
        &which(args),
        &args.place,
        &args.load,
        logs.clone(),
    )?;
    setup::plan::must_be_one_load(&*conditions.plan, "a comparison takes")?;
    let [a, b] = &subjects;
    conditions.fleet = setup::fleet::gathered(&args.load, &[a, b], &*conditions.plan, stop)?;
    find::plan(&args.search, args.load.seed, &conditions)?;
    for subject in &subjects {
        let most = args
            .sessions
            .unwrap_or_else(|| find::most_asked(&args.search, &*conditions.plan));
        trial::must_be_possible(&conditions, subject, most)?;
    }
    // Everything that can be refused early has been refused by now, so the folder is not created in vain.
    let folder = ResultFolder::create(path)?;
    let targets = subjects.iter().map(|subject| subject.name().to_owned());
    let mut progress = Progress::new(
        LiveCommand::Compare,
        targets.collect(),
        &folder,
        !args.out.no_live,
    );
    for subject in &subjects {
        progress.measuring(subject, &conditions);
        progress.say(&format!("{}: building", subject.name()));
        setup::bring_up_to_date(subject, &logs, stop)?;
    }
    conditions.placement.client_cpus.bind_this_thread()?;
    let each = [&subjects[0], &subjects[1]].map(|subject| Contender {
        subject,
        conditions: &conditions,
    });
    let sides = setup::baseline::of_sides(each, &args.load, &folder, &mut progress, stop)?;
    let plan = ComparePlan {
        at: at(args, &sides[0], &progress, stop)?,
        pairs: args.pairs.unwrap_or(PAIRS),
        confidence: args.confidence,
        seed: args.load.seed,
    };
    measured(args, &sides, &subjects, &plan, progress, &folder, stop)
}

/// The load of the pairs. A baseline may have brought further gates, so a search is planned once more.
fn at(
    args: &CompareArgs,
    conditions: &Conditions,
    progress: &Progress,
    stop: &Stop,
) -> Result<At, Failure> {
    if let Some(load) = args.sessions {
        for why in conditions.no_verdict_at(load) {
            progress.say(&format!("these trials will be invalid: {why}"));
        }
        return Ok(At::Load(load));
    }
    let mut search = find::plan(&args.search, args.load.seed, conditions)?;
    find::warn_early(conditions, &mut search, args.search.max, progress, stop)?;
    Ok(At::ShareOfLoadLine {
        settings: search.settings,
        time_budget: search.time_budget,
        share: SHARE_OF_LOAD_LINE,
    })
}

fn measured(
    args: &CompareArgs,
    conditions: &[Conditions; 2],
    subjects: &[Subject; 2],
    plan: &ComparePlan,
    mut progress: Progress,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(folder));
    let contenders = [0, 1].map(|side| Contender {
        subject: &subjects[side],
        conditions: &conditions[side],
    });
    let Compared {
        comparison,
        cut_short,
    } = compare(contenders, plan, stop, &mut keeper)?;
    drop(keeper);
    drop(progress);
    kept_and_shown(args, folder, &comparison)?;
    match cut_short {
        Some(error) => Err(error.into()),
        None => Ok(code_of(args, &comparison)),
    }
}

/// Writes the comparison, renders the folder, and prints what was found.
fn kept_and_shown(
    args: &CompareArgs,
    folder: &ResultFolder,
    comparison: &Comparison,
) -> Result<(), Failure> {
    folder.write_comparison(comparison)?;
    output::render(folder.path())?;
    if args.out.json {
        return output::print_json(comparison);
    }
    output::print(&text::comparison(comparison, output::color()));
    say!("result: {}", folder.path().display());
    Ok(())
}

/// The exit code: 130 if interrupted, 3 if nothing could be compared, 1 if `--fail-if` names the conclusion, else 0.
fn code_of(args: &CompareArgs, comparison: &Comparison) -> ExitCode {
    ExitCode::from(code_number_of(args.fail_if, comparison))
}

/// The same code as a number.
pub(crate) fn code_number_of(fail_if: Option<FailIf>, comparison: &Comparison) -> u8 {
    let by_carrying = comparison.carried.map(|carried| carried.shows);
    let nothing = comparison.cost_ratio.is_none()
        && comparison.load_line_ratio.is_none()
        && by_carrying.is_none_or(|shows| shows == Conclusion::NoDifferenceShown);
    let worse = comparison.conclusion == Conclusion::Worse;
    if comparison.interrupted {
        130
    } else if nothing {
        3
    } else if worse && fail_if == Some(FailIf::Worse) {
        1
    } else {
        0
    }
}

fn subject(comparison: &Comparison) -> String {
    format!("{}-{}", comparison.a.name, comparison.b.name)
}

/// Where to look for targets.
fn which(args: &CompareArgs) -> args::Which {
    args::Which {
        url: None,
        manifest: None,
        root: args.root.clone(),
        workload: args.workload,
    }
}
