//! A user's mistake is reported in one line that names the problem and the remedy, with exit code 2, before anything is
//! measured. Nothing is left behind.

#[path = "../support/mod.rs"]
mod support;

mod http;

use std::net::TcpListener;

use plimsoll_testing::nobody_listens;
use support::manifests::{Root, file, manifest_of};
use support::{Ended, Plimsoll, root};

/// The one line that a refused call prints.
#[track_caller]
fn refusal(ended: &Ended, names: &[&str]) -> String {
    ended.expect_code(2);
    assert_eq!(ended.stdout, "", "nothing on stdout");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "one line, not:\n{}", ended.stderr);
    for name in names {
        assert!(lines[0].contains(name), "no {name:?} in: {}", lines[0]);
    }
    assert!(lines[0].starts_with("plimsoll: "), "{}", lines[0]);
    lines[0].to_owned()
}

/// The same, for a call that has not even created its result folder.
#[track_caller]
fn refused_at_once(call: Plimsoll, names: &[&str]) -> String {
    let ended = call.run();
    let line = refusal(&ended, names);
    let left: Vec<_> = std::fs::read_dir(ended.scratch())
        .expect("the scratch folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    line
}

fn run(line: &str) -> Plimsoll {
    Plimsoll::measuring(format!("run {line}").split_whitespace())
}

#[test]
fn an_unknown_target_lists_the_known_ones() {
    let names = ["no-such-thing", "rust-axum", "lying-server"];
    refused_at_once(run("no-such-thing --sessions 5"), &names);
    let find = Plimsoll::measuring(["find", "no-such-thing"]);
    refused_at_once(find, &names);
}

#[test]
fn a_root_without_targets_is_named() {
    let empty = tempfile::tempdir().expect("a scratch folder");
    let call = run("rust-axum --sessions 5 --root").arg(empty.path());
    refused_at_once(call, &["--root", "targets/"]);
}

#[test]
fn values_that_make_no_sense_are_refused_with_what_does() {
    for (flags, names) in [
        (
            "--profile fast",
            ["fast", "quick, standard, speech or soak"],
        ),
        ("--vcpu 0", ["--vcpu 0", "at least 0.01"]),
        ("--vcpu NaN", ["--vcpu NaN", "at least 0.01"]),
        ("--target-cpus 99999", ["--target-cpus 99999", "0-1,3"]),
        ("--target-cpus 7000", ["--target-cpus", "may use only"]),
        ("--client-cpus x", ["--client-cpus x", "0-1,3"]),
        ("--baseline nowhere.json", ["nowhere.json", "No such file"]),
        ("--measured 0", ["--measured 0", "1 to 86400"]),
        ("--measured -3", ["-3", "--help"]),
        (
            "--header nonsense",
            ["--header: not a header", "Name: value"],
        ),
        ("--inference ftp://x", ["ftp://x", "http://HOST:PORT"]),
        ("--nonsense", ["--nonsense", "--help"]),
        ("--pid 1", ["--pid", "--url"]),
        ("--cgroup /x", ["--cgroup", "--url"]),
        (
            "--vcpu 0.5 --quota-period-ms 300",
            ["--quota-period-ms 300", "at most --quota-period-ms 200"],
        ),
        (
            "--workload http --vcpu 0.1",
            ["--vcpu 0.1", "at least --vcpu 0.17"],
        ),
    ] {
        let target = if flags.contains("http") {
            "rust-epoll-http"
        } else {
            "rust-axum"
        };
        refused_at_once(run(&format!("{target} --sessions 5 {flags}")), &names);
    }
    refused_at_once(run("rust-axum --sessions 0"), &["--sessions", "1..="]);
    refused_at_once(run("rust-axum"), &["--sessions", "--sessions 100"]);
    let check = Plimsoll::measuring(["check", "rust-axum", "--token", "x"]);
    refused_at_once(check, &["--token", "--url"]);
    let check = "check rust-axum --workload stt --dialect echo";
    let check = Plimsoll::measuring(check.split(' '));
    refused_at_once(check, &["--dialect", "--workload ws"]);
    // The dialect implies the workload, and the target is of another.
    let check = Plimsoll::measuring(["check", "rust-axum", "--dialect", "echo"]);
    refused_at_once(check, &["of workload stt, not of ws", "--workload stt"]);
    let check = "check node-ws --workload ws --dialect wse";
    let check = Plimsoll::measuring(check.split(' '));
    refused_at_once(check, &["--dialect wse", "target.toml"]);
    // Where no case could pass, whatever the server is, nothing is said of it.
    let (_kept, nobody) = nobody_listens();
    for (what, names) in [
        (
            format!("ws://{nobody}/"),
            ["nothing can be checked", "start the server"],
        ),
        ("wss://127.0.0.1:9".to_owned(), ["TLS", "ws://HOST:PORT"]),
        (
            "127.0.0.1:9".to_owned(),
            ["127.0.0.1:9", "http://HOST:PORT"],
        ),
        (
            "ws://127.0.0.1:9 --dialect wyoming".to_owned(),
            ["ws://127.0.0.1:9", "tcp://HOST:PORT"],
        ),
    ] {
        let check = format!("check --url {what}");
        refused_at_once(Plimsoll::measuring(check.split(' ')), &names);
    }
    let find = Plimsoll::measuring(["find", "rust-axum", "--time-budget", "0"]);
    refused_at_once(find, &["--time-budget 0", "above 0"]);
    let find = Plimsoll::measuring(["find", "rust-axum", "--width=-0.5"]);
    refused_at_once(find, &["width"]);
}

#[test]
fn an_slo_file_that_is_not_one_is_named() {
    let files = tempfile::tempdir().expect("a scratch folder");
    for (text, names) in [
        ("[gates]\nlatency = 3", ["`latency`", "newest_p95_ms"]),
        ("[gates]\nframes_lost = -1", ["`frames_lost`", "at least 0"]),
        ("[gates]", ["no gates", "newest_p95_ms = 350"]),
        ("gates = [", ["slo.toml", "cannot read the SLO"]),
    ] {
        let slo = file(files.path(), "slo.toml", text);
        let call = run("rust-axum --sessions 5 --slo").arg(slo);
        let line = refused_at_once(call, &names);
        assert!(line.contains("slo.toml"), "{line}");
    }
    let call = run("rust-axum --sessions 5 --slo /no/such/slo.toml");
    refused_at_once(
        call,
        &[
            "--slo /no/such/slo.toml",
            "No such file",
            "leave the flag out",
        ],
    );
}

/// A WAV header with these values, and a little silence.
fn wav(channels: u16, sample_rate_hz: u32) -> Vec<u8> {
    let data = vec![0_u8; 8000];
    let block = channels * 2;
    let mut file = b"RIFF".to_vec();
    file.extend(u32::try_from(36 + data.len()).expect("short").to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend(channels.to_le_bytes());
    file.extend(sample_rate_hz.to_le_bytes());
    file.extend((sample_rate_hz * u32::from(block)).to_le_bytes());
    file.extend(block.to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(u32::try_from(data.len()).expect("short").to_le_bytes());
    file.extend(data);
    file
}

#[test]
fn audio_of_another_format_comes_with_the_line_that_converts_it() {
    let files = tempfile::tempdir().expect("a scratch folder");
    let convert = "ffmpeg -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav";
    for (name, bytes, seen) in [
        ("cd.wav", wav(2, 44_100), "44100 Hz, 2 channels"),
        ("stereo.wav", wav(2, 16_000), "16000 Hz, 2 channels"),
        ("text.wav", b"not a WAV at all".to_vec(), "not a WAV file"),
        ("empty.wav", Vec::new(), "not a WAV file"),
    ] {
        let audio = file(files.path(), name, bytes);
        let call = run("rust-axum --sessions 5 --audio").arg(audio);
        refused_at_once(call, &["--audio", name, seen, convert]);
    }
    let call = run("rust-axum --sessions 5 --audio /no/such.wav");
    refused_at_once(call, &["--audio /no/such.wav", "No such file"]);
}

#[test]
fn urls_that_cannot_be_measured_are_refused() {
    for (url, names) in [
        (
            "ftp://localhost/ws",
            ["wss:// for TLS", "ws://HOST:PORT/PATH"],
        ),
        ("localhost:3000", ["localhost:3000", "ws://HOST:PORT/PATH"]),
        (
            "ws://no-such-host.invalid/",
            ["no-such-host.invalid", "resolve"],
        ),
    ] {
        refused_at_once(run(&format!("--sessions 5 --url {url}")), &names);
    }
}

/// Only sessions that share the load can do without a tick.
#[test]
fn a_tick_of_nothing_is_refused_where_sessions_have_schedules_of_their_own() {
    for workload in ["stt", "echo", "ws"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = listener.local_addr().expect("an address");
        let line = format!("--workload {workload} --url ws://{url}/ --sessions 5 --tick-us 0");
        let text = refused_at_once(run(&line), &["--tick-us 0", "at least 50"]);
        assert!(!text.contains("or 0"), "{text}");
    }
}

#[test]
fn more_connections_than_open_files_are_refused_with_the_limit_to_set() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let line = format!("run --workload http --url {url} --sessions 5 --connections 50000");
    let words: Vec<&str> = line.split(' ').collect();
    refused_at_once(
        Plimsoll::after("ulimit -n 300", &words),
        &["50000", "the limit is 300"],
    );
}

#[test]
fn a_url_where_nobody_listens_is_refused_before_the_search_too() {
    let (_socket, address) = nobody_listens();
    let url = format!("ws://{address}/");
    let names = [&url, "refused", "start the server first"];
    refused_at_once(run(&format!("--sessions 5 --url {url}")), &names);
    let find = Plimsoll::measuring(["find", "--url", &url]);
    refused_at_once(find, &names);
}

#[test]
fn a_folder_of_something_else_is_not_written_into() {
    let foreign = tempfile::tempdir().expect("a scratch folder");
    file(foreign.path(), "thesis.txt", "years of work");
    let call = Plimsoll::plain(["run", "lying-server", "--sessions", "5", "--out"]);
    let out = foreign.path().to_str().expect("UTF-8");
    refused_at_once(call.arg(out), &[out, "name another folder"]);
    let left = std::fs::read_dir(foreign.path()).expect("read").count();
    assert_eq!(left, 1);
}

#[test]
fn more_sessions_than_open_files_are_refused_with_the_limit_to_set() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    // More than 64 client processes have files for: 79 sessions each, and 256 files for other things.
    let names = [
        "5000 sessions",
        "335 open files in each of 64",
        "the limit is 300",
    ];
    let line = format!("run --url {url} --sessions 5000");
    let words: Vec<&str> = line.split(' ').collect();
    refused_at_once(Plimsoll::after("ulimit -n 300", &words), &names);
    // A search that may reach that load says so before it has spent an hour below it.
    let line = format!("find --url {url} --start 10 --max 5000");
    let words: Vec<&str> = line.split(' ').collect();
    refused_at_once(Plimsoll::after("ulimit -n 300", &words), &names);
}

#[test]
fn a_missing_tool_comes_with_the_line_that_installs_it() {
    let manifest = r#"name = "needy"
workload = "echo"
tier = "test"
language = "sh"
description = "needs what nobody has"
[build]
command = ["no-such-compiler"]
[[build.needs]]
tool = "no-such-compiler"
version_command = ["no-such-compiler", "--version"]
install = "apt install no-such-compiler"
[run]
command = ["out/needy"]
"#;
    let root = Root::new().with("echo", "needy", manifest);
    let call = run("needy --workload echo --sessions 5 --root").arg(root.path());
    refusal(
        &call.run(),
        &["needy", "no-such-compiler", "apt install no-such-compiler"],
    );
}

#[test]
fn a_build_that_fails_shows_the_end_of_its_output() {
    let manifest = manifest_of("broken", "exit 0")
        + "[build]\ncommand = [\"sh\", \"-c\", \"echo line 12: syntax error >&2; exit 4\"]\n";
    let root = Root::new().with("echo", "broken", &manifest);
    let call = run("broken --workload echo --sessions 5 --root").arg(root.path());
    let ended = call.run();
    ended.expect_code(2);
    for words in [
        "building broken failed",
        "exit status: 4",
        "line 12: syntax error",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_manifest_of_another_workload_names_the_flag() {
    let files = tempfile::tempdir().expect("a scratch folder");
    let manifest = file(files.path(), "target.toml", manifest_of("x", "exit 0"));
    let call = run("--sessions 5 --manifest").arg(manifest);
    refused_at_once(call, &["workload echo", "--workload echo"]);
}

#[test]
fn a_manifest_that_says_what_cannot_be_is_refused_with_what_can() {
    let files = tempfile::tempdir().expect("a scratch folder");
    let refused = |text: &str, names: &[&str]| {
        let manifest = file(files.path(), "target.toml", text);
        let call = run("--sessions 5 --workload echo --manifest").arg(manifest);
        refused_at_once(call, names);
    };
    let plain = manifest_of("x", "exit 0");
    refused(
        &(plain.clone() + "stop_signal = \"KILL\"\n"),
        &["`KILL`", "`TERM`", "`QUIT`", "line 8"],
    );
    refused(
        &(plain + "[deviations]\nno-such-case = \"the library cannot\"\n"),
        &["no case no-such-case", "workload echo", "target.toml"],
    );
    let of_http = |said: &str| {
        let said = format!("{said}\ntier =");
        let text = manifest_of("x", "exit 0").replace("\"echo\"", "\"http\"");
        let manifest = file(files.path(), "target.toml", text.replace("tier =", &said));
        Plimsoll::plain(["check", "--workload", "http", "--manifest"]).arg(manifest)
    };
    let numbers = ["body_bytes is [65]", "64, 1024, 16384, 65536, 1048576"];
    refused_at_once(of_http("body_bytes = [65]"), &numbers);
    let of_all_sizes = of_http("body_bytes = [64, 1024]");
    refused_at_once(of_all_sizes, &["`body_bytes`", "infrastructure"]);
    let gateway = manifest_of("x", "exit 0").replace("\"echo\"", "\"ws\"")
        + "[deviations]\necho-text = \"known\"\nmisspelt = \"not\"\n";
    let manifest = file(files.path(), "target.toml", gateway);
    let check = Plimsoll::plain(["check", "--workload", "ws", "--manifest"]).arg(manifest);
    refused_at_once(
        check,
        &["no case misspelt", "workload ws", "plimsoll check"],
    );
}

#[test]
fn list_shows_tiers_and_does_not_hide_what_is_broken() {
    let ended = Plimsoll::plain(["list"]).run();
    ended.expect_code(0);
    let row = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("rust-axum "));
    let row = row.unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!(row.contains("tuned") && row.contains("Rust"), "{row}");

    let root = Root::new()
        .with_shell("good", "exit 0")
        .with("echo", "bad", "nme = 'bad'");
    let listed = || Plimsoll::plain(["list", "--root"]).arg(root.path());
    let ended = listed().run();
    ended.expect_code(2);
    assert!(ended.stdout.contains("good"), "{}", ended.stdout);
    for words in ["bad/target.toml", "line 1", "nme"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let json = listed().arg("--json").run();
    let rows: serde_json::Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(rows[0]["name"], "good");
    assert_eq!(rows[0]["tier"], "test");
    assert_eq!(rows[0]["runs_here"], true);
}

#[test]
fn list_goes_on_when_its_reader_does_not() {
    let command = format!(
        "{} list --root {} | true",
        env!("CARGO_BIN_EXE_plimsoll"),
        root().display()
    );
    let piped = std::process::Command::new("sh")
        .args(["-c", &command])
        .output()
        .expect("sh runs");
    let stderr = String::from_utf8_lossy(&piped.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn doctor_tells_what_is_wrong_with_the_line_that_mends_it() {
    let ended = Plimsoll::plain(["doctor", "--json"]).run();
    let findings: serde_json::Value = serde_json::from_str(&ended.stdout).expect("one document");
    let findings = findings.as_array().expect("a list");
    assert!(findings.len() > 3);
    for finding in findings {
        assert!(finding["id"].is_string() && finding["text"].is_string());
        let mended = finding["ok"] == true || finding["remedy"].is_string();
        assert!(mended, "no remedy: {finding}");
    }
    let errors =
        |finding: &&serde_json::Value| finding["ok"] == false && finding["level"] == "error";
    let expected = if findings.iter().any(|finding| errors(&finding)) {
        2
    } else {
        0
    };
    ended.expect_code(expected);
    let plain = Plimsoll::plain(["doctor"]).run();
    for finding in findings {
        let id = finding["id"].as_str().expect("a name");
        assert!(plain.stdout.contains(id), "{id} in\n{}", plain.stdout);
    }
}
