//! `kubectl cp` runs `tar cf - PATH` in the container that it copies from. The command's image has no other program, so
//! `tar` is a second name of this one there.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::note;

/// Lies beside a folder that was copied.
pub(super) const COPIED: &str = ".copied";

/// Does what `tar cf - PATH` does, if that is how this program was called.
pub(crate) fn as_tar() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let name = words.next()?;
    if Path::new(&name).file_name()? != "tar" {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    Some(match write(&words, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("tar: {error}");
            ExitCode::from(2)
        }
    })
}

fn write(words: &[OsString], to: &mut impl Write) -> io::Result<()> {
    let [how, place, path] = words else {
        return Err(unknown());
    };
    if how != "cf" || place != "-" {
        return Err(unknown());
    }
    let path = PathBuf::from(path);
    let within = path.strip_prefix("/").unwrap_or(&path);
    let mut archive = tar::Builder::new(&mut *to);
    archive.follow_symlinks(false);
    if path.is_dir() {
        archive.append_dir_all(within, &path)?;
    } else {
        archive.append_path_with_name(&path, within)?;
    }
    archive.finish()?;
    drop(archive);
    to.flush()?;
    // If this cannot be written, the pod stays for its whole time.
    let _ = path
        .parent()
        .map(|parent| std::fs::write(parent.join(COPIED), ""));
    Ok(())
}

fn unknown() -> io::Error {
    io::Error::other("this is plimsoll, which only knows `tar cf - PATH`, for kubectl cp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_as_an_archive_and_is_marked_as_copied() {
        let place = tempfile::tempdir().expect("a folder");
        let run = place.path().join("run");
        std::fs::create_dir_all(run.join("logs")).expect("mkdir");
        std::fs::write(run.join("logs/a.log"), "said").expect("write");
        let words = ["cf", "-", run.to_str().expect("plain")].map(OsString::from);
        let mut bytes = Vec::new();
        write(&words, &mut bytes).expect("written");
        let mut archive = tar::Archive::new(bytes.as_slice());
        let names: Vec<String> = archive
            .entries()
            .expect("entries")
            .map(|entry| {
                entry
                    .expect("one")
                    .path()
                    .expect("a path")
                    .display()
                    .to_string()
            })
            .collect();
        let root = run.display().to_string();
        let root = root.trim_start_matches('/');
        assert!(names.contains(&format!("{root}/logs/a.log")), "{names:?}");
        assert!(place.path().join(COPIED).exists());
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        for words in [
            &["xf", "-", "/a"][..],
            &["cf", "out.tar", "/a"],
            &["cf", "-"],
            &["cf", "-", "/nowhere"],
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert!(write(&words, &mut Vec::new()).is_err(), "{words:?}");
        }
    }
}
