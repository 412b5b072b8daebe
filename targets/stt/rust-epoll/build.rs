//! Tells the program what it is made of, for the line that it prints on start: the compiler by its own word, the
//! libraries by the lock file.

use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("the compiler that runs this");
    println!("cargo::rustc-env=GATEWAY_RUSTC={}", String::from_utf8_lossy(&version.stdout).trim());
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock stands beside build.rs");
    println!("cargo::rustc-env=GATEWAY_LIBRARIES={}", libraries(&lock).join(","));
}

/// `name version` of each library that is in the program (the others in the lock file are for tests).
fn libraries(lock: &str) -> Vec<String> {
    const NAMES: [&str; 7] = ["httparse", "rustix", "serde_json", "sha1_smol", "signal-hook", "slab", "subtle"];
    let field = |entry: &str, name: &str| {
        let start = entry.find(&format!("{name} = \""))? + name.len() + 4;
        entry[start..].split('"').next().map(str::to_owned)
    };
    lock.split("[[package]]")
        .filter_map(|entry| Some((field(entry, "name")?, field(entry, "version")?)))
        .filter(|(name, _)| NAMES.contains(&name.as_str()))
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}
