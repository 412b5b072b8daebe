//! Tells the program the versions that it is made of.

use std::process::Command;
use std::{env, fs};

/// The libraries on the path of a session.
const LIBRARIES: [&str; 7] = ["axum", "hyper", "prometheus", "reqwest", "serde_json", "tokio", "tungstenite"];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs").stdout;
    println!("cargo::rustc-env=GATEWAY_RUSTC={}", String::from_utf8_lossy(&version).trim());

    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock is beside build.rs");
    let versions = LIBRARIES.map(|name| format!("{name} {}", locked_version(&lock, name)));
    println!("cargo::rustc-env=GATEWAY_LIBRARIES={}", versions.join(","));
}

/// An entry of a lock file is `name = "…"`, followed by `version = "…"`.
fn locked_version<'a>(lock: &'a str, name: &str) -> &'a str {
    let name_line = format!("name = \"{name}\"");
    let version_line = lock.lines().skip_while(|line| *line != name_line).nth(1);
    version_line.and_then(|line| line.split('"').nth(1)).expect("a library that is locked")
}
