//! Compares renderings with checked-in files.

use std::fs;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// Asserts that the text is that of a file in `golden/`.
#[track_caller]
pub(crate) fn assert_golden(name: &str, now: &str) {
    let file = golden(name);
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, now).unwrap();
    }
    let then = fs::read_to_string(&file).unwrap_or_default();
    let differing = now
        .lines()
        .zip(then.lines())
        .find(|(now, then)| now != then);
    assert!(
        now == then,
        "{} differs, first here (now, then): {differing:#?}; if that is meant: PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report",
        file.display()
    );
}
