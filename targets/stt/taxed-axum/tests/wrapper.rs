//! The program around shell scripts.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn taxed(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taxed-axum"));
    command.args(arguments).env_remove("TAX_SHARE");
    command
}

fn shell(script: &str) -> Command {
    taxed(&["sh", "-c", script])
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn bad_usage_is_one_line_and_code_2() {
    for (mut command, says) in [
        (taxed(&[]), "name a command"),
        (taxed(&["/no/such/program"]), "/no/such/program"),
        (taxed(&["true"]), "TAX_SHARE=lots"),
        (taxed(&["true"]), "TAX_SHARE=-1"),
        (taxed(&["true"]), "TAX_SHARE=NaN"),
    ] {
        if let Some(value) = says.strip_prefix("TAX_SHARE=") {
            command.env("TAX_SHARE", value);
        }
        let output = command.output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{says}");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn exit_code_and_output_are_those_of_the_command() {
    let output = shell("echo out; echo err >&2; exit 7").output().expect("runs");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
    let killed = shell("kill -9 $$").output().expect("runs");
    assert_eq!(killed.status.code(), Some(128 + 9));
}

#[test]
fn a_signal_is_passed_on_once() {
    for (signal, expected) in [("TERM", "got TERM"), ("INT", "got INT")] {
        let script = "trap 'echo got TERM; exit 3' TERM; trap 'echo got INT; exit 3' INT; echo ready; while :; do sleep 0.01; done";
        let mut child = shell(script).stdout(Stdio::piped()).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("reads");
        assert_eq!(line, "ready\n");
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("reads");
        assert_eq!(rest.trim(), expected);
        assert_eq!(child.wait().expect("ends").code(), Some(3));
    }
}

/// The numbers in the last line.
fn used_and_taken(output: &Output) -> (f64, f64) {
    let text = stderr(output);
    let line = text.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [used, taken] => (used, taken),
        _ => panic!("{text}"),
    }
}

/// Both are CPU clocks, so a busy machine makes this slow and not wrong.
#[test]
fn the_tax_is_the_share_that_was_asked_for() {
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    for (set, share) in [(None, 0.05), (Some("0.2"), 0.2)] {
        let mut command = shell(busy);
        if let Some(set) = set {
            command.env("TAX_SHARE", set);
        }
        let output = command.output().expect("runs");
        let (used, taken) = used_and_taken(&output);
        assert!(used > 50_000.0, "too little to tell: {used} us");
        let found = taken / used;
        assert!((found / share - 1.0).abs() < 0.2, "{found} in place of {share}");
    }
}
