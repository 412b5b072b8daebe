//! An honest target, with a client or a target that is starved of CPU or of descriptors: `invalid`, never `fail`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::document::{self, Row};
use crate::support::burners::{Burners, FOLLOWING, expect_invalid_by};
use crate::support::{
    Ended, Plimsoll, Trial, attempts, conclusive, or_inconclusive, shared_turn, turn,
};
use plimsoll_testing::skipped;
use serde_json::Value;

/// Caveats that say that the client was the limit.
const CLIENTS: &[&str] = &[
    "send-lag",
    "client-busy",
    "client-starved",
    "achieved-load",
    "inference-saturated",
    "inference-queued",
];

const PHASES: &str = "--ramp 0.2 --warm-up 1 --measured 4 --grace 2";

/// Rows of the document.
pub(crate) fn rows() -> Vec<Row> {
    let row = |name, fault: &str, expected: &str| Row {
        name,
        fault: fault.to_owned(),
        expected: expected.to_owned(),
    };
    vec![
        row(
            "one_bad_trial_does_not_bound_a_search",
            "the target stalls in the first trial of a search and in no other (`LIE=stall_rarely`)",
            "the load line of an honest server; the bad trial is kept",
        ),
        row(
            "a_client_with_a_burner_on_its_core",
            "three loops at nice −15 on the client's core, while it is measured",
            "**invalid** by a caveat of the client",
        ),
        row(
            "a_target_with_a_burner_on_its_core",
            "a loop of real-time priority on the target's core, while it is measured",
            "**invalid**; caveat `target-starved`",
        ),
        row(
            "a_client_with_half_a_core",
            "the whole command in a control group with half a core, at a load that needs more",
            "**invalid** by a caveat of the client",
        ),
        row(
            "a_search_with_half_a_core",
            "`find` in the same group",
            "*at least*, or no answer; nothing is said to fail",
        ),
        row(
            "descriptors_that_do_not_suffice",
            "`ulimit -n 300` before 400 sessions",
            "refused before, exit code 2, one line",
        ),
        row(
            "descriptors_that_run_out_in_the_trial",
            "the limit is lowered while sessions connect",
            "**invalid**; caveat `client-fault` (`EMFILE`); `sessions_failed` 0",
        ),
    ]
}

/// A trial of this many sessions, with the client on the first core and the target on the second. The loops start when
/// it begins and stop when the command says that 5 s of it are over; the window is `1.2..5.2`.
fn burned(sessions: u32, loops: u32, place: &str) -> Ended {
    let line =
        format!("run lying-server --sessions {sessions} --client-cpus 0 --target-cpus 1 {PHASES}");
    let running = Plimsoll::measuring(line.split(' ')).start();
    running.wait_for_line(&["trial 1"]);
    let burners = Burners::start(loops, place);
    running.wait_for_line(&["trial 1", " 5 s "]);
    drop(burners);
    running.wait()
}

/// Whether client and target can have a core each; reports a skip if they cannot.
fn a_core_for_each() -> bool {
    let enough = std::thread::available_parallelism().map_or(1, usize::from) >= 2;
    if !enough {
        skipped!("one core: client and target cannot have one each");
    }
    enough
}

/// A trial that nothing but the burners disturbed. What the machine adds (other caveats) is not Plimsoll's fault.
/// `None`, which is reported, if the machine always disturbed it.
fn burned_only(expected: &[&str], trial: impl Fn() -> Ended) -> Option<Ended> {
    or_inconclusive(attempts(3, |_| None, expected, trial))
}

/// The target has its own core and is honest. Others take the client's core: three loops of weight 29,154 leave an
/// engine thread of nice −10 (9,548) a tenth of it, and it needs more.
#[test]
fn a_client_with_a_burner_on_its_core() {
    let _turn = turn();
    if !a_core_for_each() {
        return;
    }
    let expected: Vec<&str> = CLIENTS.iter().chain(&FOLLOWING).copied().collect();
    let ended = conclusive!(burned_only(&expected, || {
        // One that gives way to everybody and is still there when the trial ends, so that it can be named.
        let _idler = Burners::start(1, "taskset -c 0 nice -n 19");
        burned(400, 3, "taskset -c 0 nice -n -15")
    }));
    expect_invalid_by_the_client(&ended);
    expect_named(&ended.trial(), "sh (PID ");
    document::write(
        "a_client_with_a_burner_on_its_core",
        &caveats_of(&ended.trial()),
    );
}

/// The other way round: the loop makes the target late, and the target's own thread is seen to wait. The scheduler
/// always prefers a loop of real-time priority (and leaves others a twentieth of each second, `sched_rt_runtime_us`).
/// By nice values alone a control group gets its fair half, whatever runs beside it. There are so many sessions that
/// the target needs well over that twentieth: kernels since 6.8 may hand it out as soon as somebody asks, and a target
/// that needs less is then never late.
#[test]
fn a_target_with_a_burner_on_its_core() {
    let _turn = turn();
    if !a_core_for_each() {
        return;
    }
    let tried = Command::new("chrt").args(["--fifo", "1", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        skipped!("`chrt --fifo 1` is not allowed here");
        return;
    }
    let ended = burned(300, 1, "chrt --fifo 1 taskset -c 1");
    ended.expect_code(3);
    let trial = ended.trial();
    assert_eq!(trial.verdict(), "invalid");
    let caveats = trial.blocking_caveats();
    let named = caveats.iter().any(|id| id == "target-starved");
    assert!(named, "{caveats:?}");
    let others = trial.at("target_resources.others_cpu_share").as_f64();
    assert!(others.is_some_and(|share| share > 0.5), "{others:?}");
    document::write("a_target_with_a_burner_on_its_core", &caveats_of(&trial));
}

/// The command, the simulator and the target together, as in a container with a limit of half a core.
#[test]
fn a_client_with_half_a_core() {
    let _turn = turn();
    let Some(group) = HalfACore::new() else {
        return;
    };
    let line = format!("run lying-server --sessions {OVERLOAD} {PHASES}");
    let expected: Vec<&str> = CLIENTS.iter().chain(&FOLLOWING).copied().collect();
    let ended = conclusive!(burned_only(&expected, || group.call(&line).run()));
    expect_invalid_by_the_client(&ended);
    document::write("a_client_with_half_a_core", &caveats_of(&ended.trial()));
}

/// If the client is the limit at every load that is tried, nothing is known to fail. Whatever is confirmed is a lower
/// bound.
#[test]
fn a_search_with_half_a_core() {
    let _turn = turn();
    let Some(group) = HalfACore::new() else {
        return;
    };
    let line = format!(
        "find lying-server --start {OVERLOAD} --max {} --time-budget 0.25 {PHASES}",
        2 * OVERLOAD
    );
    let ended = group.call(&line).run();
    let bracket = ended.json_of("bracket.json");
    let trials = bracket["trials"].as_array().expect("a list");
    let failed = trials.iter().any(|trial| trial["verdict"] == "fail");
    assert!(!failed, "{trials:#?}");
    assert!(bracket["first_fail"].is_null(), "{bracket:#}");
    let seen = if bracket["confirmed"].is_null() {
        ended.expect_code(3);
        "no answer, exit code 3".to_owned()
    } else {
        assert_eq!(bracket["lower_bound_only"], true, "{bracket:#}");
        format!("at least {}", bracket["confirmed"])
    };
    let invalid = trials.iter().filter(|t| t["verdict"] == "invalid").count();
    document::write(
        "a_search_with_half_a_core",
        &format!("{seen}; {invalid} of {} trials invalid", trials.len()),
    );
}

/// An impossible load is refused before anything is started.
#[test]
fn descriptors_that_do_not_suffice() {
    let _turn = shared_turn();
    let words = ["run", "lying-server", "--sessions", "400"];
    let ended = Plimsoll::after("ulimit -n 300", &words).run();
    ended.expect_code(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    // One for each session, and 256 for everything else.
    for words in ["400 sessions", "656 open files", "300"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    ended.expect_nothing_left_running();
    document::write("descriptors_that_do_not_suffice", "exit code 2, one line");
}

/// 300 sessions connect over 9 s: at 5 s, when the command reports its progress, some 167 are open. From then on the
/// command may open no more descriptors, but the target, which is another process, may. So the other half is missing
/// through the client's fault, and none of it is the target's.
#[test]
fn descriptors_that_run_out_in_the_trial() {
    let _turn = shared_turn();
    let line = "run lying-server --sessions 300 --ramp 9 --warm-up 1 --measured 3 --grace 2";
    let running = Plimsoll::measuring(line.split(' ')).start();
    running.wait_for_line(&["trial 1", " 5 s "]);
    let lowered = Command::new("prlimit")
        .args(["--pid", &running.pid().to_string(), "--nofile=120:120"])
        .status();
    assert!(lowered.expect("prlimit runs").success());
    let ended = running.wait();
    ended.expect_code(3);
    let trial = ended.trial();
    assert_eq!(trial.verdict(), "invalid");
    assert!(
        trial
            .blocking_caveats()
            .iter()
            .any(|id| id == "client-fault"),
        "{:?}",
        trial.caveats()
    );
    let faults = trial.at("client.faults").as_object().expect("by name");
    let missing = faults["EMFILE"].as_u64().expect("a count");
    assert_eq!(trial.ledger("sessions_failed"), 0);
    assert_eq!(trial.ledger("sessions_died"), 0);
    assert_eq!(trial.ledger("frames_lost"), 0);
    assert_eq!(trial.ledger("sessions_started") + missing, 300);
    assert!((100..200).contains(&missing), "{missing}");
    document::write(
        "descriptors_that_run_out_in_the_trial",
        &format!("{}; `sessions_failed` 0", caveats_of(&trial)),
    );
}

/// The verdict is `invalid`, and every reason is the client's.
#[track_caller]
fn expect_invalid_by_the_client(ended: &Ended) {
    expect_invalid_by(ended, CLIENTS);
    assert_eq!(ended.trial().ledger("sessions_died"), 0);
}

/// Caveats of a client that did not get its core in time, each with the name of a program that may have had it.
#[track_caller]
fn expect_named(trial: &Trial, program: &str) {
    let caveats = trial.at("caveats").as_array().expect("a list");
    let of_waiting =
        |caveat: &&Value| caveat["id"] == "client-starved" || caveat["id"] == "send-lag";
    let texts: Vec<String> = caveats
        .iter()
        .filter(of_waiting)
        .map(|caveat| caveat["text"].to_string())
        .collect();
    let names_it = |text: &String| text.contains(program);
    assert!(!texts.is_empty() && texts.iter().all(names_it), "{texts:?}");
}

fn caveats_of(trial: &Trial) -> String {
    format!(
        "**{}**; caveat `{}`",
        trial.verdict(),
        trial.blocking_caveats().join("`, `")
    )
}

/// Sessions that half a core cannot carry. In an optimised build and a network of its own, the client needs at least
/// 0.25 ms of CPU per session-second, and the target, which is in the group too, 0.2 ms.
const OVERLOAD: u32 = 2500;

/// A control group with half a core, removed when dropped.
struct HalfACore(PathBuf);

impl HalfACore {
    /// `None` if no such group can be created. That is reported on stderr, because nothing was tested.
    fn new() -> Option<Self> {
        let name = format!("plimsoll-test-half-{}", std::process::id());
        let mut refused = Vec::new();
        for (parent, limits) in places() {
            let folder = parent.join(&name);
            match limited(&folder, limits) {
                Ok(()) => return Some(Self(folder)),
                Err(error) => refused.push(format!("{}: {error}", folder.display())),
            }
        }
        skipped!("no control group with half a core can be made: {refused:?}");
        None
    }

    /// The command with these arguments, in the group from its first instruction on.
    fn call(&self, line: &str) -> Plimsoll {
        let join = format!("echo $$ > {}", self.0.join("cgroup.procs").display());
        let words: Vec<&str> = line.split(' ').collect();
        Plimsoll::after(&join, &words).keeping_results()
    }
}

impl Drop for HalfACore {
    fn drop(&mut self) {
        // The kernel takes a moment to see that the last process is gone.
        let began = Instant::now();
        while std::fs::remove_dir(&self.0).is_err() && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

type Limits = &'static [(&'static str, &'static str)];

/// Where a group may be created, and how it is limited there: below our own group of the `cpu` controller (cgroup v1),
/// or below our own group of cgroup v2.
fn places() -> Vec<(PathBuf, Limits)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let below = |mount: &str, path: &str| Path::new(mount).join(path.trim_start_matches('/'));
    let mut places: Vec<(PathBuf, Limits)> = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.split(',').any(|controller| controller == "cpu") {
            let mount = format!("/sys/fs/cgroup/{controllers}");
            let limits: Limits = &[
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "50000"),
            ];
            places.push((below(&mount, path), limits));
        } else if controllers.is_empty() {
            places.push((
                below("/sys/fs/cgroup", path),
                &[("cpu.max", "50000 100000")],
            ));
        }
    }
    places
}

fn limited(folder: &Path, limits: Limits) -> std::io::Result<()> {
    std::fs::create_dir(folder)?;
    for (name, value) in limits {
        if let Err(error) = std::fs::write(folder.join(name), value) {
            let _ = std::fs::remove_dir(folder);
            return Err(error);
        }
    }
    Ok(())
}
