//! An argument of `plimsoll compare`: a target or a result folder.

use std::path::{Path, PathBuf};

use plimsoll_lab::manifest::{FILE_NAME, Manifest};

use crate::args::Which;
use crate::failure::Failure;
use crate::setup;
use crate::workloads;

/// One side of the comparison.
pub(super) enum What {
    Target(Box<Manifest>),
    Folder(PathBuf),
}

impl What {
    /// Resolves an argument. A file is a manifest. A folder with a manifest in it is that target, and any other folder
    /// is a result. Anything else is a target's name.
    pub(super) fn named(text: &str, which: &Which) -> Result<Self, Failure> {
        let path = Path::new(text);
        if path.is_file() {
            return Ok(Self::Target(Box::new(Manifest::read(
                path,
                workloads::manifest_keys,
            )?)));
        }
        if path.is_dir() {
            let manifest = path.join(FILE_NAME);
            if manifest.is_file() {
                return Ok(Self::Target(Box::new(Manifest::read(
                    &manifest,
                    workloads::manifest_keys,
                )?)));
            }
            return Ok(Self::Folder(path.to_owned()));
        }
        if text.contains('/') {
            return Err(Failure::Usage(format!(
                "{text}: there is no such file or folder; name a target, a target.toml, or a result folder"
            )));
        }
        Ok(Self::Target(Box::new(setup::manifest_of(
            Some(text),
            which,
        )?)))
    }
}
