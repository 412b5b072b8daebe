//! Finds the root with its `targets/` folder, and every `target.toml` in it.

use std::path::{Path, PathBuf};

use super::{FILE_NAME, KeysOf, Manifest};
use crate::error::{Error, Result};

/// The environment variable that names the root.
pub const ROOT_VARIABLE: &str = "PLIMSOLL_ROOT";

/// All targets below a root.
#[derive(Debug, Default)]
pub struct Discovered {
    /// The usable ones, sorted by workload and name.
    pub targets: Vec<Manifest>,
    /// The errors of manifests that cannot be used. They are kept apart so that one broken file does not hide the other
    /// targets. Report them; never drop them.
    pub broken: Vec<Error>,
}

/// Finds the root: `explicit` (`--root`), else `variable` (`PLIMSOLL_ROOT`), else the first folder with `targets/` from
/// `current` upward, else from `executable` upward.
///
/// # Errors
/// One line: the explicitly named root has no `targets/`, or no root was found.
pub fn find_root(
    explicit: Option<&Path>,
    variable: Option<&Path>,
    current: &Path,
    executable: &Path,
) -> Result<PathBuf> {
    for (named, by) in [(explicit, "--root"), (variable, ROOT_VARIABLE)] {
        if let Some(root) = named {
            if has_targets(root) {
                return Ok(root.to_path_buf());
            }
            return Err(Error::usage(format!(
                "{by} {} has no targets/ folder",
                root.display()
            )));
        }
    }
    let upward = current.ancestors().chain(executable.ancestors());
    upward
        .into_iter()
        .find(|folder| has_targets(folder))
        .map(Path::to_path_buf)
        .ok_or_else(|| {
            Error::usage(format!(
                "no targets/ folder in {} or above; say where it is with --root or {ROOT_VARIABLE}",
                current.display()
            ))
        })
}

/// [`find_root`] with this process's environment, current folder and executable.
///
/// # Errors
/// As [`find_root`].
pub fn root_of_this_process(explicit: Option<&Path>) -> Result<PathBuf> {
    let variable = std::env::var_os(ROOT_VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    // If the current folder or the executable is unknown, there are simply fewer places to look in.
    let current = std::env::current_dir().unwrap_or_default();
    let executable = std::env::current_exe().unwrap_or_default();
    find_root(explicit, variable.as_deref(), &current, &executable)
}

/// Reads every `targets/<workload>/<name>/target.toml` below `root`. A folder without the file is not a target.
///
/// # Errors
/// Only if `targets/` or a folder in it cannot be read. The errors of unusable manifests are in [`Discovered::broken`].
pub fn discover(root: &Path, keys: KeysOf) -> Result<Discovered> {
    let mut found = Discovered::default();
    for workload in folders(&root.join("targets"))? {
        for folder in folders(&workload)? {
            let file = folder.join(FILE_NAME);
            if !file.is_file() {
                continue;
            }
            match Manifest::read(&file, keys)
                .and_then(|manifest| in_its_place(manifest, &workload, &folder))
            {
                Ok(manifest) => found.targets.push(manifest),
                Err(error) => found.broken.push(error),
            }
        }
    }
    found
        .targets
        .sort_by(|a, b| (&a.workload, &a.name).cmp(&(&b.workload, &b.name)));
    Ok(found)
}

/// Reads the target `name` of `workload` below `root`.
///
/// # Errors
/// One line: there is no such target (the line lists the names that exist), or its manifest cannot be used.
pub fn find(root: &Path, workload: &str, name: &str, keys: KeysOf) -> Result<Manifest> {
    let family = root.join("targets").join(workload);
    let folder = family.join(name);
    let file = folder.join(FILE_NAME);
    let plain = !name.is_empty() && !name.contains(['/', '.']);
    if plain && file.is_file() {
        return Manifest::read(&file, keys)
            .and_then(|manifest| in_its_place(manifest, &family, &folder));
    }
    if plain && let Some(other) = workload_of(root, name) {
        return Err(Error::usage(format!(
            "{name} is a target of workload {other}, not of {workload}: add --workload {other}"
        )));
    }
    let there: Vec<String> = folders(&family)
        .unwrap_or_default()
        .iter()
        .filter(|folder| folder.join(FILE_NAME).is_file())
        .filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let choice = if there.is_empty() {
        format!("there are none in {}", family.display())
    } else {
        format!("there are: {}", there.join(", "))
    };
    Err(Error::usage(format!(
        "no target {name:?} of workload {workload}; {choice}"
    )))
}

/// The workload that has a target of this name.
fn workload_of(root: &Path, name: &str) -> Option<String> {
    let families = folders(&root.join("targets")).ok()?;
    let has_it = |family: &&PathBuf| family.join(name).join(FILE_NAME).is_file();
    let family = families.iter().find(has_it)?;
    Some(family.file_name()?.to_string_lossy().into_owned())
}

/// Checks that the name and the workload in a manifest match its path, because the path is what users type.
fn in_its_place(manifest: Manifest, workload: &Path, folder: &Path) -> Result<Manifest> {
    for (key, value, path) in [
        ("name", &manifest.name, folder),
        ("workload", &manifest.workload, workload),
    ] {
        let expected = path.file_name().unwrap_or_default().to_string_lossy();
        if *value != expected {
            return Err(Error::Manifest {
                file: manifest.file.clone(),
                text: format!(
                    "{key} is {value:?} but its folder is called {expected:?}; make them the same"
                ),
            });
        }
    }
    Ok(manifest)
}

fn has_targets(folder: &Path) -> bool {
    // An unknown current folder or executable is an empty path here.
    !folder.as_os_str().is_empty() && folder.join("targets").is_dir()
}

/// The folders in `parent`, sorted, without hidden ones.
fn folders(parent: &Path) -> Result<Vec<PathBuf>> {
    let refuse = |error| plimsoll_host::Error::io("reading the folder", parent, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::keys;

    fn write_target(root: &Path, workload: &str, folder: &str, name: &str) {
        let folder = root.join("targets").join(workload).join(folder);
        std::fs::create_dir_all(&folder).expect("mkdir");
        let text = format!(
            "name=\"{name}\"\nworkload=\"{workload}\"\ntier=\"test\"\nlanguage=\"x\"\ndescription=\"x\"\n[run]\ncommand=[\"sh\"]\n"
        );
        std::fs::write(folder.join(FILE_NAME), text).expect("write");
    }

    #[test]
    fn targets_are_found_sorted_and_broken_ones_are_kept_apart() {
        let root = tempfile::tempdir().expect("temp");
        write_target(root.path(), "ws", "b", "b");
        write_target(root.path(), "ws", "a", "a");
        write_target(root.path(), "ws", "c", "other");
        std::fs::create_dir_all(root.path().join("targets/ws/vectors")).expect("mkdir");
        std::fs::create_dir_all(root.path().join("targets/ws/bad")).expect("mkdir");
        std::fs::write(
            root.path().join("targets/ws/bad/target.toml"),
            "nme = 1\nworkload = \"ws\"",
        )
        .expect("write");
        let found = discover(root.path(), keys).expect("readable");
        let names: Vec<&str> = found
            .targets
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(found.broken.len(), 2);
        let texts: Vec<String> = found.broken.iter().map(ToString::to_string).collect();
        assert!(
            texts[0].contains("bad/target.toml: line 1 (nme = 1): unknown field `nme`"),
            "{}",
            texts[0]
        );
        assert!(
            texts[1].contains("name is \"other\" but its folder is called \"c\""),
            "{}",
            texts[1]
        );
    }

    #[test]
    fn one_target_is_found_by_name_and_an_unknown_name_lists_the_others() {
        let root = tempfile::tempdir().expect("temp");
        write_target(root.path(), "ws", "a", "a");
        assert_eq!(find(root.path(), "ws", "a", keys).expect("there").name, "a");
        let error = find(root.path(), "ws", "b", keys)
            .expect_err("absent")
            .to_string();
        assert_eq!(error, "no target \"b\" of workload ws; there are: a");
        assert!(find(root.path(), "ws", "../ws/a", keys).is_err());
        let error = find(root.path(), "stt", "a", keys).expect_err("of another");
        assert_eq!(
            error.to_string(),
            "a is a target of workload ws, not of stt: add --workload ws"
        );
    }

    #[test]
    fn the_root_is_looked_for_in_the_order_of_the_handbook() {
        let outer = tempfile::tempdir().expect("temp");
        let (one, two) = (outer.path().join("one"), outer.path().join("two"));
        for root in [&one, &two] {
            std::fs::create_dir_all(root.join("targets")).expect("mkdir");
        }
        let deep = one.join("a/b");
        let elsewhere = outer.path();
        let executable = two.join("target/release/plimsoll");
        assert_eq!(
            find_root(Some(&two), Some(&one), &deep, &executable).expect("explicit"),
            two
        );
        assert_eq!(
            find_root(None, Some(&two), &deep, &executable).expect("variable"),
            two
        );
        assert_eq!(
            find_root(None, None, &deep, &executable).expect("current folder"),
            one
        );
        assert_eq!(
            find_root(None, None, elsewhere, &executable).expect("executable"),
            two
        );
        assert!(find_root(Some(elsewhere), None, &deep, &executable).is_err());
        let error = find_root(None, None, elsewhere, elsewhere)
            .expect_err("none")
            .to_string();
        assert!(error.contains("--root or PLIMSOLL_ROOT"), "{error}");
    }
}
