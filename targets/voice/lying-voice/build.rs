//! Hands the compiler's and the libraries' versions to the program, from where they are true: rustc itself and the lock file.

use std::process::Command;

/// The libraries that the start line names.
const LIBRARIES: [&str; 3] = ["hyper", "tokio", "tungstenite"];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let rustc = std::env::var("RUSTC").expect("cargo sets RUSTC for build scripts");
    let version = Command::new(rustc).arg("--version").output().expect("rustc runs: it is about to compile this crate");
    let version = String::from_utf8_lossy(&version.stdout);
    println!("cargo::rustc-env=RUSTC_VERSION={}", version.trim());

    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock lies beside Cargo.toml");
    for library in LIBRARIES {
        let version = locked_version(&lock, library).unwrap_or_else(|| panic!("{library} is not in Cargo.lock"));
        println!("cargo::rustc-env=VERSION_{}={version}", library.to_uppercase());
    }
}

/// The version that follows `name = "library"` in the lock file.
fn locked_version<'a>(lock: &'a str, library: &str) -> Option<&'a str> {
    let name = format!("name = \"{library}\"");
    let mut lines = lock.lines().skip_while(|line| **line != name);
    lines.next()?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}
