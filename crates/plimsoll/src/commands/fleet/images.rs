//! How the images of targets are made: what manifests and lock files say.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_deploy::catalogue::{Family, Image};
use plimsoll_lab::manifest::{Manifest, Need};

use crate::failure::Failure;

/// How this target's image is made; `None` if it needs a tool that neither its family's image nor a script of ours
/// brings.
pub(super) fn of(manifest: &Manifest) -> Option<Image> {
    let needs = manifest
        .build
        .as_ref()
        .map_or(&[][..], |build| &build.needs);
    let family = family_of(needs);
    let mut installs = Vec::new();
    for need in needs.iter().filter(|need| !need.optional) {
        if need.install.starts_with("sh targets/") {
            if !installs.contains(&need.install) {
                installs.push(need.install.clone());
            }
        } else if !(need.tool == "cargo" || need.tool == "python3") {
            return None;
        }
    }
    Some(Image {
        family,
        description: manifest.description.clone(),
        installs,
        build: manifest.build.as_ref().map(|build| build.command.clone()),
        run: manifest.run.command.clone(),
        variables: manifest.run.env.clone(),
        stop_signal: manifest.run.stop_signal.to_string(),
    })
}

fn family_of(needs: &[Need]) -> Family {
    let needs_one =
        |of: &dyn Fn(&str) -> bool| needs.iter().any(|need| of(&need.tool.to_lowercase()));
    match () {
        () if needs_one(&|tool| tool == "cargo") => Family::Rust,
        () if needs_one(&|tool| tool == "go") => Family::Go,
        () if needs_one(&|tool| tool == "java" || tool.starts_with("jdk")) => Family::Java,
        () if needs_one(&|tool| tool == "node") => Family::Node,
        () if needs_one(&|tool| tool == "python") => Family::Python,
        () => Family::Debian,
    }
}

/// The version of each family's compiler or runtime: the least that suits all of its targets, as their own files say.
///
/// # Errors
/// A file cannot be read, or none of a family says a version.
pub(super) fn versions(
    root: &Path,
    manifests: &[Manifest],
) -> Result<BTreeMap<Family, String>, Failure> {
    let mut versions = BTreeMap::new();
    let toolchain = read(&root.join("rust-toolchain.toml"))?;
    let channel = toolchain.lines().find_map(|line| after(line, "channel"));
    versions.insert(Family::Rust, channel.unwrap_or_default());
    for (family, file, key) in [
        (Family::Go, "go.mod", "go "),
        (Family::Java, "pom.xml", "<maven.compiler.release>"),
        (Family::Node, "package.json", "\"node\":"),
        (Family::Python, "pyproject.toml", "requires-python"),
    ] {
        let own = manifests
            .iter()
            .filter(|manifest| of(manifest).is_some_and(|image| image.family == family));
        let files = own
            .map(|manifest| manifest.folder().join(file))
            .filter(|file| file.is_file());
        let mut said: Vec<String> = Vec::new();
        for file in files {
            let text = read(&file)?;
            said.extend(text.lines().filter_map(|line| after(line, key)));
        }
        let number = |version: &String| {
            version
                .split('.')
                .map(|part| part.parse().unwrap_or(0))
                .collect::<Vec<u32>>()
        };
        if let Some(most) = said.into_iter().max_by_key(number) {
            versions.insert(family, most);
        }
    }
    let missing = versions.iter().find(|(_, version)| version.is_empty());
    match missing {
        Some((family, _)) => Err(Failure::Usage(format!(
            "no file says the version of {}",
            family.word()
        ))),
        None => Ok(versions),
    }
}

/// The version in a line that begins with a key: its first digits and points.
fn after(line: &str, key: &str) -> Option<String> {
    let rest = line.trim().strip_prefix(key)?;
    let begin = rest.find(|c: char| c.is_ascii_digit())?;
    let version: String = rest[begin..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    Some(version.trim_end_matches('.').to_owned())
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_line_of_each_kind() {
        for (line, key, version) in [
            ("channel = \"1.95.0\"", "channel", Some("1.95.0")),
            ("go 1.26.0", "go ", Some("1.26.0")),
            (
                "    <maven.compiler.release>25</maven.compiler.release>",
                "<maven.compiler.release>",
                Some("25"),
            ),
            ("    \"node\": \">=20.15\"", "\"node\":", Some("20.15")),
            (
                "requires-python = \">=3.11\"",
                "requires-python",
                Some("3.11"),
            ),
            ("module gonethttp", "go ", None),
            ("channel = \"stable\"", "channel", None),
        ] {
            assert_eq!(after(line, key).as_deref(), version, "{line}");
        }
    }
}
