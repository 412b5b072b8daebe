use super::*;
use crate::latency::{LatencySet, Series};
use crate::profile::NS_PER_MS;

fn by_latency() -> Slo {
    Slo::from_gates(
        "by-latency",
        &[
            (Metric::Newest(Percentile::P50), 200.0),
            (Metric::Oldest(Percentile::P95), 1650.0),
        ],
    )
}

fn good_trial() -> (Ledger, LatencySet) {
    let ledger = Ledger {
        partials: 1000,
        ..Ledger::default()
    };
    let mut set = LatencySet::new();
    for _ in 0..1000 {
        set.record_ns(Series::NewestFromSchedule, 100 * NS_PER_MS);
        set.record_ns(Series::OldestFromSchedule, 1_080 * NS_PER_MS);
    }
    (ledger, set)
}

#[test]
fn a_good_trial_passes_every_gate() {
    let (ledger, set) = good_trial();
    let gates = by_latency().judge(&ledger, &set.summary());
    assert_eq!(gates.len(), 8);
    assert!(gates.iter().all(|gate| gate.pass), "{gates:?}");
}

#[test]
fn one_lost_frame_fails_whatever_the_latency() {
    let (mut ledger, set) = good_trial();
    ledger.frames_lost = 1;
    let gates = by_latency().judge(&ledger, &set.summary());
    let failed: Vec<_> = gates.iter().filter(|gate| !gate.pass).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].name, "frames_lost");
}

#[test]
fn no_server_may_break_what_every_slo_has() {
    let slo = by_latency();
    let names: Vec<String> = slo.gates.iter().map(|gate| gate.metric.name()).collect();
    assert_eq!(names[..2], ["newest_p50_ms", "oldest_p95_ms"]);
    // Nothing lost, duplicated, reordered or wrong, and no session that failed or died.
    assert_eq!(slo.gates.len(), 2 + 6);
    assert!(slo.gates[2..].iter().all(|gate| gate.threshold == 0.0));
    assert_eq!(slo.samples_needed(), 200);
}

#[test]
fn the_worst_second_is_a_gate_of_its_own() {
    let slo = Slo::of("worst", &[(Metric::WorstSecond, 500.0)]);
    assert_eq!(slo.samples_needed(), 1_000);
    assert_eq!(slo.tightest_ms(), Some(500.0));
    let (ledger, set) = good_trial();
    let mut latency = set.summary();
    let passes = |latency: &Latency| slo.judge(&ledger, latency)[0].pass;
    // Not observed: results of earlier versions, or no answer at all.
    assert!(!passes(&latency));
    latency.worst_second_p99_ms = Some(500.0);
    assert!(passes(&latency));
    latency.worst_second_p99_ms = Some(500.1);
    assert!(!passes(&latency));
}

#[test]
fn the_confirmation_is_a_latency_of_its_own() {
    let slo = Slo::of("confirm", &[(Metric::Confirm(Percentile::P99), 250.0)]);
    assert_eq!(slo.samples_needed(), 1_000);
    assert_eq!(slo.tightest_ms(), Some(250.0));
    let (ledger, mut set) = good_trial();
    let gate = |set: &LatencySet| slo.judge(&ledger, &set.summary()).remove(0);
    // Frames were answered, but none was confirmed: that was not observed.
    assert!(!gate(&set).pass && gate(&set).observed.is_none());
    for _ in 0..1_000 {
        set.record_ns(Series::ConfirmFromSchedule, 240 * NS_PER_MS);
        set.record_ns(Series::ConfirmFromWrite, 900 * NS_PER_MS);
    }
    assert!(gate(&set).pass, "{:?}", gate(&set));
    assert_eq!(gate(&set).name, "confirm_p99_ms");
    assert!(gate(&set).is_on_latency());
    // One in fifty was never confirmed.
    for _ in 0..20 {
        set.record_unconfirmed(5_000 * NS_PER_MS, NS_PER_MS);
    }
    assert!(!gate(&set).pass, "{:?}", gate(&set));
}

#[test]
fn a_backlog_fails_when_it_grows_for_certain() {
    let slo = Slo::parse(
        "[gates]\nbacklog_slope = 0.005\nconfirm_p50_ms = 5",
        "x",
        &[],
    )
    .unwrap();
    assert_eq!(slo.gates[0].metric, Metric::Confirm(Percentile::P50));
    assert_eq!(slo.gates[1].metric, Metric::BacklogSlope);
    assert_eq!(Metric::BacklogSlope.samples_needed(), None);
    let (mut ledger, set) = good_trial();
    let mut passes = |slope| {
        ledger.backlog_slope = slope;
        slo.judge(&ledger, &set.summary())[1].pass
    };
    assert!(passes(Some(-0.25)) && passes(Some(0.005)));
    assert!(!passes(Some(0.006)));
    assert!(!passes(None));
}

#[test]
fn what_was_confirmed_must_not_be_lost() {
    let slo = Slo::of("kept", &[(Metric::ConfirmedLost, 0.0)]);
    let (mut ledger, set) = good_trial();
    let mut passes = |lost| {
        ledger.confirmed_lost = lost;
        slo.judge(&ledger, &set.summary())[0].pass
    };
    assert!(passes(Some(0)));
    assert!(!passes(Some(1)));
    assert!(!passes(None), "nobody knows");
}

#[test]
fn a_target_that_never_answers_does_not_pass() {
    let gates = by_latency().judge(&Ledger::default(), &LatencySet::new().summary());
    let newest = gates
        .iter()
        .find(|gate| gate.name == "newest_p50_ms")
        .unwrap();
    assert!(!newest.pass && newest.observed.is_none());
}

#[test]
fn a_file_gives_its_own_gates_only() {
    let slo = Slo::parse(
        "name = 'strict'\n[gates]\nnewest_p99_ms = 150\nframes_lost = 0",
        "x",
        &[],
    )
    .unwrap();
    assert_eq!(slo.name, "strict");
    assert_eq!(slo.gates.len(), 2);
    assert_eq!(slo.gates[0].metric, Metric::Newest(Percentile::P99));
    assert_eq!(slo.samples_needed(), 1_000);
}

#[test]
fn bad_files_say_what_is_wrong() {
    let unknown = Slo::parse("[gates]\nlatency = 1", "x", &[])
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("`latency`") && unknown.contains("newest_p95_ms"));
    assert!(!unknown.contains('\n'));
    assert!(matches!(
        Slo::parse("[gates]", "x", &[]),
        Err(SloError::Empty)
    ));
    assert!(matches!(
        Slo::parse("[gates]\nframes_lost = -1", "x", &[]),
        Err(SloError::Threshold { .. })
    ));
    assert!(matches!(
        Slo::parse("gates = 3", "x", &[]),
        Err(SloError::Syntax(_))
    ));
}

/// A gate on what only one workload computes.
#[test]
fn a_workload_has_metrics_of_its_own() {
    let own = OwnMetric {
        name: "result_overhead_p95_ms",
        percentile: Some(Percentile::P95),
    };
    let text = "[gates]\nresult_overhead_p95_ms = 100";
    let slo = Slo::parse(text, "x", &[own]).unwrap();
    assert_eq!(slo.samples_needed(), 200);
    assert_eq!(slo.tightest_ms(), Some(100.0));
    let (mut ledger, set) = good_trial();
    let observed = |ledger: &Ledger| slo.judge(ledger, &set.summary())[0].clone();
    assert!(!observed(&ledger).pass, "no answer is not a good answer");
    ledger.own.insert(own.name.to_owned(), 99.0);
    assert!(observed(&ledger).pass && observed(&ledger).is_on_latency());
    let unknown = Slo::parse(text, "x", &[]).unwrap_err().to_string();
    assert!(unknown.contains("`result_overhead_p95_ms`"), "{unknown}");
}

const PAGE: &str = include_str!("../../../../docs/reference/slo.md");

/// The cells of the table rows below a heading.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE.split_once(heading).expect(heading);
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    lines.skip(1).map(cells).collect()
}

/// The words in code quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_reference_page_has_every_metric_and_no_other() {
    let mut on_page: Vec<&str> = rows("\n## Metrics\n")
        .iter()
        .flat_map(|row| quoted(row[0]))
        .collect();
    let mut known: Vec<String> = Metric::all().map(Metric::name).collect();
    on_page.sort_unstable();
    known.sort_unstable();
    assert_eq!(on_page, known);
}

#[test]
fn the_reference_page_has_the_samples_that_each_percentile_needs() {
    let mut on_page = BTreeMap::new();
    for row in rows("\n## Samples needed\n") {
        let needed: u64 = row[1].parse().expect("a number");
        on_page.extend(row[0].split(", ").map(|name| (name, needed)));
    }
    let known = Percentile::ALL.map(|(percentile, name)| (name, percentile.samples_needed()));
    assert_eq!(on_page, known.into());
}
