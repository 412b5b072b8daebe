//! The network between client and target, and the two accounts of CPU that go with it.

use crate::support::manifests::{Root, manifest_of_gateway};
use crate::support::{
    Ended, Plimsoll, built, cards_of, conclusive, inconclusive, records, shared_turn, turn,
    undisturbed, undisturbed_beside_another,
};
use plimsoll_testing::{measures, skipped};

const LINE: &str = "--sessions 60 --ramp 0.2 --warm-up 1 --measured 4 --grace 2";

fn run(words: &str) -> Plimsoll {
    let line = format!("run {words} {LINE}");
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    Plimsoll::measuring(words)
}

/// Whether a target can have its own network here; reports a skip if not.
fn can_be_own() -> bool {
    let doctor = Plimsoll::plain(["doctor", "--json"]).run();
    let findings: serde_json::Value = serde_json::from_str(&doctor.stdout).expect("JSON");
    let all = findings.as_array().expect("a list");
    let network = all
        .iter()
        .find(|finding| finding["id"] == "network")
        .expect("a finding of the network");
    let possible = network["ok"] == true;
    if !possible {
        skipped!("{}", network["text"]);
    }
    possible
}

#[test]
#[measures]
fn a_target_that_is_started_has_a_network_of_its_own() {
    // Another trial's cards would be there after the end of this one.
    let _turn = turn();
    if !can_be_own() {
        return;
    }
    let ended = conclusive!(undisturbed(|| run("lying-server")));
    ended.expect_code(0);
    let trial = ended.trial();
    trial.expect_flawless_ledger();
    records::expect_valid(&trial.0, "trial.json");
    let network = trial.at("environment.network");
    assert_eq!(network["mode"], "own");
    let address = network["target"]["address"].as_str().expect("an address");
    assert!(address.starts_with("198.18.") || address.starts_with("198.19."));
    // Each side's CPUs receive its own packets.
    for side in ["client", "target"] {
        let cpus = trial.at(&format!("environment.{side}_cpus"));
        assert_eq!(&network[side]["receive_cpus"], cpus, "{side}");
    }
    assert!(!trial.caveats().contains(&"client-pays-receive"));
    // The sockets are in the target's namespace, and were seen there.
    assert_eq!(trial.at("target_resources.sockets.connections_peak"), 60);
    // The cores do all that the target is charged for, and more.
    let (charged, core) = accounts(&ended);
    assert!(core > charged, "{core} {charged}");
    let cards = cards_of("plimsoll-");
    assert_eq!(cards, Vec::<String>::new(), "they are gone with the trial");
}

#[test]
#[measures]
fn on_the_loopback_the_result_says_who_pays() {
    let ended = conclusive!(undisturbed_beside_another(|| run(
        "lying-server --network loopback"
    )));
    ended.expect_code(0);
    let trial = ended.trial();
    assert_eq!(trial.at("environment.network.mode"), "loopback");
    assert!(trial.caveats().contains(&"client-pays-receive"));
    for page in ["summary.md", "report.html", "junit.xml"] {
        assert!(
            ended.text_of(page).contains("client-pays-receive"),
            "{page}"
        );
    }
    assert!(ended.stdout.contains("client-pays-receive"));
}

/// How a trial ends of a server that this program of Python is, with `settings` in its manifest; `None` if it cannot have
/// a network of its own here.
fn run_of_python(name: &str, program: &str, settings: &str) -> Option<Ended> {
    if !can_be_own() {
        return None;
    }
    let script = format!("exec python3 -c '{program}'");
    let manifest = manifest_of_gateway(name, "a server in Python", &script);
    let targets = Root::new().with("stt", name, &format!("{settings}\n{manifest}"));
    Some(run(name).arg("--root").arg(targets.path()).run())
}

#[test]
#[measures]
fn a_server_that_only_its_own_network_reaches_is_named() {
    let _turn = shared_turn();
    let program = "import http.server, os; http.server.HTTPServer((\"127.0.0.1\", int(os.environ[\"PORT\"])), http.server.SimpleHTTPRequestHandler).serve_forever()";
    let Some(ended) = run_of_python("shut-in", program, "") else {
        return;
    };
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("shut-in listens on 127.0.0.1 only")
            && ended.stderr.contains("--network loopback"),
        "{}",
        ended.stderr
    );
}

/// It listens to everybody and takes its time, as a JVM on a quarter of a vCPU does while it starts.
#[test]
#[measures]
fn a_server_that_is_slow_to_answer_is_not_called_out_of_reach() {
    let _turn = shared_turn();
    let program = "import os, socket, time; listener = socket.create_server((\"0.0.0.0\", int(os.environ[\"PORT\"])), backlog=128); time.sleep(600)";
    let Some(ended) = run_of_python("slow-start", program, "start_timeout_s = 5") else {
        return;
    };
    ended.expect_code(3);
    assert!(
        ended.stderr.contains("not ready within 5s"),
        "{}",
        ended.stderr
    );
}

#[test]
#[measures]
fn what_cannot_have_a_network_of_its_own_is_refused_in_one_line() {
    let _turn = shared_turn();
    for (words, expected) in [
        (
            "run --network own --url ws://127.0.0.1:9/ --sessions 1",
            "a server that runs already",
        ),
        (
            "run lying-server --network own --inference http://127.0.0.1:9 --sessions 1",
            "cannot be reached from the target's own network",
        ),
    ] {
        let ended = Plimsoll::measuring(words.split(' ')).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

/// A loop in the target's group takes what the target leaves of its core, so both accounts are the whole core, whatever
/// a session costs. On the loopback, because behind a card the kernel's thread that receives for the target is charged
/// to nobody.
#[test]
#[measures]
fn a_core_that_is_never_idle_is_all_charged() {
    let _turn = turn();
    let burns = format!(
        "(while :; do :; done) & exec {}",
        built("stt/lying-server").display()
    );
    let targets = Root::new().with(
        "stt",
        "burning",
        &manifest_of_gateway("burning", "the lying server beside a loop", &burns),
    );
    // The loop makes the server late, but that is not what this test checks.
    let ended = run("burning")
        .arg("--root")
        .arg(targets.path())
        .arg("--network")
        .arg("loopback")
        .run();
    let (charged, core) = accounts(&ended);
    let share = |us: f64| us * 60.0 / 1e6;
    if core == 0.0 {
        skipped!("the target had no whole core of its own");
        return;
    }
    let others = ended
        .trial()
        .at("target_resources.others_cpu_share")
        .as_f64();
    if others.is_some_and(|share| share > 0.02) {
        return inconclusive(&[format!(
            "other programs used {others:?} of the target's core"
        )]);
    }
    assert!((0.97..1.02).contains(&share(core)), "{}", share(core));
    assert!((0.90..1.02).contains(&share(charged)), "{}", share(charged));
}

/// The charged CPU and the core account, in µs per session and second; 0 if not known.
fn accounts(ended: &Ended) -> (f64, f64) {
    let trial = ended.trial();
    let of = |name: &str| {
        let value = trial.at(&format!("target_resources.{name}"));
        value.as_f64().unwrap_or(0.0)
    };
    (
        of("cpu_us_per_session_second"),
        of("core_us_per_session_second"),
    )
}
