//! Tells the program what it is made of, for the line that it prints on start: the compiler by its own word, the
//! libraries by the lock file.

use std::process::Command;
use std::{env, fs};

/// The libraries that are in the program; the others in the lock file are for tests.
const LIBRARIES: [&str; 4] = ["crc32fast", "rustix", "signal-hook", "slab"];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("the compiler that runs this");
    println!("cargo::rustc-env=TARGET_RUSTC={}", String::from_utf8_lossy(&version.stdout).trim());
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock stands beside build.rs");
    println!("cargo::rustc-env=TARGET_LIBRARIES={}", libraries(&lock).join(","));
}

/// `name version` of each library.
fn libraries(lock: &str) -> Vec<String> {
    let field = |entry: &str, name: &str| {
        let start = entry.find(&format!("{name} = \""))? + name.len() + 4;
        entry[start..].split('"').next().map(str::to_owned)
    };
    lock.split("[[package]]")
        .filter_map(|entry| Some((field(entry, "name")?, field(entry, "version")?)))
        .filter(|(name, _)| LIBRARIES.contains(&name.as_str()))
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}
