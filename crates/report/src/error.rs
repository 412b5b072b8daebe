//! Why a result could not be written, read or rendered: one line that names the problem and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why a result could not be written, read or rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder holds something other than results.
    #[error(
        "the folder {} is not empty and holds no Plimsoll result; name another folder, or empty this one",
        .0.display()
    )]
    NotOurs(PathBuf),
    /// The path exists but is not a folder.
    #[error("{} is not a folder; name another path", .0.display())]
    NotAFolder(PathBuf),
    /// The system refused to write.
    #[error("cannot write {}: {source}; {}", .path.display(), write_remedy(source))]
    Write {
        /// What the system says.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused to read.
    #[error("cannot read {}: {source}; check the path and its permissions", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file does not hold what its name says.
    #[error("{} is broken: {why}; restore it, or remove it and measure again", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file is from a later Plimsoll.
    #[error(
        "{} has schema version {found}, this Plimsoll reads up to {known}; use a newer Plimsoll",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u64,
        /// The latest version this build knows.
        known: u32,
    },
    /// There is nothing to show.
    #[error(
        "{} holds no Plimsoll result (no trial-*.json, bracket.json, comparison.json, calibration.json, inference.json or check.json); name a result folder",
        .0.display()
    )]
    NoResult(PathBuf),
    /// One folder holds both loose and packed records.
    #[error(
        "{} has {loose} beside records.tar.gz; remove the one that you do not want",
        .folder.display()
    )]
    PackedAndLoose {
        /// The folder.
        folder: PathBuf,
        /// One of the loose files.
        loose: String,
    },
    /// A folder that cannot take more trials in its present state.
    #[error(
        "the records of {} are packed; unpack them first (tar -xzf records.tar.gz && rm records.tar.gz), or name another folder",
        .0.display()
    )]
    IsPacked(PathBuf),
    /// A folder that cannot be packed.
    #[error("{} cannot be packed: {why}", .folder.display())]
    NotPacked {
        /// The folder.
        folder: PathBuf,
        /// The reason and the remedy.
        why: String,
    },
    /// A record could not be read back once written. This is a bug of the caller, caught before it becomes a file.
    #[error("the record for {file} cannot be written: {why}; please report this as a bug")]
    Record {
        /// The file that was to be written.
        file: String,
        /// What is wrong with the record.
        why: String,
    },
    /// The history's index cannot be used. The result folders are not affected.
    #[error("the index {} cannot be used: {why}; {remedy}", .path.display())]
    Index {
        /// The file of the index.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The chart could not be turned into an image.
    #[error("the chart cannot be drawn as PNG: {0}; chart.svg has the same chart")]
    Chart(String),
}

impl ReportError {
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn broken(path: &Path, why: impl ToString) -> Self {
        Self::Broken {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }

    pub(crate) fn not_packed(folder: &Path, why: &str) -> Self {
        Self::NotPacked {
            folder: folder.to_owned(),
            why: why.to_owned(),
        }
    }

    /// The same error with paths below `place`, which mean nothing to the reader, as paths within the archive that was
    /// unpacked there.
    pub(crate) fn within(self, place: &Path, archive: &Path) -> Self {
        let named = |path: PathBuf| {
            let inside = path.strip_prefix(place).map(Path::to_owned);
            match inside {
                Ok(name) if name.as_os_str().is_empty() => archive.to_owned(),
                Ok(name) => archive.join(name),
                Err(_) => path,
            }
        };
        match self {
            Self::Broken { path, why } => Self::Broken {
                path: named(path),
                why,
            },
            Self::Newer { path, found, known } => Self::Newer {
                path: named(path),
                found,
                known,
            },
            Self::Read { path, source } => Self::Read {
                path: named(path),
                source,
            },
            Self::NoResult(path) => Self::NoResult(named(path)),
            other => other,
        }
    }

    pub(crate) fn record(file: &str, why: impl ToString) -> Self {
        Self::Record {
            file: file.to_owned(),
            why: why.to_string(),
        }
    }
}

fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "free space on that disk, or choose a folder on another",
        io::ErrorKind::QuotaExceeded => "free space in your quota, or choose another folder",
        io::ErrorKind::FileTooLarge => "raise the limit of file sizes (ulimit -f)",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that you may write to"
        }
        _ => "check the disk and the path",
    }
}
