//! Events as a search produces them go in, and what is shown comes out.

use plimsoll_core::latency::{LatencySet, Series};
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::record::{
    Live, LiveCommand, LiveEnded, LoadUnit, Phase, Second, Trial, Verdict,
};
use plimsoll_core::slo::{Metric, Percentile, Slo};
use plimsoll_lab::campaign::TrialBegins;

use super::state::{Facts, LiveState, Measuring, ended, time_left_s};

const NOW: &str = "2026-01-02T03:04:05Z";

fn slo() -> Slo {
    let newest = |percentile, ms| (Metric::Newest(percentile), ms);
    let gates = [
        newest(Percentile::P50, 200.0),
        newest(Percentile::P95, 350.0),
        (Metric::Oldest(Percentile::P95), 1650.0),
        (Metric::ErrorRate, 1e-5),
    ];
    Slo::from_gates("stt", &gates)
}

fn state() -> LiveState {
    let mut state = LiveState::new(Facts {
        command: LiveCommand::Find,
        targets: vec!["rust-axum".to_owned(), "go-nethttp".to_owned()],
        started_at: "2026-01-02T03:00:00Z".to_owned(),
        pid: 17,
    });
    state.measuring(measuring("rust-axum", slo()));
    state
}

fn measuring(target: &str, slo: Slo) -> Measuring {
    Measuring {
        target: target.to_owned(),
        slo,
        profile: Profile::quick(),
        vcpu: Some(0.25),
        load_unit: LoadUnit::SESSIONS,
    }
}

fn begins(number: u32, sessions: u32, trials_left: u32) -> TrialBegins<'static> {
    TrialBegins {
        number,
        sessions,
        target: "",
        letter: "",
        why: "probe",
        trials_left,
        ..TrialBegins::default()
    }
}

fn row(at_s: u64, phase: Phase) -> Second {
    Second {
        at_s,
        phase,
        sessions_open: 400,
        partials: 100,
        newest_p50_ms: Some(150.0),
        newest_p95_ms: Some(300.0),
        ..Second::default()
    }
}

fn shown(state: &LiveState) -> Live {
    state
        .live(NOW.to_owned())
        .expect("it is known what is measured")
}

fn observed(live: &Live, name: &str) -> Option<f64> {
    let gate = live.gates.iter().find(|gate| gate.name == name);
    gate.expect("it is a gate of the SLO").observed
}

#[test]
fn nothing_is_shown_before_it_is_known_what_is_measured() {
    let state = LiveState::new(Facts {
        command: LiveCommand::Run,
        targets: Vec::new(),
        started_at: NOW.to_owned(),
        pid: 1,
    });
    assert_eq!(state.live(NOW.to_owned()), None);
}

#[test]
fn a_trial_is_followed_from_its_start_to_its_end() {
    let mut state = state();
    let live = shown(&state);
    assert!(live.trial.is_none() && live.gates.iter().all(|gate| gate.observed.is_none()));
    assert_eq!((live.updated_at.as_str(), live.pid), (NOW, 17));

    state.trial_begins(&begins(1, 400, 5));
    let trial = shown(&state).trial.expect("one runs");
    assert_eq!(
        (trial.phase, trial.at_s, trial.sessions),
        (Phase::Starting, 0, 400)
    );

    let latency = LatencySet::new();
    for at_s in 1..=9 {
        let phase = [Phase::Ramp, Phase::WarmUp, Phase::Measured][(at_s as usize - 1) / 3];
        state.second(&row(at_s, phase), &latency);
    }
    let live = shown(&state);
    let trial = live.trial.as_ref().expect("one runs");
    assert_eq!((trial.phase, trial.at_s), (Phase::Measured, 9));
    assert_eq!(live.seconds.len(), 9);
    assert_eq!(observed(&live, "newest_p95_ms"), Some(300.0));
    assert_eq!(observed(&live, "error_rate"), Some(0.0));
    assert_eq!(observed(&live, "sessions_died"), Some(0.0));
    assert_eq!(observed(&live, "frames_lost"), None);
    // 16 s per trial: 7 of this one, and four more with 2 s between.
    assert!((live.time_left_s - (7.0 + 4.0 * 18.0)).abs() < 1e-9);

    state.trial_ends(ended(1, 400, Verdict::Pass), false);
    let live = shown(&state);
    assert!(live.trial.is_none());
    assert_eq!(live.seconds.len(), 9, "until the next begins");
    assert_eq!((live.trials.len(), live.trials_left), (1, 4));
    assert_eq!(live.bracket.highest_pass, Some(400));

    state.trial_begins(&begins(2, 800, 4));
    let live = shown(&state);
    assert!(live.seconds.is_empty() && observed(&live, "newest_p95_ms").is_none());
    state.ends();
    assert!(shown(&state).ended);
}

#[test]
fn gates_are_not_read_before_the_window_begins() {
    let mut state = state();
    state.trial_begins(&begins(1, 400, 1));
    let warming = Second {
        newest_p50_ms: None,
        newest_p95_ms: None,
        ..row(4, Phase::WarmUp)
    };
    state.second(&warming, &LatencySet::new());
    assert!(
        shown(&state)
            .gates
            .iter()
            .all(|gate| gate.observed.is_none())
    );
}

#[test]
fn errors_add_up_over_the_trial_and_lost_sessions_are_no_zero() {
    let mut state = state();
    state.trial_begins(&begins(1, 400, 1));
    let bad = Second {
        errors: 3,
        protocol_faults: 2,
        sessions_lost: 1,
        ..row(7, Phase::Measured)
    };
    state.second(&bad, &LatencySet::new());
    state.second(&row(8, Phase::Measured), &LatencySet::new());
    let live = shown(&state);
    let rate = observed(&live, "error_rate").expect("it is known");
    assert!((rate - 5.0 / 200.0).abs() < 1e-12, "{rate}");
    assert_eq!(observed(&live, "sessions_died"), None);
    let trial = live.trial.expect("one runs");
    assert_eq!((trial.errors, trial.sessions_lost), (5, 1));
}

#[test]
fn a_percentile_that_no_row_has_comes_from_the_seconds_answers() {
    let mut state = state();
    let slo = Slo::parse("[gates]\nnewest_p999_ms = 250", "strict", &[]).expect("an SLO");
    state.measuring(measuring("rust-axum", slo));
    state.trial_begins(&begins(1, 400, 1));
    let mut latency = LatencySet::new();
    for _ in 0..100 {
        latency.record_ns(Series::NewestFromSchedule, 240 * NS_PER_MS);
    }
    state.second(&row(7, Phase::Measured), &latency);
    let p999_ms = observed(&shown(&state), "newest_p999_ms").expect("observed");
    assert!((p999_ms - 240.0).abs() < 1.0, "{p999_ms}");
}

#[test]
fn a_confirmation_comes_from_the_second_and_a_slope_from_the_end() {
    let mut state = state();
    let gates = "[gates]\nconfirm_p99_ms = 250\nbacklog_slope = 0.005";
    let slo = Slo::parse(gates, "queue", &[]).expect("an SLO");
    state.measuring(measuring("rust-axum", slo));
    state.trial_begins(&begins(1, 400, 1));
    let mut latency = LatencySet::new();
    state.second(&row(7, Phase::Measured), &latency);
    assert_eq!(observed(&shown(&state), "confirm_p99_ms"), None);
    for _ in 0..100 {
        latency.record_ns(Series::ConfirmFromSchedule, 12 * NS_PER_MS);
    }
    state.second(&row(8, Phase::Measured), &latency);
    let live = shown(&state);
    let p99_ms = observed(&live, "confirm_p99_ms").expect("observed");
    assert!((p99_ms - 12.0).abs() < 0.1, "{p99_ms}");
    assert_eq!(observed(&live, "backlog_slope"), None);
}

#[test]
fn each_target_has_its_own_bracket() {
    let mut state = state();
    let of = |target: &str, sessions, verdict| LiveEnded {
        target: target.to_owned(),
        ..ended(1, sessions, verdict)
    };
    state.trial_begins(&begins(1, 900, 9));
    state.trial_ends(of("rust-axum", 900, Verdict::Fail), false);
    state.trial_begins(&TrialBegins {
        target: "go-nethttp",
        ..begins(1, 400, 8)
    });
    state.trial_ends(of("go-nethttp", 400, Verdict::Pass), false);
    // A trial that a signal cut short does not change the bracket.
    state.trial_ends(of("go-nethttp", 500, Verdict::Fail), true);
    let live = shown(&state);
    assert_eq!(live.target, "go-nethttp");
    assert_eq!(live.bracket.highest_pass, Some(400));
    assert_eq!(live.bracket.lowest_fail, None);
    state.measuring(measuring("rust-axum", slo()));
    assert_eq!(shown(&state).bracket.lowest_fail, Some(900));
}

#[test]
fn a_soak_keeps_the_newest_seconds_only() {
    let mut state = state();
    state.trial_begins(&begins(1, 400, 1));
    let latency = LatencySet::new();
    for at_s in 1..=700 {
        state.second(&row(at_s, Phase::Measured), &latency);
    }
    let live = shown(&state);
    assert_eq!(live.seconds.len(), Live::SECONDS_MAX);
    assert_eq!(live.seconds[0].at_s, 101);
}

#[test]
fn no_time_is_left_when_no_trial_is() {
    let phases = plimsoll_core::record::LivePhases::of(&Profile::quick());
    assert!(time_left_s(&phases, 0, 0).abs() < 1e-9);
    assert!((time_left_s(&phases, 20, 1)).abs() < 1e-9);
    assert!((time_left_s(&phases, 4, 1) - 12.0).abs() < 1e-9);
}

#[test]
fn an_ended_trial_is_its_record_in_short() {
    let text = include_str!("../../../report/tests/results-of-0.1.0/trial-001.json");
    let trial: Trial = serde_json::from_str(text).expect("a record");
    let ended = LiveEnded::of(4, "rust-axum", &trial);
    assert_eq!((ended.number, ended.sessions), (4, trial.sessions));
    assert_eq!(ended.verdict, trial.verdict);
    assert_eq!(ended.newest_p50_ms, Some(97.855));
}
