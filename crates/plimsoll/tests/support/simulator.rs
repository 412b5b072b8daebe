//! What targets ask, as a process of the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::inference_binary;

/// A simulator, of inference or of providers, on the loopback. It ends when this value is dropped.
pub(crate) struct Simulator {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
}

impl Simulator {
    /// Starts that of inference with these settings, and waits until it serves.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::start(inference_binary(), settings)
    }

    /// Starts the mock providers, and waits until they serve.
    pub(crate) fn of_providers() -> Self {
        Self::start(
            &inference_binary().with_file_name("plimsoll-providers"),
            &[],
        )
    }

    fn start(program: &Path, settings: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .env("PORT", "0")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the simulator starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address = line["address"].as_str().expect("an address");
        Self {
            child,
            url: format!("http://{address}"),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
