//! Roots with targets made up for a test.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder with `targets/` in it.
pub(crate) struct Root(TempDir);

impl Root {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::fs::create_dir(folder.path().join("targets")).expect("mkdir");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds a target with this text as its manifest.
    pub(crate) fn with(self, workload: &str, name: &str, manifest: &str) -> Self {
        let folder = self.path().join("targets").join(workload).join(name);
        std::fs::create_dir_all(&folder).expect("mkdir");
        std::fs::write(folder.join("target.toml"), manifest).expect("write");
        self
    }

    /// Adds an echo target that is started by this shell line.
    pub(crate) fn with_shell(self, name: &str, line: &str) -> Self {
        let manifest = manifest_of(name, line);
        self.with("echo", name, &manifest)
    }
}

/// The manifest of an echo target that is started by this shell line.
pub(crate) fn manifest_of(name: &str, line: &str) -> String {
    format!(
        r#"name = "{name}"
workload = "echo"
tier = "test"
language = "sh"
description = "made up for a test"
[run]
command = ["sh", "-c", {line:?}]
"#
    )
}

/// The manifest of a speech gateway that is started by this shell line: the lying server, whose program asks no back
/// end.
pub(crate) fn manifest_of_gateway(name: &str, description: &str, line: &str) -> String {
    format!(
        r#"name = "{name}"
workload = "stt"
tier = "test"
language = "Rust"
description = "{description}"
asks_inference = false
inference_transport = "h2c"
[run]
command = ["sh", "-c", {line:?}]
"#
    )
}

/// Writes an SLO for all tests of this process, and returns the path of its file. Its name is that of the file.
pub(crate) fn slo_file(name: &str, gates: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("{name}-{}.toml", std::process::id());
    // Renamed into its place: a test that writes it again must not empty it while another one's call reads it.
    let whole = tempfile::NamedTempFile::new_in(&folder).expect("a file");
    std::fs::write(&whole, gates).expect("write");
    let file = folder.join(name);
    whole.persist(&file).expect("renamed");
    file.to_str().expect("UTF-8").to_owned()
}

/// Writes a file in `folder` and returns its path.
pub(crate) fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("write");
    path
}
