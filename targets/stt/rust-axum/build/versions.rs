//! For build scripts, of this program and of others that share its library (`#[path]`): what a program is made of.

use std::process::Command;
use std::{env, fs};

/// Hands the compiler's and the libraries' versions to the program, for the line that it prints on start: the compiler
/// is asked, and the libraries are read from the lock file, so that no version is kept by hand.
pub(crate) fn tell(libraries: &[&str]) {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    println!("cargo::rustc-env=GATEWAY_RUSTC={}", String::from_utf8_lossy(&version).trim());

    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock stands beside build.rs");
    let versions: Vec<String> =
        libraries.iter().map(|name| format!("{name} {}", locked_version(&lock, name))).collect();
    println!("cargo::rustc-env=GATEWAY_LIBRARIES={}", versions.join(","));
}

/// The version of `name` in the text of a lock file, whose entries are `name = "…"` followed by `version = "…"`.
fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let wanted = format!("name = \"{name}\"");
    lock.lines()
        .skip_while(|line| *line != wanted)
        .nth(1)
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .unwrap_or("unknown")
}
