//! Programs that take a core from everybody else.

use std::process::{Child, Command, Stdio};

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
