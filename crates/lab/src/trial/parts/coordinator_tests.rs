use super::*;
use plimsoll_engine::Report;
use serde_json::json;

/// Shell processes that say this instead of driving sessions. `{second}` and `{report}` stand for what an engine
/// would say.
fn processes(scripts: &[&str], stop: &Stop) -> (tempfile::TempDir, Result<Parts>) {
    let logs = tempfile::tempdir().expect("temp");
    let line = |said: &Said| serde_json::to_string(said).expect("said");
    let clock = Clock::start();
    let mut report = Report::empty(clock);
    (report.ledger.frames_due, report.sessions) = (5, 1);
    let second = EngineSecond {
        index: 0,
        latency: report.latency.clone(),
        ledger: report.ledger.clone(),
        sessions_open: 1,
        busy: plimsoll_engine::CoreShares::default(),
    };
    let second = line(&Said::Second(Box::new(second)));
    let claims = line(&Said::Claims(vec![json!({"seq": 7})]));
    let part = Unsettled {
        report,
        claims: Vec::new(),
    };
    let seen = None;
    let report = line(&Said::Report(Box::new(Reported { part, seen })));
    let report = format!("echo '{claims}'; echo '{report}'");
    let launch = |(number, script): (usize, &&str)| {
        let ready = format!("echo '{}'", line(&Said::Ready));
        let script = script
            .replace("{ready}", &ready)
            .replace("{second}", &format!("echo '{second}'"))
            .replace("{settled}", &format!("echo '{}'", line(&Said::Settled)))
            .replace("{report}", &report);
        let command = ["sh", "-c", &script].map(str::to_owned);
        let log = logs.path().join(format!("client-{number}.log"));
        let name = format!("client process {number}");
        Launch::new(&name, &command, Path::new("/"), &log)
    };
    let launches: Vec<Launch> = scripts.iter().enumerate().map(launch).collect();
    let started = Parts::launch(&launches, Vec::new(), stop);
    (logs, started)
}

fn run(scripts: &[&str], stop: &Stop) -> (Vec<u64>, Result<Unsettled<Value>>) {
    let mut seen = Vec::new();
    let (_logs, started) = processes(scripts, stop);
    let report = started.and_then(|all| {
        all.run(stop, &mut |second| {
            seen.push(second.ledger.frames_due);
            ControlFlow::Continue(())
        })
        .map(|driven| driven.all)
    });
    (seen, report)
}

#[test]
fn what_several_say_is_one_report() {
    // Each one ends when all may.
    let honest = "{ready}; read clock; {second}; {settled}; read end; {report}";
    let (seen, report) = run(&[honest, honest, honest], &Stop::new());
    let Unsettled { report, claims } = report.expect("all are done");
    assert_eq!(claims, vec![json!({"seq": 7}); 3]);
    assert_eq!((report.ledger.frames_due, report.sessions), (15, 3));
    assert_eq!(seen, [15]);
    assert!(!report.interrupted);
}

#[test]
fn one_that_dies_ends_the_trial_in_one_line() {
    let honest = "{ready}; read clock; {second}; read end; {report}";
    for (other, words) in [
        ("{ready}; read clock; kill -9 $$", "killed by SIGKILL"),
        ("exit 4", "exit code 4"),
        ("{ready}; exec sleep 60 >/dev/null", "closed its output"),
        ("{ready}; echo nonsense; exec sleep 60", "cannot be read"),
    ] {
        let (_, report) = run(&[honest, other], &Stop::new());
        let text = report.expect_err("half a trial").to_string();
        assert!(text.starts_with("client process 1: "), "{text}");
        assert!(text.contains(words) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn one_that_panicked_is_plimsolls_own_fault() {
    let honest = "{ready}; read clock; {second}; read end; {report}";
    let (_, report) = run(&[honest, "{ready}; exit 70"], &Stop::new());
    let error = report.expect_err("half a trial");
    assert_eq!(error.exit_code(), 70, "{error}");
    assert!(error.to_string().contains("please report"), "{error}");
}

#[test]
fn a_wish_to_stop_reaches_all() {
    let stop = Stop::new();
    // The end of their input tells them to stop.
    let waits = "{ready}; while read line; do :; done; {report}";
    let (_logs, started) = processes(&[waits, waits], &stop);
    let all = started.expect("ready");
    assert_eq!(all.pids().len(), 2);
    stop.request();
    let Unsettled { report, .. } = all
        .run(&stop, &mut |_| ControlFlow::Continue(()))
        .expect("both tell what they have")
        .all;
    assert!(report.interrupted);
    assert_eq!(report.sessions, 2);
    // So does the wish of whoever gets the seconds, and then nobody was interrupted.
    let seen = "{ready}; read clock; {second}; while read line; do :; done; {report}";
    let (_logs, started) = processes(&[seen, seen], &Stop::new());
    let report = started
        .expect("ready")
        .run(&Stop::new(), &mut |_| ControlFlow::Break(()))
        .expect("both tell what they have")
        .all
        .report;
    assert_eq!((report.sessions, report.interrupted), (2, false));
    let (_, refused) = run(&[waits], &stop);
    let text = refused.expect_err("before it began").to_string();
    assert!(text.starts_with("interrupted while"), "{text}");
}
