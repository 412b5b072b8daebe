//! Slow callers, callers who skip silence, a gateway that is killed or full, and one that counts wrongly.

use super::*;
use crate::support::manifests::file;
use crate::support::{built, undisturbed_call};
use plimsoll_testing::measures;

/// [`GATES`], and the turns must be good again in time.
fn gates_of_a_restart() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        // Turns are lost in the crash, and blocks with the connections.
        let kept = GATES
            .lines()
            .filter(|line| !line.starts_with("shortfall") && !line.starts_with("blocks_"));
        let kept: Vec<&str> = kept.chain(["recovery_s = 10"]).collect();
        slo_file("voice-restart", &kept.join("\n"))
    })
}

fn run(line: &str, slo: &str) -> Option<Ended> {
    built("voice/lying-voice");
    undisturbed_but_for(&[], || {
        let line = format!("run lying-voice --workload voice --slo {slo} {line}");
        Plimsoll::measuring(line.split_whitespace())
    })
}

/// A trial of a gateway that this shell line starts.
fn of_a_gateway(shell: &str, line: &str, slo: &str) -> Ended {
    let program = built("voice/lying-voice");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let shell = shell
        .replace("PROGRAM", &program.display().to_string())
        .replace("FOLDER", &folder.path().display().to_string());
    let manifest = format!(
        r#"name = "made-up"
workload = "voice"
tier = "test"
language = "sh"
description = "made up for a test"
[run]
command = ["sh", "-c", {shell:?}]
"#
    );
    let manifest = file(folder.path(), "target.toml", manifest);
    let line = format!(
        "run --workload voice --slo {slo} {line} --manifest {}",
        manifest.display()
    );
    Plimsoll::measuring(line.split_whitespace()).run()
}

#[test]
#[measures]
fn slow_callers_are_counted_apart_and_the_gates_are_of_the_others() {
    let phases = "--ramp 0.5 --warm-up 1.5 --measured 8 --grace 7";
    let ended = conclusive!(run(&format!("--test slow --sessions 20 {phases}"), gates()));
    ended.expect_code(0);
    let trial = ended.sound_trial();
    let slow = |name: &str| trial.at(&format!("voice.slow.{name}")).as_u64();
    assert_eq!((slow("callers"), slow("died")), (Some(2), Some(0)));
    // 8 KiB/s of a reply of 48 kB/s.
    let turns = slow("turns").expect("a count");
    assert!((1..=3).contains(&turns), "{turns}");
    assert!(slow("with_gap") >= Some(1), "{}", trial.at("voice.slow"));
    let judged = trial.at("voice.turns").as_u64().expect("a count");
    assert!((14..=22).contains(&judged), "{judged}");
    assert_eq!(trial.ledger("frames_due"), judged);
    assert!(ended.stdout.contains("slow callers"), "{}", ended.stdout);
}

/// A share that no busy machine reaches: most replies have no gap.
const FEW_GAPS: f64 = 0.3;

/// The gates are of those who read. One writer for all callers lets them wait for the one who does not.
#[test]
#[measures]
fn a_slow_caller_who_holds_up_the_others_fails_the_gateway() {
    let gates = format!("{GATES}turns_with_gap = {FEW_GAPS}\n");
    let slo = slo_file("voice-slow", &gates);
    let phases = "--ramp 0.5 --warm-up 1.5 --measured 8 --grace 7";
    let with = |lie: &str| {
        built("voice/lying-voice");
        undisturbed_but_for(&[], || {
            let line = format!(
                "run lying-voice --workload voice --test slow --sessions 20 {phases} --slo {slo}"
            );
            Plimsoll::measuring(line.split_whitespace()).lying("LIE", lie)
        })
    };
    let ended = conclusive!(with("none"));
    ended.expect_code(0);
    assert_eq!(ended.sound_trial().verdict(), "pass");
    let ended = conclusive!(with("shared_writer"));
    expect_gate(&ended, "shared_writer", "turns_with_gap");
}

#[test]
#[measures]
fn callers_who_skip_silence_change_no_account() {
    let line = format!("--silence skip {PHASES}");
    let ended = conclusive!(run(&line, gates()));
    ended.expect_code(0);
    let trial = ended.sound_trial();
    let blocks = trial.number("voice.heard.blocks_written");
    // 12 callers for 10 to 17 s, of which they speak a third.
    assert!((1_000.0..4_500.0).contains(&blocks), "{blocks}");
    // Nobody lost its connection to the provider for the silence.
    let provider = "voice.providers.deepgram_stt";
    assert_eq!(trial.at(&format!("{provider}.sessions")).as_u64(), Some(12));
    assert!(trial.number(&format!("{provider}.blocks_read")) <= blocks);
    let turns = trial.at("voice.turns").as_u64();
    assert_eq!(trial.at("voice.complete").as_u64(), turns);
}

const RESTART: &str =
    "--test faults --fault restart --sessions 12 --ramp 0.5 --warm-up 1.5 --measured 20 --grace 5";

#[test]
#[measures]
fn callers_come_back_after_a_restart() {
    let ended = conclusive!(run(RESTART, gates_of_a_restart()));
    ended.expect_code(0);
    let trial = ended.sound_trial();
    assert_eq!(trial.ledger("sessions_died"), 0);
    assert_eq!(trial.ledger("sessions_started"), 12);
    assert!(trial.number("voice.recovery_s") <= 10.0);
    let (turns, complete) = (trial.number("voice.turns"), trial.number("voice.complete"));
    assert!(
        complete < turns && complete > turns / 2.0,
        "{complete} of {turns}"
    );
    let opened = trial.at("voice.providers.deepgram_stt.sessions").as_u64();
    assert_eq!(opened, Some(24), "each caller twice");
    assert!(ended.stdout.contains("recovery"), "{}", ended.stdout);
}

#[test]
#[measures]
fn a_gateway_that_does_not_come_back_fails_by_name() {
    built("voice/lying-voice");
    let once = "[ ! -e FOLDER/once ] || { echo no second life >&2; exit 9; }; touch FOLDER/once; exec PROGRAM";
    let ended = conclusive!(undisturbed_call(&[], || of_a_gateway(
        once,
        RESTART,
        gates_of_a_restart()
    )));
    ended.expect_code(1);
    let trial = ended.sound_trial();
    let failed = trial.failed_gates();
    assert!(failed.contains(&"target_not_back"), "{failed:?}");
    assert_eq!(trial.ledger("sessions_died"), 12);
    let told = trial.at("bottleneck").to_string();
    assert!(told.contains("no second life"), "{told}");
}

#[test]
#[measures]
fn a_gateway_that_is_full_is_limited_by_its_admission() {
    built("voice/lying-voice");
    let ended = conclusive!(undisturbed_call(&[], || of_a_gateway(
        "MAX_SESSIONS=6 exec PROGRAM",
        PHASES,
        gates()
    )));
    ended.expect_code(1);
    let trial = ended.sound_trial();
    assert_eq!(trial.ledger("sessions_failed"), 6);
    assert_eq!(
        trial.at("bottleneck"),
        "admission: the target refused 6 of the 6 connections that failed with status 503"
    );
}

#[test]
#[measures]
fn a_gateway_that_reports_more_requests_than_it_made_is_doubted() {
    let ended = conclusive!(lying_but_for(
        &["providers-disagree"],
        "lie_in_metrics LIE_EVERY=2"
    ));
    expect_doubt(&ended, "providers-disagree");
    let sanity = ended.trial().at("sanity").to_string();
    assert!(sanity.contains("gateway_requests_deepgram_tts"), "{sanity}");
}

#[test]
#[measures]
fn what_cannot_show_anything_is_refused_in_one_line() {
    for (line, told) in [
        (
            "run --url http://127.0.0.1:9 --test faults --fault restart --measured 20",
            "--fault restart with --url: only a target that Plimsoll starts",
        ),
        (
            "run lying-voice --test faults --fault restart --measured 19",
            "give --measured 20 or more",
        ),
        ("run lying-voice --test slow", "give --sessions 10 or more"),
        ("run lying-voice --silence hum", "--silence"),
    ] {
        let line = format!("{line} --workload voice --sessions 9");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(told), "{line}: {}", ended.stderr);
    }
}
