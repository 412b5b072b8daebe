//! `records.tar.gz`: the records of a folder in one file, to keep or share. In the folder it replaces the files that it
//! holds.
//!
//! An archive may come from a stranger, so the rules are strict. It holds only plain files with the names of records:
//! no folder, no link, no path, no duplicate. There are limits on its unpacked size and number of files. Headers are
//! read raw, because the long names of other tar dialects have no limit.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use plimsoll_document::Tellers;
use tempfile::TempDir;

use super::{LIVE, atomic, is_record_file, names};
use crate::error::ReportError;

/// The packed records of a folder.
pub const PACKED: &str = "records.tar.gz";

/// The most bytes that an archive may unpack to. A one-day soak has 90 MB.
const UNPACKED_MAX_BYTES: u64 = 1 << 30;
/// The most files in an archive.
const FILES_MAX: usize = 10_000;

/// The outcome of packing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// The archive.
    pub file: PathBuf,
    /// How many records the archive holds.
    pub records: usize,
    /// The size of the records before packing, in bytes.
    pub bytes_before: u64,
    /// The size of the archive, in bytes.
    pub bytes: u64,
}

/// Packs the records of a folder into `records.tar.gz`. It removes the loose files after it has read the archive back.
/// The same files give the same archive, byte for byte.
///
/// # Errors
/// When the folder holds no records, is already packed, is being written to, or the system refuses. All loose files are
/// then still there.
pub fn pack(folder: &Path) -> Result<Packing, ReportError> {
    let all = names(folder)?;
    let mut records: Vec<&String> = all.iter().filter(|name| is_record_file(name)).collect();
    records.sort();
    let archive = folder.join(PACKED);
    if all.iter().any(|name| name == LIVE) {
        let why = "a command is still writing to it; wait until it ends, or delete live.json if it crashed";
        return Err(ReportError::not_packed(folder, why));
    }
    if all.iter().any(|name| name == PACKED) {
        if records.is_empty() {
            return Err(ReportError::not_packed(folder, "it is packed already"));
        }
        // A crash between writing and removing leaves both. If they differ, the user decides.
        must_hold_the_same(&archive, folder, &records)?;
    } else {
        if records.is_empty() {
            return Err(ReportError::NoResult(folder.to_owned()));
        }
        // Loads everything first: records that cannot be loaded are not worth keeping, and the fault would be hard to
        // see once packed.
        super::load(folder, Tellers::NONE)?;
        atomic::write(folder, PACKED, &archived(folder, &records)?)?;
        must_hold_the_same(&archive, folder, &records)?;
    }
    let size = |file: &Path| {
        fs::metadata(file)
            .map(|it| it.len())
            .map_err(|error| ReportError::read(file, error))
    };
    let mut bytes_before = 0;
    for name in &records {
        let file = folder.join(name);
        bytes_before += size(&file)?;
        fs::remove_file(&file).map_err(|error| ReportError::write(&file, error))?;
    }
    atomic::sync_folder(folder)?;
    Ok(Packing {
        records: records.len(),
        bytes_before,
        bytes: size(&archive)?,
        file: archive,
    })
}

fn archived(folder: &Path, records: &[&String]) -> Result<Vec<u8>, ReportError> {
    let encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(encoder);
    for name in records {
        let file = folder.join(name);
        let read = |error| ReportError::read(&file, error);
        let bytes = fs::read(&file).map_err(read)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // A check does not record when it ran, but its file's time does.
        header.set_mtime(changed_s(&file).map_err(read)?);
        let added = tar.append_data(&mut header, name, bytes.as_slice());
        added.map_err(|error| ReportError::not_packed(folder, &error.to_string()))?;
    }
    let whole = tar.into_inner().and_then(flate2::write::GzEncoder::finish);
    whole.map_err(|error| ReportError::write(&folder.join(PACKED), error))
}

fn changed_s(file: &Path) -> io::Result<u64> {
    let changed = fs::metadata(file)?.modified()?;
    Ok(changed
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs()))
}

fn must_hold_the_same(
    archive: &Path,
    folder: &Path,
    records: &[&String],
) -> Result<(), ReportError> {
    let unpacked = unpack(archive)?;
    for name in records {
        let loose = folder.join(name);
        let packed = fs::read(unpacked.path().join(name)).ok();
        let same = fs::read(&loose).map_err(|error| ReportError::read(&loose, error))?;
        if packed.as_ref() != Some(&same) {
            return Err(ReportError::PackedAndLoose {
                folder: folder.to_owned(),
                loose: (*name).clone(),
            });
        }
    }
    Ok(())
}

/// The archive that a path names: the file itself, or that of a folder without loose records.
///
/// # Errors
/// When a folder has both: Plimsoll cannot know which of them you want.
pub(super) fn of(path: &Path) -> Result<Option<PathBuf>, ReportError> {
    if path.is_file() {
        return Ok(Some(path.to_owned()));
    }
    let names = names(path)?;
    if !names.iter().any(|name| name == PACKED) {
        return Ok(None);
    }
    match names.into_iter().find(|name| is_record_file(name)) {
        Some(loose) => Err(ReportError::PackedAndLoose {
            folder: path.to_owned(),
            loose,
        }),
        None => Ok(Some(path.join(PACKED))),
    }
}

/// Unpacks an archive into a temporary folder, which is removed when dropped.
///
/// # Errors
/// When the archive cannot be read, is not an archive of records, or exceeds the limits.
pub(super) fn unpack(archive: &Path) -> Result<TempDir, ReportError> {
    let broken = |why: &str| ReportError::broken(archive, why);
    let file = File::open(archive).map_err(|error| ReportError::read(archive, error))?;
    let place = tempfile::Builder::new()
        .prefix("plimsoll-records-")
        .tempdir();
    let place = place.map_err(|error| ReportError::write(&std::env::temp_dir(), error))?;
    let unzipped = Limited {
        inner: GzDecoder::new(io::BufReader::new(file)),
        left: UNPACKED_MAX_BYTES,
    };
    let mut tar = tar::Archive::new(unzipped);
    let unreadable = |error: io::Error| broken(&error.to_string());
    let mut seen = BTreeSet::new();
    for entry in tar.entries().map_err(unreadable)?.raw(true) {
        let mut entry = entry.map_err(unreadable)?;
        let shown = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !is_record_file(&shown) {
            return Err(broken(&format!(
                "it holds {shown:?}, which is not the plain file of a record"
            )));
        }
        if seen.len() == FILES_MAX {
            return Err(broken(&format!("it holds more than {FILES_MAX} files")));
        }
        let to = place.path().join(&shown);
        if !seen.insert(shown.clone()) {
            return Err(broken(&format!("it holds {shown} twice")));
        }
        write(&mut entry, &to).map_err(unreadable)?;
    }
    if seen.is_empty() {
        return Err(broken("it holds no record"));
    }
    Ok(place)
}

fn write<R: Read>(entry: &mut tar::Entry<'_, R>, to: &Path) -> io::Result<()> {
    let changed = UNIX_EPOCH.checked_add(Duration::from_secs(entry.header().mtime()?));
    let mut file = OpenOptions::new().write(true).create_new(true).open(to)?;
    let wanted = entry.size();
    if io::copy(entry, &mut file)? != wanted {
        return Err(io::Error::other("it ends in the middle of a file"));
    }
    file.flush()?;
    changed.map_or(Ok(()), |at| file.set_modified(at))
}

/// Fails at the limit, where `take` would pretend that the file ended.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!(
                "it unpacks to more than {UNPACKED_MAX_BYTES} bytes"
            ))
        })?;
        Ok(read)
    }
}
