//! The command's side of a client of several processes.

use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use plimsoll_engine::clock::Clock;
use plimsoll_engine::{EngineSecond, Seconds, Unsettled};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Child, Launch, Piped};
use plimsoll_host::signals::Stop;
use serde_json::Value;

use super::{End, Order, SUBCOMMAND, Said, read_line, write_line};
use crate::error::{Error, FAULT, Result};

/// How often to check whether we were asked to stop.
const POLL: Duration = Duration::from_millis(50);
/// Building a part of the sessions takes milliseconds. This timeout only ends what hangs.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time from announcing the beginning until it comes, so that every process hears of it.
const BEGINS_IN: Duration = Duration::from_millis(50);
/// How long a process may take to end after it was told to stop, or after its last message.
const STOP_GRACE: Duration = Duration::from_secs(7);

/// Processes that are ready to begin. Dropping this kills them.
#[derive(Debug)]
pub(in crate::trial) struct ClientProcesses {
    members: Vec<Member>,
    heard: Receiver<(usize, Heard)>,
}

#[derive(Debug)]
struct Member {
    child: Child,
    /// Closed when the process is to stop.
    stdin: Option<ChildStdin>,
    settled: bool,
    reported: bool,
}

/// What comes from a process.
#[derive(Debug)]
enum Heard {
    Said(Said),
    /// Nothing more comes; with the reason, unless the process ended.
    Silence(Option<String>),
}

impl ClientProcesses {
    /// Starts a process for each order and waits until all are ready. Their logs are named after `log_name`.
    ///
    /// # Errors
    /// One of the processes does not start, or ends; or we were asked to stop.
    pub(in crate::trial) fn start(
        orders: &[Order],
        log_folder: &Path,
        log_name: &str,
        cpus: &CpuList,
        stop: &Stop,
    ) -> Result<Self> {
        let program = std::env::current_exe().map_err(|source| plimsoll_host::Error::Io {
            what: "finding the command's own program".to_owned(),
            source,
        })?;
        let command = [
            program.to_string_lossy().into_owned(),
            SUBCOMMAND.to_owned(),
        ];
        let launch = |number: usize| {
            let name = format!("client process {number} of {}", orders.len());
            let log = log_folder.join(format!("{log_name}-{number}.log"));
            let mut launch = Launch::new(&name, &command, Path::new("."), &log);
            launch.cpus = Some(cpus.clone());
            launch
        };
        let launches: Vec<Launch> = (1..=orders.len()).map(launch).collect();
        Self::launch(&launches, orders, stop)
    }

    fn launch(launches: &[Launch], orders: &[Order], stop: &Stop) -> Result<Self> {
        let (sender, heard) = channel();
        let mut all = Self {
            members: Vec::new(),
            heard,
        };
        for (number, launch) in launches.iter().enumerate() {
            let Piped {
                child,
                stdin,
                stdout,
            } = launch.start_piped()?;
            all.members.push(Member {
                child,
                stdin: Some(stdin),
                settled: false,
                reported: false,
            });
            listen(number, stdout, sender.clone())?;
        }
        for (number, order) in orders.iter().enumerate() {
            all.tell(number, order)?;
        }
        all.wait_ready(stop)?;
        Ok(all)
    }

    /// The IDs of the processes.
    pub(in crate::trial) fn pids(&self) -> Vec<i32> {
        self.members
            .iter()
            .map(|member| member.child.pid())
            .collect()
    }

    /// Begins with all of them at once, and returns when all are done. `on_second` gets each second as all of them saw
    /// it, and says whether they go on.
    ///
    /// # Errors
    /// One of them ended before it was done: without its part, nothing can be said about the trial. The others are
    /// ended.
    pub(in crate::trial) fn run(
        mut self,
        stop: &Stop,
        on_second: &mut dyn FnMut(EngineSecond) -> ControlFlow<()>,
    ) -> Result<Unsettled<Value>> {
        let clock = Clock::start_in(BEGINS_IN);
        for number in 0..self.members.len() {
            self.tell(number, &clock)?;
        }
        let mut seconds = Seconds::new(self.members.len());
        let mut all = Unsettled::empty(clock);
        let mut kill_at = None;
        let mut seen_enough = false;
        while self.members.iter().any(|member| !member.reported) {
            if (stop.requested() || seen_enough) && kill_at.is_none() {
                self.stop_all();
                kill_at = Some(Instant::now() + STOP_GRACE);
            }
            if kill_at.is_some_and(|at| Instant::now() > at) {
                let text = "waiting for a client process that does not stop";
                return Err(Error::Interrupted(text.to_owned()));
            }
            let complete = match self.hear()? {
                Some((number, Said::Second(second))) => seconds.told(number, *second),
                Some((number, Said::Report(of_one))) => {
                    all.merge(*of_one);
                    self.members[number].reported = true;
                    seconds.over(number)
                }
                Some((number, Said::Settled)) => {
                    self.members[number].settled = true;
                    self.end_together();
                    Vec::new()
                }
                Some((_, Said::Ready)) | None => Vec::new(),
            };
            for second in complete {
                seen_enough |= on_second(second).is_break();
            }
        }
        self.stop_all();
        for member in &mut self.members {
            member.child.terminate(STOP_GRACE)?;
        }
        // Whoever was told that enough has been seen calls that a stop, too.
        let interrupted = all.report.interrupted && !seen_enough;
        all.report.interrupted = interrupted || stop.requested();
        Ok(all)
    }

    fn wait_ready(&mut self, stop: &Stop) -> Result<()> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let mut waiting = self.members.len();
        while waiting > 0 {
            if stop.requested() {
                return Err(Error::Interrupted("starting client processes".to_owned()));
            }
            if Instant::now() > deadline {
                return Err(plimsoll_host::Error::Io {
                    what: "starting client processes".to_owned(),
                    source: std::io::ErrorKind::TimedOut.into(),
                }
                .into());
            }
            if let Some((_, Said::Ready)) = self.hear()? {
                waiting -= 1;
            }
        }
        Ok(())
    }

    /// Tells all processes that they may end, once none waits for answers. If one waits until the grace is over, all
    /// end with the grace.
    fn end_together(&mut self) {
        if self.members.iter().all(|member| member.settled) {
            for stdin in self.members.iter_mut().flat_map(|member| &mut member.stdin) {
                // A process that no longer hears this has come to the end of the grace, or its silence will show.
                let _ = write_line(stdin, &End);
            }
        }
    }

    fn tell(&mut self, number: usize, what: &impl serde::Serialize) -> Result<()> {
        let told = match &mut self.members[number].stdin {
            Some(stdin) => write_line(stdin, what),
            None => Ok(()),
        };
        // The process has ended, or no longer reads.
        told.map_err(|error| self.lost(number, &error.to_string()))
    }

    fn stop_all(&mut self) {
        for member in &mut self.members {
            member.stdin = None;
        }
    }

    /// What one of them says next, if it comes soon. It is an error if one falls silent before it is done.
    fn hear(&mut self) -> Result<Option<(usize, Said)>> {
        let (number, heard) = match self.heard.recv_timeout(POLL) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            // Each process sends a last message, so all of them have.
            Err(RecvTimeoutError::Disconnected) => return Err(self.lost(0, "it sends nothing")),
        };
        match heard {
            Heard::Said(said) => Ok(Some((number, said))),
            Heard::Silence(_) if self.members[number].reported => Ok(None),
            Heard::Silence(why) => {
                let why = why.unwrap_or_else(|| "it closed its output".to_owned());
                Err(self.lost(number, &why))
            }
        }
    }

    /// The error for a process that is lost: how it ended or, if it has not ended, what else is known.
    fn lost(&mut self, number: usize, otherwise: &str) -> Error {
        let child = &mut self.members[number].child;
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            match child.must_run() {
                Err(error) => {
                    let ended = child.try_ended().ok().flatten();
                    let code = ended.and_then(|status| status.code());
                    // The process runs nothing but Plimsoll itself.
                    return if code == Some(i32::from(FAULT)) {
                        Error::Fault(error.to_string())
                    } else {
                        error.into()
                    };
                }
                Ok(()) if Instant::now() > deadline => {
                    return plimsoll_host::Error::Child {
                        name: child.name().to_owned(),
                        text: otherwise.to_owned(),
                        log: child.log().to_owned(),
                        tail: Vec::new(),
                    }
                    .into();
                }
                Ok(()) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Passes on what a process says, until it says no more.
fn listen(number: usize, stdout: ChildStdout, to: Sender<(usize, Heard)>) -> Result<()> {
    let listen = move || {
        let mut lines = BufReader::new(stdout);
        loop {
            let heard = match read_line(&mut lines) {
                Ok(said) => Heard::Said(said),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    Heard::Silence(None)
                }
                Err(error) => Heard::Silence(Some(format!("what it says cannot be read: {error}"))),
            };
            let last = matches!(heard, Heard::Silence(_));
            if to.send((number, heard)).is_err() || last {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("client-{}", number + 1))
        .spawn(listen)
        .map(drop)
        .map_err(|source| plimsoll_host::Error::Io {
            what: "listening to a client process".to_owned(),
            source,
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_engine::Report;
    use serde_json::json;

    /// Shell processes that say this instead of driving sessions. `{second}` and `{report}` stand for what an engine
    /// would say.
    fn processes(scripts: &[&str], stop: &Stop) -> (tempfile::TempDir, Result<ClientProcesses>) {
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
        let claims = vec![json!({"seq": 7})];
        let report = line(&Said::Report(Box::new(Unsettled { report, claims })));
        let launch = |(number, script): (usize, &&str)| {
            let ready = format!("echo '{}'", line(&Said::Ready));
            let script = script
                .replace("{ready}", &ready)
                .replace("{second}", &format!("echo '{second}'"))
                .replace("{settled}", &format!("echo '{}'", line(&Said::Settled)))
                .replace("{report}", &format!("echo '{report}'"));
            let command = ["sh", "-c", &script].map(str::to_owned);
            let log = logs.path().join(format!("client-{number}.log"));
            let name = format!("client process {number}");
            Launch::new(&name, &command, Path::new("/"), &log)
        };
        let launches: Vec<Launch> = scripts.iter().enumerate().map(launch).collect();
        let started = ClientProcesses::launch(&launches, &[], stop);
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
            .expect("both tell what they have");
        assert!(report.interrupted);
        assert_eq!(report.sessions, 2);
        // So does the wish of whoever gets the seconds, and then nobody was interrupted.
        let seen = "{ready}; read clock; {second}; while read line; do :; done; {report}";
        let (_logs, started) = processes(&[seen, seen], &Stop::new());
        let report = started
            .expect("ready")
            .run(&Stop::new(), &mut |_| ControlFlow::Break(()))
            .expect("both tell what they have")
            .report;
        assert_eq!((report.sessions, report.interrupted), (2, false));
        let (_, refused) = run(&[waits], &stop);
        let text = refused.expect_err("before it began").to_string();
        assert!(text.starts_with("interrupted while"), "{text}");
    }
}
