//! A companion that is a program of ours: found, started, asked and stopped.
//!
//! It prints a JSON object with its `address` when it listens, answers `GET /health`, and gives the statistics of a window at
//! `GET /stats`, which `POST /stats/reset` begins.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_host::http::{self, Response};
use plimsoll_host::process::{Child, Ended, Launch, Ready};
use plimsoll_host::{Error, Result};
use serde::de::DeserializeOwned;

use super::{Companion, CompanionSeen, Start};

const START_TIMEOUT: Duration = Duration::from_secs(10);
const STOP_GRACE: Duration = Duration::from_secs(2);

/// It answers on the event loop that does its work, so under load that takes a while.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// What is known of a program before it runs.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// What it is called in messages: `the mock providers`.
    pub called: &'static str,
    /// The name of its file, of its package, and of its log.
    pub name: &'static str,
    /// The environment variable that names its file.
    pub variable: &'static str,
    /// The command that makes it.
    pub remedy: &'static str,
    /// Variables of the user's shell that would silently change what it does.
    pub not_inherited: &'static [&'static str],
}

impl About {
    /// Finds the program: named by its variable, or next to the running executable, or in the root's `target/release` or
    /// `target/debug`.
    ///
    /// # Errors
    /// It is not there: one line with the places searched.
    pub fn find(&self, root: Option<&Path>) -> Result<PathBuf> {
        let named = std::env::var_os(self.variable).filter(|value| !value.is_empty());
        let executable = std::env::current_exe().ok();
        self.find_in(named.map(PathBuf::from), executable.as_deref(), root)
    }

    fn find_in(
        &self,
        named: Option<PathBuf>,
        executable: Option<&Path>,
        root: Option<&Path>,
    ) -> Result<PathBuf> {
        if let Some(named) = named {
            if named.is_file() {
                return Ok(named);
            }
            let (variable, named) = (self.variable, named.display());
            return Err(Error::Usage(format!(
                "{variable} names {named}, which does not exist"
            )));
        }
        let beside = executable.and_then(Path::parent);
        let built = root
            .into_iter()
            .flat_map(|root| ["release", "debug"].map(|profile| root.join("target").join(profile)));
        let folders = beside.map(Path::to_owned).into_iter().chain(built);
        let places: Vec<PathBuf> = folders.map(|folder| folder.join(self.name)).collect();
        places
            .iter()
            .find(|place| place.is_file())
            .cloned()
            .ok_or_else(|| {
                let searched: Vec<String> = places
                    .iter()
                    .map(|place| place.display().to_string())
                    .collect();
                Error::Usage(format!(
                    "{} was not found in {}; build it with `{}`, or set {}",
                    self.called,
                    searched.join(", "),
                    self.remedy,
                    self.variable
                ))
            })
    }
}

/// What a program of ours answers at its URL, whoever started it.
#[derive(Debug, Clone)]
pub struct Control {
    url: String,
}

impl Control {
    /// The program at this base URL.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
        }
    }

    /// Where it is reached.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it answers at this path.
    ///
    /// # Errors
    /// It does not answer, or not in the expected format.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let url = format!("{}{path}", self.url);
        let body = http::get_ok(&url, CONTROL_TIMEOUT)?;
        let read = serde_json::from_str(&body);
        read.map_err(|error| http::failed("GET", &url, &format!("not the expected JSON: {error}")))
    }

    /// Its statistics of the window since the last [`Control::reset_stats`].
    ///
    /// # Errors
    /// As [`Control::get`].
    pub fn stats<T: DeserializeOwned>(&self) -> Result<T> {
        self.get("/stats")
    }

    /// Begins a new window of statistics.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub fn reset_stats(&self) -> Result<()> {
        let url = format!("{}/stats/reset", self.url);
        let answer = http::post(&url, "text/plain", b"", CONTROL_TIMEOUT)?;
        accepted("POST", &url, &answer)
    }

    /// Sets the faults that it shows, in the format of its `PUT /faults`; `{}` ends them.
    ///
    /// # Errors
    /// It rejects them (the error has its message), or does not answer.
    pub fn set_faults(&self, faults: &serde_json::Value) -> Result<()> {
        let url = format!("{}/faults", self.url);
        let body = faults.to_string();
        let answer = http::put(&url, "application/json", body.as_bytes(), CONTROL_TIMEOUT)?;
        accepted("PUT", &url, &answer)
    }
}

fn accepted(method: &'static str, url: &str, answer: &Response) -> Result<()> {
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    let line = http::first_line(&answer.body);
    let text = format!("answered {}: {line}", answer.status);
    Err(http::failed(method, url, &text))
}

/// A program that we started. Dropping it kills it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    control: Control,
}

impl Program {
    /// Starts the program on a free port, with these settings as environment variables, and waits until it answers.
    ///
    /// # Errors
    /// It does not start. The error shows the end of its log.
    pub fn start(
        about: &About,
        file: &Path,
        settings: Vec<(String, String)>,
        how: &Start<'_>,
    ) -> Result<Self> {
        let command = [file.display().to_string()];
        let log = how.log_folder.join(format!("{}.log", about.name));
        let mut launch = Launch::new(about.called, &command, Path::new("."), &log);
        launch.env_remove = about
            .not_inherited
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        launch.env = settings;
        launch.env.push(("PORT".into(), "0".into()));
        let bind = how
            .bind
            .map(|address| ("BIND".to_owned(), address.to_string()));
        launch.env.extend(bind);
        launch.cpus = how.cpus.cloned();
        let mut child = launch.start(None)?;
        let start_line = child.wait_json_line(START_TIMEOUT, how.stop)?;
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
        child.wait_ready(&health, START_TIMEOUT, how.stop)?;
        let control = Control { url };
        Ok(Self { child, control })
    }

    /// What it answers.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Stops it.
    ///
    /// # Errors
    /// The system does not report how it ended.
    pub fn stop(mut self) -> Result<Ended> {
        self.child.terminate(STOP_GRACE)
    }
}

/// What a program of ours says of itself at `GET /stats`.
pub trait Told: DeserializeOwned {
    /// Several of them as one: sums of what they counted, and the worst of their times.
    fn together(each: &[Self]) -> Self;

    /// What matters to every trial.
    fn seen(&self) -> CompanionSeen;
}

/// Programs of ours that run already behind one name, such as those of a cluster. Only what they say of themselves is known.
#[derive(Debug)]
pub struct Elsewhere<T> {
    url: String,
    each: Vec<Control>,
    /// Bytes that they had got before the trial.
    bytes_before: u64,
    told: PhantomData<fn() -> T>,
}

impl<T: Told> Elsewhere<T> {
    /// Those that answer at this URL; `None` if there are none.
    #[must_use]
    pub fn at(url: &str) -> Option<Self> {
        let answering = |url: String| {
            let control = Control::at(&url);
            let told = control.stats().ok()?;
            Some((control, told))
        };
        let addresses = http::each_address(url).ok()?.into_iter();
        let mut running: Vec<(Control, T)> = addresses.filter_map(answering).collect();
        // One that listens at both kinds of addresses is still one.
        let is_of_ipv6 = |(control, _): &(Control, T)| control.url().starts_with("http://[");
        if !running.iter().all(is_of_ipv6) {
            running.retain(|one| !is_of_ipv6(one));
        }
        let (each, before): (Vec<Control>, Vec<T>) = running.into_iter().unzip();
        (!each.is_empty()).then(|| Self {
            url: url.to_owned(),
            each,
            bytes_before: T::together(&before).seen().request_bytes_in_all,
            told: PhantomData,
        })
    }
}

impl<T: Told> Companion for Elsewhere<T> {
    fn pid(&self) -> Option<i32> {
        None
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn begin_window(&self) -> Result<()> {
        self.each.iter().try_for_each(Control::reset_stats)
    }

    fn seen(&self) -> Result<CompanionSeen> {
        let each = self.each.iter().map(Control::stats);
        let each: Vec<T> = each.collect::<Result<_>>()?;
        let seen = T::together(&each).seen();
        Ok(CompanionSeen {
            request_bytes_in_all: seen.request_bytes_in_all.saturating_sub(self.bytes_before),
            ..seen
        })
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use plimsoll_host::signals::Stop;

    use super::*;

    const ABOUT: About = About {
        called: "the program",
        name: "plimsoll-program",
        variable: "PLIMSOLL_PROGRAM_BIN",
        remedy: "make program",
        not_inherited: &[],
    };

    #[test]
    fn it_is_found_where_it_was_named_or_built() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let named = folder.path().join("mine");
        let missing = ABOUT
            .find_in(Some(named.clone()), None, None)
            .expect_err("no file");
        assert!(
            missing
                .to_string()
                .starts_with("PLIMSOLL_PROGRAM_BIN names ")
        );
        std::fs::write(&named, "").expect("a file");
        assert_eq!(
            ABOUT.find_in(Some(named.clone()), None, None).expect("it"),
            named
        );
        let built = folder.path().join("target/debug");
        std::fs::create_dir_all(&built).expect("a folder");
        let searched = ABOUT
            .find_in(None, None, Some(folder.path()))
            .expect_err("none");
        let told = searched.to_string();
        assert!(
            told.contains("target/release") && told.contains("`make program`"),
            "{told}"
        );
        std::fs::write(built.join(ABOUT.name), "").expect("a file");
        let found = ABOUT.find_in(None, None, Some(folder.path())).expect("it");
        assert_eq!(found, built.join(ABOUT.name));
    }
    fn error_of_a_start(script: &str) -> String {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let program = folder.path().join("program.sh");
        std::fs::write(&program, script).expect("written");
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, runs).expect("runs");
        let how = Start {
            seed: 7,
            told: &crate::Findings::Null,
            bind: None,
            cpus: None,
            log_folder: folder.path(),
            stop: &Stop::new(),
        };
        let settings = vec![("SEED".to_owned(), "x".to_owned())];
        let started = Program::start(&ABOUT, &program, settings, &how);
        started.expect_err("it does not start").to_string()
    }

    #[test]
    fn a_program_that_refuses_is_shown_with_its_line() {
        let error =
            error_of_a_start("#!/bin/sh\necho \"SEED=$SEED is not a number\" >&2\nexit 2\n");
        assert!(
            error.contains("exit code 2") && error.contains("SEED=x is not a number"),
            "{error}"
        );
    }

    #[test]
    fn a_start_line_without_an_address_is_refused() {
        let error = error_of_a_start("#!/bin/sh\necho '{\"name\":\"x\"}'\nexec sleep 60\n");
        assert!(error.contains("has no \"address\""), "{error}");
    }
}
