//! Test `replay`: the broker crashes in the middle of the window, and is started again on the same data.

use super::*;
use crate::support::manifests::file;
use plimsoll_testing::measures;

/// A trial over a crash, at this level.
fn replay(fault: &str, level: &str, line: &str) -> Option<Ended> {
    built("broker/lying-broker");
    undisturbed_beside_another(|| replaying(fault, level, line))
}

fn replaying(fault: &str, level: &str, line: &str) -> Plimsoll {
    let line = format!(
        "run lying-broker --workload broker --test replay --level {level} --sessions {RATE} {PHASES} {line}"
    );
    Plimsoll::measuring(line.split_whitespace()).env("FAULT", fault)
}

/// A count of the crash.
#[track_caller]
fn of_the_crash(trial: &Trial, name: &str) -> u64 {
    let value = trial.at(&format!("broker.replay.{name}"));
    let count = value.as_u64();
    count.unwrap_or_else(|| panic!("`{name}` is no count: {value}"))
}

/// The trial crossed a crash, and nothing is left behind.
#[track_caller]
fn expect_crossed(ended: &Ended, crash: &str) -> Trial {
    let trial = expect_sound(ended);
    assert_eq!(trial.at("broker.replay.crash"), crash);
    assert_eq!(
        of_the_crash(&trial, "connections_lost") % 2,
        0,
        "of both writers"
    );
    assert!(trial.number("broker.replay.ready_ms") > 0.0);
    assert!(
        trial.number("broker.waits.crash_messages") > 0.0,
        "due meanwhile"
    );
    assert_eq!(trial.ledger("sessions_died"), 0);
    // 1 s of warm-up and half of the window, but for what was open.
    let (confirmed, open) = (
        of_the_crash(&trial, "confirmed"),
        of_the_crash(&trial, "open"),
    );
    let before = RATE / 2 + DUE / 2;
    assert!(
        (confirmed + open).abs_diff(before) < before / 2,
        "{confirmed} and {open}"
    );
    trial
}

#[test]
#[measures]
fn what_is_written_survives_a_kill() {
    for level in ["durable", "ephemeral"] {
        let ended = conclusive!(replay("none", level, ""));
        ended.expect_code(0);
        let trial = expect_crossed(&ended, "kill");
        assert_eq!(trial.ledger("confirmed_lost"), 0);
        assert_eq!(of_the_crash(&trial, "connections_lost"), 4);
        assert_eq!(trial.at("broker.judged.word"), "clean", "{level}");
        assert!(trial.number("broker.replay.first_message_ms") > 0.0);
        assert!(ended.stdout.contains("kill -9"), "{}", ended.stdout);
    }
}

/// Nobody has read anything when the broker crashes, so all that it confirmed is at stake.
#[test]
#[measures]
fn a_broker_that_keeps_its_messages_in_memory_loses_all_that_it_confirmed() {
    let ended = conclusive!(replay("none", "memory", "--hold-readers --pause-ms 200"));
    ended.expect_code(1);
    let trial = expect_crossed(&ended, "kill");
    assert_eq!(trial.failed_gates(), ["confirmed_lost"]);
    assert_eq!(trial.at("broker.judged.word"), "lost");
    let (confirmed, lost) = (
        of_the_crash(&trial, "confirmed"),
        of_the_crash(&trial, "confirmed_lost"),
    );
    assert_eq!(lost, confirmed);
    assert_eq!(trial.ledger("confirmed_lost"), lost, "nothing after it");
    assert_eq!(of_the_crash(&trial, "recovered_without_confirm"), 0);
    assert!(trial.number("broker.replay.ready_ms") >= 200.0);
}

#[test]
#[measures]
fn held_messages_survive_a_kill() {
    let ended = conclusive!(replay("none", "durable", "--hold-readers"));
    ended.expect_code(0);
    let trial = expect_crossed(&ended, "kill");
    assert_eq!(trial.ledger("confirmed_lost"), 0);
    assert!(of_the_crash(&trial, "confirmed") > RATE / 2);
}

#[test]
#[measures]
fn a_power_cut_loses_what_was_never_synced_and_nothing_else() {
    if let Some(why) = plimsoll_host::disk::power::why_not() {
        plimsoll_testing::skipped!("{why}");
        return;
    }
    built("broker/lying-broker");
    // Beside it would be tests with namespaces of their own, whose copies of the mount keep the power away.
    let _turn = turn();
    let power_cut =
        |fault| undisturbed(|| replaying(fault, "durable", "--crash power --hold-readers"));
    let ended = conclusive!(power_cut("none"));
    ended.expect_code(0);
    let trial = expect_crossed(&ended, "power");
    assert_eq!(trial.ledger("confirmed_lost"), 0);
    assert_eq!(trial.at("broker.replay.is_lower_bound"), true);
    assert!(ended.stdout.contains("at least 0"), "{}", ended.stdout);

    let ended = conclusive!(power_cut("no_sync"));
    ended.expect_code(1);
    let trial = expect_crossed(&ended, "power");
    assert_eq!(trial.failed_gates(), ["confirmed_lost"]);
    assert_eq!(trial.at("broker.judged.word"), "lost");
    assert!(of_the_crash(&trial, "confirmed_lost") > 0);
}

#[test]
#[measures]
fn a_broker_that_does_not_come_back_fails_by_name_with_the_end_of_its_log() {
    let program = built("broker/lying-broker");
    let line = format!(
        "[ ! -e $DATA_DIR/once ] || {{ echo the log is torn >&2; exit 9; }}; touch $DATA_DIR/once; exec {}",
        program.display()
    );
    let manifest = format!(
        r#"name = "once"
workload = "broker"
tier = "test"
language = "sh"
description = "starts only once"
dialect = "fibril"
levels = ["ephemeral: confirm cache, deliver cache"]
[run]
command = ["sh", "-c", {line:?}]
env = {{ HTTP_PORT = "0" }}
"#
    );
    let folder = tempfile::tempdir().expect("a scratch folder");
    let manifest = file(folder.path(), "target.toml", manifest);
    let ended = conclusive!(undisturbed_beside_another(|| {
        let line = format!(
            "run --workload broker --test replay --level ephemeral --sessions {RATE} {PHASES} --manifest {}",
            manifest.display()
        );
        Plimsoll::measuring(line.split_whitespace())
    }));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    assert_eq!(
        trial.failed_gates()[..2],
        ["sessions_died", "target_not_back"]
    );
    assert!(trial.at("broker.replay.ready_ms").is_null());
    let why = trial.at("broker.replay.not_back").as_str().expect("a text");
    assert!(why.contains("the log is torn"), "{why}");
    assert!(ended.stdout.contains("target_not_back"), "{}", ended.stdout);
}

#[test]
#[measures]
fn what_cannot_crash_is_refused_in_one_line() {
    for (line, told) in [
        ("run lying-broker --crash kill", "--crash"),
        (
            "run lying-broker --test replay --unconfirmed",
            "--unconfirmed",
        ),
        ("run lying-broker --test replay --crash flood", "--crash"),
        (
            "run lying-broker --test replay --pause-ms 60001",
            "--pause-ms",
        ),
        (
            "run lying-broker --test replay --set smoke",
            "leave --set or",
        ),
        (
            "run --url tcp://127.0.0.1:9 --dialect nats --test replay",
            "--test replay with --url: only a target that Plimsoll starts",
        ),
    ] {
        let line = format!("{line} --workload broker --level ephemeral --sessions 10");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(told), "{line}: {}", ended.stderr);
    }
    let line = "find lying-broker --workload broker --level ephemeral --test replay";
    let ended = Plimsoll::plain(line.split_whitespace()).run();
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("use `plimsoll run` with --sessions"),
        "{}",
        ended.stderr
    );
}
