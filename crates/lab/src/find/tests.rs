//! Feeds the searches with trials that nobody ran.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::goals::GoalsFile;
use plimsoll_core::latency::LatencySet;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::record::{
    Client, Environment, GateResult, LoadUnit, Outcome, SCHEMA_VERSION, SloVerdict, Target, Trial,
    Verdict,
};
use plimsoll_core::search::{Ended, Settings};
use plimsoll_core::slo::Slo;
use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::machine::MachineFacts;
use plimsoll_workload::{Plan, Values, Workload};
use plimsoll_workload_broker::Broker;
use plimsoll_workload_echo::Echo;
use plimsoll_workload_http::Http;
use plimsoll_workload_stt::Stt;
use plimsoll_workload_stt_real::SttReal;
use plimsoll_workload_voice::Voice;
use plimsoll_workload_ws::Ws;

use super::hunt::Hunt;
use super::kept::Kept;
use super::searches::Searches;
use super::{Asks, FindPlan, Wanted};
use crate::campaign::KeptTrial;
use crate::manifest::Manifest;
use crate::trial::{BackEnd, Conditions, NetworkPlan, Registry};

mod beyond;
mod least;

fn slo(name: &str) -> Slo {
    Slo {
        name: name.to_owned(),
        ..plan("stt").slo()
    }
}

/// Every workload that there is.
pub(crate) const WORKLOADS: Registry = &[&Stt, &Echo, &Ws, &Http, &Broker, &Voice, &SttReal];

/// The plan that a line says: `ws test=throughput connections=5`.
pub(crate) fn plan(line: &str) -> Arc<dyn Plan> {
    let mut words = line.split(' ');
    let name = words.next().expect("a workload");
    let named = |workload: &&&dyn Workload| workload.about().name == name;
    let workload = WORKLOADS.iter().find(named).expect(line);
    let mut values = Values::default();
    for word in words {
        let (name, text) = word.split_once('=').expect(line);
        let mut rows = workload.parameters().iter();
        let row = rows.find(|row| row.name == name).expect(line);
        values.set(name, row.kind.parse(text).expect(line));
    }
    workload.planned(values).expect(line)
}

/// A manifest with these keys besides those that every one has.
pub(crate) fn manifest(keys: &str) -> Manifest {
    let text = format!(
        "name = \"x\"\nworkload = \"ws\"\ntier = \"idiomatic\"\nlanguage = \"C\"\ndescription = \"x\"\n{keys}\n[run]\ncommand = [\"x\"]\n"
    );
    Manifest::parse(&text, Path::new("/t/ws/x/target.toml"), |_| None).expect("valid")
}

pub(crate) fn conditions() -> Conditions {
    Conditions {
        plan: plan("stt"),
        baseline: None,
        profile: Profile::quick(),
        slo: slo("relaxed"),
        further_slos: vec![slo("strict")],
        goals: None,
        seed: 1,
        nodelay: true,
        tick_us: 500,
        headers: Vec::new(),
        secrets: plimsoll_core::secret::Secrets::default(),
        trust: plimsoll_tls::Trust::default(),
        sni: None,
        placement: Placement::choose(
            1.0,
            &CpuList::allowed_to_us().expect("a machine"),
            None,
            None,
        )
        .expect("a placement"),
        probe: None,
        fleet: None,
        network: NetworkPlan::Loopback {
            why: "a test".to_owned(),
        },
        quota_period_us: 10_000,
        back_end: BackEnd::None,
        configured: true,
        log_folder: PathBuf::new(),
        machine: MachineFacts::of_this_machine(),
        build: plimsoll_core::record::Build::default(),
    }
}

const SETTINGS: Settings = Settings {
    start: 400,
    min: 1,
    short_min: 1,
    max: 20_000,
    relative_width: 0.05,
    confidence: 0.95,
    repeats: 3,
    max_trials: 60,
    seed: 1,
    short_share: 0.5,
};

fn gates(passes: bool) -> Vec<GateResult> {
    vec![GateResult {
        name: "newest_p95_ms".to_owned(),
        threshold: 350.0,
        observed: Some(if passes { 100.0 } else { 900.0 }),
        pass: passes,
    }]
}

fn verdict(passes: bool) -> Verdict {
    if passes { Verdict::Pass } else { Verdict::Fail }
}

/// A trial of a server that carries 1,000 sessions by the SLO `relaxed` and 600 by `strict`.
pub(crate) fn trial(sessions: u32, length: Length) -> Trial {
    let (relaxed, strict) = (sessions <= 1_000, sessions <= 600);
    Trial {
        schema_version: SCHEMA_VERSION,
        verdict: verdict(relaxed),
        gates: gates(relaxed),
        caveats: Vec::new(),
        workload: "stt".to_owned(),
        parameters: plimsoll_core::record::Parameters::new(),
        profile: "quick".to_owned(),
        phases: Profile::quick(),
        slo: "relaxed".to_owned(),
        sessions,
        load_unit: LoadUnit::SESSIONS,
        length,
        target: Target::default(),
        start_ms: None,
        vcpu: Some(0.5),
        environment: Environment::default(),
        baseline: None,
        seed: 1,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        interrupted: false,
        ledger: Ledger::default(),
        latency: LatencySet::new().summary(),
        client: Client::default(),
        target_resources: None,
        companion: None,
        bottleneck: None,
        sanity: Vec::new(),
        sections: plimsoll_core::record::Sections::default(),
        drift: None,
        goals: None,
        goodput: None,
        further_slos: vec![SloVerdict {
            slo: "strict".to_owned(),
            verdict: verdict(strict),
            gates: gates(strict),
            caveats: Vec::new(),
        }],
    }
}

/// The load line, and the lowest load that fails.
type Ends = (Option<u32>, Option<u32>);

/// Runs the searches to their end.
fn searched(conditions: &Conditions) -> (Searches, Kept) {
    let mut searches = Searches::new(conditions, SETTINGS).expect("sound settings");
    let mut kept = Kept::default();
    while let Some(wanted) = searches.next() {
        assert!(kept.count() < 200, "no end");
        let trial = trial(wanted.load, wanted.length);
        searches.record(&trial).expect("judged by both");
        kept.add(&trial, format!("trial-{:03}.json", kept.count() + 1));
    }
    (searches, kept)
}

const PLAN: FindPlan = FindPlan {
    settings: SETTINGS,
    time_budget: None,
};

/// Runs the searches to their end. Returns the ends of the brackets by SLO, and the number of trials.
fn search(slos: &[Slo]) -> (Vec<Ends>, u32) {
    let mut conditions = conditions();
    conditions.slo = slos[0].clone();
    conditions.further_slos = slos[1..].to_vec();
    let (searches, kept) = searched(&conditions);
    let brackets = searches
        .outcomes()
        .into_iter()
        .map(|(slo, outcome)| {
            let bracket = kept.bracket(&conditions, slo, &outcome, false, "now", &PLAN);
            assert_eq!(bracket.slo, slo);
            assert_eq!(bracket.trials.len(), kept.count() as usize);
            assert_eq!(bracket.failing_gate.as_deref(), Some("newest_p95_ms"));
            (bracket.confirmed, bracket.first_fail)
        })
        .collect();
    (brackets, kept.count())
}

fn expect_around(edge: u32, (confirmed, first_fail): Ends) {
    let (confirmed, first_fail) = (confirmed.expect("carries"), first_fail.expect("fails"));
    assert!(
        confirmed <= edge && edge < first_fail,
        "{confirmed} {first_fail}"
    );
    assert!(f64::from(first_fail) / f64::from(confirmed) < 1.2);
}

#[test]
fn two_slos_share_their_trials_and_have_an_edge_each() {
    let (both, together) = search(&[slo("relaxed"), slo("strict")]);
    expect_around(1_000, both[0]);
    expect_around(600, both[1]);
    let (relaxed, alone) = search(&[slo("relaxed")]);
    assert_eq!(relaxed[0], both[0], "the first search is as it is alone");
    let (_, other) = search(&[slo("strict"), slo("relaxed")]);
    assert!(together > alone, "the second needs some more");
    assert!(
        together < 2 * alone.max(other),
        "{together} {alone} {other}"
    );
}

#[test]
fn progress_counts_no_trial_for_which_there_is_no_time() {
    let conditions = conditions();
    assert_eq!(conditions.further_slos.len(), 1, "two searches");
    let first = |time_budget: Option<Duration>| {
        let plan = FindPlan {
            time_budget,
            ..PLAN
        };
        let mut hunt = Hunt::new(&conditions, &plan, Vec::new()).expect("a search");
        let mut trials_left = 0;
        let mut run = |wanted: &Wanted, _: &Kept| {
            trials_left = wanted.trials_left;
            let trial = trial(wanted.load, wanted.length);
            let file = "trial-001.json".to_owned();
            Ok(KeptTrial { trial, file })
        };
        hunt.step(&mut run).expect("a trial");
        trials_left
    };
    let full = Duration::from_secs_f64(conditions.profile.lasts_s());
    let free = first(None);
    assert!(free > 3, "{free}");
    assert_eq!(first(Some(1_000 * full)), free);
    assert_eq!(first(Some(3 * full)), 3);
}

#[test]
fn each_bracket_says_what_became_of_the_goals_by_its_slo() {
    let mut conditions = conditions();
    let told = |conditions: &Conditions| -> Vec<Option<Outcome>> {
        let (searches, kept) = searched(conditions);
        let outcomes = searches.outcomes().into_iter();
        let brackets = outcomes.map(|(slo, outcome)| {
            let bracket = kept.bracket(conditions, slo, &outcome, false, "now", &PLAN);
            let goals = kept.goals(conditions, &bracket)?;
            Some(goals.findings[0].outcome)
        });
        brackets.collect()
    };
    assert_eq!(told(&conditions), [None, None], "no goals were set");
    let goals = "[[goal]]\nmetric = \"load_line\"\nat_least = 800\n";
    let goals = GoalsFile::parse(goals, "ab12".to_owned(), &[], &[]);
    conditions.goals = Some(goals.expect("good goals"));
    let expected = [Some(Outcome::Met), Some(Outcome::Missed)];
    assert_eq!(told(&conditions), expected);
}

#[test]
fn a_trial_of_another_search_is_refused() {
    let mut conditions = conditions();
    conditions.further_slos = vec![slo("unknown")];
    let mut searches = Searches::new(&conditions, SETTINGS).expect("sound settings");
    let refused = searches.record(&trial(400, Length::Full)).unwrap_err();
    assert!(refused.to_string().contains("`unknown`"), "{refused}");
}

#[test]
fn what_no_load_would_cure_ends_the_search_at_once() {
    let mut searches = Searches::new(&conditions(), SETTINGS).expect("sound settings");
    let mut shared = trial(400, Length::Full);
    shared.caveats = vec![Caveat {
        id: "shared-cores".to_owned(),
        blocking: true,
        text: String::new(),
    }];
    shared.verdict = Verdict::Invalid;
    shared.further_slos[0].caveats = shared.caveats.clone();
    shared.further_slos[0].verdict = Verdict::Invalid;
    searches.record(&shared).expect("judged by both");
    assert_eq!(searches.next(), None);
}

#[test]
fn an_interrupted_trial_is_no_evidence() {
    let mut searches = Searches::new(&conditions(), SETTINGS).expect("sound settings");
    let before = searches.next();
    let mut cut = trial(400, Length::Full);
    cut.interrupted = true;
    searches.record(&cut).expect("passed over");
    assert_eq!(searches.next(), before);
}

#[test]
fn another_build_of_the_target_does_not_go_on_with_a_search() {
    let mut kept = Kept::default();
    let mut now = trial(400, Length::Full);
    assert!(kept.must_be_the_same_target(&now, None).is_ok());
    let baseline = now.clone();
    kept.add(&now, "trial-001.json".to_owned());
    assert!(kept.must_be_the_same_target(&now, None).is_ok());
    now.target
        .versions
        .insert("axum".to_owned(), "0.9".to_owned());
    // Nor does it go on from a baseline.
    let nothing = Kept::default();
    for refused in [
        kept.must_be_the_same_target(&now, None),
        nothing.must_be_the_same_target(&now, Some(&baseline)),
    ] {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("0.9") && !refused.contains('\n'),
            "{refused}"
        );
    }
}

#[test]
fn a_lower_bound_says_who_ran_out() {
    let bottleneck = |caveat: &str| {
        let mut conditions = conditions();
        conditions.further_slos = Vec::new();
        let mut searches = Searches::new(&conditions, SETTINGS).expect("sound settings");
        searches.interrupt();
        let (slo, mut outcome) = searches.outcomes().remove(0);
        outcome.lower_bound_only = true;
        let mut invalid = trial(400, Length::Full);
        invalid.verdict = Verdict::Invalid;
        invalid.caveats = vec![Caveat {
            id: caveat.to_owned(),
            blocking: true,
            text: String::new(),
        }];
        let mut kept = Kept::default();
        kept.add(&invalid, "trial-001.json".to_owned());
        let plan = FindPlan {
            settings: SETTINGS,
            time_budget: None,
        };
        let bracket = kept.bracket(&conditions, slo, &outcome, false, "now", &plan);
        bracket.bottleneck
    };
    let ran_out = |who: &str| Some(format!("{who}: it ran out before the target did"));
    assert_eq!(bottleneck("send-lag"), ran_out("client"));
    assert_eq!(bottleneck("machine-bound"), ran_out("machine"));
    assert_eq!(bottleneck("target-starved"), ran_out("machine"));
    // A search that was not allowed to try more is nobody's bottleneck.
    assert_eq!(bottleneck("too-few-samples"), None);
}

#[test]
fn a_bracket_says_what_its_loads_count() {
    let mut conditions = conditions();
    conditions.plan = plan("ws test=storm");
    conditions.further_slos = Vec::new();
    let mut searches = Searches::new(&conditions, SETTINGS).expect("sound settings");
    searches.interrupt();
    let plan = FindPlan {
        settings: SETTINGS,
        time_budget: None,
    };
    let (slo, outcome) = searches.outcomes().remove(0);
    let bracket = Kept::default().bracket(&conditions, slo, &outcome, true, "now", &plan);
    assert_eq!(bracket.load_unit, LoadUnit::CONNECTIONS_PER_SECOND);
    assert_eq!(bracket.workload, "ws");
}
