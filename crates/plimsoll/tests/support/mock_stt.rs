//! `plimsoll-mock-stt` as a process of the test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::{inference_binary, root};

/// A mock speech server on the loopback. It ends when this value is dropped.
pub(crate) struct MockStt {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl MockStt {
    /// Starts it with these settings, and waits until it serves.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        // All programs of the workspace are built together.
        let program = inference_binary().with_file_name("plimsoll-mock-stt");
        let mut child = Command::new(program)
            .env("PORT", "0")
            .env("CORPUS", root().join("targets/stt-real/corpus"))
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the mock starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        Self {
            child,
            address: line["address"].as_str().expect("an address").to_owned(),
        }
    }
}

impl Drop for MockStt {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
