//! Programs that take a core from everybody else, and a client that they leave a tenth of its core.

use std::process::{Child, Command, Stdio};

use plimsoll_testing::skipped;

use super::{Ended, Plimsoll, attempts, or_inconclusive, turn};

/// Caveats that say that the client was the limit.
const CLIENTS: [&str; 5] = [
    "send-lag",
    "client-busy",
    "client-starved",
    "achieved-load",
    "reader-behind",
];
/// Fewer answers than expected, and accounts that a late client kept.
pub(crate) const FOLLOWING: [&str; 2] = ["too-few-samples", "littles-law"];

/// Checks that a client without CPU makes a trial `invalid` and never a failure of its honest target. The target has its
/// own core; three loops leave the client a tenth of the other, and it needs more. `invocation` makes a trial on cores
/// 0 and 1, of a ramp and a warm-up of 0.7 s and a window of 4.6 s. `None` if this machine cannot show it.
pub(crate) fn expect_starved_client(invocation: impl Fn() -> Plimsoll) -> Option<Ended> {
    let _turn = turn();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skipped!("one core: client and target cannot have one each");
        return None;
    }
    let burned = || {
        let running = invocation().start();
        running.wait_for_line(&["trial 1"]);
        let burners = Burners::start(3, "taskset -c 0 nice -n -15");
        running.wait_for_line(&["trial 1", " 5 s "]);
        drop(burners);
        running.wait()
    };
    let expected: Vec<&str> = CLIENTS.iter().chain(&FOLLOWING).copied().collect();
    let ended = or_inconclusive(attempts(3, |_| None, &expected, burned))?;
    expect_invalid_by(&ended, &CLIENTS);
    Some(ended)
}

/// The verdict is `invalid`, by one of these caveats at least. Beside them are only those that follow.
#[track_caller]
pub(crate) fn expect_invalid_by(ended: &Ended, clients: &[&str]) {
    ended.expect_code(3);
    let trial = ended.trial();
    assert_eq!(trial.verdict(), "invalid");
    let blocking = trial.blocking_caveats();
    let is_one = |id: &String| clients.contains(&id.as_str());
    assert!(blocking.iter().any(is_one), "{blocking:?}");
    let others = blocking
        .iter()
        .find(|id| !is_one(id) && !FOLLOWING.contains(&id.as_str()));
    assert_eq!(others, None, "{blocking:?}");
    ended.expect_nothing_left_running();
}

/// Busy loops; they end when this value is dropped.
pub(crate) struct Burners(Vec<Child>);

impl Burners {
    /// Starts this many loops, each behind a command that says where it runs and how urgent it is:
    /// `taskset -c 0 nice -n -15`. If that is not allowed, they are as urgent as they may be.
    pub(crate) fn start(count: u32, place: &str) -> Self {
        let one = |_| {
            Command::new("sh")
                .args(["-c", &format!("exec {place} sh -c 'while :; do :; done'")])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("sh runs")
        };
        Self((0..count).map(one).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ended = burner.kill();
            let _reaped = burner.wait();
        }
    }
}
