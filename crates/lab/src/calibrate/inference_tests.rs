//! The search with simulated servers, and what a load's report says.

use super::*;

/// Searches against a server that holds loads up to a limit. Returns what was found, and the loads in order.
fn found(first: u32, limit: u32, above: Holding) -> (Option<u32>, EndedBy, Vec<u32>) {
    let found = search(first, 10_000, |sessions| {
        Ok(InferenceLoad {
            sessions,
            judged: if sessions <= limit {
                Holding::Held
            } else {
                above
            },
            ..InferenceLoad::default()
        })
    });
    let found = found.expect("no error");
    let tried = found.loads.iter().map(|load| load.sessions).collect();
    (found.sessions, found.ended, tried)
}

#[test]
fn doubled_until_it_fails_and_then_narrowed_by_tenths() {
    let (sessions, ended, tried) = found(10, 71, Holding::Late);
    assert_eq!((sessions, ended), (Some(67), EndedBy::Server));
    assert_eq!(tried, [10, 20, 40, 80, 80, 56, 61, 67, 73, 73]);
    let (sessions, _, tried) = found(10, 50, Holding::Unanswered);
    assert_eq!(sessions, Some(50));
    assert_eq!(tried, [10, 20, 40, 80, 80, 56, 56, 50]);
    // Nothing between a load and its double is held.
    assert_eq!(found(10, 41, Holding::Late).0, Some(40));
}

#[test]
fn a_small_server_is_found_below_the_first_load() {
    let (sessions, ended, tried) = found(10, 3, Holding::Late);
    assert_eq!((sessions, ended), (Some(3), EndedBy::Server));
    assert_eq!(tried, [10, 10, 5, 5, 2, 3, 4, 4]);
    let (sessions, ended, _) = found(10, 0, Holding::Unanswered);
    assert_eq!((sessions, ended), (None, EndedBy::Server));
}

#[test]
fn a_late_client_is_no_limit_of_the_server() {
    let (sessions, ended, _) = found(10, 500, Holding::ClientLate);
    assert_eq!(ended, EndedBy::Client);
    assert!(sessions.is_some_and(|it| (450..=500).contains(&it)));
    assert_eq!(found(10, 0, Holding::ClientLate).1, EndedBy::Client);
}

/// The client was late in one of the two attempts, but the other one showed that the server is too slow.
#[test]
fn one_honest_attempt_shows_the_limit_of_the_server() {
    for [first, second] in [
        [Holding::Late, Holding::ClientLate],
        [Holding::ClientLate, Holding::Late],
    ] {
        let mut attempts = [first, second].into_iter().cycle();
        let found = search(10, 10_000, |sessions| {
            let judged = if sessions <= 10 {
                Holding::Held
            } else {
                attempts.next().expect("endless")
            };
            Ok(InferenceLoad {
                sessions,
                judged,
                ..InferenceLoad::default()
            })
        });
        assert_eq!(found.expect("no error").ended, EndedBy::Server);
    }
}

#[test]
fn the_greatest_load_may_be_held() {
    let (sessions, ended, tried) = found(4_000, 20_000, Holding::Late);
    assert_eq!((sessions, ended), (Some(10_000), EndedBy::Nothing));
    assert_eq!(tried, [4_000, 8_000, 10_000]);
}

/// A bad second of the machine: the second attempt holds, so the first was no limit.
#[test]
fn a_load_that_failed_once_and_was_then_held_is_held() {
    let mut runs = 0;
    let found = search(10, 20, |sessions| {
        runs += 1;
        let judged = if runs == 1 {
            Holding::ClientLate
        } else {
            Holding::Held
        };
        Ok(InferenceLoad {
            sessions,
            judged,
            ..InferenceLoad::default()
        })
    });
    let found = found.expect("no error");
    assert_eq!(
        (found.sessions, found.ended),
        (Some(20), EndedBy::Nothing),
        "{found:?}"
    );
}

/// A run of 100 batches, all answered after 20 ms by a client that wrote them after 0.1 ms.
fn report() -> Report {
    let mut report = Report {
        sessions: 8,
        ..Report::empty(Clock::start())
    };
    let ledger = &mut report.ledger;
    (ledger.frames_due, ledger.frames_sent) = (100, 100);
    ledger.frames_answered = 100;
    for _ in 0..100 {
        let latency = &mut report.latency;
        latency.record_ns(Series::NewestFromSchedule, 20_000_000);
        latency.record_ns(Series::NewestFromWrite, 19_900_000);
        latency.record_ns(Series::SendLag, 100_000);
    }
    report
}

fn judged_of(report: &Report) -> Holding {
    judged(report, &told(report, 50, 2.0, None), 350.0)
}

#[test]
fn a_load_is_held_only_if_all_is_answered_in_time_by_an_honest_client() {
    assert_eq!(judged_of(&report()), Holding::Held);
    let mut one_lost = report();
    one_lost.ledger.frames_answered = 99;
    assert_eq!(judged_of(&one_lost), Holding::Unanswered);
    let mut late = report();
    for _ in 0..3 {
        late.latency
            .record_ns(Series::NewestFromSchedule, 400_000_000);
    }
    assert_eq!(judged_of(&late), Holding::Late);
    for _ in 0..3 {
        late.latency.record_ns(Series::SendLag, 5_000_000);
    }
    assert_eq!(judged_of(&late), Holding::ClientLate);
    let mut refused = report();
    refused.sessions_never_opened = 1;
    assert_eq!(judged_of(&refused), Holding::ClientLate);
    // Nothing could be written: it was the server that let nobody in.
    let mut shut = Report::empty(Clock::start());
    shut.ledger.frames_due = 10;
    assert_eq!(judged_of(&shut), Holding::Unanswered);
}

#[test]
fn rates_are_those_of_the_window() {
    let load = told(&report(), 50, 2.0, None);
    assert_eq!((load.sent_per_s, load.answered_per_s), (50.0, 50.0));
    assert_eq!((load.batches, load.connections), (100, 8));
    assert!(
        load.from_schedule
            .p99_ms
            .is_some_and(|it| (it - 20.0).abs() < 0.1)
    );
    assert!(load.send_lag.p99_us.is_some_and(|it| it < 110.0));
}

#[test]
fn the_servers_cpu_is_given_per_batch_and_as_a_share_of_a_core() {
    let sample = |at_ns, cpu_us| Sample {
        at_ns,
        cpu_us,
        ..Sample::default()
    };
    let (from, to) = (sample(0, 500), sample(2_000_000_000, 40_500));
    let used = server_use(&from, &to, 100.0).expect("a use");
    assert!((used.cpu_share - 0.02).abs() < 1e-9, "{used:?}");
    assert!((used.cpu_us_per_batch - 200.0).abs() < 1e-6, "{used:?}");
    assert_eq!(server_use(&from, &from, 100.0), None);
}

#[test]
fn a_server_that_answers_nothing_is_none() {
    let settings = InferenceSettings {
        url: "http://127.0.0.1:9".to_owned(),
        host: "127.0.0.1:9".to_owned(),
        address: ([127, 0, 0, 1], 9).into(),
        transport: "h2c".to_owned(),
        client_cpus: CpuList::new(vec![0]).expect("a core"),
        seconds: 1.0,
        first: 10,
        max: 100,
        seed: 1,
        server: None,
    };
    let load = |kind: &str, answered_per_s| InferenceLoad {
        answered_per_s,
        errors: [(kind.to_owned(), 9)].into(),
        ..InferenceLoad::default()
    };
    let refused = |load| must_answer_something(&load, &settings).map_err(|it| it.to_string());
    let text = refused(load("http_status 404", 0.0)).unwrap_err();
    assert!(text.contains("http_status 404") && text.contains("--inference-transport"));
    assert!(
        text.starts_with("--inference http://127.0.0.1:9: "),
        "{text}"
    );
    // It answers some, or it is only slow: that is a result.
    assert_eq!(refused(load("http_status 503", 1.0)), Ok(()));
    assert_eq!(refused(load("timeout", 0.0)), Ok(()));
}
