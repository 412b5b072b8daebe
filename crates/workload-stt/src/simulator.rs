//! The inference simulator as a child of ours, and its control requests.
//!
//! It is the program `plimsoll-inference`; that crate says what it does. It shares the client's CPUs, so its cost and
//! its lateness help decide whether a measurement can be trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_host::http::{self, Response};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::process::{Child, Ended, Launch, Ready};
use plimsoll_host::signals::Stop;
use plimsoll_host::{Error, Result};
use serde::{Deserialize, Serialize};

/// The environment variable that names the program.
pub const BINARY_VARIABLE: &str = "PLIMSOLL_INFERENCE_BIN";

/// The program's name.
pub const BINARY_NAME: &str = "plimsoll-inference";

const START_TIMEOUT: Duration = Duration::from_secs(10);
const STOP_GRACE: Duration = Duration::from_secs(2);

/// It handles control requests on the event loop that does its work, so under load they take a while.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables of a gateway's contract that are its workload's own.
pub const CONTRACT_VARIABLES: [&str; 14] = [
    "INFERENCE_URL",
    "INFERENCE_HTTP_CLIENTS",
    "INFERENCE_TIMEOUT_MS",
    "FLUSH_INTERVAL_MS",
    "FLUSH_PHASE_JITTER_MS",
    "CPU_PASSES",
    "MAX_SESSIONS",
    "MAX_BUFFER_FRAMES",
    "OVERFLOW_POLICY",
    "MAX_INFLIGHT_JOBS",
    "OUTBOX_MESSAGES",
    "START_TIMEOUT_MS",
    "DRAIN_TIMEOUT_MS",
    "AUTH_TOKEN",
];

/// Variables of the user's shell that would silently change the simulated model.
const MODEL_VARIABLES: [&str; 8] = [
    "BIND",
    "MODEL_DELAY_MS",
    "MODEL_JITTER_SIGMA",
    "MODEL_BATCH_WAIT_MAX_MS",
    "MODEL_LONGTAIL_MULT",
    "MODEL_LONGTAIL_PROB",
    "MODEL_MAX_CONCURRENT",
    "MODEL_SEED",
];

/// Quantiles of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median, µs.
    pub p50_us: u64,
    /// 99th percentile, µs.
    pub p99_us: u64,
    /// Maximum, µs.
    pub max_us: u64,
}

/// The answer to `GET /stats`. Unless stated otherwise, a value covers the window since the last reset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Number of requests read.
    pub requests: u64,
    /// Bytes of audio in them.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes of audio in all requests since it started, regardless of the window.
    #[serde(default)]
    pub request_bytes_in_all: u64,
    /// Time for which its event loop was busy, µs.
    pub busy_us: u64,
    /// The window's length, µs.
    pub window_us: u64,
    /// CPU time of the process since it started, µs.
    pub cpu_us: u64,
    /// Time since it started, µs.
    pub uptime_us: u64,
    /// How long requests waited for one of the model's places.
    pub queue_wait: Quantiles,
    /// How late answers were, compared with their drawn deadlines.
    pub answer_lateness: Quantiles,
    /// Requests in flight now.
    pub inflight: u64,
    /// The most requests in flight at once.
    pub inflight_max: u64,
    /// How often each fault was applied, by the fault's name.
    pub faults: BTreeMap<String, u64>,
}

impl Stats {
    /// The share of the window in which its one thread was busy, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Hours in µs are far below 2^53.
    pub fn busy_share(&self) -> f64 {
        self.busy_us as f64 / self.window_us.max(1) as f64
    }
}

/// A request that the simulator saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRequest {
    /// When it was read, µs since the simulator started.
    pub at_us: u64,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub http_version: String,
    /// Its `content-type`.
    pub content_type: Option<String>,
    /// Its `x-cpu-passes`, if the value was usable.
    pub cpu_passes: Option<u32>,
    /// Length of its body.
    pub audio_bytes: u64,
    /// The answer's checksum, once computed.
    pub checksum: Option<u32>,
    /// Requests in flight at that time, this one included.
    pub inflight: u64,
}

/// A running simulator. Dropping it kills it.
#[derive(Debug)]
pub struct Simulator {
    child: Child,
    url: String,
    start_line: serde_json::Value,
}

impl Simulator {
    /// Starts `binary` on a free port of the loopback, on these CPUs and with these settings (`MODEL_SEED`, …), and
    /// waits until it answers. Its log is `<log_folder>/inference.log`.
    ///
    /// # Errors
    /// It does not start. The error shows the end of its log.
    pub fn start(
        binary: &Path,
        settings: &[(String, String)],
        cpus: Option<CpuList>,
        log_folder: &Path,
        stop: &Stop,
    ) -> Result<Self> {
        let command = [binary.display().to_string()];
        let mut launch = Launch::new(
            "the inference simulator",
            &command,
            Path::new("."),
            &log_folder.join("inference.log"),
        );
        launch.env_remove = MODEL_VARIABLES.map(str::to_owned).to_vec();
        launch.env = settings.to_vec();
        launch.env.push(("PORT".into(), "0".into()));
        launch.cpus = cpus;
        let mut child = launch.start(None)?;
        let start_line = child.wait_json_line(START_TIMEOUT, stop)?;
        let Some(address) = start_line["address"].as_str() else {
            return Err(Error::Child {
                name: launch.name,
                text: format!("its first line has no \"address\": {start_line}"),
                log: launch.log,
                tail: Vec::new(),
            });
        };
        let url = format!("http://{address}");
        let health = Ready::Get(format!("{url}/health"));
        child.wait_ready(&health, START_TIMEOUT, stop)?;
        Ok(Self {
            child,
            url,
            start_line,
        })
    }

    /// The base URL for `INFERENCE_URL`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The line that it printed when it started: its name, version, address and settings.
    #[must_use]
    pub fn start_line(&self) -> &serde_json::Value {
        &self.start_line
    }

    /// Its process id, for sampling its resources.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Fails if it has ended by itself.
    ///
    /// # Errors
    /// It has ended by itself.
    pub fn must_run(&mut self) -> Result<()> {
        self.child.must_run()
    }

    /// Its own statistics for the window since the last [`Simulator::reset_stats`].
    ///
    /// # Errors
    /// It does not answer, or not in the expected format.
    pub fn stats(&self) -> Result<Stats> {
        self.get_json("/stats")
    }

    /// Begins a new window of statistics.
    ///
    /// # Errors
    /// It does not answer.
    pub fn reset_stats(&self) -> Result<()> {
        let url = format!("{}/stats/reset", self.url);
        accepted(
            "POST",
            &url,
            &http::post(&url, "text/plain", b"", CONTROL_TIMEOUT)?,
        )
    }

    /// Sets the share of requests that each fault applies to, in the format of its `PUT /faults` (`{"never": 0.5}`);
    /// `{}` resets them.
    ///
    /// # Errors
    /// It rejects them (the error has its message), or does not answer.
    pub fn set_faults(&self, shares: &serde_json::Value) -> Result<()> {
        let url = format!("{}/faults", self.url);
        let body = shares.to_string();
        accepted(
            "PUT",
            &url,
            &http::put(&url, "application/json", body.as_bytes(), CONTROL_TIMEOUT)?,
        )
    }

    /// The last `count` requests that it saw, oldest first. It remembers a limited number.
    ///
    /// # Errors
    /// As [`Simulator::stats`].
    pub fn requests(&self, count: usize) -> Result<Vec<SeenRequest>> {
        self.get_json(&format!("/requests?last={count}"))
    }

    /// CPU time that it has used since its start, µs, as counted by the kernel and not by itself; `None` if it is gone.
    #[must_use]
    pub fn cpu_us(&self) -> Option<u64> {
        plimsoll_host::resources::process_cpu_us(self.child.pid())
    }

    /// Stops it.
    ///
    /// # Errors
    /// The system does not report how it ended.
    pub fn stop(mut self) -> Result<Ended> {
        self.child.terminate(STOP_GRACE)
    }

    fn get_json<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        let url = format!("{}{path}", self.url);
        let body = http::get_ok(&url, CONTROL_TIMEOUT)?;
        let read = serde_json::from_str(&body);
        read.map_err(|error| http::failed("GET", &url, &format!("not the expected JSON: {error}")))
    }
}

fn accepted(method: &'static str, url: &str, response: &Response) -> Result<()> {
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    let text = format!(
        "answered {}: {}",
        response.status,
        http::first_line(&response.body)
    );
    Err(http::failed(method, url, &text))
}

/// Finds the program. The variable `PLIMSOLL_INFERENCE_BIN` names it if set. Otherwise it is next to the running
/// executable, or in the root's `target/release` or `target/debug`.
///
/// # Errors
/// The program is not there: one line with the places searched.
pub fn find_binary(root: Option<&Path>) -> Result<PathBuf> {
    let variable = std::env::var_os(BINARY_VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    find_binary_in(variable, std::env::current_exe().ok().as_deref(), root)
}

fn find_binary_in(
    variable: Option<PathBuf>,
    executable: Option<&Path>,
    root: Option<&Path>,
) -> Result<PathBuf> {
    if let Some(named) = variable {
        if named.is_file() {
            return Ok(named);
        }
        return Err(Error::Usage(format!(
            "{BINARY_VARIABLE} names {}, which does not exist",
            named.display()
        )));
    }
    let beside = executable
        .and_then(Path::parent)
        .map(|folder| folder.join(BINARY_NAME));
    let built = root.into_iter().flat_map(|root| {
        ["release", "debug"].map(|profile| root.join("target").join(profile).join(BINARY_NAME))
    });
    let places: Vec<PathBuf> = beside.into_iter().chain(built).collect();
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        Error::Usage(format!(
            "the inference simulator was not found in {}; build it with `cargo build --release -p plimsoll-inference`, or set {BINARY_VARIABLE}",
            places.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_program_is_looked_for_in_order() {
        let folder = tempfile::tempdir().expect("temp");
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
            std::fs::write(&path, "").expect("write");
            path
        };
        let executable = folder.path().join("bin/plimsoll");
        let root = Some(folder.path());
        let error = find_binary_in(None, Some(&executable), root)
            .expect_err("nowhere")
            .to_string();
        assert!(
            error.contains("target/release/plimsoll-inference") && error.contains(BINARY_VARIABLE),
            "{error}"
        );
        let debug = put("target/debug/plimsoll-inference");
        assert_eq!(
            find_binary_in(None, Some(&executable), root).expect("debug"),
            debug
        );
        let release = put("target/release/plimsoll-inference");
        assert_eq!(
            find_binary_in(None, Some(&executable), root).expect("release"),
            release
        );
        let beside = put("bin/plimsoll-inference");
        assert_eq!(
            find_binary_in(None, Some(&executable), root).expect("beside"),
            beside
        );
        assert_eq!(
            find_binary_in(Some(release.clone()), Some(&executable), root).expect("named"),
            release
        );
        assert!(find_binary_in(Some("/nowhere".into()), Some(&executable), root).is_err());
    }

    #[test]
    fn stats_are_read_and_later_fields_do_not_break_it() {
        let text = r#"{"requests":2,"busy_us":50,"window_us":200,"cpu_us":3,"uptime_us":4,"queue_wait":{"p50_us":1,"p99_us":2,"max_us":3},
            "answer_lateness":{"p50_us":4,"p99_us":5,"max_us":6},"inflight":0,"inflight_max":1,"faults":{"never":2},"later":1}"#;
        let stats: Stats = serde_json::from_str(text).expect("stats");
        assert_eq!(stats.answer_lateness.p99_us, 5);
        assert_eq!(stats.faults["never"], 2);
        assert!((stats.busy_share() - 0.25).abs() < 1e-9);
        assert_eq!(Stats::default().busy_share(), 0.0);
    }

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("simulator.sh");
        std::fs::write(&path, text).expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        path
    }

    #[test]
    fn a_program_that_refuses_is_shown_with_its_line() {
        let folder = tempfile::tempdir().expect("temp");
        let binary = script(
            folder.path(),
            "#!/bin/sh\necho \"MODEL_SEED=$MODEL_SEED is not a number\" >&2\nexit 2\n",
        );
        let settings = [("MODEL_SEED".to_owned(), "x".to_owned())];
        let error = Simulator::start(&binary, &settings, None, folder.path(), &Stop::new())
            .expect_err("refuses")
            .to_string();
        assert!(
            error.contains("exit code 2") && error.contains("MODEL_SEED=x is not a number"),
            "{error}"
        );
    }

    #[test]
    fn a_start_line_without_an_address_is_refused() {
        let folder = tempfile::tempdir().expect("temp");
        let binary = script(
            folder.path(),
            "#!/bin/sh\necho '{\"name\":\"x\"}'\nexec sleep 60\n",
        );
        let error = Simulator::start(&binary, &[], None, folder.path(), &Stop::new())
            .expect_err("no address")
            .to_string();
        assert!(error.contains("has no \"address\""), "{error}");
    }
}
