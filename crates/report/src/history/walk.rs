//! Finds the folders, and whether their records changed.

use std::fmt::Write;
use std::fs::{self, DirEntry, Metadata};
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::error::ReportError;
use crate::folder::{BASELINE, LIVE, PACKED};

/// Deeper than any result: `results/<ranking>/<target>`, with room for folders in which a user sorts results.
const DEPTH_MAX: u32 = 8;

/// A folder that contains JSON files or packed records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The path relative to the folder of results, with `/` as separator.
    pub(super) name: String,
    /// Name, size and time of packed records and of every JSON file except `live.json`. A different stamp means
    /// different records.
    pub(super) stamp: String,
    /// Whether the folder contains a `live.json`.
    pub(super) live: bool,
    /// Why the folder cannot be read, if this is clear before a record is opened.
    pub(super) unreadable: Option<String>,
}

/// All folders below this one that have JSON files or packed records, by name. Symbolic links are not followed, so each
/// folder appears once and none lies elsewhere. Folders that cannot be read are included, with the reason.
///
/// # Errors
/// When the folder itself cannot be read.
pub(super) fn below(root: &Path) -> Result<Vec<Seen>, ReportError> {
    let mut seen = Vec::new();
    for folder in folders_in(root).map_err(|error| ReportError::read(root, error))? {
        visit(root, folder, 1, &mut seen);
    }
    seen.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(seen)
}

/// The name of a folder, or as much of it as can be shown.
type Name = Result<String, String>;

fn visit(root: &Path, name: Name, depth: u32, seen: &mut Vec<Seen>) {
    let name = match name {
        Ok(name) => name,
        Err(shown) => {
            let why = "its name is not UTF-8; rename it";
            return seen.push(Seen::unreadable(shown, why));
        }
    };
    let path = root.join(&name);
    let found = match Found::of(&path) {
        Ok(found) => found,
        Err(error) => {
            let why = format!("cannot read {}: {error}", path.display());
            return seen.push(Seen::unreadable(name, &why));
        }
    };
    let is_result = found.live || !found.stamp.is_empty();
    if depth < DEPTH_MAX {
        for folder in found.folders {
            // It is part of the result. Elsewhere, a folder of that name is what the user made of it.
            if is_result && folder.as_deref() == Ok(BASELINE) {
                continue;
            }
            let below = match folder {
                Ok(folder) => Ok(format!("{name}/{folder}")),
                Err(shown) => Err(format!("{name}/{shown}")),
            };
            visit(root, below, depth + 1, seen);
        }
    }
    if is_result {
        seen.push(Seen {
            name,
            stamp: found.stamp,
            live: found.live,
            unreadable: found.link,
        });
    }
}

impl Seen {
    fn unreadable(name: String, why: &str) -> Self {
        Self {
            name,
            // Unlike any stamp of a folder that was read, so the folder is read as soon as it can be.
            stamp: format!("unreadable: {why}"),
            live: false,
            unreadable: Some(why.to_owned()),
        }
    }
}

/// The content of one folder.
struct Found {
    folders: Vec<Name>,
    stamp: String,
    live: bool,
    link: Option<String>,
}

impl Found {
    fn of(path: &Path) -> std::io::Result<Self> {
        let mut found = Self {
            folders: Vec::new(),
            stamp: String::new(),
            live: false,
            link: None,
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // The metadata of the entry itself, not of a link's destination.
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Gone in the meantime: commands rename and remove their own files.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            found.take(&entry, &metadata, &mut files);
        }
        files.sort();
        found.stamp = files.concat();
        Ok(found)
    }

    fn take(&mut self, entry: &DirEntry, metadata: &Metadata, files: &mut Vec<String>) {
        let name = entry.file_name();
        if metadata.is_dir() {
            self.folders.extend(folder_name(entry));
            return;
        }
        // A hidden file holds the bytes of a write that is in progress, or that a crash interrupted.
        let json =
            |name: &&str| (name.ends_with(".json") || *name == PACKED) && !name.starts_with('.');
        let Some(name) = name.to_str().filter(json) else {
            return;
        };
        if name == LIVE {
            self.live = metadata.is_file();
        } else {
            if metadata.is_symlink() {
                let why = format!("{name} is a symbolic link; put the file itself there");
                self.link = Some(why);
            }
            files.push(stamp(name, metadata));
        }
    }
}

fn stamp(name: &str, metadata: &Metadata) -> String {
    let changed = metadata.modified().ok();
    let changed_ns = changed
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_nanos());
    let mut stamp = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(stamp, "{name} {} {changed_ns}", metadata.len());
    stamp
}

fn folders_in(path: &Path) -> std::io::Result<Vec<Name>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.extend(folder_name(&entry));
        }
    }
    Ok(folders)
}

/// Hidden folders belong to other programs.
fn folder_name(entry: &DirEntry) -> Option<Name> {
    let name = entry.file_name();
    let name = name
        .into_string()
        .map_err(|name| name.to_string_lossy().into_owned());
    let hidden = matches!(&name, Ok(name) | Err(name) if name.starts_with('.'));
    (!hidden).then_some(name)
}
