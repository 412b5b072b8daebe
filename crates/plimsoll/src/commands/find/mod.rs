//! `plimsoll find`: finds the load line of each target.

mod resume;
mod seal;
mod several;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use plimsoll_core::record::{Baseline, Bracket, LiveCommand};
use plimsoll_core::search::{Search, Settings};
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::KeptTrial;
use plimsoll_lab::find::{FindPlan, Found, Turns};
use plimsoll_lab::fleet::Fleet;
use plimsoll_lab::trial::{self, Conditions, Subject};
use plimsoll_report::{ResultFolder, text, words};
use plimsoll_workload::Plan;

use crate::args::{FindArgs, LOAD_MAX, SearchArgs};
use crate::commands::calibrate;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::setup;
use crate::workloads::tellers;
use resume::{Begun, BegunRanking, Resumed, What};

/// Default number of trials that decide about a load at the edge.
const REPEATS: u32 = 3;
/// The most trials of a search before it reports what it knows.
const TRIALS_MAX: u32 = 60;
/// A quick search reports what it knows after this many minutes: its trials are too short to make a soft edge any
/// sharper.
const QUICK_MINUTES: f64 = 6.0;
/// The same for a search that goes on beyond the load line.
const QUICK_MINUTES_BEYOND: f64 = QUICK_MINUTES / FindPlan::LOAD_LINE_SHARE;
/// Confidence of the edge's interval.
const CONFIDENCE: f64 = 0.95;

pub(crate) fn run(args: &FindArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.resume {
        let Resumed { args, what } = resume::read(folder, args)?;
        return match what {
            What::Search(name, begun) => {
                let path = output::path(&args.out, "find", "");
                let brackets = one(&args, name.as_deref(), path, Some(&begun), stop)?;
                told(&args, &brackets)
            }
            What::Ranking(begun) => several::run(&args, begun, stop),
        };
    }
    if args.all || args.targets.len() > 1 {
        return several::run(args, BegunRanking::default(), stop);
    }
    let name = args.targets.first().map(String::as_str);
    let path = output::path(&args.out, "find", &setup::subject_name(name, &args.which));
    told(args, &one(args, name, path, None, stop)?)
}

/// Prints a target's brackets as JSON if requested, and returns their exit code.
fn told(args: &FindArgs, brackets: &[Bracket]) -> Result<ExitCode, Failure> {
    if args.out.json {
        match brackets {
            [bracket] => output::print_json(bracket)?,
            all => output::print_json(&all)?,
        }
    }
    Ok(code_of(brackets))
}

/// Searches for the load line of one target, into the folder `path`, and returns one bracket per SLO.
fn one(
    args: &FindArgs,
    name: Option<&str>,
    path: PathBuf,
    begun: Option<&Begun>,
    stop: &Stop,
) -> Result<Vec<Bracket>, Failure> {
    let gather = |subject: &Subject, plan: &dyn Plan| {
        setup::fleet::gathered(&args.load, &[subject], plan, stop)
    };
    let admitted = Admitted::new(args, name, path, gather)?;
    let targets = vec![admitted.subject.name().to_owned()];
    let live = !args.out.no_live;
    let mut progress = Progress::new(LiveCommand::Find, targets, &admitted.folder, live);
    let ready = admitted.ready(args, begun, &mut progress, stop)?;
    let mut turns = Turns::new(vec![ready.begun()], args.load.seed)?;
    let bound = ready.bound()?;
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(&ready.folder));
    let found = turns.until_one_ends(stop, &mut keeper);
    drop(bound);
    progress.rest();
    let Some((_, found)) = found else {
        unreachable!("one search ends once")
    };
    ready.kept_and_shown(args, found?, false)
}

/// A search whose flags and target fit together. Everything that can be refused early has been refused.
struct Admitted {
    /// The target's name, or its URL without secrets.
    name: String,
    subject: Subject,
    conditions: Conditions,
    plan: FindPlan,
    folder: ResultFolder,
}

impl Admitted {
    /// `fleet` gives the agents that drive its load, if there are to be any.
    fn new(
        args: &FindArgs,
        name: Option<&str>,
        path: PathBuf,
        fleet: impl FnOnce(&Subject, &dyn Plan) -> Result<Option<Fleet>, Failure>,
    ) -> Result<Self, Failure> {
        let subject = setup::subject(name, &args.which, &args.load)?;
        let logs = path.join("logs");
        let mut conditions =
            setup::conditions(&subject, &args.which, &args.place, &args.load, logs)?;
        conditions.goals = setup::goals::goals(&args.goals, conditions.plan.workload())?;
        setup::plan::must_be_one_load(&*conditions.plan, "a search takes")?;
        conditions.must_be_searchable(&subject)?;
        conditions.fleet = fleet(&subject, &*conditions.plan)?;
        let plan = plan(&args.search, args.load.seed, &conditions)?;
        // The search must be able to try the highest load that it may reach. Finding out halfway would waste the trials
        // before.
        let most = most_asked(&args.search, &*conditions.plan);
        trial::must_be_possible(&conditions, &subject, most)?;
        Ok(Self {
            name: setup::subject_name(name, &args.which),
            subject,
            conditions,
            plan,
            // Last, so that it is not created in vain.
            folder: ResultFolder::create(path)?,
        })
    }

    /// Builds the target, and runs its baseline if there is one. `begun` is what it did before it was resumed.
    fn ready(
        mut self,
        args: &FindArgs,
        begun: Option<&Begun>,
        progress: &mut Progress,
        stop: &Stop,
    ) -> Result<Ready, Failure> {
        let (subject, conditions) = (&self.subject, &self.conditions);
        progress.measuring(subject, conditions);
        if matches!(subject, Subject::Started(_)) {
            progress.say(&format!("{}: building", self.name));
        }
        setup::bring_up_to_date(subject, &self.folder.path().join("logs"), stop)?;
        // Only for now: the next target's placement is chosen from all CPUs again.
        let _bound = conditions
            .placement
            .client_cpus
            .bind_this_thread_for_now()?;
        let earlier = if let Some(begun) = begun {
            self.plan.settings.max = begun.plan.max;
            resumed(begun, &self.folder, progress)
        } else {
            warn_early(conditions, &mut self.plan, args.search.max, progress, stop)?;
            if matches!(subject, Subject::Running { url, .. } if url.secure) {
                progress
                    .say("that is without TLS, which costs the client more: expect fewer sessions");
            }
            let max = self.plan.settings.max;
            let plan = resume::plan(&self.name, max, conditions, &self.folder)?;
            self.folder.write_search_plan(&plan)?;
            Vec::new()
        };
        let since = begun.map(|begun| begun.plan.started_at.as_str());
        let measured = (subject, conditions);
        let (conditions, baseline) = setup::baseline::before_search(
            measured,
            &args.load,
            &self.folder,
            since,
            progress,
            stop,
        )?;
        Ok(Ready {
            subject: self.subject,
            conditions,
            plan: self.plan,
            folder: self.folder,
            earlier,
            baseline,
        })
    }
}

/// A search that may run its first trial, or go on.
struct Ready {
    subject: Subject,
    conditions: Conditions,
    plan: FindPlan,
    folder: ResultFolder,
    earlier: Vec<KeptTrial>,
    baseline: Option<Baseline>,
}

impl Ready {
    fn begun(&self) -> plimsoll_lab::find::Begun<'_> {
        plimsoll_lab::find::Begun {
            subject: &self.subject,
            conditions: &self.conditions,
            plan: &self.plan,
            earlier: self.earlier.clone(),
        }
    }

    /// Keeps this thread off the target's CPUs until the value is dropped.
    fn bound(&self) -> Result<impl Drop, Failure> {
        let cpus = &self.conditions.placement.client_cpus;
        Ok(cpus.bind_this_thread_for_now()?)
    }

    /// Writes the brackets, renders the folder, and prints what was found.
    fn kept_and_shown(
        &self,
        args: &FindArgs,
        mut found: Found,
        is_one_of_several: bool,
    ) -> Result<Vec<Bracket>, Failure> {
        let folder = &self.folder;
        for (number, bracket) in found.brackets.iter_mut().enumerate() {
            bracket.baseline.clone_from(&self.baseline);
            if number == 0 {
                folder.write_bracket(bracket)?;
            } else {
                folder.write_further_bracket(bracket)?;
            }
        }
        output::render(folder.path())?;
        if !args.out.json {
            let results = plimsoll_report::load(folder.path(), tellers())?;
            for view in results.searches() {
                output::print(&text::search(&view, output::color(), tellers()));
            }
            say!("result: {}", folder.path().display());
            let interrupted = found.brackets.iter().any(|bracket| bracket.interrupted);
            if interrupted && !is_one_of_several {
                say!(
                    "to continue: plimsoll find --resume {}",
                    folder.path().display()
                );
            }
        }
        match found.cut_short {
            Some(error) => Err(error.into()),
            None => Ok(found.brackets),
        }
    }
}

/// The trials of a search that is resumed.
fn resumed(begun: &Begun, folder: &ResultFolder, progress: &Progress) -> Vec<KeptTrial> {
    let trials = words::counted(begun.earlier.len() as u64, "trial");
    progress.say(&format!(
        "resuming with {trials} from {}",
        folder.path().display()
    ));
    progress.known(begun.earlier.iter().map(|earlier| &earlier.trial));
    begun.earlier.clone()
}

/// The highest load that the flags of a search name.
pub(super) fn most_asked(args: &SearchArgs, plan: &dyn Plan) -> u32 {
    let start = args.start.unwrap_or_else(|| plan.first_load());
    args.max.unwrap_or(start).max(start)
}

pub(super) fn plan(
    args: &SearchArgs,
    seed: u64,
    conditions: &Conditions,
) -> Result<FindPlan, Failure> {
    let quick = conditions.profile.name == "quick";
    let width = args.width.unwrap_or(if quick { 0.05 } else { 0.02 });
    let quick_minutes = if conditions.plan.goes_beyond() {
        QUICK_MINUTES_BEYOND
    } else {
        QUICK_MINUTES
    };
    let time_budget = match args.time_budget {
        Some(minutes) if !minutes.is_finite() || minutes <= 0.0 || minutes > 1e6 => {
            return Err(Failure::Usage(format!(
                "--time-budget {minutes}: give a number of minutes above 0"
            )));
        }
        Some(minutes) => Some(minutes),
        None => quick.then_some(quick_minutes),
    };
    let time_budget = time_budget.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let max = args
        .max
        .unwrap_or_else(|| trial::most_possible(conditions, LOAD_MAX).max(1));
    if let Some(why) = conditions.no_verdict_at(max).into_iter().next() {
        let most = if args.max.is_some() {
            format!("--max {max}")
        } else {
            format!("this machine has room for {max} at most")
        };
        return Err(Failure::Usage(format!("{most}: {why}")));
    }
    let least = conditions.least_loads(&conditions.slo);
    let settings = Settings {
        start: args.start.unwrap_or_else(|| conditions.plan.first_load()),
        min: least.full.unwrap_or(max),
        short_min: least.short.unwrap_or(u32::MAX),
        max,
        relative_width: width,
        repeats: args.repeats.unwrap_or(REPEATS),
        max_trials: TRIALS_MAX,
        seed,
        confidence: CONFIDENCE,
        short_share: conditions.profile.short_share(),
    };
    // Checked here, so that an error is reported before anything is built.
    Search::new(settings).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(FindPlan {
        settings,
        time_budget,
    })
}

/// Reports before the search where it starts, if not at the requested load, and how many sessions this client, or the agents,
/// can drive. Also keeps the search from loads far beyond that: their trials would be invalid, each more than once. The
/// estimate holds for sessions that send at one pace, so nothing is said about other loads.
pub(super) fn warn_early(
    conditions: &Conditions,
    plan: &mut FindPlan,
    max_given: Option<u32>,
    progress: &Progress,
    stop: &Stop,
) -> Result<(), Failure> {
    if let Some(why) = conditions.no_verdict_at_all(plan.settings.start) {
        progress.say(&format!("starting above --start: {why}"));
    }
    let pace = conditions.plan.frames_per_session_second();
    let target = format!(
        "the target gets {} vCPU on CPU {}",
        conditions.placement.vcpu, conditions.placement.target_cpus
    );
    let Some((frames_per_s, work)) = pace.zip(conditions.plan.work()) else {
        progress.say(&format!("{}; {target}", calibrate::driver(conditions)));
        return Ok(());
    };
    let reach = calibrate::quick_reach(conditions, &*work, frames_per_s, stop)?;
    progress.say(&format!("{}; {target}", reach.told));
    if reach.sessions < plan.settings.start {
        progress.say(&format!(
            "that is below the load to begin with: expect a lower bound only; {}",
            reach.remedy
        ));
    }
    if max_given.is_none() {
        let settings = &mut plan.settings;
        let beyond_reach = reach.sessions.saturating_add(reach.sessions / 4);
        settings.max = settings.max.min(beyond_reach).max(settings.start);
    }
    Ok(())
}

/// The exit code: 0 if every target has a load line, 3 if one could not be measured, 1 if one carries nothing, 130 if
/// interrupted.
fn code_of(brackets: &[Bracket]) -> ExitCode {
    ExitCode::from(code_number_of(brackets))
}

fn code_number_of(brackets: &[Bracket]) -> u8 {
    let any = |of: fn(&Bracket) -> bool| brackets.iter().any(of);
    if any(|bracket| bracket.interrupted) {
        130
    } else if any(|bracket| bracket.confirmed.is_none() && bracket.first_fail.is_none()) {
        3
    } else if any(|bracket| bracket.confirmed.is_none()) {
        1
    } else {
        0
    }
}
