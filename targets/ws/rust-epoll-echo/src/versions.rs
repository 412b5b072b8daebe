//! What the program is made of, as `build.rs` found it.

/// The line that is printed on start: one JSON object with the versions of the compiler, the libraries and the kernel.
/// Nothing in it needs escaping: names and numbers of versions.
pub fn start_line(port: u16, worker_threads: usize) -> String {
    let libraries: Vec<String> = env!("TARGET_LIBRARIES")
        .split(',')
        .filter_map(|library| library.split_once(' '))
        .map(|(name, version)| format!(r#""{name}":"{version}""#))
        .collect();
    let system = rustix::system::uname();
    format!(
        r#"{{"event":"start","target":"{} {}","runtime":"epoll of {} {}","language":"{}","libraries":{{{}}},"port":{port},"worker_threads":{worker_threads}}}"#,
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
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
        assert!(line.contains(r#""language":"rustc 1."#), "{line}");
        assert!(line.contains(r#""libraries":{"httparse":"1."#), "{line}");
        assert_eq!(line.matches(r#"":"#).count(), 12, "seven fields and five libraries: {line}");
        assert!(line.contains(r#""rustix":"1."#) && line.ends_with(r#""port":3000,"worker_threads":2}"#), "{line}");
        assert_eq!(line.matches(['\\', '\n']).count(), 0, "{line}");
    }
}
