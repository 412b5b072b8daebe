//! `target.toml`: what a target is, and how it is built, started and tested.
//!
//! The file is read strictly. An unknown key is an error that names the key, because a misspelt key that is silently
//! ignored changes what is measured.

mod availability;
mod check;
mod discovery;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Value;

pub use availability::{Availability, Readiness};
pub use discovery::{Discovered, ROOT_VARIABLE, discover, find, find_root, root_of_this_process};

use crate::error::{Error, Result};

/// The name of the manifest file in a target's folder.
pub const FILE_NAME: &str = "target.toml";

/// How a target is written. Numbers are comparable only within a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// As a good engineer would write it in that language for production, with the usual libraries.
    Idiomatic,
    /// Everything allowed: own event loop, own codecs, no framework.
    Engine,
    /// Exists to test Plimsoll itself. Never ranked.
    Test,
}

impl Tier {
    /// Its name in manifests and results.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Idiomatic => "idiomatic",
            Self::Engine => "engine",
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
}

/// How to run the target's own tests. The command runs in the target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// The command: formatter, linter, unit tests.
    pub command: Vec<String>,
}

/// A key that only the manifests of one workload have. Its value is one of several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The words.
    pub words: &'static [&'static str],
    /// Whether a manifest must have it.
    pub required: bool,
}

/// The keys of a workload by its name; `None` for a workload that nobody knows, whose manifests may say anything.
pub type KeysOf = fn(&str) -> Option<&'static [Key]>;

/// The keys that every manifest may have.
const KEYS: [&str; 13] = [
    "name",
    "workload",
    "tier",
    "language",
    "description",
    "threads_per_vcpu",
    "separate_metrics_port",
    "asks_inference",
    "optional",
    "source",
    "build",
    "run",
    "test",
];

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
    /// Whether it serves health and metrics on a separate port (`METRICS_PORT`), because its library owns the main one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub separate_metrics_port: bool,
    /// Whether it gets its answers from the inference server, as the contract requires. Each trial then compares what
    /// that server received with what the target answered. Only a target that tests Plimsoll may compute answers
    /// itself: `false` leaves that check out, and the result says so.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub asks_inference: bool,
    /// Whether a machine may lack this target's tools. Builds and tests of the whole catalogue then skip the target,
    /// and say so.
    #[serde(default)]
    pub optional: bool,
    /// Files and folders of its source, relative to its own folder: what `lines_of_code` counts. Default: the whole
    /// folder.
    #[serde(default = "here", skip_serializing_if = "is_here")]
    pub source: Vec<String>,
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

    /// The absolute path of the manifest.
    #[serde(skip)]
    pub file: PathBuf,
}

fn one() -> u32 {
    1
}

fn here() -> Vec<String> {
    vec![".".to_owned()]
}

fn is_here(source: &[String]) -> bool {
    source == here()
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_yes(asks: &bool) -> bool {
    *asks
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
            check::unknown_key(&table, text, workload, keys)?;
        }
        let mut manifest: Self = toml::from_str(text).map_err(refused)?;
        manifest.file = file.to_path_buf();
        manifest.check_properties(keys.unwrap_or_default())?;
        manifest.check()?;
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

    /// What the manifest says under a key of its workload.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name)?.as_str()
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
pub(crate) mod tests {
    use super::*;

    pub(crate) const RUST_AXUM: &str = r#"
name = "rust-axum"
workload = "stt"
tier = "idiomatic"
language = "Rust"
description = "Tokio + axum, hyper h2c client"
threads_per_vcpu = 1
inference_transport = "h2c"
[build]
command = ["cargo", "build", "--release", "--locked"]
[[build.needs]]
tool = "cargo"
version_command = ["cargo", "--version"]
install = "install Rust 1.88 or newer with rustup (https://rustup.rs)"
[run]
command = ["target/release/rust-axum"]
[run.env]
MALLOC_ARENA_MAX = "2"
[test]
command = ["sh", "test.sh"]
"#;

    /// The keys of two workloads.
    pub(crate) fn keys(workload: &str) -> Option<&'static [Key]> {
        match workload {
            "stt" => Some(&[Key {
                name: "inference_transport",
                words: &["h2c", "http1"],
                required: true,
            }]),
            "ws" => Some(&[Key {
                name: "dialect",
                words: &["echo", "wse"],
                required: false,
            }]),
            _ => None,
        }
    }

    fn parse(text: &str) -> std::result::Result<Manifest, String> {
        Manifest::parse(text, Path::new("/t/stt/rust-axum/target.toml"), keys)
    }

    #[test]
    fn the_whole_format_is_read() {
        let manifest = parse(RUST_AXUM).expect("valid");
        assert_eq!(manifest.tier, Tier::Idiomatic);
        assert_eq!(manifest.property("inference_transport"), Some("h2c"));
        assert_eq!(manifest.run.env["MALLOC_ARENA_MAX"], "2");
        assert_eq!(
            manifest.build.as_ref().expect("build").needs[0].tool,
            "cargo"
        );
        assert!(!manifest.optional && manifest.asks_inference);
        assert_eq!(manifest.folder(), Path::new("/t/stt/rust-axum"));
        assert_eq!(manifest.worker_threads(1.0), 1);
        assert_eq!(manifest.worker_threads(0.5), 1);
        assert_eq!(manifest.worker_threads(2.5), 3);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_at_every_level() {
        for (insert_after, key) in [
            ("language = \"Rust\"\n", "colour"),
            ("[run]\n", "commands"),
            ("[[build.needs]]\n", "instal"),
        ] {
            let text =
                RUST_AXUM.replacen(insert_after, &format!("{insert_after}{key} = \"x\"\n"), 1);
            let error = parse(&text).expect_err("unknown key");
            assert!(error.contains(&format!("unknown field `{key}`")), "{error}");
            assert!(error.starts_with("line "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = parse(&RUST_AXUM.replace("tier = \"idiomatic\"\n", "")).expect_err("missing");
        assert_eq!(error, "missing field `tier`");
    }

    #[test]
    fn impossible_values_are_refused_in_one_line() {
        let cases = [
            (
                "tier = \"idiomatic\"",
                "tier = \"best\"",
                "unknown variant `best`",
            ),
            (
                "name = \"rust-axum\"",
                "name = \"Rust/Axum\"",
                "name \"Rust/Axum\" must be",
            ),
            (
                "threads_per_vcpu = 1",
                "threads_per_vcpu = 0",
                "threads_per_vcpu is 0",
            ),
            (
                "threads_per_vcpu = 1",
                "threads_per_vcpu = -1",
                "invalid value",
            ),
            (
                "inference_transport = \"h2c\"\n",
                "",
                "inference_transport is missing",
            ),
            (
                "workload = \"stt\"",
                "workload = \"ws\"",
                "unknown field `inference_transport` of workload ws",
            ),
            (
                "inference_transport = \"h2c\"\n",
                "inference_transport = \"h2c\"\nasks_inference = false\n",
                "only a target of tier \"test\" may work without",
            ),
            (
                "command = [\"target/release/rust-axum\"]",
                "command = []",
                "run.command is empty",
            ),
            (
                "command = [\"sh\", \"test.sh\"]",
                "command = [\"\"]",
                "test.command is empty",
            ),
            (
                "[\"cargo\", \"--version\"]",
                "[]",
                "version_command of cargo is empty",
            ),
            ("tier = \"idiomatic\"", "tier = ", "line 4"),
        ];
        for (from, to, expected) in cases {
            assert!(RUST_AXUM.contains(from), "{from}");
            let error = parse(&RUST_AXUM.replace(from, to)).expect_err(to);
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_websocket_server_says_what_it_speaks() {
        let text = |keys: &str| {
            RUST_AXUM
                .replace("workload = \"stt\"", "workload = \"ws\"")
                .replace("inference_transport = \"h2c\"\n", keys)
        };
        let plain = parse(&text("")).expect("valid");
        assert_eq!(plain.property("dialect"), None);
        assert!(!plain.separate_metrics_port);
        let wse = parse(&text("dialect = \"wse\"\nseparate_metrics_port = true\n"));
        let wse = wse.expect("valid");
        assert_eq!(wse.property("dialect"), Some("wse"));
        assert!(wse.separate_metrics_port);
        let error = parse(&text("dialect = \"stomp\"\n")).expect_err("unknown");
        assert!(error.contains("dialect is \"stomp\"; say"), "{error}");
        let stt = RUST_AXUM.replace("[build]\n", "dialect = \"echo\"\n[build]\n");
        let error = parse(&stt).expect_err("another workload");
        assert!(error.contains("of workload stt"), "{error}");
        // Nobody knows what a workload of a later version asks for.
        let later = text("colour = \"red\"\n").replace("\"ws\"", "\"later\"");
        assert_eq!(
            parse(&later).expect("valid").property("colour"),
            Some("red")
        );
    }

    #[test]
    fn a_target_that_tests_plimsoll_need_not_ask_its_back_end() {
        let text = RUST_AXUM
            .replace("tier = \"idiomatic\"", "tier = \"test\"")
            .replace(
                "threads_per_vcpu = 1",
                "threads_per_vcpu = 1\nasks_inference = false",
            );
        assert!(!parse(&text).expect("valid").asks_inference);
    }

    #[test]
    fn a_file_that_is_not_there_is_one_line_with_its_name() {
        let error = Manifest::read(Path::new("/nowhere/target.toml"), keys).expect_err("absent");
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/target.toml: cannot read"),
            "{error}"
        );
    }

    /// The keys of a table, taken from the parser's message about an unknown key.
    fn known_keys(header: &str, prefix: &str) -> Vec<String> {
        let text = match header {
            "" => format!("unheard_of = 1\n{RUST_AXUM}"),
            header => RUST_AXUM.replacen(header, &format!("{header}unheard_of = 1\n"), 1),
        };
        let error = parse(&text).expect_err("an unknown key");
        let (_, expected) = error
            .split_once("expected")
            .unwrap_or_else(|| panic!("{error}"));
        let keys = expected.split('`').skip(1).step_by(2);
        keys.map(|key| format!("{prefix}{key}")).collect()
    }

    #[test]
    fn every_key_of_a_manifest_is_known() {
        let text = RUST_AXUM.replace(
            "threads_per_vcpu = 1",
            "threads_per_vcpu = 1\nasks_inference = false\nseparate_metrics_port = true\nsource = [\"src\"]",
        );
        let manifest = parse(&text.replace("idiomatic", "test")).expect("valid");
        let written = Value::try_from(&manifest).expect("TOML");
        let written: Vec<_> = written
            .as_table()
            .expect("a table")
            .keys()
            .cloned()
            .collect();
        let mut known: Vec<_> = KEYS.map(str::to_owned).into();
        known.push("inference_transport".to_owned());
        known.sort_unstable();
        assert_eq!(written, known);
    }

    #[test]
    fn the_reference_page_has_every_key_and_no_other() {
        let mut known: Vec<String> = KEYS.map(str::to_owned).into();
        let own = ["stt", "ws"].into_iter().filter_map(keys).flatten();
        known.extend(own.map(|key| key.name.to_owned()));
        assert!(known.len() > 10, "{known:?}");
        for (header, prefix) in [
            ("[build]\n", "build."),
            ("[[build.needs]]\n", "build.needs."),
            ("[run]\n", "run."),
            ("[test]\n", "test."),
        ] {
            known.extend(known_keys(header, prefix));
        }
        let page = include_str!("../../../../docs/reference/manifest.md");
        let (_, keys) = page.split_once("\n## Keys\n").expect("a section");
        let rows = keys.lines().filter_map(|line| line.strip_prefix("| `"));
        let mut on_page: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        known.sort_unstable();
        on_page.sort_unstable();
        assert_eq!(on_page, known);
    }

    #[test]
    fn the_example_of_the_reference_page_is_a_manifest() {
        let page = include_str!("../../../../docs/reference/manifest.md");
        let (_, example) = page.split_once("```toml\n").expect("an example");
        let example = example.split("```").next().unwrap_or_default();
        assert_eq!(parse(example).expect("valid").name, "go-nethttp");
    }
}
