//! What a program is made of: the compiler by its own word, the libraries by the lock file. The build script asks
//! ([`tell`]), the program prints ([`start_line`]).

use std::process::Command;
use std::{env, fs};

/// For a build script: hands the versions of the compiler and of `libraries` to the program that is being built. The
/// other packages in the lock file are for tests.
///
/// # Panics
/// When there is no compiler, or no lock file: then nothing can be built.
pub fn tell(libraries: &[&str]) {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("the compiler that runs this");
    println!("cargo::rustc-env=TARGET_RUSTC={}", String::from_utf8_lossy(&version.stdout).trim());
    let lock = fs::read_to_string("Cargo.lock").expect("Cargo.lock stands beside build.rs");
    println!("cargo::rustc-env=TARGET_LIBRARIES={}", locked(&lock, libraries).join(","));
}

/// `name version` of each library.
fn locked(lock: &str, libraries: &[&str]) -> Vec<String> {
    let field = |entry: &str, name: &str| {
        let start = entry.find(&format!("{name} = \""))? + name.len() + 4;
        entry[start..].split('"').next().map(str::to_owned)
    };
    lock.split("[[package]]")
        .filter_map(|entry| Some((field(entry, "name")?, field(entry, "version")?)))
        .filter(|(name, _)| libraries.contains(&name.as_str()))
        .map(|(name, version)| format!("{name} {version}"))
        .collect()
}

/// What [`tell`] found out.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// The program's name and version.
    pub program: (&'static str, &'static str),
    /// The library that runs it, as it is called in `libraries`; none for a program that runs itself.
    pub runtime: Option<&'static str>,
    /// `TARGET_RUSTC`.
    pub rustc: &'static str,
    /// `TARGET_LIBRARIES`.
    pub libraries: &'static str,
}

/// A [`Built`] of the crate that calls it.
#[macro_export]
macro_rules! built {
    ($runtime:expr) => {
        $crate::versions::Built {
            program: (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            runtime: $runtime,
            rustc: env!("TARGET_RUSTC"),
            libraries: env!("TARGET_LIBRARIES"),
        }
    };
}

/// The line that is printed on start: one JSON object. Nothing in it needs escaping: names and numbers of versions.
pub fn start_line(built: &Built, port: u16, worker_threads: usize) -> String {
    let (name, version) = built.program;
    let versions = || built.libraries.split(',').filter_map(|library| library.split_once(' '));
    let libraries: Vec<String> = versions().map(|(name, version)| format!(r#""{name}":"{version}""#)).collect();
    let runtime = versions().find(|(name, _)| Some(*name) == built.runtime);
    let runtime = runtime.map_or_else(|| "none".to_owned(), |(name, version)| format!("{name} {version}"));
    format!(
        r#"{{"event":"start","target":"{name} {version}","runtime":"{runtime}","language":"{}","libraries":{{{}}},"port":{port},"worker_threads":{worker_threads}}}"#,
        built.rustc,
        libraries.join(","),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"tokio\"\nversion = \"1.2.3\"\n\n[[package]]\n\
            name = \"other\"\nversion = \"0.1.0\"\n";
        assert_eq!(locked(lock, &["tokio"]), ["tokio 1.2.3"]);
    }

    #[test]
    fn the_start_line_names_every_version() {
        let built = Built {
            program: ("server", "0.1.0"),
            runtime: Some("tokio"),
            rustc: "rustc 1.95.0",
            libraries: "hyper 1.0.0,tokio 1.2.3",
        };
        let expected = r#"{"event":"start","target":"server 0.1.0","runtime":"tokio 1.2.3","language":"rustc 1.95.0","libraries":{"hyper":"1.0.0","tokio":"1.2.3"},"port":3000,"worker_threads":2}"#;
        assert_eq!(start_line(&built, 3000, 2), expected);
    }
}
