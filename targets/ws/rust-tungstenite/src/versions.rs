//! What the program is made of, as `build.rs` found it.

/// The line that is printed on start: one JSON object with the versions of the compiler and the libraries. Nothing in it
/// needs escaping: names and numbers of versions.
pub fn start_line(port: u16, worker_threads: usize) -> String {
    let versions: Vec<(&str, &str)> =
        env!("TARGET_LIBRARIES").split(',').filter_map(|library| library.split_once(' ')).collect();
    let libraries: Vec<String> = versions.iter().map(|(name, version)| format!(r#""{name}":"{version}""#)).collect();
    let tokio = versions.iter().find(|(name, _)| *name == "tokio").map_or("unknown", |(_, version)| *version);
    format!(
        r#"{{"event":"start","target":"{} {}","runtime":"tokio {tokio}","language":"{}","libraries":{{{}}},"port":{port},"worker_threads":{worker_threads}}}"#,
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
        env!("TARGET_RUSTC"),
        libraries.join(","),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_known() {
        let line = start_line(3000, 2);
        assert!(line.contains(r#""runtime":"tokio 1."#), "{line}");
        assert!(line.contains(r#""language":"rustc 1."#), "{line}");
        assert!(line.contains(r#""tokio-tungstenite":"0."#) && line.contains(r#""tungstenite":"0."#), "{line}");
        assert_eq!(line.matches(r#"":"#).count(), 12, "seven fields and five libraries: {line}");
        assert_eq!(line.matches(['\\', '\n']).count(), 0, "{line}");
    }
}
