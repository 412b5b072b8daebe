//! What every workload must do, in a loop over all of them: its help, a trial against a server of its own, the record, the
//! pages, a comparison. (`calibrate.rs` has their calibrations.) A workload that is added to the command must be added
//! here: its name is compared.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use plimsoll_workload::Workload;
use plimsoll_workload::calibrate::{After, Speaker, Work};
use plimsoll_workload_broker::Broker;
use plimsoll_workload_echo::Echo;
use plimsoll_workload_http::Http;
use plimsoll_workload_stt::Stt;
use plimsoll_workload_stt_real::SttReal;
use plimsoll_workload_voice::Voice;
use plimsoll_workload_ws::Ws;
use serde_json::Value;

use crate::support::records::expect_valid;
use crate::support::simulator::Simulator;
use crate::support::{Plimsoll, shared_turn};
use plimsoll_testing::measures;

const ALL: [&dyn Workload; 7] = [&Stt, &Echo, &Ws, &Http, &Broker, &Voice, &SttReal];

/// The server of a calibration's work, with a thread for each connection. Returns its URL.
fn server_of(work: &'static dyn Work) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut speakers = work.server().speakers;
                // A connection that breaks is the client's business.
                let _ = talk(stream, &mut *speakers());
            });
        }
    });
    format!("ws://{address}{}", work.path())
}

fn talk(mut stream: TcpStream, speaker: &mut dyn Speaker) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut out) = (vec![0; 64 * 1024], Vec::new());
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        out.clear();
        let after = speaker.heard(&mut buffer[..read], &mut out);
        stream.write_all(&out)?;
        if after == After::Close {
            return Ok(());
        }
    }
}

/// The work whose server understands the usual sessions of the workload: one that sends every message back, or the only
/// one.
fn usual_work(workload: &'static dyn Workload) -> &'static dyn Work {
    let works = workload.works();
    let echo = works.iter().find(|work| work.name() == "echo");
    *echo.or(works.first()).expect("it can be calibrated")
}

/// What its server must be asked for.
fn flags_for(name: &str) -> &'static str {
    match name {
        "broker" => "--dialect fibril --test publish",
        _ => "",
    }
}

#[test]
#[measures]
fn every_workload_of_the_command_is_here_and_has_its_flags() {
    let help = Plimsoll::plain(["run", "--help"]).run();
    help.expect_code(0);
    let (_, values) = help.stdout.split_once("--workload <").expect("the flag");
    let (_, values) = values.split_once("Possible values:").expect("a list");
    let listed = values
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    let listed: Vec<_> = listed
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name)
        .take(ALL.len() + 1)
        .collect();
    for workload in ALL {
        let about = workload.about();
        assert!(listed.contains(&about.name), "{listed:?}");
        for row in workload.parameters() {
            let flag = format!("--{}", row.flag());
            assert!(help.stdout.contains(&flag), "{}: {flag}", about.name);
        }
    }
}

#[test]
#[measures]
fn a_simulator_that_a_server_asks_already_says_what_it_saw() {
    let trial = |workload: &dyn Workload, url: &str, asked: &str| {
        let (name, sessions) = (workload.about().name, sessions_of(workload));
        let line = format!(
            "run --workload {name} --url {url} --inference {asked} --sessions {sessions} --ramp 0.2 --warm-up 1 --measured 2 --grace 6"
        );
        let _turn = shared_turn();
        Plimsoll::measuring(line.split(' ')).run()
    };
    // These servers answer by themselves, and the simulators say so.
    let stt = server_of(usual_work(&Stt));
    let ended = trial(&Stt, &stt, &Simulator::with(&[]).url);
    ended.expect_code(3);
    let record = ended.json_of("trial-001.json");
    expect_valid(&record, "trial.json");
    assert_eq!(record["inference"]["requests"], 0);
    let caveats = record["caveats"].as_array().expect("a list");
    let told = caveats.iter().any(|of| of["id"] == "back-end-bypassed");
    assert!(told, "{caveats:?}");

    let voice = server_of(usual_work(&Voice));
    let ended = trial(&Voice, &voice, &Simulator::of_providers().url);
    let record = ended.json_of("trial-001.json");
    expect_valid(&record, "trial.json");
    assert_eq!(record["inference"]["requests"], 0);

    let refused = trial(&Stt, &stt, "http://127.0.0.1:9");
    refused.expect_code(2);
    let told = "--inference http://127.0.0.1:9: the inference simulator does not answer there";
    assert!(refused.stderr.contains(told), "{}", refused.stderr);
}

/// A caller has a turn each eight seconds, so few have one in a short window.
fn sessions_of(workload: &dyn Workload) -> &'static str {
    match workload.about().name {
        "voice" => "100",
        _ => "20",
    }
}

#[test]
#[measures]
fn every_workload_is_measured_kept_and_shown() {
    for workload in ALL {
        let name = workload.about().name;
        let url = server_of(usual_work(workload));
        let trial = |line: &str| {
            let mut words = vec!["run", "--workload", name, "--url", &url];
            words.extend(["--sessions", sessions_of(workload)]);
            words.extend(line.split_whitespace());
            words.extend("--ramp 0.2 --warm-up 1 --measured 2 --grace 6 --json".split(' '));
            let _turn = shared_turn();
            Plimsoll::measuring(words).run()
        };
        let given = flags_for(name);
        let ended = trial(given);
        // What the verdict is says something about this machine only.
        assert!(
            matches!(ended.code(), Some(0 | 1 | 3)),
            "{name}: {}",
            ended.stderr
        );
        let record = ended.json_of("trial-001.json");
        expect_valid(&record, "trial.json");
        assert_eq!(record["workload"], name);
        let ledger = &record["ledger"];
        assert!(
            ledger["frames_answered"].as_u64() > Some(0),
            "{name}: {ledger}"
        );
        assert_eq!(ledger["sessions_failed"], 0, "{name}: {ledger}");
        assert_eq!(ledger["content_wrong"], 0, "{name}: {ledger}");
        let parameters = record["parameters"].as_object();
        for row in workload
            .parameters()
            .iter()
            .filter(|row| row.fits.is_empty())
        {
            let value = parameters.and_then(|all| all.get(row.name));
            let has_usual = matches!(row.usual, plimsoll_workload::Usual::Value(_));
            let is_given = given.contains(&format!("--{} ", row.flag()));
            let expected = has_usual || is_given;
            assert_eq!(value.is_some(), expected, "{name}: {}", row.name);
        }
        for page in ["summary.md", "report.html", "junit.xml", "step-summary.md"] {
            let text = ended.text_of(page);
            assert!(text.contains(name), "{name}: {page}");
        }
        repeats_itself(name, &record, &ended.text_of("summary.md"));
        is_not_compared_with_another_load(name, &ended.folder());
    }
}

/// The page's command has every parameter as a flag.
fn repeats_itself(name: &str, record: &Value, page: &str) {
    let command = page.lines().find(|line| line.starts_with("plimsoll run"));
    let command = command.expect("a command that repeats the trial");
    let Some(parameters) = record["parameters"].as_object() else {
        return;
    };
    for (parameter, value) in parameters.iter().filter(|(_, value)| **value != false) {
        let flag = format!(" --{}", parameter.replace('_', "-"));
        assert!(command.contains(&flag), "{name}: {flag} {value}: {command}");
    }
}

/// A folder compared with itself has no difference in its conditions, only too few trials.
fn is_not_compared_with_another_load(name: &str, folder: &std::path::Path) {
    let _turn = shared_turn();
    let ended = Plimsoll::plain(["compare".as_ref(), folder.as_os_str(), folder.as_os_str()])
        .keeping_results()
        .run();
    assert!(!ended.stderr.contains("differ"), "{name}: {}", ended.stderr);
}
