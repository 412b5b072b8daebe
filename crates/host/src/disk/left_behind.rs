//! The names of our files in folders of others, and what a killed run left there.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::maker::Maker;

/// A name that nobody else uses. It tells who made the file.
pub(super) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    Maker::us().name(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes files and empty folders whose makers are certainly dead from this folder. A folder with something in it
/// stays: nothing of ours leaves one.
pub(super) fn remove_from(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(Maker::of);
        if !maker.is_some_and(Maker::is_dead) {
            continue;
        }
        // What cannot be removed is in nobody's way: each name is used once.
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => std::fs::remove_dir(entry.path()),
            _ => std::fs::remove_file(entry.path()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_makers_left_is_removed() {
        let folder = tempfile::tempdir().expect("temp");
        let [dead_file, dead_folder, dead_but_full] =
            [1, 2, 3].map(|number| Maker::nobody().name(number));
        let ours = fresh_name();
        for file in [dead_file.as_str(), &ours, "plimsoll-notes"] {
            std::fs::write(folder.path().join(file), "x").expect("written");
        }
        std::fs::create_dir(folder.path().join(&dead_folder)).expect("made");
        std::fs::create_dir_all(folder.path().join(&dead_but_full).join("data")).expect("made");
        remove_from(folder.path());
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("read")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        left.sort();
        let mut expected = vec![dead_but_full, ours, "plimsoll-notes".to_owned()];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn names_are_ours_and_differ() {
        let (one, other) = (fresh_name(), fresh_name());
        assert_ne!(one, other);
        assert_eq!(Maker::of(&one), Some(Maker::us()));
    }
}
