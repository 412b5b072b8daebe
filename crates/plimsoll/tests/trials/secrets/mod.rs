//! No secret leaves the command: a canary goes into every input and is looked for in every output. And a folder from
//! elsewhere starts nothing by itself.

mod parrot;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support;
use crate::support::manifests::{Root, file};
use crate::support::{Ended, Plimsoll, shared_turn, short_phases};
use plimsoll_testing::measures;

/// What every canary begins with.
const CANARY: &str = "canary7c1f";

/// Short searches and trials that give headers in every way: a flag, a file, the environment.
struct Aviary {
    files: tempfile::TempDir,
}

impl Aviary {
    fn new() -> Self {
        let files = tempfile::tempdir().expect("a scratch folder");
        let text = format!("# staging\nAuthorization: Bearer {CANARY}-of-file\n");
        file(files.path(), "headers.txt", text);
        file(
            files.path(),
            "signing.key",
            format!("{CANARY}-of-a-secret-of-forty-bytes"),
        );
        Self { files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The call with headers from a flag, a file and the environment.
    fn with_headers(&self, call: Plimsoll) -> Plimsoll {
        call.arg("--header")
            .arg(format!("X-Flag: {CANARY}-of-flag"))
            .arg("--header-file")
            .arg(self.path("headers.txt"))
            .env("PLIMSOLL_HEADERS", format!("Cookie: id={CANARY}-of-env"))
            .env("PLIMSOLL_TOKEN", format!("{CANARY}-of-token"))
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn measuring(line: &str) -> Plimsoll {
    let phases = short_phases(2);
    Plimsoll::measuring(words(line).into_iter().chain(phases))
}

#[track_caller]
fn expect_none(what: &str, bytes: &[u8]) {
    let needle = CANARY.as_bytes();
    let found = bytes
        .windows(needle.len())
        .position(|bytes| bytes == needle);
    if let Some(at) = found {
        let around = &bytes[at.saturating_sub(80)..bytes.len().min(at + 80)];
        panic!(
            "{what} holds a secret: …{}…",
            String::from_utf8_lossy(around)
        );
    }
}

/// Checks names and contents of everything below a folder; returns how many files there were.
#[track_caller]
fn expect_none_below(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        expect_none("a file name", path.to_string_lossy().as_bytes());
        if path.is_dir() {
            files += expect_none_below(&path);
        } else {
            files += 1;
            expect_none(
                &path.display().to_string(),
                &std::fs::read(&path).expect("read"),
            );
        }
    }
    files
}

#[track_caller]
fn expect_clean(ended: &Ended, files_at_least: usize) {
    expect_none("stdout", ended.stdout.as_bytes());
    expect_none("stderr", ended.stderr.as_bytes());
    let files = expect_none_below(ended.scratch());
    assert!(files >= files_at_least, "{files} files: {}", ended.stderr);
}

/// Not a test of anything: the manifest below starts this as its target.
#[test]
fn the_target_of_a_trial() {
    if std::env::var_os(parrot::IS_TARGET).is_some() {
        parrot::be_the_target();
    }
}

/// A root with two targets that reveal whatever they know.
fn parrots() -> Root {
    let program = std::env::current_exe().expect("this program");
    let manifest = |name: &str| {
        format!(
            r#"name = "{name}"
workload = "echo"
tier = "test"
language = "Rust"
description = "tells what it knows"
[run]
command = [{program:?}, "--exact", "secrets::the_target_of_a_trial", "--nocapture"]
[run.env]
{} = "1"
{} = "{CANARY}-of-{name}"
"#,
            parrot::IS_TARGET,
            parrot::PASSWORD
        )
    };
    Root::new()
        .with("echo", "parrot", &manifest("parrot"))
        .with("echo", "macaw", &manifest("macaw"))
}

#[test]
#[measures]
fn a_server_that_runs_already() {
    let _turn = shared_turn();
    let aviary = Aviary::new();
    let (address, heard) = parrot::start();
    let line = format!(
        "run --workload echo --sessions 3 --url ws://{address}/a?n=1&api_key={CANARY}-of-query"
    );
    let ended = aviary.with_headers(measuring(&line)).run();
    expect_clean(&ended, 8);
    assert!(
        ended.code().is_some_and(|code| [0, 1, 3].contains(&code)),
        "{}",
        ended.stderr
    );
    let heard = heard.lock().expect("not poisoned").clone();
    for way in ["query", "flag", "file", "env"] {
        assert!(
            heard.contains(&format!("{CANARY}-of-{way}")),
            "{way} in {heard}"
        );
    }
    let name = format!("ws://{address}/a?n=1&api_key=[redacted]");
    assert_eq!(ended.trial().at("target.name"), name.as_str());
    for flag in ["--header", "--url"] {
        assert!(
            ended
                .stderr
                .contains(&format!("the value of {flag} in the process list"))
        );
    }

    // Rendered again, listed, and shown as pages.
    let again = Plimsoll::plain(["report"]).arg(ended.folder()).run();
    again.expect_code(0);
    expect_clean(&again, 0);
    let history = Plimsoll::plain(["history", "--json", "--results"])
        .arg(ended.scratch())
        .run();
    history.expect_code(0);
    assert!(history.stdout.contains("[redacted]"), "{}", history.stdout);
    expect_clean(&history, 0);
    let pages = pages_of(ended.scratch());
    assert!(pages > 2, "{pages} pages");
    expect_none_below(ended.scratch());
}

/// Requests every page that other pages link to; returns how many there were.
fn pages_of(results: &Path) -> usize {
    let token = format!("{CANARY}-of-the-pages");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["serve", "--listen", "127.0.0.1:0", "--results"])
        .arg(results)
        .env("PLIMSOLL_SERVE_TOKEN", &token)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut printed = String::new();
    BufReader::new(serving.stdout.take().expect("piped"))
        .read_line(&mut printed)
        .expect("a line");
    expect_none("the address of the pages", printed.as_bytes());
    let address = printed
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let get = |path: &str, token: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        answer
    };
    let refused = get("/", "something-else-entirely");
    assert!(refused.starts_with(b"HTTP/1.1 401"), "the token counts");
    let (mut seen, mut waiting) = (BTreeSet::new(), vec!["/".to_owned()]);
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let answer = get(&path, &token);
        expect_none(&path, &answer);
        let text = String::from_utf8_lossy(&answer).replace("&amp;", "&");
        let links = text.split("href=\"/").skip(1);
        waiting.extend(links.filter_map(|link| Some(format!("/{}", link.split('"').next()?))));
    }
    let _ = serving.kill();
    let _ = serving.wait();
    seen.len()
}

#[test]
#[measures]
fn a_target_that_tells_whatever_it_knows() {
    let _turn = shared_turn();
    let (aviary, root) = (Aviary::new(), parrots());
    let root = root.path().display();
    let line = format!("run parrot --workload echo --sessions 3 --root {root}");
    let running = aviary.with_headers(measuring(&line)).start();
    running.wait_for_line(&["3 s"]);
    // The processes that we started, by their command line. The environment holds what the manifest says, and nothing
    // that was meant for us.
    for pid in running.pids_of("the_target_of_a_trial") {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
        expect_none("a command line", &read("cmdline"));
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        assert!(environment.contains(parrot::PASSWORD), "{environment}");
        assert!(!environment.contains("PLIMSOLL_HEADERS"), "{environment}");
        assert!(!environment.contains("PLIMSOLL_TOKEN"), "{environment}");
    }
    let ended = running.wait();
    expect_clean(&ended, 8);
    let login = ended.trial().at("target.versions")["login"].clone();
    assert_eq!(login, "user:[redacted]");
    let logs = ended.folder().join("logs/001-3-sessions/parrot.log");
    let log = std::fs::read_to_string(logs).expect("its log");
    assert!(
        log.contains("x-flag: [redacted]") || log.contains("X-Flag: [redacted]"),
        "{log}"
    );
}

#[test]
#[measures]
fn two_targets_held_against_each_other() {
    let _turn = shared_turn();
    let (aviary, root) = (Aviary::new(), parrots());
    let root = root.path().display();
    let line = format!(
        "compare parrot macaw --workload echo --sessions 3 --pairs 3 --measured 1 --ramp 0.1 \
         --warm-up 0.2 --grace 0.5 --root {root}"
    );
    let ended = aviary.with_headers(Plimsoll::measuring(words(&line))).run();
    expect_clean(&ended, 12);
    assert!(
        ended.folder().join("comparison.json").exists(),
        "{}",
        ended.stderr
    );
}

#[test]
#[measures]
fn a_search_asks_for_its_secrets_again() {
    let _turn = shared_turn();
    let aviary = Aviary::new();
    let (address, heard) = parrot::start();
    let url = format!("ws://{address}/?token={CANARY}-of-query");
    let line = format!("find --workload echo --start 20 --max 20 --repeats 1 --url {url}");
    let running = aviary.with_headers(measuring(&line)).start();
    running.wait_for_line(&["trial 1:"]);
    running.kill();
    let ended = running.wait();
    expect_clean(&ended, 2);
    let plan = ended.json_of("search.json");
    let names: Vec<&str> = plan["headers"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    assert_eq!(names, ["Cookie", "Authorization", "X-Flag"]);

    let resume = || Plimsoll::plain(["find", "--resume"]).arg(ended.folder());
    let header = file(
        aviary.files.path(),
        "flag.txt",
        format!("X-Flag: {CANARY}-again"),
    );
    let cookie = || format!("Cookie: id={CANARY}-again");
    let with_headers = || {
        resume()
            .arg("--header-file")
            .arg(&header)
            .arg("--header-file")
            .arg(aviary.path("headers.txt"))
            .env("PLIMSOLL_HEADERS", cookie())
    };
    for (call, words) in [
        (resume(), &["Cookie, X-Flag", "--header-file FILE"][..]),
        (
            with_headers(),
            &["pass --url again", "token=[redacted]"][..],
        ),
        (
            with_headers().arg("--url").arg("ws://h/?token=x"),
            &["not that of the search"][..],
        ),
    ] {
        let refused = call.run();
        refused.expect_code(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        for word in words {
            assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
        }
        expect_clean(&refused, 0);
    }
    let again = with_headers().arg("--url").arg(&url).run();
    assert!(
        again.code().is_some_and(|code| [0, 1, 3].contains(&code)),
        "{}",
        again.stderr
    );
    expect_clean(&again, 0);
    expect_none_below(ended.scratch());
    assert!(
        ended.folder().join("bracket.json").exists(),
        "{}",
        again.stderr
    );
    let heard = heard.lock().expect("not poisoned").clone();
    assert!(heard.contains(&format!("{CANARY}-again")), "{heard}");
}

/// Tokens are signed with the user's secret, and several client processes receive them.
#[test]
#[measures]
fn a_token_secret_and_several_client_processes() {
    let _turn = shared_turn();
    let aviary = Aviary::new();
    let (address, heard) = parrot::start();
    let line = format!(
        "run --workload ws --test hold --dialect wse --sessions 60 --url ws://{address} \
         --ramp 0.5 --warm-up 0.5 --measured 1 --grace 0.5 --token-secret-file"
    );
    let mut arguments = words(&line);
    arguments.push(aviary.path("signing.key").display().to_string());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // 44 connections per process, plus the descriptors that are reserved for other things.
    let call = Plimsoll::after("ulimit -n 300", &arguments).keeping_results();
    let ended = call.run();
    expect_clean(&ended, 5);
    assert!(
        ended.folder().join("trial-001.json").exists(),
        "{}",
        ended.stderr
    );
    assert!(ended.folder().join("logs").exists());
    let heard = heard.lock().expect("not poisoned").to_ascii_lowercase();
    assert!(heard.contains("access_token=eyj"), "{heard}");

    let secret = format!("{CANARY}-of-a-secret-of-forty-bytes");
    let by_flag = line.replace("--token-secret-file", "--token-secret");
    let ended = Plimsoll::measuring(words(&by_flag).into_iter().chain([secret])).run();
    expect_clean(&ended, 5);
    assert!(
        ended.stderr.contains("--token-secret-file FILE"),
        "{}",
        ended.stderr
    );
}

#[test]
#[measures]
fn a_check_keeps_its_token() {
    let _turn = shared_turn();
    let (address, heard) = parrot::start();
    let call = Plimsoll::measuring(words(&format!(
        "check --url http://{address} --only health --token {CANARY}-of-flag"
    )));
    expect_clean(&call.run(), 2);
    let call = Plimsoll::measuring(words(&format!("check --url http://{address} --only start")))
        .env("PLIMSOLL_TOKEN", format!("{CANARY}-of-env"));
    expect_clean(&call.run(), 2);
    let heard = heard.lock().expect("not poisoned").clone();
    assert!(
        heard.contains(&format!("Bearer {CANARY}-of-env")),
        "{heard}"
    );
}

#[test]
#[measures]
fn what_is_refused_is_not_repeated() {
    let _turn = shared_turn();
    let aviary = Aviary::new();
    let nonsense = file(aviary.files.path(), "nonsense.txt", format!("\n{CANARY}"));
    let nonsense = nonsense.display();
    for (line, words_said) in [
        (
            format!("run --workload echo --sessions 1 --url ws://u:{CANARY}@127.0.0.1:1/"),
            "--header-file",
        ),
        (
            format!("run --workload echo --sessions 1 --url wss://127.0.0.1:1/?token={CANARY}"),
            "127.0.0.1:1",
        ),
        (
            format!("run --workload echo --sessions 1 --url ws://127.0.0.1:1/?token={CANARY}"),
            "127.0.0.1:1",
        ),
        (
            format!("run rust-axum --sessions 1 --inference http://u:{CANARY}@h"),
            "--inference",
        ),
        (
            format!("run rust-axum --sessions 1 --inference http://h/?key={CANARY}"),
            "--inference",
        ),
        (
            format!("run rust-axum --sessions 1 --header {CANARY}"),
            "--header: not a header",
        ),
        (
            format!("run rust-axum --sessions 1 --header-file {nonsense}"),
            "line 2",
        ),
        (
            format!("check --url http://h:1/?token={CANARY}"),
            "--token-file",
        ),
        (format!("check rust-axum --token {CANARY}"), "--url"),
        (
            format!("serve --results / --token {CANARY}+"),
            "16 characters",
        ),
        (
            format!("report . --token-secret={CANARY}"),
            "--token-secret",
        ),
    ] {
        let refused = Plimsoll::plain(words(&line)).run();
        refused.expect_code(2);
        assert!(refused.stderr.contains(words_said), "{}", refused.stderr);
        expect_clean(&refused, 0);
    }
}

/// A folder that somebody else made, or that was changed, starts nothing without notice.
#[test]
#[measures]
fn a_strangers_search_starts_nothing_by_itself() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let trace = place.path().join("it-ran");
    let line = format!("touch {}; exit 1", trace.display());
    let manifest = file(
        place.path(),
        "target.toml",
        support::manifests::manifest_of("x", &line),
    );
    let plan = serde_json::json!({
        "schema_version": 1,
        "command": ["find", "--workload", "echo", "--manifest", manifest],
        "working_folder": place.path(),
        "target": "manifest",
        "max": 5,
        "trials_before": 0,
        "started_at": "2026-01-31T00:00:00Z",
    });
    for seal in ["", "0000"] {
        let mut plan = plan.clone();
        plan["seal"] = seal.into();
        file(place.path(), "search.json", plan.to_string());
        let refused = Plimsoll::plain(["find", "--resume"])
            .arg(place.path())
            .run();
        refused.expect_code(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        for word in ["it-ran", "target.toml", "--yes"] {
            assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
        }
        assert!(!trace.exists(), "nothing was started");
    }
    let trusted = Plimsoll::plain(["find", "--yes", "--resume"])
        .arg(place.path())
        .run();
    assert!(trace.exists(), "it was started: {}", trusted.stderr);
    assert!(
        trusted.stderr.contains("it-ran"),
        "said before: {}",
        trusted.stderr
    );
}
