//! `target.toml`: what a target is, and how it is built, started and tested.
//!
//! The file is read strictly. An unknown key is an error that names the key, because a misspelt key that is silently
//! ignored changes what is measured.

mod availability;
mod check;
mod discovery;
mod keys;
mod sizes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_host::process::StopSignal;
use serde::{Deserialize, Serialize};
use toml::Value;

pub use availability::{Availability, Readiness, availability_of_each};
pub use discovery::{Discovered, ROOT_VARIABLE, discover, find, find_root, root_of_this_process};
pub use keys::{Key, Keys, KeysOf, Rule, SETTINGS, Takes, VARIANT};
pub use sizes::Sizes;

use crate::error::{Error, Result};

/// The name of the manifest file in a target's folder.
pub const FILE_NAME: &str = "target.toml";

/// How a target is written. Numbers are comparable only within a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// As an expert of its community would put it into production: the framework's public API, its usual client, its linter.
    Framework,
    /// As a good engineer would write it in that language for production, with the usual libraries.
    Idiomatic,
    /// Goes around its framework where that costs: own codecs, own clients or own schedules, on the same runtime.
    Tuned,
    /// Everything allowed: own event loop, own codecs, no framework.
    Engine,
    /// A finished program that is only configured.
    Infrastructure,
    /// Exists to test Plimsoll itself. Never ranked.
    Test,
}

impl Tier {
    /// Its name in manifests and results.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Idiomatic => "idiomatic",
            Self::Tuned => "tuned",
            Self::Engine => "engine",
            Self::Infrastructure => "infrastructure",
            Self::Test => "test",
        }
    }
}

/// A tool that the build (or the run) needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name, as shown to the user and as the key in the result's versions.
    pub tool: String,
    /// A command that prints the tool's version, and succeeds if the tool is here.
    pub version_command: Vec<String>,
    /// One line that tells the user how to install it.
    pub install: String,
    /// Whether the target can be built and run without it, such as a formatter that only the tests use.
    #[serde(default)]
    pub optional: bool,
}

/// How to build the target. The command runs in the target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The command. It must take little time if nothing changed.
    pub command: Vec<String>,
    /// Files that a finished build leaves in addition to the program to run, relative to the target's folder. If one is
    /// missing, the target is not built. Needed if the program is an interpreter or a script, because those exist
    /// before any build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makes: Vec<String>,
    /// The tools that it needs.
    #[serde(default)]
    pub needs: Vec<Need>,
}

/// How to start the target. The command runs in the target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The command. A program with a slash is relative to the target's folder; one without is looked up in `PATH`.
    pub command: Vec<String>,
    /// Fixed environment variables of this target, in addition to what the workload's contract sets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The signal that asks it to stop: it finishes what it has begun and exits with 0.
    #[serde(default, skip_serializing_if = "StopSignal::is_usual")]
    pub stop_signal: StopSignal,
}

/// How to run the target's own tests. The command runs in the target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The command: formatter, linter, unit tests.
    pub command: Vec<String>,
}

/// The variable of the port for health and metrics, where they have one of their own.
pub const METRICS_PORT: &str = "METRICS_PORT";

/// The keys that every manifest may have.
const KEYS: [&str; 17] = [
    "name",
    "workload",
    "tier",
    "language",
    "description",
    "threads_per_vcpu",
    "start_timeout_s",
    "separate_metrics_port",
    "optional",
    "source",
    "ships",
    "runtime",
    "deviations",
    "tuned",
    "build",
    "run",
    "test",
];

/// The longest time that a target may ask for until it is ready, in seconds.
pub const START_TIMEOUT_MAX_S: u32 = 600;

/// A target, as its `target.toml` describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The target's name: lower-case letters, digits and dashes.
    pub name: String,
    /// The workload whose contract it implements.
    pub workload: String,
    /// How it is written; see [`Tier`].
    pub tier: Tier,
    /// The language it is written in.
    pub language: String,
    /// One line: the runtime and the libraries that matter.
    pub description: String,
    /// Event loops, scheduler threads or worker processes per vCPU, at least 1.
    #[serde(default = "one")]
    pub threads_per_vcpu: u32,
    /// How long it may take from its start until it is ready, in seconds: from 1 to [`START_TIMEOUT_MAX_S`].
    #[serde(default = "usual_start_timeout_s")]
    pub start_timeout_s: u32,
    /// Whether it serves health and metrics on a separate port ([`METRICS_PORT`]), because its library owns the main one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate_metrics_port: bool,
    /// Whether a machine may lack this target's tools. Builds and tests of the whole catalogue then skip the target,
    /// and say so.
    #[serde(default)]
    pub optional: bool,
    /// Files and folders of its source, relative to its own folder: what `lines_of_code` counts. Default: the whole
    /// folder.
    #[serde(default = "here", skip_serializing_if = "is_here")]
    pub source: Vec<String>,
    /// Its own files: what somebody installs to run it, besides its runtime. Relative to its folder, or absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ships: Vec<String>,
    /// The files and folders of its runtime: absolute, or beginning with an environment variable (`$NAME`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtime: Vec<String>,
    /// Cases of its workload's contract that it does not pass, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deviations: BTreeMap<String, String>,
    /// Of a target of tier `framework`: the name of the one of tier `tuned` on the same runtime. A ranking of both says
    /// what the framework costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
    /// How to build it. `None` if there is nothing to build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// How to start it; see [`Run`].
    pub run: Run,
    /// How to run its own tests. `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,
    /// What only the workload knows: its [`Key`]s.
    #[serde(flatten)]
    pub properties: BTreeMap<String, Value>,

    /// The variables in which it gets further ports, besides the one of `PORT`.
    #[serde(skip)]
    pub ports: Vec<&'static str>,

    /// The absolute path of the manifest.
    #[serde(skip)]
    pub file: PathBuf,
}

/// A list of whole numbers that are not negative.
fn numbers(value: &Value) -> Option<Vec<u64>> {
    let number = |value: &Value| u64::try_from(value.as_integer()?).ok();
    value.as_array()?.iter().map(number).collect()
}

fn one() -> u32 {
    1
}

/// No contract sets a time, and a virtual machine that shares its core with a compiler is slow.
fn usual_start_timeout_s() -> u32 {
    60
}

fn here() -> Vec<String> {
    vec![".".to_owned()]
}

fn is_here(source: &[String]) -> bool {
    source == here()
}

impl Manifest {
    /// Reads and checks a manifest at any path (`--manifest FILE`).
    ///
    /// # Errors
    /// One line with the file's name: the file cannot be read, is not TOML, or has an unknown, missing or impossible
    /// key.
    pub fn read(file: &Path, keys: KeysOf) -> Result<Self> {
        let refuse = |text: String| Error::Manifest {
            file: file.to_path_buf(),
            text,
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| refuse(format!("cannot read the manifest: {error}")))?;
        let absolute = file
            .canonicalize()
            .map_err(|error| refuse(format!("cannot resolve the path: {error}")))?;
        Self::parse(&text, &absolute, keys).map_err(refuse)
    }

    /// Parses the text of a manifest; `file` is its path.
    ///
    /// # Errors
    /// One line, without the file's name.
    pub fn parse(text: &str, file: &Path, keys: KeysOf) -> std::result::Result<Self, String> {
        let refused = |error: toml::de::Error| one_line(text, &error);
        let table: toml::Table = toml::from_str(text).map_err(refused)?;
        // A manifest that does not say its workload is probably in that workload's folder.
        let family = file.ancestors().nth(2).and_then(Path::file_name);
        let family = family.and_then(std::ffi::OsStr::to_str);
        let workload = table.get("workload").and_then(Value::as_str).or(family);
        let workload = workload.unwrap_or_default();
        let keys = keys(workload);
        if let Some(keys) = keys {
            // First, because a misspelt key is also a missing one.
            check::unknown_key(&table, text, workload, keys.own)?;
        }
        let mut manifest: Self = toml::from_str(text).map_err(refused)?;
        manifest.file = file.to_path_buf();
        let keys = keys.unwrap_or_default();
        manifest.check_properties(keys.own)?;
        manifest.check()?;
        manifest.ports = manifest.further_ports(keys.own);
        (keys.rule)(&manifest)?;
        Ok(manifest)
    }

    /// The target's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or_else(|| Path::new("."))
    }

    /// The threads (or processes) that the target gets at `vcpu` vCPUs: `threads_per_vcpu` for each whole or partial
    /// vCPU.
    #[must_use]
    pub fn worker_threads(&self, vcpu: f64) -> u32 {
        self.threads_per_vcpu
            .saturating_mul(plimsoll_host::isolation::whole_cpus(vcpu))
    }

    /// How long the target may take from its start until it is ready.
    #[must_use]
    pub fn start_timeout(&self) -> Duration {
        Duration::from_secs(self.start_timeout_s.into())
    }

    /// What the manifest says under a key of its workload.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name)?.as_str()
    }

    /// The list that the manifest has under a key of its workload; `None` without the key.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<&str>> {
        let list = self.properties.get(name)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect())
    }

    /// Which variant of its program it is, where its workload's targets come in variants.
    #[must_use]
    pub fn variant(&self) -> Option<&str> {
        self.property(VARIANT)
    }

    /// The settings that it does not leave at their defaults, each in words.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let told = self.list(SETTINGS).unwrap_or_default();
        told.into_iter().map(str::to_owned).collect()
    }

    /// The list of numbers that the manifest has under a key of its workload; `None` without the key.
    #[must_use]
    pub fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        numbers(self.properties.get(name)?)
    }

    /// How many bytes its own files and its runtime have, as far as the manifest names them.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        sizes::of(self)
    }

    fn further_ports(&self, keys: &[Key]) -> Vec<&'static str> {
        let wanted = |key: &Key| match key.takes {
            Takes::Port { variable } if self.says(key.name) => Some(variable),
            _ => None,
        };
        let metrics = self.separate_metrics_port.then_some(METRICS_PORT);
        metrics
            .into_iter()
            .chain(keys.iter().filter_map(wanted))
            .collect()
    }

    /// Whether the manifest says `true` under a key of its workload.
    #[must_use]
    pub fn says(&self, name: &str) -> bool {
        self.properties.get(name) == Some(&Value::Boolean(true))
    }

    /// Whether the manifest says `false` under a key of its workload.
    #[must_use]
    pub fn denies(&self, name: &str) -> bool {
        self.properties.get(name) == Some(&Value::Boolean(false))
    }

    /// Whether this machine can build and run this target. It runs the version command of each need, so it takes a
    /// moment.
    #[must_use]
    pub fn availability(&self) -> Availability {
        availability::of(self)
    }

    /// The first file that a build should have made but has not, as far as the manifest names such files.
    pub(crate) fn missing_product(&self) -> Option<&str> {
        availability::missing_product(self)
    }
}

/// The TOML library's message without its excerpt of the source, after the number and text of the line.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    let Some(span) = error.span() else {
        return message;
    };
    let start = span.start.min(text.len());
    let line_number = text.as_bytes()[..start]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    // A missing key has no line: the library points at the whole table.
    if message.starts_with("missing field") {
        return message;
    }
    let line = text.lines().nth(line_number - 1).unwrap_or_default().trim();
    format!("line {line_number} ({line}): {message}")
}

#[cfg(test)]
pub(crate) mod tests;
