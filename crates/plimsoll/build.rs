//! Records which sources and which compiler this build is made from, for `--version` and for every record.
//!
//! Outside a checkout (a source archive, a copy within another repository) the commit is unknown. `PLIMSOLL_COMMIT`
//! gives it then: a commit, or a commit followed by `-dirty`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the programs are built from, as git names it from the project's root. Changes to other files do not make it a
/// different build.
const SOURCES: [&str; 4] = [
    // With a wildcard the whole path must match, so a folder alone matches nothing.
    "crates/*/src/**",
    "crates/*/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() {
    // Not `env!`: two checkouts may share a folder of build products, and with it this program.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&folder).join("../..");
    println!("cargo::rerun-if-env-changed=PLIMSOLL_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var("PLIMSOLL_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let (commit, dirty) = match given {
        Some(given) => match given.strip_suffix("-dirty") {
            Some(commit) => (commit.to_owned(), "true"),
            None => (given, "false"),
        },
        None => of_checkout(&root).unwrap_or_default(),
    };
    let compiler = compiler().unwrap_or_default();
    let profile = std::env::var("PROFILE").unwrap_or_default();
    let word =
        |text: &str, otherwise: &str| if text.is_empty() { otherwise } else { text }.to_owned();
    let version = format!(
        "{} (commit {}{}, {}, {})",
        env!("CARGO_PKG_VERSION"),
        word(&commit, "unknown"),
        if dirty == "true" { ", dirty" } else { "" },
        word(&compiler, "compiler unknown"),
        word(&profile, "profile unknown"),
    );
    for (name, value) in [
        ("COMMIT", commit.as_str()),
        ("DIRTY", dirty),
        ("COMPILER", &compiler),
        ("PROFILE", &profile),
        ("VERSION", &version),
    ] {
        println!("cargo::rustc-env=PLIMSOLL_BUILD_{name}={value}");
    }
}

/// The commit that is checked out, and whether the sources differ from it.
fn of_checkout(root: &Path) -> Option<(String, &'static str)> {
    // Sources inside another repository are not at one of its commits.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    watch(root);
    let commit = git(root, &["rev-parse", "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(SOURCES);
    let changed = git(root, &status)?;
    Some((commit, if changed.is_empty() { "false" } else { "true" }))
}

/// Makes cargo run this script again when another commit is checked out or made, and when a source changes, but not for
/// every file of the checkout.
fn watch(root: &Path) {
    // The log of HEAD grows with every commit, even where a packed reference becomes a separate file.
    let mut references = ["HEAD", "logs/HEAD", "packed-refs"]
        .map(str::to_owned)
        .to_vec();
    references.extend(git(root, &["symbolic-ref", "--quiet", "HEAD"]));
    for reference in references {
        // In a worktree some of these are in its own folder, some in the common one.
        let path = git(root, &["rev-parse", "--git-path", &reference]);
        if let Some(path) = path
            .map(|path| root.join(path))
            .filter(|path| path.exists())
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten();
    let of_crates = crates.flatten().flat_map(|folder| {
        let folder = folder.path();
        [folder.join("src"), folder.join("Cargo.toml")]
    });
    for path in of_crates.chain([root.join("Cargo.toml"), root.join("Cargo.lock")]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        // A git hook that builds has set these for its own repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// `rustc 1.88.0`.
fn compiler() -> Option<String> {
    let output = Command::new(std::env::var_os("RUSTC")?)
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    Some(words.join(" "))
}
