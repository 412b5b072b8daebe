//! Workload `stt-real`, with the real command over real sockets against the mock speech server, which is honest unless it is
//! told to be wrong in one way. What needs no socket is in the tests of `workload-stt-real`.

use std::sync::OnceLock;

use crate::support::conclusive;
use crate::support::manifests::slo_file;
use crate::support::mock_stt::MockStt;
use crate::support::records::Trial;
use crate::support::{Ended, Plimsoll, root, undisturbed_but_for};
use plimsoll_testing::measures;

/// What a server must hold however busy the machine is.
const GATES: &str = "[gates]
speech_uncovered_ms = 0
speech_duplicated_ms = 0
sessions_silent = 0
sessions_without_end = 0
crosstalk = 0
error_rate = 0
sessions_failed = 0
sessions_died = 0
";

/// Of each session some four utterances.
const PHASES: &str = "--sessions 4 --ramp 0.5 --warm-up 3 --measured 14 --grace 6";

fn gates() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| slo_file("stt-real-counts", GATES))
}

/// Where a dialect is on the mock, with the flags that it needs.
fn url(dialect: &str, address: &str) -> String {
    match dialect {
        "wyoming" => format!("--url tcp://{address}"),
        "vllm-realtime" => format!("--url ws://{address} --model m"),
        _ => format!("--url ws://{address}"),
    }
}

/// A trial of a mock with these settings.
fn trial_with(
    dialect: &str,
    settings: &[(&str, &str)],
    slo: &str,
    expected: &[&str],
) -> Option<Ended> {
    let settings: Vec<(&str, &str)> = [("DIALECT", dialect)]
        .iter()
        .chain(settings)
        .copied()
        .collect();
    let mock = MockStt::with(&settings);
    let url = url(dialect, &mock.address);
    undisturbed_but_for(expected, || {
        let line = format!("run {url} --dialect {dialect} --slo {slo} {PHASES}");
        Plimsoll::measuring(line.split_whitespace())
    })
}

/// A fault that this gate shows.
#[track_caller]
fn expect_fault(dialect: &str, fault: &str, gate: &str) -> Option<Trial> {
    let ended = trial_with(dialect, &[("FAULT", fault)], gates(), &[])?;
    ended.expect_code(1);
    let trial = ended.sound_trial();
    let failed = trial.failed_gates();
    assert!(failed.contains(&gate), "{dialect} {fault}: {failed:?}");
    Some(trial)
}

fn of(trial: &Trial, path: &str) -> f64 {
    let value = trial.at(&format!("stt_real.{path}"));
    value.as_f64().unwrap_or_else(|| panic!("{path}: {value}"))
}

#[track_caller]
fn expect_honest(dialect: &str) {
    let ended = conclusive!(trial_with(dialect, &[], gates(), &[]));
    ended.expect_code(0);
    let trial = ended.sound_trial();
    assert!(of(&trial, "utterances") >= 8.0);
    assert!(of(&trial, "words.reference_words") >= 50.0);
    assert_eq!(of(&trial, "wer.value"), 0.0, "{dialect}");
    assert_eq!(of(&trial, "final_result.unanswered"), 0.0);
    assert_eq!(of(&trial, "unknown_messages"), 0.0);
    // What is said without a message for it would be no words.
    assert!(trial.at("stt_real.first_result.p50_ms").is_number());
}

macro_rules! honest {
    ($($test:ident $dialect:literal)*) => {
        $(
            #[test]
            #[measures]
            fn $test() {
                expect_honest($dialect);
            }
        )*
    };
}

honest! {
    an_honest_deepgram_gets_every_word_right "deepgram"
    an_honest_whisperlive_gets_every_word_right "whisperlive"
    an_honest_wyoming_gets_every_word_right "wyoming"
    an_honest_vosk_gets_every_word_right "vosk"
    an_honest_openai_realtime_gets_every_word_right "openai-realtime"
    an_honest_vllm_realtime_gets_every_word_right "vllm-realtime"
    an_honest_speechmatics_gets_every_word_right "speechmatics"
    an_honest_assemblyai_gets_every_word_right "assemblyai"
    an_honest_moshi_gets_every_word_right "moshi"
}

macro_rules! faults {
    ($($test:ident $dialect:literal $fault:literal $gate:literal)*) => {
        $(
            #[test]
            #[measures]
            fn $test() {
                conclusive!(expect_fault($dialect, $fault, $gate));
            }
        )*
    };
}

faults! {
    a_lost_second_is_speech_that_no_final_covers "deepgram" "lost-second" "speech_uncovered_ms"
    a_doubled_final_is_speech_in_two_finals "speechmatics" "doubled-final" "speech_duplicated_ms"
    a_final_beyond_the_audio_is_a_fault "deepgram" "beyond-audio" "error_rate"
    words_of_another_session_are_crosstalk "openai-realtime" "crosstalk" "crosstalk"
    a_session_without_a_word_is_silent "vosk" "silent" "sessions_silent"
    a_server_that_falls_silent_covers_no_speech "assemblyai" "stall" "speech_uncovered_ms"
    a_session_that_is_closed_died "whisperlive" "close" "sessions_died"
    too_many_requests_are_sessions_that_failed "assemblyai" "429" "sessions_failed"
    a_full_server_fails_sessions "moshi" "capacity" "sessions_failed"
    a_message_that_is_no_json_is_a_fault "speechmatics" "bad-json" "error_rate"
    a_message_of_two_mib_ends_the_session "vllm-realtime" "huge-message" "sessions_died"
}

#[test]
#[measures]
fn refusals_are_counted_by_their_kind() {
    for (dialect, fault, reason) in [
        ("assemblyai", "429", "refused: rate"),
        ("deepgram", "capacity", "refused: capacity"),
    ] {
        let trial = conclusive!(expect_fault(dialect, fault, "sessions_failed"));
        let reasons = trial.at("ledger.reasons");
        assert!(
            reasons.get(reason).is_some(),
            "{dialect} {fault}: {reasons}"
        );
    }
}

/// Words that are missing without load too: an SLO of the user's finds them.
#[test]
#[measures]
fn lost_words_are_a_word_error_rate() {
    let slo = slo_file("stt-real-wer", "[gates]\nwer_percent = 5\n");
    let ended = conclusive!(trial_with("vosk", &[("FAULT", "lost-word")], &slo, &[]));
    ended.expect_code(1);
    let trial = ended.sound_trial();
    assert_eq!(trial.failed_gates(), ["wer_percent"]);
    assert_eq!(of(&trial, "words.insertions"), 0.0);
}

/// Growth needs a window of 20 s.
#[test]
#[measures]
fn lag_that_grows_fails_though_nothing_is_lost() {
    let slo = slo_file("stt-real-growth", "[gates]\nlag_growth_ms_per_s = 10\n");
    let mock = MockStt::with(&[("DIALECT", "vosk"), ("FAULT", "growing-lag")]);
    let url = url("vosk", &mock.address);
    let ended = conclusive!(undisturbed_but_for(&[], || {
        let line = format!(
            "run {url} --dialect vosk --slo {slo} --sessions 4 --ramp 0.5 --warm-up 2 --measured 24 --grace 6"
        );
        Plimsoll::measuring(line.split_whitespace())
    }));
    ended.expect_code(1);
    let trial = ended.sound_trial();
    let growth = of(&trial, "lag_growth_ms_per_s");
    assert!((30.0..200.0).contains(&growth), "{growth}");
}

/// Nobody waits for ever for an end that does not come: what was said until then counts.
#[test]
#[measures]
fn a_server_that_never_ends_is_named_and_loses_nothing_that_it_said() {
    let fault = expect_fault("deepgram", "no-end", "sessions_without_end");
    let trial = conclusive!(fault);
    assert_eq!(trial.failed_gates(), ["sessions_without_end"]);
    assert_eq!(of(&trial, "wer.value"), 0.0);
}

/// The word error rate is compared with that of a run with one session.
#[test]
#[measures]
fn words_that_get_worse_under_load_fail_against_a_baseline() {
    let slo = slo_file("stt-real-words", "[gates]\nwer_excess_points = 3\n");
    let mock = MockStt::with(&[
        ("DIALECT", "deepgram"),
        ("FAULT", "wrong-words"),
        ("LOADED_SESSIONS", "2"),
    ]);
    let url = url("deepgram", &mock.address);
    let run = |flags: &str| {
        undisturbed_but_for(&[], || {
            let line = format!(
                "run {url} --dialect deepgram --ramp 0.5 --warm-up 3 --measured 20 --grace 6 {flags}"
            );
            Plimsoll::measuring(line.split_whitespace())
        })
    };
    let counts = gates();
    let unloaded = conclusive!(run(&format!("--sessions 1 --slo {counts}")));
    assert_eq!(of(&unloaded.trial(), "wer.value"), 0.0);
    let baseline = unloaded.folder().join("trial-001.json");
    let baseline = baseline.display();
    let loaded = conclusive!(run(&format!(
        "--sessions 4 --slo {slo} --baseline {baseline}"
    )));
    loaded.expect_code(1);
    let trial = loaded.sound_trial();
    assert_eq!(trial.failed_gates(), ["wer_excess_points"]);
    assert!(of(&trial, "wer_excess_points.low") > 20.0);
}

/// A wrong key is one line before anything is measured, and not a failed trial. Other refusals are the server's answer.
#[test]
#[measures]
fn a_wrong_key_is_refused_in_one_line_before_any_trial() {
    let mock = MockStt::with(&[("DIALECT", "vosk"), ("KEY", "canary-right")]);
    let address = &mock.address;
    let line = format!(
        "find --url ws://{address} --dialect deepgram --param x=1 --measured 20 --time-budget 1"
    );
    let ended = Plimsoll::measuring(line.split_whitespace())
        .env("PLIMSOLL_KEY", "canary-wrong")
        .run();
    ended.expect_code(2);
    let told = ended.stderr.lines().last().unwrap_or_default();
    assert!(
        told.contains("refuses a session: auth") && told.contains("--key-file"),
        "{told}"
    );
    assert!(!ended.stderr.contains("canary"), "{}", ended.stderr);
    let files = ended.result_files();
    assert!(
        files.iter().all(|file| !file.starts_with("trial")),
        "{files:?}"
    );
}

/// The key goes where the dialect has it, and nowhere else.
#[test]
#[measures]
fn a_right_key_lets_in_and_is_in_no_file() {
    for dialect in ["deepgram", "assemblyai", "moshi"] {
        let mock = MockStt::with(&[("DIALECT", "vosk"), ("KEY", "canary-right")]);
        let line = format!(
            "run --url ws://{} --dialect {dialect} --slo {} --sessions 1 --ramp 0.5 --warm-up 1 --measured 5 --grace 4",
            mock.address,
            gates()
        );
        let ended = Plimsoll::measuring(line.split_whitespace())
            .env("PLIMSOLL_KEY", "canary-right")
            .run();
        let trial = ended.trial();
        assert_eq!(trial.ledger("sessions_started"), 1, "{dialect}");
        for file in ended.result_files() {
            let bytes = std::fs::read(ended.folder().join(&file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("canary"), "{dialect}: {file}");
        }
    }
}

/// Whoever may be charged for it is neither searched nor loaded without a word. Nothing is sent to it.
#[test]
#[measures]
fn a_strangers_server_is_neither_searched_nor_loaded() {
    for command in [
        "find",
        "run --sessions 4",
        "run --sessions 1 --measured 400",
    ] {
        let line = format!("{command} --url ws://192.0.2.1:9 --dialect vosk");
        let ended = Plimsoll::measuring(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(
            ended.stderr.contains("--mine"),
            "{command}: {}",
            ended.stderr
        );
    }
}

/// `check --dialect` tries a server without load. Whether each fault fails the case that names it is in the tests of the crate.
#[test]
#[measures]
fn a_server_is_checked_by_its_dialect() {
    for (fault, code) in [("none", 0), ("silent", 1)] {
        let settings = [("DIALECT", "vosk"), ("FAULT", fault)];
        let mock = MockStt::with(if fault == "none" {
            &settings[..1]
        } else {
            &settings
        });
        let url = format!("ws://{}", mock.address);
        let ended = Plimsoll::plain(["check", "--url", &url, "--dialect", "vosk"]).run();
        ended.expect_code(code);
    }
}

/// A file describes the same dialect as the one that is built in.
#[test]
#[measures]
fn a_dialect_may_be_described_by_a_file() {
    let mock = MockStt::with(&[("DIALECT", "vosk")]);
    let url = format!("ws://{}", mock.address);
    let file = root().join("docs/stt-real/templates/deepgram.toml");
    let (file, slo) = (file.display(), gates());
    let ended = conclusive!(undisturbed_but_for(&[], || {
        let line = format!("run --url {url} --dialect {file} --slo {slo} {PHASES}");
        Plimsoll::measuring(line.split_whitespace())
    }));
    ended.expect_code(0);
    let trial = ended.sound_trial();
    assert_eq!(of(&trial, "wer.value"), 0.0);
    let dialect = trial.at("stt_real.dialect").as_str();
    assert!(dialect.is_some_and(|name| name.ends_with("deepgram.toml")));
}
