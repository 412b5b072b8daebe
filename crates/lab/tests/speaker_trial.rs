//! Trials of targets without HTTP, by a made-up workload: how they are asked, where they write, and what they are compared
//! with.
//!
//! The target is this program itself ([`a_target`]). It speaks a protocol of its own on its port: `R` asks whether it is
//! ready, and `A` what it says of itself. The sessions are those of workload `echo`, on the same port.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plimsoll_core::profile::{Length, Phases, Profile};
use plimsoll_core::record::{LoadUnit, Sections, Trial, Verdict};
use plimsoll_core::sanity::MetricNames;
use plimsoll_core::session::Endpoint;
use plimsoll_core::slo::{Metric, Slo};
use plimsoll_host::isolation::can_be_own;
use plimsoll_host::signals::Stop;
use plimsoll_lab::Error;
use plimsoll_lab::baseline::{self, Baseline};
use plimsoll_lab::campaign::{Contender, Observer, TrialBegins};
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::trial::{
    self, Conditions, FinishedTrial, NetworkPlan, Subject, TargetUrl, TrialSecond,
};
use plimsoll_workload::counters::Counted;
use plimsoll_workload::{
    About, Data, Demand, Drive, Findings, Job, Kind, Outcome, Parameter, Plan, Refusal, Seen,
    Speaker, Told, Value, Values, Workload, machines, plan,
};
use plimsoll_workload_echo::Echoes;
use serde_json::json;

use support::{Counters, conditions, serve};

const ROWS: [Parameter; 1] = [Parameter::new("data_dir", Kind::File, "")];

/// A workload whose targets have no HTTP and write data.
#[derive(Debug)]
struct Toy;

impl Workload for Toy {
    fn about(&self) -> &'static About {
        &About {
            name: "toy",
            line: "",
            floor: None,
            contract: None,
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &ROWS
    }

    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        Ok(Arc::new(ToyPlan {
            values,
            compared_with: None,
        }))
    }
}

#[derive(Debug)]
struct ToyPlan {
    values: Values,
    /// What the baseline had answered.
    compared_with: Option<u64>,
}

impl Plan for ToyPlan {
    fn workload(&self) -> &'static dyn Workload {
        &Toy
    }

    fn values(&self) -> &Values {
        &self.values
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::SESSIONS
    }

    fn slo(&self) -> Slo {
        match self.compared_with {
            None => Slo::from_gates("toy", &[]),
            Some(_) => Slo::of("toy", &[(Metric::SessionsFailed, 0.0)]),
        }
    }

    fn baseline(&self) -> Option<plan::Baseline> {
        Some(plan::Baseline {
            load: 1,
            phases: Phases {
                ramp_s: 0.1,
                warm_up_s: 0.2,
                measured_s: 0.7,
            },
            what: "alone",
        })
    }

    fn with_baseline(&self, trial: &Trial) -> Result<Arc<dyn Plan>, Refusal> {
        match trial.ledger.frames_answered {
            0 => Err(Refusal::new("nothing was answered")),
            answered => Ok(Arc::new(Self {
                values: self.values.clone(),
                compared_with: Some(answered),
            })),
        }
    }

    fn demand(&self, load: u32, _profile: &Profile) -> Demand {
        Demand::of_sessions(load, 10.0)
    }

    fn told(&self) -> Told {
        Told {
            path: "/".into(),
            health_path: "/nowhere",
            port: None,
            variables: Vec::new(),
            data: Some(Data {
                at: self.values.file("data_dir").map(Path::to_owned),
                least_free_bytes: 1,
                on_disk: false,
            }),
        }
    }

    fn speaker(&self) -> Option<Arc<dyn Speaker>> {
        Some(Arc::new(Toy))
    }

    /// The server has such counters, but nobody may read them.
    fn counters(&self) -> Option<plimsoll_workload::Counters> {
        Some(plimsoll_workload::Counters {
            names: MetricNames {
                frames: "ws_messages_received_total",
                partials: "",
                sessions: "ws_connections_accepted_total",
            },
            counted: Counted::Answers,
        })
    }

    fn let_in(&self, to: Endpoint) -> Result<Endpoint, Refusal> {
        let path = format!("{}let-in", to.path);
        Ok(Endpoint { path, ..to })
    }

    fn machines(&self, job: &Job, _profile: &Profile) -> Result<Box<dyn Drive>, Refusal> {
        Ok(machines(Echoes::new(job.to.clone(), 64, 100)))
    }

    fn outcome(&self, seen: &Seen<'_>) -> Outcome {
        let told = json!({ "account": seen.account, "storage": seen.storage, "compared_with": self.compared_with });
        Outcome {
            sections: Sections::of("toy", &told),
            ..Outcome::default()
        }
    }
}

impl Speaker for Toy {
    fn is_ready(&self, stream: &mut TcpStream) -> Result<(), String> {
        match asked(stream, b'R').map_err(|error| error.to_string())? {
            answer if answer == "ready" => Ok(()),
            answer => Err(answer),
        }
    }

    fn account(&self, stream: &mut TcpStream, to: &Endpoint) -> Findings {
        let told = asked(stream, b'A').unwrap_or_default();
        let mut account: Findings = serde_json::from_str(&told).unwrap_or_default();
        if account.is_object() {
            account["path"] = json!(to.path);
        }
        account
    }
}

/// All that the target says to this.
fn asked(stream: &mut TcpStream, what: u8) -> std::io::Result<String> {
    let mut answer = String::new();
    stream.write_all(&[what])?;
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A server of that protocol.
struct Server {
    counters: Counters,
    began: Instant,
    ready_after: Duration,
    /// What it found in its folder at its start, and the folder.
    data: (usize, String),
}

impl Server {
    fn talk(&self, mut stream: TcpStream) {
        let mut first = [0];
        if stream.peek(&mut first).is_err() || first == *b"G" {
            let _ = serve(stream, &self.counters);
            return;
        }
        let _ = stream.read_exact(&mut first);
        let answer = match first[0] {
            b'R' if self.began.elapsed() >= self.ready_after => "ready".to_owned(),
            b'R' => "still starting".to_owned(),
            _ => {
                let received = self.counters.received.load(Ordering::SeqCst);
                let (found, folder) = &self.data;
                json!({ "received": received, "found": found, "folder": folder }).to_string()
            }
        };
        // The client may have given up.
        let _ = stream.write_all(answer.as_bytes());
    }

    fn run(self, listener: &TcpListener) {
        let server = Arc::new(self);
        for stream in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            std::thread::spawn(move || server.talk(stream));
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Not a test by itself: this is the target of the trials here.
#[test]
#[ignore = "started by the trials here"]
fn a_target() {
    let folder = variable("DATA_DIR");
    let entries = std::fs::read_dir(&folder).expect("a folder");
    let found = entries.count();
    std::fs::write(Path::new(&folder).join("segment"), "x").expect("write");
    let millis = |name| Duration::from_millis(variable(name).parse().unwrap_or(0));
    if let Some(after) = Some(millis("DIE_AFTER_MS")).filter(|after| !after.is_zero()) {
        std::thread::spawn(move || {
            std::thread::sleep(after);
            std::process::exit(7);
        });
    }
    let port: u16 = variable("PORT").parse().expect("a port");
    let listener = TcpListener::bind(("0.0.0.0", port)).expect("bind");
    let server = Server {
        counters: Counters::default(),
        began: Instant::now(),
        ready_after: millis("READY_AFTER_MS"),
        data: (found, folder),
    };
    server.run(&listener);
}

/// This program as a target with these keys and these variables.
fn target(keys: &str, variables: &str) -> Subject {
    let program = std::env::current_exe().expect("this test");
    let text = format!(
        "name = \"toy\"\nworkload = \"toy\"\ntier = \"test\"\nlanguage = \"Rust\"\ndescription = \"x\"\n{keys}\n\
         [run]\ncommand = [{program:?}, \"a_target\", \"--exact\", \"--ignored\", \"--nocapture\"]\n[run.env]\n{variables}\n"
    );
    let file = program.parent().expect("a folder").join("target.toml");
    let manifest = Manifest::parse(&text, &file, |_| None).expect("valid");
    Subject::Started(Box::new(manifest))
}

fn planned(values: Values) -> Arc<dyn Plan> {
    (&Toy as &dyn Workload).planned(values).expect("a plan")
}

fn started(logs: &Path) -> Conditions {
    let mut conditions = conditions(planned(Values::default()), logs);
    conditions.configured = true;
    conditions
}

fn run(conditions: &Conditions, subject: &Subject) -> Result<Trial, Error> {
    let stop = Stop::new();
    let finished = trial::run(conditions, subject, 2, Length::Full, &stop, &mut |_| {});
    finished.map(|finished| finished.trial)
}

/// What the toy saw.
fn seen(trial: &Trial) -> serde_json::Value {
    trial.sections.get("toy").expect("a section")
}

/// Nothing hidden is left in this folder.
#[track_caller]
fn expect_no_data_in(folder: &Path) {
    let names = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.find(|name| name.starts_with('.')), None);
}

#[test]
fn a_target_without_http_is_asked_in_its_own_protocol() {
    let folder = tempfile::tempdir().expect("temp");
    let logs = folder.path().join("logs");
    let mut conditions = started(&logs);
    let subject = target("", "READY_AFTER_MS = \"300\"");
    let mut networks = vec![conditions.network.clone()];
    match can_be_own(&conditions.placement) {
        Ok(()) => networks.push(NetworkPlan::Own),
        Err(why) => plimsoll_testing::skipped!("a network of its own cannot be had: {why}"),
    }
    let mut folders = Vec::new();
    for network in networks {
        conditions.network = network;
        let trial = run(&conditions, &subject).expect("a trial");
        // The target may begin to count a moment before we know that it runs.
        assert!(
            trial.start_ms.is_some_and(|ms| ms >= 200.0),
            "{:?}",
            trial.start_ms
        );
        let ledger = &trial.ledger;
        assert!(
            ledger.frames_due > 0 && ledger.frames_lost == 0,
            "{ledger:?}"
        );
        let of_metrics = |name: &str| name.starts_with("metrics_");
        assert!(!trial.sanity.iter().any(|check| of_metrics(&check.name)));
        let toy = seen(&trial);
        let account = &toy["account"];
        assert_eq!(
            account["received"],
            json!(ledger.frames_sent_in_all),
            "{toy}"
        );
        assert_eq!(account["found"], json!(0), "fresh");
        assert_eq!(account["path"], json!("/let-in"), "where the sessions went");
        let kind = trial.environment.data_file_system.as_deref();
        assert!(
            kind.is_some() && toy["storage"]["file_system"]["kind"].as_str() == kind,
            "{toy}"
        );
        let data = PathBuf::from(account["folder"].as_str().expect("a path"));
        assert!(data.starts_with(logs.canonicalize().expect("there")) && !data.exists());
        folders.push(data);
        expect_no_data_in(&logs);
    }
    folders.dedup();
    assert!(!folders.is_empty());
}

#[test]
fn a_target_that_is_never_ready_says_why_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("temp");
    let logs = folder.path().join("logs");
    let subject = target("start_timeout_s = 1", "READY_AFTER_MS = \"600000\"");
    let error = run(&started(&logs), &subject).expect_err("never ready");
    let text = error.to_string();
    assert!(
        text.contains("toy: was not ready within 1s: asked at 127.0.0.1:"),
        "{text}"
    );
    assert!(
        text.contains(": the last answer: still starting; its log: "),
        "{text}"
    );
    assert_eq!(error.exit_code(), 3);
    expect_no_data_in(&logs);
}

#[test]
fn a_target_that_dies_has_no_account_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("temp");
    let logs = folder.path().join("logs");
    let trial = run(&started(&logs), &target("", "DIE_AFTER_MS = \"1500\"")).expect("a trial");
    assert!(trial.ledger.sessions_died > 0, "{:?}", trial.ledger);
    let toy = seen(&trial);
    assert!(
        toy["account"].is_null() && toy["storage"]["file_system"]["kind"].is_string(),
        "{toy}"
    );
    let log = logs.join("001-2-sessions/account.log");
    let said = std::fs::read_to_string(log).expect("a log");
    assert!(
        said.contains("gave no account of itself within 5s: "),
        "{said}"
    );
    expect_no_data_in(&logs);
}

#[test]
fn a_server_that_runs_already_gives_its_account_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let server = Server {
        counters: Counters::default(),
        began: Instant::now(),
        ready_after: Duration::ZERO,
        data: (0, "its own".to_owned()),
    };
    std::thread::spawn(move || server.run(&listener));
    let folder = tempfile::tempdir().expect("temp");
    let logs = folder.path().join("logs");
    let subject = Subject::Running {
        url: TargetUrl::parse(&format!("ws://{address}"), "/").expect("a URL"),
        resources: None,
    };
    let trial = run(&conditions(planned(Values::default()), &logs), &subject).expect("a trial");
    let toy = seen(&trial);
    assert_eq!(
        toy["account"]["received"],
        json!(trial.ledger.frames_sent_in_all)
    );
    assert!(
        toy["file_system"].is_null(),
        "Plimsoll made no folder: {toy}"
    );
    assert_eq!(trial.environment.data_file_system, None);
}

#[test]
fn a_place_for_data_that_cannot_be_used_is_refused_before_any_start() {
    let folder = tempfile::tempdir().expect("temp");
    let missing = folder.path().join("missing");
    let mut conditions = started(&folder.path().join("logs"));
    let subject = target("", "");
    conditions.plan = planned(Values::default().with("data_dir", Value::File(missing.clone())));
    let error = trial::must_be_possible(&conditions, &subject, 2).expect_err("no such folder");
    assert_eq!(error.exit_code(), 2);
    let told = format!("--data-dir {}: there is no such folder", missing.display());
    assert!(error.to_string().starts_with(&told), "{error}");
    std::fs::create_dir(&missing).expect("mkdir");
    trial::must_be_possible(&conditions, &subject, 2).expect("possible");
    let trial = run(&conditions, &subject).expect("a trial");
    let account = &seen(&trial)["account"];
    let data = PathBuf::from(account["folder"].as_str().expect("a path"));
    assert_eq!(
        data.parent(),
        Some(&*missing.canonicalize().expect("there"))
    );
    assert_eq!(std::fs::read_dir(&missing).expect("stays").count(), 0);
}

/// Keeps what is shown and what ends.
#[derive(Default)]
struct Seer {
    begun: Vec<(u32, String)>,
    kept: Vec<Trial>,
}

impl Observer for Seer {
    fn trial_begins(&mut self, begun: &TrialBegins<'_>) {
        self.begun.push((begun.sessions, begun.why.to_owned()));
    }

    fn second(&mut self, _second: &TrialSecond<'_>) {}

    fn trial_ends(&mut self, finished: FinishedTrial) -> Result<String, String> {
        self.kept.push(finished.trial);
        Ok(format!("trial-{:03}.json", self.kept.len()))
    }
}

#[test]
fn trials_are_compared_with_a_baseline_that_ran_before_them() {
    let folder = tempfile::tempdir().expect("temp");
    let mut conditions = started(&folder.path().join("logs"));
    let subject = target("", "");
    let wanted = conditions.plan.baseline().expect("one");
    let alone = conditions.of_baseline(&wanted);
    let contender = [Contender {
        subject: &subject,
        conditions: &alone,
    }];
    let once = || {
        let mut seer = Seer::default();
        let baselines = baseline::run(&contender, &wanted, &Stop::new(), &mut seer);
        // One that may be valid the next time runs twice.
        assert!((1..=2).contains(&seer.begun.len()), "{:?}", seer.begun);
        let alone = (1, "alone".to_owned());
        assert!(seer.begun.iter().all(|begun| *begun == alone));
        let baseline = baselines.expect("a trial").remove(0);
        assert_eq!(baseline.file, format!("trial-{:03}.json", seer.kept.len()));
        baseline
    };
    let valid = |baseline: &Baseline| baseline.trial.verdict != Verdict::Invalid;
    let Some(baseline) = (0..5).map(|_| once()).find(valid) else {
        return plimsoll_testing::skipped!("inconclusive: this machine disturbed every baseline");
    };
    let first = &*baseline.trial;
    assert!((first.phases.measured_s - 0.7).abs() < 1e-9);
    assert_eq!((first.sessions, first.length), (1, Length::Full));
    assert_eq!(first.baseline, None, "it stands for itself");
    assert!(seen(first)["compared_with"].is_null());

    // The plan of a target that is started is made anew, and must not forget it.
    let compared = conditions.compared_with(baseline.clone(), false);
    let compared = compared.expect("it answered");
    assert_eq!(compared.plan.values(), conditions.plan.values());
    let trial = run(&compared, &subject).expect("a trial");
    assert_eq!(trial.baseline.as_deref(), Some(&*baseline.file));
    let answered = first.ledger.frames_answered;
    assert_eq!(seen(&trial)["compared_with"], json!(answered));
    let gates: Vec<_> = trial.gates.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(gates, ["sessions_failed"]);

    // The user's SLO stays.
    conditions.slo = Slo::of("mine", &[(Metric::SessionsDied, 0.0)]);
    let given = conditions.compared_with(baseline.clone(), true);
    assert_eq!(given.expect("it answered").slo, conditions.slo);

    // What shows nothing is no baseline.
    let refused = |change: &dyn Fn(&mut Trial)| {
        let mut trial = first.clone();
        change(&mut trial);
        let changed = Baseline {
            trial: Arc::new(trial),
            ..baseline.clone()
        };
        let refused = conditions.compared_with(changed, false);
        refused.expect_err("refused").to_string()
    };
    let text = refused(&|trial| trial.verdict = Verdict::Invalid);
    assert_eq!(text, "the baseline is invalid ()");
    let text = refused(&|trial| trial.interrupted = true);
    assert_eq!(text, "the baseline was interrupted");
    let text = refused(&|trial| trial.workload = "echo".to_owned());
    assert!(
        text.ends_with("a trial of workload echo, this is toy"),
        "{text}"
    );
    let text = refused(&|trial| trial.ledger.frames_answered = 0);
    assert_eq!(text, "nothing was answered");
}
