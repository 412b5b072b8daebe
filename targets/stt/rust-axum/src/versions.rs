//! What a program is made of, as found when it was built (`build/versions.rs`).

use serde_json::{Map, Value, json};

/// What the build script found out.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// `CARGO_PKG_NAME`.
    pub name: &'static str,
    /// `CARGO_PKG_VERSION`.
    pub version: &'static str,
    /// `GATEWAY_RUSTC`.
    pub rustc: &'static str,
    /// `GATEWAY_LIBRARIES`.
    pub libraries: &'static str,
}

/// The [`Built`] of the crate that calls it.
#[macro_export]
macro_rules! built {
    () => {
        $crate::versions::Built {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            rustc: env!("GATEWAY_RUSTC"),
            libraries: env!("GATEWAY_LIBRARIES"),
        }
    };
}

/// The line that a gateway prints on start: one JSON object with the versions of the compiler and the libraries.
pub fn start_line(built: &Built, port: u16, worker_threads: usize) -> String {
    let libraries: Map<String, Value> = built
        .libraries
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.into()))
        .collect();
    json!({
        "event": "start",
        "gateway": built.name,
        "version": built.version,
        "runtime": format!("tokio {}", libraries.get("tokio").and_then(Value::as_str).unwrap_or("unknown")),
        "language": built.rustc,
        "libraries": libraries,
        "port": port,
        "worker_threads": worker_threads,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_known() {
        let line = start_line(&built!(), 3000, 2);
        assert!(!line.contains("unknown"), "{line}");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert!(value["language"].as_str().is_some_and(|it| it.starts_with("rustc 1.")), "{line}");
        assert!(value["libraries"]["axum"].as_str().is_some_and(|it| it.starts_with("0.8.")), "{line}");
    }
}
