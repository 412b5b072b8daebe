//! Loads too low for a verdict.

use super::*;

#[test]
fn short_trials_are_for_loads_that_give_samples_enough() {
    // p95 needs 200 samples, and half as many to spare, in 4 s at one answer per session and second.
    let mut conditions = conditions();
    assert_eq!(conditions.length_for(75, Length::Short), Length::Short);
    assert_eq!(conditions.length_for(74, Length::Short), Length::Full);
    assert_eq!(conditions.length_for(1_000, Length::Full), Length::Full);
    // A full trial would not help the SLO that cannot be passed at this load anyway.
    conditions.further_slos = vec![plan("ws test=ping").slo()];
    assert_eq!(conditions.length_for(90, Length::Short), Length::Short);
    assert_eq!(conditions.length_for(100, Length::Short), Length::Full);
    assert_eq!(conditions.length_for(375, Length::Short), Length::Short);
}

#[test]
fn each_workload_has_its_least_load() {
    let mut conditions = conditions();
    conditions.further_slos = Vec::new();
    let mut full_and_short = |line: &str| {
        conditions.plan = plan(line);
        let slo = conditions.plan.slo();
        let least = conditions.least_loads(&slo);
        (least.full, least.short)
    };
    for (line, least) in [
        ("stt", (Some(20), Some(75))),
        ("echo", (Some(2), Some(8))),
        ("ws dialect=wse", (Some(100), Some(375))),
        ("ws dialect=wse test=hold", (Some(100), Some(375))),
        ("ws dialect=wse test=limit", (Some(200), Some(750))),
        ("ws dialect=wse test=storm", (Some(100), Some(375))),
        ("ws test=fanout", (Some(10), Some(38))),
        ("ws test=throughput connections=1", (Some(100), Some(375))),
        // There are only ten barriers per connection and second.
        (
            "ws dialect=wse test=throughput connections=10",
            (Some(100), None),
        ),
        ("ws dialect=wse test=throughput connections=9", (None, None)),
    ] {
        assert_eq!(full_and_short(line), least, "{line}");
    }
}

#[test]
fn a_load_too_low_for_a_verdict_comes_with_the_remedy() {
    let mut conditions = conditions();
    conditions.slo.name = "stt".to_owned();
    conditions.further_slos = Vec::new();
    assert_eq!(conditions.no_verdict_at(20), [""; 0]);
    assert_eq!(
        conditions.no_verdict_at(8),
        [
            "8 sessions cannot give a verdict by the SLO stt: its percentiles need 200 answers, and 10 s give about 80; use at least 20, or --measured 25"
        ]
    );
    conditions.further_slos = vec![plan("ws test=ping").slo()];
    assert_eq!(conditions.no_verdict_at(20).len(), 1);
    assert_eq!(conditions.no_verdict_at_all(20), None);
    assert_eq!(conditions.no_verdict_at(19).len(), 2);
    let line = conditions.no_verdict_at_all(19).expect("too low for both");
    assert!(line.starts_with("19 sessions"), "{line}");
    conditions.further_slos = Vec::new();
    conditions.plan = plan("ws dialect=wse test=throughput connections=5");
    conditions.slo = plan("ws test=throughput").slo();
    assert_eq!(
        conditions.no_verdict_at(1_000),
        [
            "1000 messages per second cannot give a verdict by the SLO ws-throughput: its percentiles need 1000 answers, and 10 s give about 500; use --measured 20"
        ]
    );
}

#[test]
fn a_target_that_fails_everywhere_ends_its_searches_at_their_least_loads() {
    let mut conditions = conditions();
    // Twenty sessions are enough for the one SLO, a hundred for the other.
    conditions.further_slos = vec![Slo {
        name: "strict".to_owned(),
        ..plan("ws test=ping").slo()
    }];
    let mut searches = Searches::new(&conditions, SETTINGS).expect("sound settings");
    let mut tried = Vec::new();
    while let Some(wanted) = searches.next() {
        assert!(tried.len() < 20, "{tried:?}");
        let length = conditions.length_for(wanted.load, wanted.length);
        let mut trial = trial(wanted.load, length);
        trial.verdict = Verdict::Fail;
        trial.further_slos[0].verdict = if wanted.load < 100 {
            Verdict::Invalid
        } else {
            Verdict::Fail
        };
        searches.record(&trial).expect("judged by both");
        tried.push((wanted.load, length));
    }
    let least = tried.iter().map(|(load, _)| *load).min();
    assert_eq!(least, Some(20), "{tried:?}");
    let ends: Vec<_> = searches
        .outcomes()
        .into_iter()
        .map(|(_, outcome)| (outcome.confirmed, outcome.first_fail, outcome.ended))
        .collect();
    assert_eq!(
        ends,
        [
            (None, Some(20), Ended::AtMinimum),
            (None, Some(100), Ended::AtMinimum)
        ]
    );
}

#[test]
fn short_trials_of_a_rate_go_by_its_answers() {
    // p99 needs 1,000 samples, and half as many to spare. In 4 s that is 375 answers per second, to each message or to
    // the barriers after them.
    let mut conditions = conditions();
    conditions.slo = plan("ws test=throughput").slo();
    conditions.further_slos = Vec::new();
    let mut length = |dialect, connections, load| {
        conditions.plan = plan(&format!(
            "ws test=throughput dialect={dialect} connections={connections}"
        ));
        conditions.length_for(load, Length::Short)
    };
    assert_eq!(length("echo", 10, 375), Length::Short);
    assert_eq!(length("echo", 10, 374), Length::Full);
    assert_eq!(length("wse", 100, 375), Length::Short);
    assert_eq!(length("wse", 10, 100_000), Length::Full);
}
