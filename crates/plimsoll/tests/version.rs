//! Which build it is: `--version` prints the commit, whether the sources were changed, the compiler and its profile.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .expect("git runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().to_owned()
}

#[test]
fn it_names_commit_compiler_and_profile() {
    let said = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .arg("--version")
        .output()
        .expect("it runs");
    assert_eq!(said.status.code(), Some(0));
    let line = String::from_utf8_lossy(&said.stdout);
    let line = line.trim();
    assert!(
        line.starts_with(concat!("plimsoll ", env!("CARGO_PKG_VERSION"), " (commit ")),
        "{line}"
    );
    assert!(line.contains(", rustc 1."), "{line}");
    assert!(
        line.ends_with(", debug)") || line.ends_with(", release)"),
        "{line}"
    );
    let head = git(&root(), &["rev-parse", "HEAD"]);
    if head.is_empty() || std::env::var_os("PLIMSOLL_COMMIT").is_some() {
        eprintln!(
            "this is no checkout, or the commit is given: which one it is cannot be compared"
        );
        return;
    }
    assert!(
        line.contains(&format!("(commit {head}")),
        "{line}, at {head}"
    );
}

/// The build script by itself, in the places where sources may be: compiled once, run in each.
#[test]
fn a_checkout_a_worktree_an_archive_and_a_given_commit() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let script = place.path().join("build-script");
    let repository = place.path().join("repository");
    let crate_of = |top: &Path| top.join("crates/plimsoll");
    std::fs::create_dir_all(crate_of(&repository).join("src")).expect("mkdir");
    let source = root().join("crates/plimsoll/build.rs");
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "-o"])
        .arg(&script)
        .arg(&source)
        .env("CARGO_PKG_VERSION", "9.9.9")
        .status();
    assert!(compiled.expect("rustc runs").success());
    let said = |folder: &Path, commit: &str| {
        let output = Command::new(&script)
            .current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .env("RUSTC", "rustc")
            .env("PROFILE", "release")
            .env("PLIMSOLL_COMMIT", commit)
            .output()
            .expect("it runs");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("cargo::rustc-env=PLIMSOLL_BUILD_VERSION="));
        version.expect("a version").to_owned()
    };
    let archive = said(&crate_of(&repository), "");
    assert!(
        archive.starts_with("9.9.9 (commit unknown, rustc 1."),
        "{archive}"
    );
    assert!(archive.ends_with(", release)"), "{archive}");

    let source = crate_of(&repository).join("src/main.rs");
    std::fs::write(&source, "fn main() {}\n").expect("write");
    git(&repository, &["init", "--quiet"]);
    git(&repository, &["add", "."]);
    let author = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"];
    git(
        &repository,
        &[&author[..], &["commit", "--quiet", "-m", "x"]].concat(),
    );
    let head = git(&repository, &["rev-parse", "HEAD"]);
    assert_eq!(head.len(), 40, "a commit was made");
    let clean = format!("9.9.9 (commit {head}, rustc");
    assert!(said(&crate_of(&repository), "").starts_with(&clean));
    // A file that is not built from is no change; a source is one.
    std::fs::write(repository.join("notes.txt"), "x").expect("write");
    assert!(said(&crate_of(&repository), "").starts_with(&clean));
    let worktree = place.path().join("worktree");
    let of_worktree = worktree.display().to_string();
    git(&repository, &["worktree", "add", "--quiet", &of_worktree]);
    assert!(said(&crate_of(&worktree), "").starts_with(&clean));
    std::fs::write(&source, "fn main() { }\n").expect("write");
    let dirty = said(&crate_of(&repository), "");
    assert!(
        dirty.starts_with(&format!("9.9.9 (commit {head}, dirty, rustc")),
        "{dirty}"
    );

    // An archive inside another repository is not at one of its commits.
    let vendored = repository.join("vendor/plimsoll");
    std::fs::create_dir_all(crate_of(&vendored)).expect("mkdir");
    let archive = said(&crate_of(&vendored), "");
    assert!(archive.contains("commit unknown"), "{archive}");
    assert!(said(&crate_of(&vendored), "abc").contains("(commit abc, rustc"));
    assert!(said(&crate_of(&vendored), "abc-dirty").contains("(commit abc, dirty, rustc"));
}
