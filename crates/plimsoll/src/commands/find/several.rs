//! `plimsoll find A B …` and `plimsoll find --all`: the load line of each target, then what each costs at a load that
//! all of them carry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::ranking::{common_load, cost_at_load, note_the_floor, sort};
use plimsoll_core::record::{Bracket, LeftOut, LiveCommand, RankedTarget, Ranking, SCHEMA_VERSION};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;
use plimsoll_lab::campaign::{Contender, KeptTrial};
use plimsoll_lab::common_load::{Measured, RoundsPlan, measure};
use plimsoll_lab::find::Turns;
use plimsoll_lab::fleet::Fleet;
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::source_lines;
use plimsoll_lab::trial::{Conditions, Subject};
use plimsoll_report::{ResultFolder, text};
use plimsoll_workload::Plan;

use super::resume::{BegunRanking, SoFar};
use super::{Admitted, Ready};
use crate::args::{FindArgs, Which};
use crate::catalogue::{self, Catalogue};
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, note, say};
use crate::progress::Progress;
use crate::{build, secrets, setup};

/// Ranks the targets. What `begun` has is not measured again.
pub(super) fn run(args: &FindArgs, begun: BegunRanking, stop: &Stop) -> Result<ExitCode, Failure> {
    let Catalogue { targets, left_out } = targets(args)?;
    let plan = setup::plan::plan(&args.which, &args.load, targets.first())?;
    setup::plan::must_be_one_load(&*plan, "a search takes")?;
    let load_unit = plan.unit();
    // Before the live view, which an extra line would break.
    secrets::warn_of_the_process_list();
    let fleet = fleet(args, &targets, &*plan, stop)?;
    let subject = if args.all {
        "all".to_owned()
    } else {
        args.targets.join("-")
    };
    let path = output::path(&args.out, "find", &subject);
    let folder = ResultFolder::create(&path)?;
    let started_at = begun.started_at.unwrap_or_else(timestamp::now);
    let names = targets.iter().map(|target| target.name.clone());
    let progress = Progress::new(
        LiveCommand::Find,
        names.collect(),
        &folder,
        !args.out.no_live,
    );
    let mut several = Several {
        args,
        stop,
        path,
        folder,
        progress,
        fleet,
        measured: Vec::new(),
        exit_code: 0,
        ranking: Ranking {
            build: build::of_this_program(),
            schema_version: SCHEMA_VERSION,
            workload: args.which.workload.about().name.to_owned(),
            profile: setup::profile_name(&args.load, &*plan).to_owned(),
            slo: String::new(),
            vcpu: args.place.vcpu,
            load_unit,
            common_load: None,
            rounds: 0,
            rows: Vec::new(),
            left_out,
            interrupted: true,
            seed: args.load.seed,
            started_at,
        },
    };
    for left in &several.ranking.left_out {
        note!("not measured: {}: {}", left.name, left.reason);
    }
    several.searches(&targets, begun.targets)?;
    let cut_short = if stop.requested() {
        None
    } else {
        several.costs()?
    };
    several.shown()?;
    match cut_short {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::from(if stop.requested() {
            130
        } else {
            several.exit_code
        })),
    }
}

/// The targets to measure. All names are resolved before the first trial, so a misspelt name costs no time.
fn targets(args: &FindArgs) -> Result<Catalogue, Failure> {
    if args.all {
        let catalogue = catalogue::all(&args.which)?;
        let alike = setup::plan::of_one_kind(catalogue, args.which.workload.0, &args.load)?;
        return setup::plan::that_fit(alike, &args.which, &args.load);
    }
    let mut targets: Vec<Manifest> = Vec::new();
    for name in &args.targets {
        let manifest = setup::manifest_of(Some(name), &args.which)?;
        if targets.iter().any(|known| known.name == manifest.name) {
            return Err(Failure::Usage(format!(
                "{name} is named twice; once is enough"
            )));
        }
        targets.push(manifest);
    }
    setup::plan::must_be_alike(&args.which, &args.load, &targets)?;
    Ok(Catalogue {
        targets,
        left_out: Vec::new(),
    })
}

/// The agents of all searches and rounds, if there are to be any. They are gathered once, before the first search.
fn fleet(
    args: &FindArgs,
    targets: &[Manifest],
    plan: &dyn Plan,
    stop: &Stop,
) -> Result<Option<Fleet>, Failure> {
    let subjects = targets.iter().map(|target| subject(args, target));
    let subjects: Vec<Subject> = subjects.collect::<Result<_, _>>()?;
    let subjects: Vec<&Subject> = subjects.iter().collect();
    setup::fleet::gathered(&args.load, &subjects, plan, stop)
}

/// Where to find this target.
fn which(args: &FindArgs, manifest: &Manifest) -> Which {
    Which {
        manifest: Some(manifest.file.clone()),
        ..args.which.clone()
    }
}

/// This target, as the searches and rounds measure it.
fn subject(args: &FindArgs, manifest: &Manifest) -> Result<Subject, Failure> {
    setup::subject(None, &which(args, manifest), &args.load)
}

/// A ranking in progress.
struct Several<'a> {
    args: &'a FindArgs,
    stop: &'a Stop,
    path: PathBuf,
    folder: ResultFolder,
    /// Progress of all searches and rounds, from the first to the last.
    progress: Progress,
    /// The agents that drive the load of all of them, if there are any.
    fleet: Option<Fleet>,
    /// Targets whose load lines were searched, with the trials that they had before this ranking was resumed.
    measured: Vec<(Manifest, Vec<KeptTrial>)>,
    exit_code: u8,
    ranking: Ranking,
}

impl Several<'_> {
    /// Searches for the load line of each target, if this has not been done before. The searches take turns. A target that
    /// cannot be built or started is left out, and the others continue.
    fn searches(
        &mut self,
        targets: &[Manifest],
        so_far: BTreeMap<String, SoFar>,
    ) -> Result<(), Failure> {
        let ready = self.ready(targets, so_far)?;
        let begun = ready.iter().map(|(_, ready)| ready.begun());
        let mut turns = Turns::new(begun.collect(), self.args.load.seed)?;
        let folders: Vec<_> = ready
            .iter()
            .map(|(_, ready)| ready.folder.clone())
            .collect();
        let Some((_, first)) = ready.first() else {
            return Ok(());
        };
        loop {
            let bound = first.bound()?;
            self.progress.measuring(&first.subject, &first.conditions);
            let mut keeper = Keeper::new(&mut self.progress, &folders);
            let ended = turns.until_one_ends(self.stop, &mut keeper);
            drop(bound);
            self.progress.rest();
            let Some((which, found)) = ended else {
                return Ok(());
            };
            let (manifest, ready) = &ready[which];
            let found = found.map_err(Failure::from);
            match found.and_then(|found| ready.kept_and_shown(self.args, found, true)) {
                Ok(brackets) => self.found(manifest, brackets, Vec::new()),
                Err(failure) => self.left_out(manifest, failure)?,
            }
            // After each search, so that an abrupt end loses none of those before.
            self.folder.write_ranking(&self.ranking)?;
        }
    }

    /// Makes the searches ready that have not ended.
    fn ready<'t>(
        &mut self,
        targets: &'t [Manifest],
        mut so_far: BTreeMap<String, SoFar>,
    ) -> Result<Vec<(&'t Manifest, Ready)>, Failure> {
        let mut all = Vec::new();
        for manifest in targets {
            if self.stop.requested() {
                break;
            }
            let begun = match so_far.remove(&manifest.name) {
                Some(SoFar::Found { brackets, trials }) => {
                    let told = format!("{}: its search has ended", manifest.name);
                    self.progress.say(&told);
                    self.found(manifest, brackets, trials);
                    continue;
                }
                Some(SoFar::Begun(begun)) => Some(begun),
                None => None,
            };
            let path = self.path.join(&manifest.name);
            let fleet = self.fleet.clone();
            let admitted = Admitted::new(self.args, Some(&manifest.name), path, |_, _| Ok(fleet));
            let ready = admitted.and_then(|admitted| {
                admitted.ready(self.args, begun.as_ref(), &mut self.progress, self.stop)
            });
            match ready {
                Ok(ready) => all.push((manifest, ready)),
                Err(failure) => self.left_out(manifest, failure)?,
            }
        }
        Ok(all)
    }

    /// Goes on without a target, unless what failed would fail for all others, too.
    fn left_out(&mut self, manifest: &Manifest, failure: Failure) -> Result<(), Failure> {
        if self.stop.requested() {
            return Ok(());
        }
        if matches!(failure, Failure::Usage(_) | Failure::Report(_)) {
            return Err(failure);
        }
        let told = format!("plimsoll: {}: {failure}", manifest.name);
        self.progress.say(&told);
        self.exit_code = self.exit_code.max(failure.exit_code());
        self.ranking.left_out.push(LeftOut {
            name: manifest.name.clone(),
            reason: failure.to_string(),
        });
        Ok(())
    }

    fn found(&mut self, manifest: &Manifest, brackets: Vec<Bracket>, earlier: Vec<KeptTrial>) {
        let code = super::code_number_of(&brackets);
        self.exit_code = self.exit_code.max(code);
        // Further SLOs may give another order; each target's own folder has them.
        let Some(bracket) = brackets.into_iter().next() else {
            return;
        };
        self.ranking.slo.clone_from(&bracket.slo);
        self.ranking.profile.clone_from(&bracket.profile);
        self.measured.push((manifest.clone(), earlier));
        self.ranking.rows.push(RankedTarget {
            folder: manifest.name.clone(),
            language: manifest.language.clone(),
            description: manifest.description.clone(),
            lines_of_code: source_lines::of(manifest).ok(),
            tuned: manifest.tuned.clone(),
            bracket,
            caveats: Vec::new(),
            at_common_load: None,
        });
    }

    /// Measures what each target costs at the common load. Returns the error that ended this early, if it was not a
    /// signal.
    fn costs(&mut self) -> Result<Option<plimsoll_lab::Error>, Failure> {
        let load = match (self.args.common_load, self.measured.first()) {
            (Some(0), _) | (_, None) => None,
            (Some(load), Some((first, _))) => {
                let (_, conditions) = self.prepared(first, &self.path)?;
                for why in conditions.no_verdict_at(load) {
                    let told = format!("--common-load {load}: {why}");
                    self.progress.say(&told);
                }
                Some(load)
            }
            (None, Some((first, _))) => {
                let (_, conditions) = self.prepared(first, &self.path)?;
                let brackets = self.ranking.rows.iter().map(|row| &row.bracket);
                let least = conditions.least_loads(&conditions.slo).full;
                least.and_then(|least| common_load(brackets, least))
            }
        };
        let several_carry = |load: &u32| {
            let rows = self.ranking.rows.iter();
            rows.filter(|row| carries(row, *load)).count() > 1
        };
        let Some(load) = load.filter(several_carry) else {
            self.ranking.interrupted = false;
            return Ok(None);
        };
        self.ranking.common_load = Some(load);
        self.ranking.rounds = self.args.rounds;
        let measured = self.rounds(load)?;
        for (row, trials) in self
            .ranking
            .rows
            .iter_mut()
            .filter(|row| carries(row, load))
            .zip(&measured.trials)
        {
            row.at_common_load = cost_at_load(trials);
        }
        if let Some(floor) = self.args.which.workload.about().floor {
            note_the_floor(&mut self.ranking.rows, floor);
        }
        self.ranking.interrupted = measured.interrupted;
        Ok(measured.cut_short)
    }

    /// Runs the rounds of trials of the targets that carry the load, in the order of the rows.
    fn rounds(&mut self, load: u32) -> Result<Measured, Failure> {
        let rows = self.ranking.rows.iter().zip(&self.measured);
        let (carrying, earlier): (Vec<&Manifest>, Vec<&[KeptTrial]>) = rows
            .filter(|(row, _)| carries(row, load))
            .map(|(_, (manifest, earlier))| (manifest, earlier.as_slice()))
            .unzip();
        let mut prepared = Vec::new();
        let mut folders = Vec::new();
        for manifest in &carrying {
            let folder = ResultFolder::create(self.path.join(&manifest.name))?;
            prepared.push(self.prepared(manifest, folder.path())?);
            folders.push(folder);
        }
        let contenders: Vec<_> = prepared
            .iter()
            .map(|(subject, conditions)| Contender {
                subject,
                conditions,
            })
            .collect();
        let (subject, conditions) = &prepared[0];
        self.progress.measuring(subject, conditions);
        let mut keeper = Keeper::new(&mut self.progress, &folders);
        let plan = RoundsPlan {
            sessions: load,
            rounds: self.args.rounds,
            seed: self.args.load.seed,
        };
        let client_cpus = &conditions.placement.client_cpus;
        let bound = client_cpus.bind_this_thread_for_now()?;
        let measured = measure(&contenders, plan, &earlier, self.stop, &mut keeper);
        drop(bound);
        drop(keeper);
        self.progress.rest();
        for folder in &folders {
            output::render(folder.path())?;
        }
        Ok(measured)
    }

    fn prepared(
        &self,
        manifest: &Manifest,
        folder: &Path,
    ) -> Result<(Subject, Conditions), Failure> {
        let logs = folder.join("logs");
        let (place, load) = (&self.args.place, &self.args.load);
        let subject = subject(self.args, manifest)?;
        let which = which(self.args, manifest);
        let conditions = setup::conditions(&subject, &which, place, load, logs)?;
        let mut conditions =
            setup::baseline::kept(&conditions, folder, &self.ranking.started_at, load)?;
        conditions.goals = setup::goals::goals(&self.args.goals, conditions.plan.workload())?;
        conditions.fleet.clone_from(&self.fleet);
        Ok((subject, conditions))
    }

    /// Writes the ranking, renders it, and prints what was found.
    fn shown(&mut self) -> Result<(), Failure> {
        sort(&mut self.ranking.rows);
        self.folder.write_ranking(&self.ranking)?;
        output::render(self.folder.path())?;
        if self.args.out.json {
            return output::print_json(&self.ranking);
        }
        output::print(&text::ranking(&self.ranking, output::color()));
        let folder = self.folder.path().display();
        say!("result: {folder}");
        if self.ranking.interrupted {
            say!("to continue: plimsoll find --resume {folder}");
        }
        Ok(())
    }
}

/// Whether a target takes part in the rounds at that load.
fn carries(row: &RankedTarget, load: u32) -> bool {
    row.bracket.confirmed >= Some(load)
}
