//! What this program is made of, as found when it was built (`build.rs`).

use serde_json::{Map, Value, json};

/// The line that the gateway prints on start: one JSON object with the versions of the compiler and the libraries.
pub fn start_line(port: u16, worker_threads: usize) -> String {
    let libraries: Map<String, Value> = env!("GATEWAY_LIBRARIES")
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.into()))
        .collect();
    json!({
        "event": "start",
        "gateway": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "runtime": format!("tokio {}", libraries.get("tokio").and_then(Value::as_str).unwrap_or("unknown")),
        "language": env!("GATEWAY_RUSTC"),
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
        let line = start_line(3000, 2);
        assert!(!line.contains("unknown"), "{line}");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert!(value["language"].as_str().is_some_and(|it| it.starts_with("rustc 1.")), "{line}");
        assert!(value["libraries"]["axum"].as_str().is_some_and(|it| it.starts_with("0.8.")), "{line}");
    }
}
