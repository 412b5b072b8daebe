//! Baselines of a made-up plan: the echo sessions, compared with a session that is alone.

use clap::Parser;
use plimsoll_core::profile::{Phases, Profile};
use plimsoll_core::record::{LiveCommand, LoadUnit, Trial};
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, Slo};
use plimsoll_workload::{Demand, Drive, Job, Plan, Refusal, Told, Values, Workload};

use super::*;
use crate::args::{Args, Command, RunArgs};
use crate::setup;

#[allow(dead_code, reason = "the tests of the command need more of it")]
#[path = "../../tests/support/echo_server.rs"]
mod echo_server;

/// The sessions of `echo`.
#[derive(Debug, Clone)]
struct Toy {
    echo: Arc<dyn Plan>,
    /// Whether anything can be compared with a baseline.
    takes_any: bool,
    /// What the baseline had answered.
    alone: Option<u64>,
}

impl Plan for Toy {
    fn workload(&self) -> &'static dyn Workload {
        self.echo.workload()
    }

    fn values(&self) -> &Values {
        self.echo.values()
    }

    fn unit(&self) -> LoadUnit {
        self.echo.unit()
    }

    fn slo(&self) -> Slo {
        let died = (Metric::SessionsDied, 0.0);
        let failed = (Metric::SessionsFailed, 0.0);
        let gates = [died, failed];
        Slo::of("toy", &gates[..1 + usize::from(self.alone.is_some())])
    }

    fn usual_profile(&self) -> &'static str {
        "speech"
    }

    fn baseline(&self) -> Option<plan::Baseline> {
        Some(plan::Baseline {
            load: 1,
            phases: Phases {
                ramp_s: 0.1,
                warm_up_s: 0.3,
                measured_s: 1.0,
            },
            what: "alone",
        })
    }

    fn with_baseline(&self, trial: &Trial) -> Result<Arc<dyn Plan>, Refusal> {
        if !self.takes_any {
            return Err(Refusal::new("no word was heard"));
        }
        Ok(Arc::new(Self {
            alone: Some(trial.ledger.frames_answered),
            ..self.clone()
        }))
    }

    fn may_search(&self, to: &Endpoint) -> Result<(), Refusal> {
        match to.host.as_str() {
            "127.0.0.1:9" => Err(Refusal(format!("{} is somebody else's", to.host))),
            _ => Ok(()),
        }
    }

    fn demand(&self, load: u32, profile: &Profile) -> Demand {
        self.echo.demand(load, profile)
    }

    fn told(&self) -> Told {
        self.echo.told()
    }

    fn machines(&self, job: &Job, profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        self.echo.machines(job, profile)
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        self.echo.let_in(to)
    }
}

fn run_args(line: &str) -> RunArgs {
    let words = format!("plimsoll run --sessions 5 --workload echo {line}");
    match Args::try_parse_from(words.split_whitespace())
        .unwrap()
        .command
    {
        Command::Run(run) => run,
        other => panic!("{other:?}"),
    }
}

/// A server, the conditions of trials of it by the toy, and the folder of a result.
struct Rig {
    args: RunArgs,
    subject: Subject,
    conditions: Conditions,
    folder: ResultFolder,
    place: tempfile::TempDir,
}

impl Rig {
    fn new(flags: &str) -> Self {
        let url = echo_server::start(echo_server::Manner::Honest);
        let args = run_args(&format!("--url {url} {flags}"));
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path().join("result")).unwrap();
        let subject = setup::subject(None, &args.which, &args.load).unwrap();
        let logs = folder.path().join("logs");
        let conditions =
            setup::conditions(&subject, &args.which, &args.place, &args.load, logs).unwrap();
        let mut rig = Self {
            args,
            subject,
            conditions,
            folder,
            place,
        };
        rig.of_toy(true);
        rig
    }

    fn of_toy(&mut self, takes_any: bool) {
        let toy = Toy {
            echo: Arc::clone(&self.conditions.plan),
            takes_any,
            alone: None,
        };
        self.conditions.slo = toy.slo();
        self.conditions.plan = Arc::new(toy);
    }

    fn before_search(&self, since: Option<&str>) -> (Conditions, record::Baseline) {
        let targets = vec![self.subject.name().to_owned()];
        let mut progress = Progress::new(LiveCommand::Find, targets, &self.folder, false);
        let measured = (&self.subject, &self.conditions);
        let stop = Stop::new();
        let found = before_search(
            measured,
            &self.args.load,
            &self.folder,
            since,
            &mut progress,
            &stop,
        );
        let (conditions, record) = found.unwrap();
        (conditions, record.expect("it has one"))
    }

    /// How many baselines are kept.
    fn kept(&self) -> usize {
        load_baselines(self.folder.path(), tellers()).unwrap().len()
    }
}

/// A search that has just run its baseline, at the first try; `None` if the machine disturbed three such searches, which is
/// reported.
fn begun(flags: &str) -> Option<(Rig, Conditions, record::Baseline)> {
    for _ in 0..3 {
        let rig = Rig::new(flags);
        let (conditions, record) = rig.before_search(None);
        if rig.kept() == 1 {
            return Some((rig, conditions, record));
        }
    }
    plimsoll_testing::skipped!("inconclusive: this machine disturbed each baseline");
    None
}

const LONG_AGO: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "9999-01-01T00:00:00Z";

#[test]
fn a_search_is_compared_with_a_baseline_that_it_runs_once() {
    let Some((mut rig, conditions, record)) = begun("") else {
        return;
    };
    let expected = record::Baseline {
        what: "alone".to_owned(),
        sessions: 1,
        file: "baseline/trial-001.json".to_owned(),
        not_used: None,
    };
    assert_eq!(record, expected);
    assert!(rig.folder.path().join(&record.file).is_file());
    assert_eq!(
        rig.folder.last_trial_number().unwrap(),
        0,
        "it is kept apart"
    );
    // The plan that knows it has a gate more, and the profile is that of the search again.
    assert_eq!(conditions.slo.gates.len(), 2);
    assert_eq!(conditions.profile, rig.conditions.profile);
    let known = conditions.baseline.as_ref().expect("known");
    assert_eq!((known.trial.sessions, &known.file), (1, &record.file));
    assert!(known.trial.ledger.frames_answered > 0);

    // Resumed, the search takes the same one; one from before it began is none of its own.
    let (again, record) = rig.before_search(Some(LONG_AGO));
    assert_eq!((record, rig.kept()), (expected, 1));
    assert_eq!(again.slo.gates.len(), 2);
    let load = &rig.args.load;
    let folder = rig.folder.path();
    let later = kept(&rig.conditions, folder, LONG_AGO, load).unwrap();
    assert_eq!(later.slo.gates.len(), 2);
    let stranger = kept(&rig.conditions, folder, LATER, load).unwrap();
    assert_eq!(stranger.slo.gates.len(), 1);

    // A plan that cannot use it leaves the search without one, with the reason.
    let echo = rig.conditions.plan.workload().planned(Values::default());
    rig.conditions.plan = echo.unwrap();
    rig.of_toy(false);
    let (without, record) = rig.before_search(Some(LATER));
    if rig.kept() > 2 {
        return plimsoll_testing::skipped!("inconclusive: this machine disturbed the baseline");
    }
    assert_eq!(rig.kept(), 2, "it runs anew");
    assert_eq!(record.file, "baseline/trial-002.json");
    assert_eq!(record.not_used.as_deref(), Some("no word was heard"));
    assert!(without.baseline.is_none());
    assert_eq!(without.slo.gates.len(), 1);
}

#[test]
fn one_trial_is_compared_with_the_record_that_is_named() {
    let Some((rig, _, record)) = begun("--ramp 0.1 --warm-up 0.3 --measured 1") else {
        return;
    };
    let file = rig.folder.path().join(&record.file);
    let compared = in_file(&rig.conditions, &file, &rig.args.load).unwrap();
    assert_eq!(compared.slo.gates.len(), 2);
    // The user's own SLO stays.
    let slo = rig.place.path().join("mine.toml");
    std::fs::write(&slo, "[gates]\nsessions_died = 0\n").unwrap();
    let mut load = rig.args.load.clone();
    load.slo = vec![slo];
    let compared = in_file(&rig.conditions, &file, &load).unwrap();
    assert_eq!(compared.slo, rig.conditions.slo);

    let missing = rig.place.path().join("nowhere.json");
    let error = in_file(&rig.conditions, &missing, &load).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("nowhere.json"), "{error}");
    // The usual plan compares nothing.
    let mut conditions = rig.conditions.clone();
    let echo = conditions.plan.workload().planned(Values::default());
    conditions.plan = echo.unwrap();
    let text = in_file(&conditions, &file, &load).unwrap_err().to_string();
    assert!(
        text.starts_with("--baseline ")
            && text.contains("trials of workload echo are compared with no baseline; name"),
        "{text}"
    );
}

#[test]
fn a_plan_chooses_its_profile_and_who_may_be_searched() {
    let mut rig = Rig::new("");
    let plan = Arc::clone(&rig.conditions.plan);
    assert_eq!(setup::profile_name(&rig.args.load, &*plan), "speech");
    let given = run_args("x --profile standard").load;
    assert_eq!(setup::profile_name(&given, &*plan), "standard");
    assert!(rig.conditions.must_be_searchable(&rig.subject).is_ok());
    let strangers = run_args("--url ws://127.0.0.1:9/");
    rig.subject = setup::subject(None, &strangers.which, &strangers.load).unwrap();
    let refused = rig.conditions.must_be_searchable(&rig.subject).unwrap_err();
    assert_eq!(refused.to_string(), "127.0.0.1:9 is somebody else's");
    assert_eq!(refused.exit_code(), 2);
}
