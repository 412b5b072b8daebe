//! What the program is made of, as `build.rs` found it.

use serde_json::{Map, Value, json};

/// The line that is printed on start: one JSON object with the versions of the compiler, the libraries and the kernel.
pub fn start_line(port: u16, worker_threads: usize) -> String {
    let libraries: Map<String, Value> = env!("GATEWAY_LIBRARIES")
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.into()))
        .collect();
    let system = rustix::system::uname();
    json!({
        "event": "start",
        "gateway": concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")),
        "runtime": format!("epoll of {} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
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
        let line: Value = serde_json::from_str(&start_line(3000, 2)).expect("JSON");
        assert!(line["language"].as_str().is_some_and(|it| it.starts_with("rustc 1.")), "{line}");
        assert_eq!(line["libraries"].as_object().map(Map::len), Some(7), "{line}");
        assert!(line["libraries"]["rustix"].as_str().is_some_and(|it| it.starts_with("1.")), "{line}");
    }
}
