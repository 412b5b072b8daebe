//! Finds what is missing to measure the targets here: what runs beside them, usable manifests, tools. What is wrong
//! with the machine itself, [`plimsoll_host::doctor`] finds.
//!
//! Looking ([`Observed::of_targets`]) is separate from judging ([`findings`]), so that tests can check every judgement
//! on targets that do not exist.

use std::path::Path;

use plimsoll_host::doctor::{Finding, Level};

use crate::manifest::{Discovered, Readiness, availability_of_each};
use crate::trial::Registry;

/// A target as the doctor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTarget {
    /// `<workload>/<name>`.
    pub name: String,
    /// See [`Manifest::optional`](crate::manifest::Manifest::optional).
    pub optional: bool,
    /// Whether it can be built and run.
    pub readiness: Readiness,
}

/// What runs beside the targets of a workload, as the doctor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCompanion {
    /// What it is called in messages.
    pub name: &'static str,
    /// The command that makes it.
    pub remedy: &'static str,
    /// Its path, or the line that says that it is not there.
    pub program: Result<String, String>,
}

/// Everything that the doctor looks at, besides the machine.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The targets.
    pub targets: Vec<ObservedTarget>,
    /// Manifests that cannot be used, one line each.
    pub broken_manifests: Vec<String>,
    /// What runs beside targets.
    pub companions: Vec<ObservedCompanion>,
}

impl Observed {
    /// Looks at the targets. It runs every target's version commands, so it takes a moment.
    #[must_use]
    pub fn of_targets(workloads: Registry, root: Option<&Path>, discovered: &Discovered) -> Self {
        let targets = &discovered.targets;
        Self {
            targets: availability_of_each(targets)
                .into_iter()
                .zip(targets)
                .map(|(here, manifest)| ObservedTarget {
                    name: format!("{}/{}", manifest.workload, manifest.name),
                    optional: manifest.optional,
                    readiness: here.readiness,
                })
                .collect(),
            broken_manifests: discovered.broken.iter().map(ToString::to_string).collect(),
            companions: workloads
                .iter()
                .filter_map(|workload| workload.companions())
                .map(|companions| ObservedCompanion {
                    name: companions.terms().name,
                    remedy: companions.remedy(),
                    program: companions
                        .find(root)
                        .map(|path| path.display().to_string())
                        .map_err(|error| error.to_string()),
                })
                .collect(),
        }
    }
}

/// Judges the observations. Returns what is fine and what is not, in the order in which a user should read it: after
/// the findings about the machine.
#[must_use]
pub fn findings(seen: &Observed) -> Vec<Finding> {
    let mut all: Vec<_> = seen.companions.iter().map(companion_present).collect();
    all.extend(
        seen.broken_manifests
            .iter()
            .map(|line| Finding::bad("manifest", Level::Error, line, "correct the manifest")),
    );
    all.extend(seen.targets.iter().map(target));
    all
}

fn companion_present(seen: &ObservedCompanion) -> Finding {
    match &seen.program {
        Ok(path) => Finding::good("simulator", format!("{} is {path}", seen.name)),
        Err(line) => {
            // The line includes its own remedy, for users who see it elsewhere.
            let text = line.split("; ").next().unwrap_or(line);
            Finding::bad("simulator", Level::Error, text, seen.remedy)
        }
    }
}

fn target(target: &ObservedTarget) -> Finding {
    let id = format!("target {}", target.name);
    match &target.readiness {
        Readiness::Ready | Readiness::NeedsBuild { .. } => {
            Finding::good(id, target.readiness.to_string())
        }
        Readiness::Missing { tool, install } => {
            let level = if target.optional {
                Level::Info
            } else {
                Level::Warning
            };
            Finding::bad(id, level, format!("missing tool {tool}"), install)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout with nothing wrong.
    fn good_targets() -> Observed {
        Observed {
            targets: vec![ObservedTarget {
                name: "stt/rust-axum".into(),
                optional: false,
                readiness: Readiness::NeedsBuild {
                    command: "cargo build".into(),
                },
            }],
            broken_manifests: Vec::new(),
            companions: vec![ObservedCompanion {
                name: "the inference simulator",
                remedy: "cargo build",
                program: Ok("/x/plimsoll-inference".into()),
            }],
        }
    }

    fn missing(tool: &str, install: &str) -> Readiness {
        Readiness::Missing {
            tool: tool.into(),
            install: install.into(),
        }
    }

    #[test]
    fn good_targets_have_nothing_to_mend() {
        let all = findings(&good_targets());
        assert!(
            all.iter()
                .all(|finding| finding.ok && finding.remedy.is_none()),
            "{all:?}"
        );
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn every_fault_is_found_with_a_remedy_and_nothing_else_is() {
        type Spoil = fn(&mut Observed);
        let faults: [(&str, Spoil); 3] = [
            ("simulator", |seen| {
                seen.companions[0].program = Err("it is not there".into());
            }),
            ("manifest", |seen| {
                seen.broken_manifests = vec!["x/target.toml: line 1".into()]
            }),
            ("target stt/rust-axum", |seen| {
                seen.targets[0].readiness = missing("cargo", "install Rust");
            }),
        ];
        for (id, spoil) in faults {
            let mut seen = good_targets();
            spoil(&mut seen);
            let all = findings(&seen);
            let bad: Vec<&Finding> = all.iter().filter(|finding| !finding.ok).collect();
            assert_eq!(bad.len(), 1, "{id}: {bad:?}");
            assert_eq!(bad[0].id, id);
            let remedy = bad[0].remedy.as_ref();
            assert!(remedy.is_some_and(|remedy| !remedy.is_empty()), "{id}");
            assert!(!bad[0].text.contains('\n'), "{id}");
        }
    }

    #[test]
    fn only_a_built_target_is_called_ready() {
        let mut seen = good_targets();
        let told = |seen: &Observed| findings(seen).last().expect("one").text.clone();
        assert_eq!(
            told(&seen),
            "not built; the next run builds it: cargo build"
        );
        seen.targets[0].readiness = Readiness::Ready;
        assert_eq!(told(&seen), "ready");
        seen.targets[0].optional = true;
        seen.targets[0].readiness = missing("gleam", "see gleam.run");
        assert_eq!(told(&seen), "missing tool gleam");
    }

    #[test]
    fn an_optional_target_without_its_tools_is_only_told() {
        let mut seen = good_targets();
        seen.targets[0].optional = true;
        seen.targets[0].readiness = missing("gleam", "see gleam.run");
        let all = findings(&seen);
        assert_eq!(
            all.last().map(|finding| (finding.ok, finding.level)),
            Some((false, Level::Info))
        );
    }

    #[test]
    fn a_machine_without_targets_can_be_looked_at() {
        let seen =
            Observed::of_targets(crate::find::tests::WORKLOADS, None, &Discovered::default());
        assert!(seen.targets.is_empty());
        assert!(!findings(&seen).is_empty());
    }
}
