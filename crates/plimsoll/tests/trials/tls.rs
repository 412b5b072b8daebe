//! A server with TLS, with the real command over real sockets: whatever the workload, and by several client processes.

use std::path::PathBuf;

use rustls::version::{TLS12, TLS13};

use crate::support::echo_server;
use crate::support::manifests::file;
use crate::support::records::{self, Trial};
use crate::support::tls_server::TlsServer;
use crate::support::{
    Plimsoll, ROOMY_SLO, conclusive, shared_turn, short_phases, undisturbed_beside_another,
};
use plimsoll_testing::measures;

/// A server with the files that a call needs.
struct Bench {
    server: TlsServer,
    slo: PathBuf,
    ca: PathBuf,
    files: tempfile::TempDir,
}

impl Bench {
    fn new(server: TlsServer) -> Self {
        let files = tempfile::tempdir().expect("a scratch folder");
        let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
        let ca = files.path().join("ca.pem");
        server.write_ca(&ca);
        Self {
            server,
            slo,
            ca,
            files,
        }
    }

    /// The words of `run` with short phases.
    fn words(&self, line: &str) -> Vec<String> {
        let slo = self.slo.display();
        let line = format!("run --url {} --slo {slo} {line}", self.server.url());
        let words = line.split_whitespace().map(str::to_owned);
        words.chain(short_phases(3)).collect()
    }

    /// A call that believes the server's CA.
    fn believing(&self, line: &str) -> Vec<String> {
        self.words(&format!("--tls-ca {} {line}", self.ca.display()))
    }
}

/// A trial in which every message came back.
#[track_caller]
fn expect_honest(trial: &Trial, tls: &str) {
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_every_frame_accounted_for();
    assert_eq!(trial.ledger("frames_answered"), trial.ledger("frames_due"));
    assert!(trial.ledger("frames_due") > 0);
    assert_eq!(trial.ledger("sessions_failed"), 0);
    let recorded = trial.at("environment.tls");
    assert_eq!(recorded["version"], tls);
    assert_eq!(recorded["alpn"], "http/1.1");
    // What it cost is a part of what a frame cost, and handshakes are apart.
    let of_tls_us = trial.number("client.tls_us_per_frame");
    assert!(of_tls_us > 0.0 && of_tls_us < trial.number("client.cpu_us_per_frame"));
    assert!(trial.number("client.tls_handshake_us") > of_tls_us);
}

#[test]
#[measures]
fn echo_over_tls_is_measured_like_any_other() {
    for (version, name) in [(&TLS13, "TLS 1.3"), (&TLS12, "TLS 1.2")] {
        let bench = Bench::new(TlsServer::start(&[version]));
        let words = bench.believing("--workload echo --sessions 20");
        let ended = conclusive!(undisturbed_beside_another(|| Plimsoll::measuring(&words)));
        ended.expect_code(0);
        let trial = ended.trial();
        trial.expect_flawless_ledger();
        expect_honest(&trial, name);
        assert_eq!(trial.at("environment.tls.verified"), true);
        // What the kernel counts is what was encrypted.
        let checks = trial.at("sanity").as_array().expect("a list");
        let sent = checks
            .iter()
            .find(|check| check["name"] == "kernel_bytes_sent");
        // There is no account of a connection that the server has reset after the farewell.
        assert!(sent.is_none_or(|sent| sent["holds"] == true), "{sent:?}");
        let summary = ended.text_of("summary.md");
        assert!(summary.contains(&format!("{name}, TLS_")), "{summary}");
        for words in ["of it TLS", "per TLS handshake"] {
            assert!(ended.stdout.contains(words), "{}", ended.stdout);
        }
        let page = ended.text_of("report.html");
        assert!(page.contains("CPU per TLS handshake"));
        assert!(trial.at("environment.tls").get("sni").is_none());
    }
}

#[test]
#[measures]
fn without_tls_nothing_of_it_costs() {
    let url = echo_server::start(echo_server::Manner::Honest);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    let line = format!(
        "run --url {url} --slo {} --workload echo --sessions 5",
        slo.display()
    );
    let words = line.split_whitespace().map(str::to_owned);
    let words: Vec<String> = words.chain(short_phases(1)).collect();
    let ended = conclusive!(undisturbed_beside_another(|| Plimsoll::measuring(&words)));
    let client = ended.trial().at("client").clone();
    assert!(client["cpu_us_per_frame"].as_f64().is_some());
    for name in ["tls_us_per_frame", "tls_handshake_us"] {
        assert!(client.get(name).is_none(), "{client}");
    }
    assert!(!ended.stdout.contains("TLS"), "{}", ended.stdout);
}

/// A server that is reached by its address, and has a certificate for its name.
#[test]
#[measures]
fn a_server_is_asked_for_by_another_name_than_that_of_the_url() {
    const NAME: &str = "chat.example";
    let bench = Bench::new(TlsServer::named(NAME));
    let words = bench.believing(&format!("--sni {NAME} --workload echo --sessions 10"));
    // Its proxy would have nobody behind it, so the trial shows that it is not used.
    let call = || {
        let call = Plimsoll::measuring(&words);
        call.env("HTTPS_PROXY", "http://user:canary@127.0.0.1:9")
    };
    let ended = conclusive!(undisturbed_beside_another(call));
    ended.expect_code(0);
    let trial = ended.trial();
    expect_honest(&trial, "TLS 1.3");
    assert_eq!(trial.at("environment.tls.verified"), true);
    assert_eq!(trial.at("environment.tls.sni"), NAME);
    let asked_for = bench.server.asked_for();
    assert!(asked_for.len() >= 5, "{asked_for:?}");
    assert!(asked_for.iter().all(|name| name.as_deref() == Some(NAME)));
    let summary = ended.text_of("summary.md");
    assert!(
        summary.contains(&format!("--sni {NAME}")),
        "it is repeated so"
    );
    let notes = ended.stderr.lines();
    let notes: Vec<_> = notes.filter(|line| line.contains("PROXY")).collect();
    assert_eq!(notes.len(), 1, "{}", ended.stderr);
    assert!(notes[0].contains("HTTPS_PROXY is ignored"), "{}", notes[0]);
    assert!(!ended.stderr.contains("canary"), "{}", ended.stderr);
}

#[test]
#[measures]
fn each_test_of_workload_ws_goes_over_tls() {
    let bench = Bench::new(TlsServer::start(&[&TLS13]));
    for line in [
        "--test ping --sessions 80",
        "--test throughput --connections 5 --sessions 200",
    ] {
        let words = bench.words(&format!("--tls-insecure --workload ws {line}"));
        let ended = conclusive!(undisturbed_beside_another(|| Plimsoll::measuring(&words)));
        ended.expect_code(0);
        let trial = ended.trial();
        expect_honest(&trial, "TLS 1.3");
        assert_eq!(trial.at("environment.tls.verified"), false);
        let summary = ended.text_of("summary.md");
        assert!(summary.contains("certificate not verified"), "{summary}");
        assert!(summary.contains("--tls-insecure"), "it is repeated so");
    }
}

#[test]
#[measures]
fn several_client_processes_use_tls_too() {
    let bench = Bench::new(TlsServer::start(&[&TLS13]));
    // 44 connections for each process.
    let words = bench.believing("--workload echo --sessions 100");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let call = || Plimsoll::after("ulimit -n 300", &words).keeping_results();
    let ended = conclusive!(undisturbed_beside_another(call));
    ended.expect_code(0);
    let trial = ended.trial();
    expect_honest(&trial, "TLS 1.3");
    assert!(trial.number("client.processes") > 1.0);
}

#[test]
#[measures]
fn a_server_that_is_not_to_be_believed_is_refused_in_one_line() {
    let _turn = shared_turn();
    let bench = Bench::new(TlsServer::start(&[&TLS13]));
    let other = Bench::new(TlsServer::start(&[&TLS13]));
    let plain = echo_server::start(echo_server::Manner::Honest);
    let named = Bench::new(TlsServer::named("chat.example"));
    let nonsense = file(bench.files.path(), "nonsense.pem", "no certificate");
    let load = "run --workload echo --sessions 5 --url";
    let url = bench.server.url();
    for (line, words) in [
        (format!("{load} {url}"), ["not trusted", "--tls-ca FILE"]),
        (
            format!("{load} {url} --tls-ca {}", other.ca.display()),
            ["TLS: the target's certificate", "--tls-insecure"],
        ),
        (
            format!("{load} {url} --tls-ca {}", nonsense.display()),
            ["--tls-ca", "no certificate in PEM"],
        ),
        (
            format!("{load} {url} --tls-ca /no/such.pem"),
            ["--tls-ca /no/such.pem", "No such file"],
        ),
        (
            // The certificate is for the address, and this name resolves to it.
            format!(
                "{load} wss://localhost:{}/ --tls-ca {}",
                bench.server.port,
                bench.ca.display()
            ),
            ["another name", "localhost"],
        ),
        (
            format!(
                "{load} {} --tls-ca {}",
                named.server.url(),
                named.ca.display()
            ),
            ["another name", "--sni NAME"],
        ),
        (
            format!(
                "{load} {} --tls-ca {} --sni talk.example",
                named.server.url(),
                named.ca.display()
            ),
            ["another name", "--sni NAME"],
        ),
        (
            format!("{load} {url} --sni 127.0.0.1"),
            ["--sni 127.0.0.1", "without a port"],
        ),
        (
            format!("{load} {plain} --sni chat.example"),
            ["--sni is for", "wss://"],
        ),
        (
            format!("{load} {} --tls-insecure", plain.replace("ws://", "wss://")),
            ["TLS", "write ws://"],
        ),
        (
            format!("{load} {plain} --tls-insecure"),
            ["--tls-insecure", "wss://"],
        ),
        (
            format!("run rust-axum --sessions 5 --tls-ca {}", bench.ca.display()),
            ["--tls-ca", "wss://"],
        ),
    ] {
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        let lines: Vec<_> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{line}: {}", ended.stderr);
        for word in words {
            assert!(lines[0].contains(word), "{line}: {}", lines[0]);
        }
    }
}
