//! How many bytes a target ships, and how many its runtime has.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Manifest;

/// The size of what it takes to run a target. `None` where the manifest names nothing, or something that is missing: a
/// sum without that would look smaller than it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Its own files, in bytes.
    pub ships_bytes: Option<u64>,
    /// Its runtime, in bytes.
    pub runtime_bytes: Option<u64>,
    /// What is missing, one line each.
    pub missing: Vec<String>,
}

pub(super) fn of(manifest: &Manifest) -> Sizes {
    let mut missing = Vec::new();
    let mut size = |key: &str, entries: &[String]| {
        let mut seen = BTreeSet::new();
        let mut sum = (!entries.is_empty()).then_some(0);
        for entry in entries {
            match resolved(manifest, entry).and_then(|path| bytes(&path, &mut seen)) {
                Ok(bytes) => sum = sum.map(|sum| sum + bytes),
                Err(why) => {
                    missing.push(format!("{key}: {entry}: {why}"));
                    sum = None;
                }
            }
        }
        sum
    };
    Sizes {
        ships_bytes: size("ships", &manifest.ships),
        runtime_bytes: size("runtime", &manifest.runtime),
        missing,
    }
}

/// The path of an entry. A variable of the manifest goes before one of our environment.
fn resolved(manifest: &Manifest, entry: &str) -> Result<PathBuf, String> {
    let Some(entry) = entry.strip_prefix('$') else {
        return Ok(manifest.folder().join(entry));
    };
    let (name, rest) = entry.split_once('/').unwrap_or((entry, ""));
    let own = manifest.run.env.get(name).map(PathBuf::from);
    let value = own.or_else(|| std::env::var_os(name).map(PathBuf::from));
    match value.filter(|value| !value.as_os_str().is_empty()) {
        Some(value) => Ok(value.join(rest)),
        None => Err(format!("the variable {name} is not set")),
    }
}

/// The bytes of a file, or of all files in a folder. A link that an entry names is followed; one within a folder may
/// lead anywhere, so it counts as nothing. A file with several names counts once.
fn bytes(path: &Path, seen: &mut BTreeSet<(u64, u64)>) -> Result<u64, String> {
    let of = path.metadata().map_err(|error| error.to_string())?;
    let mut sum = counted(&of, seen);
    let mut folders = Vec::new();
    folders.extend(of.is_dir().then(|| path.to_owned()));
    while let Some(folder) = folders.pop() {
        let refused = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in folder.read_dir().map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let of = entry.metadata().map_err(refused)?;
            sum += counted(&of, seen);
            folders.extend(of.is_dir().then(|| entry.path()));
        }
    }
    Ok(sum)
}

fn counted(of: &Metadata, seen: &mut BTreeSet<(u64, u64)>) -> u64 {
    let new = of.is_file() && seen.insert((of.dev(), of.ino()));
    if new { of.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::{RUST_AXUM, keys};

    fn manifest(folder: &Path, keys_of_sizes: &str) -> Manifest {
        let text = RUST_AXUM.replace("[build]\n", &format!("{keys_of_sizes}\n[build]\n"));
        Manifest::parse(&text, &folder.join("target.toml"), keys).expect("valid")
    }

    #[test]
    fn own_files_and_the_runtime_are_counted_apart() {
        let folder = tempfile::tempdir().expect("temp");
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("lib/deep")).expect("mkdir");
        for (path, len) in [("server", 100), ("lib/a", 20), ("lib/deep/b", 3)] {
            std::fs::write(at(path), vec![b'x'; len]).expect("write");
        }
        std::fs::hard_link(at("lib/a"), at("lib/same")).expect("link");
        std::os::unix::fs::symlink("/", at("lib/root")).expect("link");
        std::os::unix::fs::symlink(at("lib"), at("home")).expect("link");
        let home = at("home");
        let sizes = manifest(
            folder.path(),
            &format!("ships = [\"server\"]\nruntime = [{home:?}]"),
        )
        .sizes();
        assert_eq!(
            (sizes.ships_bytes, sizes.runtime_bytes),
            (Some(100), Some(23))
        );
        assert!(sizes.missing.is_empty());
        // An entry within another one adds nothing.
        let twice = manifest(folder.path(), "ships = [\"lib\", \"lib/a\", \"server\"]").sizes();
        assert_eq!(twice.ships_bytes, Some(123));
        assert_eq!(manifest(folder.path(), "").sizes(), Sizes::default());
    }

    #[test]
    fn a_variable_of_the_manifest_or_of_the_environment_may_begin_a_path() {
        let folder = tempfile::tempdir().expect("temp");
        std::fs::write(folder.path().join("a"), "four").expect("write");
        let here = format!("MALLOC_ARENA_MAX = {:?}", folder.path());
        let text = RUST_AXUM
            .replace("MALLOC_ARENA_MAX = \"2\"", &here)
            .replace(
                "[build]\n",
                "runtime = [\"$MALLOC_ARENA_MAX/a\"]\n[build]\n",
            );
        let manifest = Manifest::parse(&text, Path::new("/t/stt/rust-axum/target.toml"), keys);
        assert_eq!(manifest.expect("valid").sizes().runtime_bytes, Some(4));
        let ours = super::of(&self::manifest(
            Path::new("/t"),
            "runtime = [\"$CARGO_MANIFEST_DIR\"]",
        ));
        assert!(ours.runtime_bytes.is_some_and(|bytes| bytes > 1000));
    }

    #[test]
    fn what_is_missing_leaves_no_sum_and_is_named() {
        let sizes = manifest(
            Path::new("/nowhere"),
            "ships = [\"/bin/sh\", \"gone\"]\nruntime = [\"$NO_SUCH_VARIABLE/lib\"]",
        )
        .sizes();
        assert_eq!((sizes.ships_bytes, sizes.runtime_bytes), (None, None));
        assert_eq!(sizes.missing.len(), 2);
        assert!(sizes.missing[0].starts_with("ships: gone: "), "{sizes:?}");
        assert_eq!(
            sizes.missing[1],
            "runtime: $NO_SUCH_VARIABLE/lib: the variable NO_SUCH_VARIABLE is not set"
        );
    }
}
