//! The line that the gateway prints on start.

use serde_json::{Map, Value, json};

/// One JSON object with the versions of the compiler and the libraries, which `build.rs` found.
pub fn start_line() -> String {
    let libraries: Map<String, Value> = env!("GATEWAY_LIBRARIES")
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.into()))
        .collect();
    json!({
        "event": "start",
        "gateway": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "runtime": format!("tokio {}", libraries["tokio"].as_str().unwrap_or_default()),
        "language": env!("GATEWAY_RUSTC"),
        "libraries": libraries,
    })
    .to_string()
}
