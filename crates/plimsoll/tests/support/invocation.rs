//! Runs the command as a separate process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::processes::{self, Mark};
use super::{Trial, inference_binary, records, root};

/// The result folder's name in the scratch folder.
const OUT: &str = "out";

/// No call in these tests takes longer; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// Variables that a shell may have set for the lying servers.
const LIES: [&str; 18] = [
    "LIE",
    "LIE_AFTER_MS",
    "LIE_MS",
    "LIE_EVERY",
    "LIE_SHARE",
    "LIE_BYTES",
    "LIE_SESSIONS",
    "LIE_SEED",
    "FAULT",
    "SHARE",
    "DELAY_LOW_MS",
    "DELAY_HIGH_MS",
    "COIN",
    "DELAY_US",
    "STOP_MS",
    "EVERY_MS",
    "DIE_AFTER_S",
    "CLOSE_AFTER",
];

/// Variables of a machine behind a proxy, which the command mentions.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
];

/// A call of the command, with its own result folder, which is deleted with it.
pub(crate) struct Plimsoll {
    command: Command,
    scratch: TempDir,
    /// Whether to add `--out`. It comes last, after the value of any flag before it.
    out_is_ours: bool,
    mark: Mark,
}

impl Plimsoll {
    /// `plimsoll VERB …` with `--out` in a scratch folder. It also runs there, so that anything it leaves in the
    /// current folder is seen.
    pub(crate) fn measuring<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let mut call = Self::plain(arguments);
        call.out_is_ours = true;
        call
    }

    /// `plimsoll VERB …` as given.
    pub(crate) fn plain<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_plimsoll")), arguments)
    }

    /// The same as [`Plimsoll::plain`], in a network namespace that has this name, on this CPU.
    pub(crate) fn within<S: AsRef<OsStr>>(
        namespace: &str,
        cpu: u32,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", namespace]);
        ip.args(["taskset", "-c", &cpu.to_string()]);
        ip.arg(env!("CARGO_BIN_EXE_plimsoll"));
        Self::of(ip, arguments)
    }

    /// The same, from a shell that first runs `before`.
    pub(crate) fn after(before: &str, arguments: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}; exec \"$@\""), "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_plimsoll"));
        Self::of(shell, arguments)
    }

    /// Adds `--out` in the scratch folder, as [`Plimsoll::measuring`] does.
    pub(crate) fn keeping_results(mut self) -> Self {
        self.out_is_ours = true;
        self
    }

    fn of<S: AsRef<OsStr>>(mut command: Command, arguments: impl IntoIterator<Item = S>) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mark = Mark::new();
        command
            .args(arguments)
            .current_dir(scratch.path())
            .env("PLIMSOLL_ROOT", root())
            .env("PLIMSOLL_INFERENCE_BIN", inference_binary())
            // Keeps the key that seals a search out of the home of the user who runs the tests.
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env(mark.variable(), mark.value())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // As a shell does for a job: Ctrl-C goes to the whole group.
            .process_group(0);
        for name in LIES.into_iter().chain(PROXIES) {
            command.env_remove(name);
        }
        Self {
            command,
            scratch,
            out_is_ours: false,
            mark,
        }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Tells a lying target what to do: `NAME VARIABLE=VALUE …`, with the name in this variable.
    pub(crate) fn lying(self, variable: &str, lie: &str) -> Self {
        let mut words = lie.split_whitespace();
        let call = self.env(variable, words.next().expect("a name"));
        words.fold(call, |call, word| {
            let (name, value) = word.split_once('=').expect("VARIABLE=VALUE");
            call.env(name, value)
        })
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Runs the call to its end.
    pub(crate) fn run(self) -> Ended {
        self.start().wait()
    }

    /// Starts the call.
    pub(crate) fn start(mut self) -> Running {
        if self.out_is_ours {
            let out = self.scratch.path().join(OUT);
            self.command.arg("--out").arg(out);
        }
        let given = self.command.get_args().map(PathBuf::from);
        // Of others, such as `/`, nothing is known, and they may be vast.
        let temporary = std::env::temp_dir();
        let ours = |given: &PathBuf| {
            given.starts_with(&temporary) && *given != temporary && given.is_dir()
        };
        let folders = given.filter(ours).collect();
        let mut child = self.command.spawn().expect("the command starts");
        let stdout = child.stdout.take().expect("piped");
        let stderr = child.stderr.take().expect("piped");
        let (sender, lines) = channel();
        let stderr = std::thread::spawn(move || {
            let mut all = String::new();
            for line in BufReader::new(stderr).lines() {
                let line = line.expect("stderr is UTF-8");
                all += &line;
                all.push('\n');
                // Even if nobody waits for a line any more, it is kept.
                let _ = sender.send(line);
            }
            all
        });
        Running {
            child,
            stdout: reader(stdout),
            stderr,
            lines,
            scratch: self.scratch,
            mark: self.mark,
            folders,
        }
    }
}

fn reader(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).expect("stdout is UTF-8");
        text
    })
}

/// The names in a folder, in order; none if there is no such folder.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A running call.
pub(crate) struct Running {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    lines: Receiver<String>,
    scratch: TempDir,
    mark: Mark,
    /// Folders that the call was given; it may continue the results in one.
    folders: Vec<PathBuf>,
}

impl Running {
    /// Waits until it writes a line to stderr that has all these words.
    pub(crate) fn wait_for_line(&self, words: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if words.iter().all(|word| line.contains(word)) => return line,
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no line with {words:?} among:\n{}", seen.join("\n"))
                }
            }
        }
    }

    /// Waits until two seconds of this trial are over. (A line on stderr tells only every fifth.)
    pub(crate) fn wait_for_two_seconds_of(&self, trial: u64) {
        let file = self.scratch.path().join(OUT).join("live.json");
        let deadline = Instant::now() + PATIENCE;
        let over = || {
            let live: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
            let seconds = live["seconds"].as_array()?.len();
            Some(live["trial"]["number"] == trial && seconds >= 2)
        };
        while over() != Some(true) {
            assert!(Instant::now() < deadline, "trial {trial} is never live");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process ID of the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes of this call that exist now: the command itself, its simulator, its target, and what those
    /// started.
    pub(crate) fn processes(&self) -> Vec<String> {
        processes::with(&self.mark)
    }

    /// The process IDs of those whose command line has these words.
    pub(crate) fn pids_of(&self, words: &str) -> Vec<u32> {
        let all = processes::by_id(&self.mark).into_iter();
        let named = all.filter(|(_, line)| line.contains(words));
        named.map(|(pid, _)| pid).collect()
    }

    /// The names in the result folder, including unfinished ones.
    pub(crate) fn result_files(&self) -> Vec<String> {
        names_in(&self.scratch.path().join(OUT))
    }

    /// Ctrl-C in a terminal: SIGINT to the whole group.
    pub(crate) fn ctrl_c(&self) {
        self.signal("-INT");
    }

    /// The terminal is gone: SIGHUP to the whole group.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    /// A crash: SIGKILL to the whole group, so that nothing can clean up.
    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        let sent = Command::new("kill").args([signal, "--", &group]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!(
                    "it did not end within {PATIENCE:?}; stderr:\n{}",
                    self.stderr.join().unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.folders.push(self.scratch.path().join(OUT));
        super::disturbed_by(disturbances_in(self.folders));
        Ended {
            status,
            stdout: self.stdout.join().expect("read"),
            stderr: self.stderr.join().expect("read"),
            scratch: self.scratch,
            mark: self.mark,
        }
    }
}

/// A finished call.
pub(crate) struct Ended {
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    scratch: TempDir,
    mark: Mark,
}

/// Caveats that a busy machine causes: neighbours take CPU time from the trial. Every other caveat that blocks a
/// verdict has another cause.
const OF_THE_MACHINE: [&str; 12] = [
    "send-lag",
    "reader-behind",
    "steal",
    "target-starved",
    "client-starved",
    "client-busy",
    "inference-saturated",
    "providers-saturated",
    "achieved-load",
    "clock-jump",
    "clock-error",
    // One that did not get a core for three seconds.
    "agent-lost",
];

/// What a busy machine did to the trials anywhere in these folders.
fn disturbances_in(mut folders: Vec<PathBuf>) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if name.starts_with("trial-") && name.ends_with(".json") {
                // A test may have damaged it, or made it up.
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                let record: Value = serde_json::from_str(&text).unwrap_or_default();
                if !record["caveats"].is_array() {
                    continue;
                }
                let trial = Trial(record);
                found.extend(trial.blocking_caveats());
                found.extend(trial.blocking_caveats_of_further_slos());
            }
        }
    }
    found.retain(|id| OF_THE_MACHINE.contains(&id.as_str()));
    found.sort();
    found.dedup();
    found
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// What a busy machine did to the one trial of a `run`: the caveats that block its verdict, other than the
    /// `expected` ones, if the machine causes all of them. If this is empty, the verdict stands, whatever it is.
    pub(crate) fn disturbances(&self, expected: &[&str]) -> Vec<String> {
        let unexplained: Vec<String> = self
            .blocking_caveats()
            .into_iter()
            .filter(|id| !expected.contains(&id.as_str()))
            .collect();
        let of_the_machine = |id: &String| OF_THE_MACHINE.contains(&id.as_str());
        if unexplained.iter().all(of_the_machine) {
            unexplained
        } else {
            Vec::new()
        }
    }

    /// Expects this exit code; otherwise fails with everything that was printed.
    #[track_caller]
    pub(crate) fn expect_code(&self, expected: i32) -> &Self {
        assert_eq!(
            self.code(),
            Some(expected),
            "stdout:\n{}\nstderr:\n{}\ncaveats: {:?}",
            self.stdout,
            self.stderr,
            self.blocking_caveats()
        );
        self
    }

    /// The scratch folder, which is the current folder of the call.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// The result folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.scratch.path().join(OUT)
    }

    /// The names in it, including unfinished ones.
    pub(crate) fn result_files(&self) -> Vec<String> {
        names_in(&self.folder())
    }

    /// The text of a file in the result folder.
    pub(crate) fn text_of(&self, name: &str) -> String {
        let path = self.folder().join(name);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", path.display(), self.stderr))
    }

    pub(crate) fn json_of(&self, name: &str) -> Value {
        serde_json::from_str(&self.text_of(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The one trial of a `run`.
    pub(crate) fn trial(&self) -> Trial {
        Trial(self.json_of("trial-001.json"))
    }

    /// The same, after a look at what holds for every trial: its record is complete, and so is its account.
    #[track_caller]
    pub(crate) fn sound_trial(&self) -> Trial {
        let trial = self.trial();
        records::expect_valid(&trial.0, "trial.json");
        trial.expect_every_frame_accounted_for();
        self.expect_nothing_left_running();
        trial
    }

    /// Names of the caveats that block the verdict.
    pub(crate) fn blocking_caveats(&self) -> Vec<String> {
        let file = self.folder().join("trial-001.json");
        let Ok(text) = std::fs::read_to_string(file) else {
            return Vec::new();
        };
        Trial(serde_json::from_str(&text).expect("JSON")).blocking_caveats()
    }

    /// Nothing that the command started is still running.
    #[track_caller]
    pub(crate) fn expect_nothing_left_running(&self) {
        let left = processes::with(&self.mark);
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}
