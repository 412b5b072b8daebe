//! What the end-to-end tests share: the real binary, run as a user runs it, and its results read as a user's script
//! would read them.
//!
//! Trials take turns ([`turn`]), because each needs the machine to itself. A trial that the machine disturbed comes out
//! `invalid`, by design. It is run again ([`undisturbed`]); if that does not help, the test is counted and listed as
//! skipped: *inconclusive*. So is a test that fails after a disturbed trial ([`measured`]). A verdict is never changed,
//! and a `fail` is never run again: only the target may cause one.
#![allow(dead_code, unused_imports)] // Each test file uses only a part.

pub(crate) mod burners;
pub(crate) mod echo_server;
pub(crate) mod http_server;
pub(crate) mod invocation;
pub(crate) mod manifests;
pub(crate) mod mock_stt;
pub(crate) mod processes;
pub(crate) mod records;
pub(crate) mod simulator;
pub(crate) mod tls_server;
pub(crate) mod turns;
pub(crate) mod ws_server;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use invocation::{Ended, Plimsoll};
pub(crate) use records::Trial;
pub(crate) use turns::{Turn, half_turn, shared_turn, turn, turn_of_attempt};

/// Gates with latencies that a machine under test load can hold, on percentiles that a short window has samples for.
/// The server's threads share the client's cores.
pub(crate) const ROOMY_SLO: &str = "[gates]
newest_p50_ms = 100
newest_p95_ms = 250
error_rate = 0.00001
frames_lost = 0
frames_duplicated = 0
frames_out_of_order = 0
sessions_failed = 0
sessions_died = 0
content_wrong = 0
";

/// The file of an SLO without a percentile above the median: a window of 2 s has the 20 answers that it needs.
pub(crate) fn median_slo() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let gates = "[gates]\nnewest_p50_ms = 200\nframes_lost = 0\nsessions_failed = 0\nsessions_died = 0\n";
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = format!("median-{}.toml", std::process::id());
        let file = manifests::file(folder, &name, gates);
        file.to_str().expect("UTF-8").to_owned()
    })
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_folder.ancestors().nth(2);
    root.expect("crates/plimsoll is two folders down")
        .to_owned()
}

/// The inference simulator, brought up to date. If it is fresh, as `scripts/test.sh` leaves it, this takes only a
/// moment. That is why the whole workspace is built: a build of the one package would have other features, and build
/// its dependencies again.
pub(crate) fn inference_binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent();
        let folder = folder.expect("the command lies in a folder");
        let target_folder = folder.parent().expect("of a target folder");
        let line = "build --quiet --locked --workspace --all-targets";
        let built = cargo()
            .args(line.split(' '))
            .current_dir(root())
            .env("CARGO_TARGET_DIR", target_folder)
            .status()
            .expect("cargo runs");
        assert!(built.success(), "`cargo {line}` failed, see above");
        folder.join("plimsoll-inference")
    })
}

/// Cargo as a shell starts it. What it told this test about its package would make it build again what looks at that, and
/// all that depends on it, such as the program that other tests run.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name == "OUT_DIR"
                || name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
        });
        if told {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A target in Rust, `WORKLOAD/NAME`, as Plimsoll builds it, brought up to date once.
pub(crate) fn built(target: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let mut targets = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Arc::clone(targets.entry(target).or_default());
    drop(targets);
    program.get_or_init(|| build(target)).clone()
}

fn build(target: &str) -> PathBuf {
    let folder = root().join("targets").join(target);
    let built = cargo()
        .args(["build", "--quiet", "--release", "--locked"])
        .current_dir(&folder)
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .expect("cargo runs");
    assert!(built.success(), "{target} does not build, see above");
    let name = folder.file_name().expect("a name");
    folder.join("target/release").join(name)
}

/// Short phases: a window of `measured_s` that begins 1.2 s after the trial begins.
pub(crate) fn short_phases(measured_s: u32) -> Vec<String> {
    let line = format!("--ramp 0.2 --warm-up 1 --measured {measured_s} --grace 2");
    line.split(' ').map(str::to_owned).collect()
}

/// How often to run a trial that the machine disturbs.
pub(crate) const ATTEMPTS: u32 = 3;

/// Runs what `invocation` makes until the machine does not disturb it, at most [`ATTEMPTS`] times. `None` if the
/// machine disturbed it each time, which is reported. There is nothing to check then, and the test ends
/// ([`conclusive`]).
pub(crate) fn undisturbed(invocation: impl Fn() -> Plimsoll) -> Option<Ended> {
    or_inconclusive(attempts(ATTEMPTS, |_| None, &[], || invocation().run()))
}

/// The same for a trial so small that another one may run beside it. It takes its turns itself.
pub(crate) fn undisturbed_beside_another(invocation: impl Fn() -> Plimsoll) -> Option<Ended> {
    undisturbed_but_for(&[], invocation)
}

/// The same for a trial with several clients: it has few beside it from the first attempt on.
pub(crate) fn undisturbed_beside_few(call: impl Fn() -> Ended) -> Option<Ended> {
    let turn_of = |attempt| Some(turn_of_attempt(attempt + 1, ATTEMPTS));
    or_inconclusive(attempts(ATTEMPTS - 1, turn_of, &[], call))
}

/// The same for a trial that is to have these caveats.
pub(crate) fn undisturbed_but_for(
    expected: &[&str],
    invocation: impl Fn() -> Plimsoll,
) -> Option<Ended> {
    undisturbed_call(expected, || invocation().run())
}

/// The same for a call that needs more than itself, such as agents.
pub(crate) fn undisturbed_call(expected: &[&str], call: impl Fn() -> Ended) -> Option<Ended> {
    let turn_of = |attempt| Some(turn_of_attempt(attempt, ATTEMPTS));
    or_inconclusive(attempts(ATTEMPTS, turn_of, expected, call))
}

/// How often to run a whole test that fails after a disturbance.
const JUDGED_ATTEMPTS: u32 = 2;

/// How many attempts the machine has disturbed without one in between that it did not disturb.
static DISTURBED_IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// The milliseconds of the machine that noise has cost in this test program: attempts that were disturbed, and whole tests
/// that ran again.
static LOST_TO_NOISE_MS: AtomicU64 = AtomicU64::new(0);

/// The most that noise may cost a test program: a machine that disturbs every second trial must not double the time that
/// all of them take.
const NOISE_BUDGET: Duration = Duration::from_mins(2);

/// Whether the machine has shown that it disturbs all the time, or has cost too much time already. Then each trial has
/// one attempt: more would only take longer. One that is not disturbed is judged as ever.
pub(crate) fn amid_noise() -> bool {
    // The first four may have disturbed one another; the next ones were alone.
    DISTURBED_IN_A_ROW.load(Ordering::Relaxed) >= 8
        || Duration::from_millis(LOST_TO_NOISE_MS.load(Ordering::Relaxed)) >= NOISE_BUDGET
}

/// Notes an attempt that has just ended, what disturbed it, and how much time of the whole machine it took.
fn note(disturbances: &[String], took: Duration) {
    if !disturbances.is_empty() {
        turns::log(&format!("disturbed by {}", disturbances.join(",")));
        DISTURBED_IN_A_ROW.fetch_add(1, Ordering::Relaxed);
        // Of a test that runs again, all counts at its end.
        if ATTEMPT.get() == 1 {
            lose_to_noise(took);
        }
    } else {
        DISTURBED_IN_A_ROW.store(0, Ordering::Relaxed);
    }
}

fn lose_to_noise(took: Duration) {
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    LOST_TO_NOISE_MS.fetch_add(took_ms, Ordering::Relaxed);
}

thread_local! {
    /// What the machine did to the trials of the test on this thread, as far as no later attempt has made up for it.
    static DISTURBED_BY: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    /// Which attempt at the test on this thread this is.
    static ATTEMPT: Cell<u32> = const { Cell::new(1) };
}

/// Notes what the machine did to a trial of the test on this thread.
pub(crate) fn disturbed_by(disturbances: Vec<String>) {
    DISTURBED_BY.with_borrow_mut(|by| by.extend(disturbances));
}

/// Runs a test that has `#[measures]`.
pub(crate) fn measured(test: impl Fn()) {
    if let Err(why) = judged(test) {
        plimsoll_testing::skipped!("inconclusive: {why}");
    }
}

/// Runs a test. If it fails and the machine disturbed a trial of its own, that is not known to be Plimsoll's fault: it
/// runs once more, and at last it is inconclusive. A failure without a disturbance stands.
///
/// # Errors
/// It is inconclusive, and why.
pub(crate) fn judged(test: impl Fn()) -> Result<(), String> {
    ATTEMPT.set(1);
    let mut inconclusive = String::new();
    loop {
        DISTURBED_BY.take();
        turns::machine_time_taken();
        let ended = catch_unwind(AssertUnwindSafe(&test));
        if ATTEMPT.get() > 1 {
            lose_to_noise(turns::machine_time_taken());
        }
        let Err(failure) = ended else {
            return Ok(());
        };
        if failure.is::<NotAgain>() {
            return Err(inconclusive);
        }
        let by = Vec::from_iter(DISTURBED_BY.take()).join(", ");
        if by.is_empty() {
            resume_unwind(failure);
        }
        let said = message_of(&*failure);
        inconclusive = format!("this machine disturbed it ({by}), and it said: {said}");
        if ATTEMPT.get() == JUDGED_ATTEMPTS || amid_noise() {
            return Err(inconclusive);
        }
        eprintln!("disturbed by the machine, the whole test again: {by}");
        turns::log(&format!("disturbed by {by}: the whole test again:"));
        ATTEMPT.set(JUDGED_ATTEMPTS);
    }
}

/// What a test unwinds with that is to run again, if noise has cost too much when its turn has come.
struct NotAgain;

/// The first line of what a panic said.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("nothing").lines().next().unwrap_or("")
}

/// The first trial that nothing disturbed except what is `expected`; otherwise, what disturbed the last one. Each
/// attempt has the turn that `turn_of` takes for it.
pub(crate) fn attempts(
    most: u32,
    turn_of: impl Fn(u32) -> Option<Turn>,
    expected: &[&str],
    trial: impl Fn() -> Ended,
) -> Result<Ended, Vec<String>> {
    let before = DISTURBED_BY.with_borrow(BTreeSet::clone);
    let (mut attempt, mut disturbances) = (1, Vec::new());
    loop {
        let turn = turn_of(attempt);
        // Others may have been disturbed while this one waited for its turn.
        if attempt > 1 && amid_noise() {
            return Err(disturbances);
        }
        // What disturbed this attempt too stays: it may have had another caveat, which makes it stand.
        DISTURBED_BY.set(before.clone());
        let began = Instant::now();
        let ended = trial();
        let took = turn.map_or_else(|| began.elapsed(), |turn| turn.machine_time());
        DISTURBED_BY.with_borrow_mut(|by| {
            by.retain(|id| before.contains(id) || !expected.contains(&id.as_str()))
        });
        disturbances = ended.disturbances(expected);
        note(&disturbances, took);
        if disturbances.is_empty() {
            return Ok(ended);
        }
        eprintln!("attempt {attempt} was disturbed by the machine: {disturbances:?}");
        if attempt == most || amid_noise() {
            return Err(disturbances);
        }
        attempt += 1;
    }
}

/// The trial, if one was not disturbed; otherwise reports what disturbed it.
pub(crate) fn or_inconclusive(attempts: Result<Ended, Vec<String>>) -> Option<Ended> {
    attempts.map_err(|by| inconclusive(&by)).ok()
}

/// The network cards whose alias, which is the name of their maker, begins with `maker`.
pub(crate) fn cards_of(maker: &str) -> Vec<String> {
    let cards = std::fs::read_dir("/sys/class/net")
        .expect("cards")
        .flatten();
    let made = cards.filter(|card| {
        let alias = std::fs::read_to_string(card.path().join("ifalias")).unwrap_or_default();
        alias.starts_with(maker)
    });
    made.map(|card| card.file_name().to_string_lossy().into_owned())
        .collect()
}

/// The turn of a test with a search, or with whatever has several trials. Such a test does not ask whether the machine
/// disturbed a trial: it may have its answer all the same. If it has not, it fails, and runs once more ([`judged`]), with
/// fewer beside it.
pub(crate) fn turn_of_search() -> Turn {
    if ATTEMPT.get() == 1 {
        return shared_turn();
    }
    let turn = half_turn();
    if amid_noise() {
        resume_unwind(Box::new(NotAgain));
    }
    turn
}

/// Reports that the machine disturbed the trial each time.
pub(crate) fn inconclusive(disturbances: &[String]) {
    plimsoll_testing::skipped!(
        "inconclusive: this machine disturbed every attempt ({})",
        disturbances.join(", ")
    );
}

/// The value of a conclusive attempt; without one, the test (or the helper) ends here.
#[allow(unused_macros)] // Each test file uses only a part.
macro_rules! conclusive {
    ($attempt:expr) => {
        match $attempt {
            Some(ended) => ended,
            None => return Default::default(),
        }
    };
}
#[allow(unused_imports)]
pub(crate) use conclusive;
