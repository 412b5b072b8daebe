//! What deploys is made from the manifests and the code, and kept in the repository: the two must not differ.
//!
//! After a change: `PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test deploy`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

fn plimsoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the command runs")
}

/// The files below a folder, by path from `root`.
fn files_below(root: &Path, folder: &str, into: &mut BTreeMap<String, String>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries.flatten() {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files_below(root, &name, into);
        } else {
            let text = std::fs::read_to_string(entry.path()).expect("text");
            into.insert(name, text);
        }
    }
}

#[test]
fn what_deploys_is_what_the_code_makes() {
    let made_in = tempfile::tempdir().expect("a folder");
    let folder = made_in.path().to_str().expect("a plain path");
    let output = plimsoll(&["generate", "deploy", folder]);
    assert!(output.status.success(), "{output:?}");
    let (mut made, mut kept) = (BTreeMap::new(), BTreeMap::new());
    for place in ["deploy", "docs"] {
        files_below(made_in.path(), place, &mut made);
    }
    assert!(made.len() > 15, "{:?}", made.keys());
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        std::fs::remove_dir_all(root().join("deploy")).ok();
        for (path, text) in &made {
            let file = root().join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("mkdir");
            std::fs::write(file, text).expect("written");
        }
    }
    // All that is in this folder is made; elsewhere, only these files are.
    files_below(&root(), "deploy", &mut kept);
    for path in made.keys().filter(|path| !path.starts_with("deploy/")) {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        kept.insert(path.clone(), text);
    }
    let paths = made.keys().chain(kept.keys());
    let differ: std::collections::BTreeSet<&String> = paths
        .filter(|path| made.get(*path) != kept.get(*path))
        .collect();
    assert!(
        differ.is_empty(),
        "these differ from what the code makes: {differ:?}; run PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test deploy"
    );
}

#[test]
fn a_command_line_that_cannot_be_deployed_is_refused_in_one_line() {
    for (arguments, said) in [
        (
            &["--target", "nothing"][..],
            "--target nothing: there is no such target",
        ),
        (
            &["--target", "mosquitto"],
            "it cannot be deployed: --level durable",
        ),
        (
            &["--target", "rust-axum", "--workload", "ws"],
            "of workload ws",
        ),
        (&["--target", "rust-axum", "--vcpu", "0"], "--vcpu 0"),
        (&["--target", "rust-axum", "--name", "Big"], "--name Big"),
        (
            &["--target", "rust-axum", "--namespace", "-"],
            "--namespace -",
        ),
        (
            &["--target", "rust-axum", "--", "--out=/x"],
            "sets --out=/x itself",
        ),
        (&["--target", "rust-axum", "--", "--pears"], "--pears"),
        (
            &["--target", "rust-axum", "--url", "http://h"],
            "cannot be used with",
        ),
        (
            &["--url", "http://h", "--target-image", "x"],
            "cannot be used with",
        ),
        (&[], "required"),
    ] {
        let all = [&["fleet", "render", "--agents", "2"], arguments].concat();
        let output = plimsoll(&all);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(
            text.contains(said) && text.trim().lines().count() == 1,
            "{arguments:?}: {text}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn each_rendering_has_a_token_of_its_own_unless_a_secret_is_named() {
    let render = |more: &[&str]| {
        let all = [
            &["fleet", "render", "--agents", "2", "--target", "rust-axum"],
            more,
        ]
        .concat();
        let output = plimsoll(&all);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let token = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("  token: "));
        line.expect("a token").trim_matches('"').to_owned()
    };
    let (one, two) = (token(&render(&[])), token(&render(&[])));
    assert_ne!(one, two);
    assert!(
        one.len() == 64 && one.chars().all(|c| c.is_ascii_hexdigit()),
        "{one}"
    );
    let named = render(&["--token-secret", "mine"]);
    assert!(!named.contains("kind: Secret") && named.contains("secretName: mine"));
}
