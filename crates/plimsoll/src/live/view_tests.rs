//! What the terminal shows, line by line. After an intended change: run
//! `PLIMSOLL_UPDATE=1 cargo test -p plimsoll live`, then look at the golden files.

use std::path::Path;

use plimsoll_core::profile::Profile;
use plimsoll_core::record::{
    Live, LiveBracket, LiveCommand, LiveGate, LivePhases, LiveTrial, LoadUnit, Phase,
    SCHEMA_VERSION, Second, Verdict,
};

use super::state::ended;
use super::view::lines;

fn gate(name: &str, threshold: f64, observed: Option<f64>) -> LiveGate {
    LiveGate {
        name: name.to_owned(),
        threshold,
        observed,
    }
}

fn second(at_s: u64, newest_p95_ms: Option<f64>) -> Second {
    Second {
        at_s,
        phase: Phase::Measured,
        sessions_open: 825,
        newest_p95_ms,
        client_cpu_share: 0.46,
        target_cpu_cores: Some(0.2475),
        companion_cpu_cores: Some(0.2),
        ..Second::default()
    }
}

/// A search that is closing in.
fn live() -> Live {
    let measured = [120.0, 135.0, 180.0, 240.0, 300.0, 351.2].map(Some);
    let newest_p95_ms = [None; 6].into_iter().chain(measured);
    Live {
        schema_version: SCHEMA_VERSION,
        command: LiveCommand::Find,
        target: "rust-axum".to_owned(),
        targets: vec!["rust-axum".to_owned()],
        slo: "stt".to_owned(),
        profile: "quick".to_owned(),
        started_at: "2026-01-02T03:00:00Z".to_owned(),
        updated_at: "2026-01-02T03:04:05Z".to_owned(),
        pid: 17,
        vcpu: Some(0.25),
        phases: LivePhases::of(&Profile::quick()),
        load_unit: LoadUnit::SESSIONS,
        trial: Some(LiveTrial {
            number: 5,
            sessions: 825,
            why: "narrow".to_owned(),
            phase: Phase::Measured,
            at_s: 12,
            errors: 2,
            sessions_lost: 0,
        }),
        gates: vec![
            gate("newest_p50_ms", 200.0, Some(156.4)),
            gate("newest_p95_ms", 350.0, Some(351.2)),
            gate("oldest_p50_ms", 1_200.0, Some(1_104.0)),
            gate("oldest_p95_ms", 1_650.0, None),
            gate("error_rate", 0.00001, Some(0.0)),
            gate("frames_lost", 0.0, None),
        ],
        seconds: (1..)
            .zip(newest_p95_ms)
            .map(|(at_s, newest_p95_ms)| second(at_s, newest_p95_ms))
            .collect(),
        trials: vec![
            ended(1, 400, Verdict::Pass),
            ended(2, 1_600, Verdict::Fail),
            ended(3, 750, Verdict::Pass),
            ended(4, 900, Verdict::Fail),
        ],
        bracket: LiveBracket {
            highest_pass: Some(750),
            lowest_fail: Some(900),
        },
        trials_left: 5,
        time_left_s: 76.0,
        ended: false,
    }
}

fn text(live: &Live, columns: usize, lines_max: usize) -> String {
    lines(live, columns, lines_max)
        .iter()
        .map(|line| format!("{}\n", line.written(false)))
        .collect()
}

#[track_caller]
fn assert_golden(name: &str, now: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/live/golden");
    let file = folder.join(name);
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        std::fs::write(&file, now).expect("the folder is there");
    }
    let then = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        now == then,
        "{} was\n{then}\nand is now\n{now}",
        file.display()
    );
}

#[test]
fn a_search_on_terminals_of_three_widths() {
    for columns in [100, 60, 40] {
        // As the terminal's thread does: the last column stays free.
        let text = text(&live(), columns - 1, 22);
        assert_golden(&format!("view-{columns}.txt"), &text);
    }
}

#[test]
fn a_run_has_no_bracket_and_a_low_terminal_the_first_lines() {
    let run = Live {
        command: LiveCommand::Run,
        ..live()
    };
    let (whole, search) = (text(&run, 99, 22), text(&live(), 99, 22));
    assert!(!whole.contains('◆') && search.contains('◆'));
    assert!(search.starts_with(&whole));
    assert_eq!(text(&live(), 99, 8).lines().count(), 8);
    assert!(search.starts_with(&text(&live(), 99, 8)));
}

#[test]
fn before_anything_is_known_nothing_is_made_up() {
    let nothing = Live {
        trial: Some(LiveTrial {
            number: 1,
            sessions: 400,
            why: "probe".to_owned(),
            phase: Phase::Starting,
            at_s: 0,
            errors: 0,
            sessions_lost: 0,
        }),
        gates: vec![gate("newest_p95_ms", 350.0, None)],
        seconds: Vec::new(),
        trials: Vec::new(),
        bracket: LiveBracket::default(),
        vcpu: None,
        ..live()
    };
    let text = text(&nothing, 99, 22);
    assert!(text.contains("starting   0 s"), "{text}");
    assert!(text.contains("● passed –  × failed –  ◆ now 400"), "{text}");
    assert!(!text.contains('!'), "{text}");
    let between = Live {
        trial: None,
        ..nothing
    };
    assert!(lines(&between, 99, 22).len() > 5);
}

#[test]
fn a_load_has_its_unit_and_a_rate_is_no_number_of_connections() {
    let of = |load_unit| {
        let live = Live {
            load_unit,
            ..live()
        };
        text(&live, 99, 22)
    };
    let connections = of(LoadUnit::CONNECTIONS);
    assert!(
        connections.contains("trial 5: 825 connections"),
        "{connections}"
    );
    assert!(
        connections.contains("connections 825 of 825"),
        "{connections}"
    );
    let receivers = of(LoadUnit::RECEIVERS);
    assert!(receivers.contains("receivers 825 of 825"), "{receivers}");
    for unit in [
        LoadUnit::MESSAGES_PER_SECOND,
        LoadUnit::CONNECTIONS_PER_SECOND,
    ] {
        let rate = of(unit);
        assert!(
            rate.contains(&format!("trial 5: 825 {}", unit.name())),
            "{rate}"
        );
        assert!(rate.contains("connections 825  errors"), "{rate}");
    }
}

#[test]
fn a_hostile_name_is_made_plain() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\nws://漢\u{202e}\u{200b}x/";
    let live = Live {
        target: hostile.to_owned(),
        slo: hostile.to_owned(),
        profile: hostile.to_owned(),
        gates: vec![gate(&format!("{hostile}_ms"), 1.0, Some(2.0))],
        trial: Some(LiveTrial {
            why: hostile.to_owned(),
            ..live().trial.expect("one runs")
        }),
        ..live()
    };
    for line in lines(&live, 99, 22) {
        let text = line.written(false);
        let odd = |c: char| c.is_control() || "漢\u{202e}\u{200b}".contains(c);
        assert!(!text.contains(odd), "{text:?}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let huge = Live {
        target: "x".repeat(500),
        time_left_s: 1e9,
        trials_left: u32::MAX,
        gates: vec![gate("newest_p999_ms", f64::MAX, Some(f64::MAX))],
        seconds: (1..=600).map(|at_s| second(at_s, Some(1e12))).collect(),
        bracket: LiveBracket {
            highest_pass: Some(u32::MAX),
            lowest_fail: Some(1),
        },
        ..live()
    };
    for live in [live(), huge] {
        for columns in 1..200 {
            for line in lines(&live, columns, 22) {
                assert!(line.width() <= columns, "{columns}: {line:?}");
            }
        }
    }
}
