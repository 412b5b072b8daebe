use proptest::prelude::*;

use super::*;
use crate::caveat::{Caveat, Doubt};
use crate::latency::{Latency, LatencySet, Series};
use crate::profile::NS_PER_MS;
use crate::ranking::tests as records;
use crate::slo::Metric;

const OWN: [OwnMetric; 1] = [OwnMetric {
    name: "blocks_lost",
    percentile: None,
}];

fn parse(text: &str) -> Result<GoalsFile, GoalsError> {
    GoalsFile::parse(text, "ab12".to_owned(), &OWN, &["talk", "calls"])
}

fn file(goals: &[&str]) -> GoalsFile {
    let tables = goals.iter().map(|goal| format!("[[goal]]\n{goal}\n"));
    parse(&tables.collect::<String>()).expect("good goals")
}

fn latency(samples: u64) -> Latency {
    let mut set = LatencySet::new();
    for _ in 0..samples {
        set.record_ns(Series::NewestFromSchedule, 100 * NS_PER_MS);
    }
    set.summary()
}

/// A trial of test `talk` that passed at 100 sessions, each of which costs the target 500 µs.
fn trial(samples: u64) -> Trial {
    let mut trial = records::trial(Verdict::Pass, Some(500.0));
    trial.latency = latency(samples);
    trial.parameters.insert("test".to_owned(), "talk".into());
    trial.ledger.own.insert("blocks_lost".to_owned(), 3.0);
    trial
}

fn only(goals: &Goals) -> &Finding {
    assert_eq!(goals.findings.len(), 1, "{goals:?}");
    &goals.findings[0]
}

/// Outcome, result and reason of one goal in a trial.
fn told(goal: &str, trial: &Trial) -> (Outcome, Option<f64>, String) {
    let goals = file(&[goal]).in_trial(trial, None);
    let found = only(&goals);
    (
        found.outcome,
        found.result,
        found.why.clone().unwrap_or_default(),
    )
}

#[test]
fn what_cannot_be_a_goal_is_refused_in_one_line() {
    for (text, words) in [
        ("", "the file has 0 goals"),
        ("[[goal]]\nmetric = 5", "cannot read the goals"),
        ("[[goal]]\nmetric = \"load_line\"\nat_leats = 5", "at_leats"),
        (
            "[[goal]]\nmetric = \"loadline\"\nat_least = 5",
            "goal 1 names an unknown metric `loadline`; known metrics: load_line, ",
        ),
        ("[[goal]]\nmetric = \"load_line\"", "either `at_most` or"),
        (
            "[[goal]]\nmetric = \"load_line\"\nat_least = 5\nat_most = 6",
            "either `at_most` or",
        ),
        ("[[goal]]\nmetric = \"load_line\"\nat_least = nan", "number"),
        ("[[goal]]\nmetric = \"load_line\"\nat_least = -1", "number"),
        (
            "[[goal]]\nmetric = \"load_line\"\nat_least = 5\ntest = \"tlak\"",
            "unknown test `tlak`; known tests: talk, calls",
        ),
        (
            "[[goal]]\nmetric = \"load_line\"\nat_least = 5\nwhy_waived = \" \"",
            "why nobody insists",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let none = "[[goal]]\nmetric = \"load_line\"\nat_least = 5\ntest = \"talk\"";
    let error = GoalsFile::parse(none, String::new(), &[], &[]).expect_err("no tests");
    assert!(error.to_string().contains("leave it out"), "{error}");
}

#[test]
fn every_metric_of_a_gate_can_be_a_goal() {
    let gates = Metric::all().map(Metric::name);
    let own = OWN.iter().map(|own| own.name.to_owned());
    for name in gates.chain(own).chain(["load_line".to_owned()]) {
        file(&[&format!("metric = \"{name}\"\nat_most = 1")]);
    }
}

#[test]
fn a_trial_meets_and_misses() {
    let trial = trial(300);
    let cost = "metric = \"cpu_us_per_session_second\"\nat_most = ";
    let (met, missed) = (Outcome::Met, Outcome::Missed);
    for (limit, outcome) in [("500", met), ("499.9", missed)] {
        let (found, result, why) = told(&format!("{cost}{limit}"), &trial);
        assert_eq!((found, result, why.as_str()), (outcome, Some(500.0), ""));
    }
    let p95 = "metric = \"newest_p95_ms\"\nat_most = 150";
    assert_eq!(told(p95, &trial).0, met);
    let own = "metric = \"blocks_lost\"\nat_most = 0";
    assert_eq!(told(own, &trial), (missed, Some(3.0), String::new()));
}

#[test]
fn what_was_not_measured_says_why() {
    let mut trial = trial(300);
    let of_calls = "metric = \"blocks_lost\"\nat_most = 5\ntest = \"calls\"";
    for (goal, words) in [
        (
            "metric = \"load_line\"\nat_least = 5",
            "use `plimsoll find`",
        ),
        (of_calls, "it is for test calls; this is test talk"),
        (
            "metric = \"newest_p99_ms\"\nat_most = 150",
            "needs 1000 samples, and the trial has 300",
        ),
        (
            "metric = \"companion_cpu_us_per_session_second\"\nat_most = 5",
            "not observed",
        ),
        (
            "metric = \"rss_growth_bytes_per_session_hour\"\nat_most = 5",
            "only a soak has it",
        ),
    ] {
        let (outcome, result, why) = told(goal, &trial);
        assert_eq!((outcome, result), (Outcome::NotMeasured, None), "{goal}");
        assert!(why.contains(words), "{goal}: {why}");
    }
    let cost = "metric = \"cpu_us_per_session_second\"\nat_most = 900";
    let goals = file(&[cost]).in_trial(&trial, Some("--test burst"));
    assert_eq!(only(&goals).outcome, Outcome::NotMeasured);
    trial.interrupted = true;
    assert!(told(cost, &trial).2.contains("interrupted"));
}

#[test]
fn an_invalid_trial_meets_nothing() {
    let mut trial = trial(300);
    trial.verdict = Verdict::Invalid;
    trial.caveats.push(Caveat::from(&Doubt::Interrupted));
    trial.caveats[0].blocking = true;
    let (outcome, result, why) = told("metric = \"shortfall\"\nat_most = 1", &trial);
    assert_eq!((outcome, result), (Outcome::NotMeasured, None));
    let id = &trial.caveats[0].id;
    assert_eq!(why, format!("the trial is invalid ({id})"));
}

#[test]
fn a_waived_goal_keeps_its_result_and_its_reason() {
    let goal = "metric = \"blocks_lost\"\nat_most = 0\nwhy_waived = \"a known fault\"";
    let found = told(goal, &trial(300));
    let expected = (Outcome::Waived, Some(3.0), "a known fault".to_owned());
    assert_eq!(found, expected);
}

/// What became of a goal of so many sessions in a search with these loads.
fn line(needed: f64, confirmed: Option<u32>, first_fail: Option<u32>, lower: bool) -> Finding {
    let mut bracket = records::bracket("x", confirmed, None);
    (bracket.first_fail, bracket.lower_bound_only) = (first_fail, lower);
    let goal = format!("metric = \"load_line\"\nat_least = {needed:?}");
    only(&file(&[&goal]).in_search(&bracket, &[])).clone()
}

#[test]
fn a_search_has_a_load_line_and_a_margin() {
    let found = line(400.0, Some(500), Some(520), false);
    assert_eq!((found.outcome, found.result), (Outcome::Met, Some(500.0)));
    assert_eq!(found.margin, Some(0.25));
    let found = line(400.0, Some(300), Some(320), false);
    assert_eq!(
        (found.outcome, found.margin),
        (Outcome::Missed, Some(-0.25))
    );
    // At least 300 may be enough or not; at least 500 is.
    let found = line(400.0, Some(300), None, true);
    assert_eq!(
        (found.outcome, found.bound),
        (Outcome::NotMeasured, Bound::AtLeast)
    );
    assert_eq!(line(400.0, Some(500), None, true).outcome, Outcome::Met);
    // Nothing passed: the load line is below 50.
    let found = line(400.0, None, Some(50), false);
    assert_eq!(
        (found.outcome, found.bound),
        (Outcome::Missed, Bound::Below)
    );
    assert_eq!(found.margin, None);
    assert_eq!(
        line(20.0, None, Some(50), false).outcome,
        Outcome::NotMeasured
    );
    let found = line(400.0, None, None, false);
    assert!(found.why.is_some_and(|why| why.contains("judged")));
}

#[test]
fn a_load_line_per_vcpu_needs_the_vcpu() {
    let mut bracket = records::bracket("x", Some(100), None);
    bracket.vcpu = Some(0.25);
    let goals = file(&["metric = \"load_line_per_vcpu\"\nat_least = 200"]);
    let found = goals.in_search(&bracket, &[]);
    assert_eq!(only(&found).result, Some(400.0));
    assert_eq!(only(&found).margin, Some(1.0));
    bracket.vcpu = None;
    let found = goals.in_search(&bracket, &[]);
    assert_eq!(only(&found).outcome, Outcome::NotMeasured);
}

#[test]
fn the_metrics_of_a_search_are_the_worst_that_passed_at_the_load_line() {
    let bracket = records::bracket("x", Some(100), None);
    let mut trials: Vec<Trial> = (0..6).map(|_| trial(300)).collect();
    for (trial, cost) in trials
        .iter_mut()
        .zip([500.0, 510.0, 900.0, 950.0, 990.0, 995.0])
    {
        let used = trial.target_resources.as_mut().expect("measured");
        used.cpu_us_per_session_second = Some(cost);
    }
    trials[2].sessions = 200;
    trials[3].verdict = Verdict::Fail;
    trials[4].verdict = Verdict::Invalid;
    trials[5].length = Length::Short;
    let most = file(&["metric = \"cpu_us_per_session_second\"\nat_most = 510"]);
    let least = file(&["metric = \"cpu_us_per_session_second\"\nat_least = 510"]);
    let found = most.in_search(&bracket, &trials);
    assert_eq!(only(&found).result, Some(510.0));
    assert_eq!(only(&found).outcome, Outcome::Met);
    assert_eq!(only(&found).margin, None, "only a load line has one");
    let found = least.in_search(&bracket, &trials);
    assert_eq!(only(&found).result, Some(500.0));
    assert_eq!(only(&found).outcome, Outcome::Missed);
    let found = most.in_search(&records::bracket("x", None, None), &trials);
    assert_eq!(only(&found).outcome, Outcome::NotMeasured);
}

#[test]
fn a_record_comes_back_as_it_was() {
    let goals = file(&[
        "metric = \"load_line\"\nat_least = 400\ntest = \"talk\"",
        "metric = \"blocks_lost\"\nat_most = 0\nwhy_waived = \"x\"",
    ]);
    let mut trial = trial(300);
    trial.goals = Some(goals.in_trial(&trial, None));
    let text = serde_json::to_string(&trial).expect("JSON");
    assert!(text.contains("\"sha256\":\"ab12\""), "{text}");
    let back: Trial = serde_json::from_str(&text).expect("a trial");
    assert_eq!(back, trial);
}

proptest! {
    /// A known value either meets a goal or misses it, and the margin of a load line has the same sign.
    #[test]
    fn the_margin_agrees_with_the_outcome(load in 1..20_000_u32, needed in 1..20_000_u32) {
        let found = line(needed.into(), Some(load), Some(load + 1), false);
        let expected = if load >= needed { Outcome::Met } else { Outcome::Missed };
        prop_assert_eq!(found.outcome, expected);
        let margin = found.margin.expect("a load line");
        prop_assert_eq!(margin >= 0.0, load >= needed);
    }

    /// What is said of a bound is true of every value within it.
    #[test]
    fn a_bound_decides_only_what_holds_for_all_of_it(
        result in 0..1_000_u32, value in 0..1_000_u32, limit in 0..1_000_u32, is_least: bool,
    ) {
        let goal = Goal {
            metric: "load_line".to_owned(),
            test: None,
            at_least: is_least.then_some(limit.into()),
            at_most: (!is_least).then_some(limit.into()),
            why_waived: None,
        };
        let truth = is_met(&goal, value.into(), Bound::Exact).expect("known");
        for (bound, is_within) in [(Bound::AtLeast, value >= result), (Bound::Below, value < result)] {
            let told = is_met(&goal, result.into(), bound).ok();
            if let Some(told) = told.filter(|_| is_within) {
                prop_assert_eq!(told, truth);
            }
        }
    }
}
