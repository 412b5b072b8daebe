//! The history: every result below a folder of results, found again, filtered, and followed over time.
//!
//! The folders are the truth. An SQLite file beside them, `history.sqlite`, remembers what was read from each, so that a use reads only the folders whose
//! records changed. It can be thrown away at any time.
//!
//! - [`entry`] is one result in short, made of the records of a folder;
//! - [`Filter`] is which of them are asked for;
//! - [`trend`] groups the load lines of one target by the conditions that they were found under;
//! - a walk over the folders finds what changed, and the store keeps it.

pub mod entry;
mod filter;
mod store;
pub mod trend;
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use entry::{Entry, Kind};
pub use filter::{Filter, since};
pub use trend::{Conditions, TrendGroup, TrendPoint};

use crate::error::ReportError;
use crate::folder::load;
use store::{State, Store};
use walk::Seen;

/// The index, in the folder of results.
pub const INDEX: &str = "history.sqlite";

/// The results below one folder.
#[derive(Debug)]
pub struct History {
    /// The folder of results, without symbolic links.
    root: PathBuf,
    store: Store,
}

/// A folder whose records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The folder, relative to the folder of results.
    pub folder: String,
    /// Why, in one line.
    pub why: String,
}

/// What bringing the index up to date came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Folders that were read, because they are new or their records changed.
    pub read: usize,
    /// Folders that were known and are gone.
    pub removed: usize,
    /// Folders whose records are as they were.
    pub unchanged: usize,
    /// All folders that cannot be read, by name.
    pub broken: Vec<Broken>,
    /// Folders in which a command shows what it is doing, or did when it crashed, by name.
    pub live: Vec<String>,
}

/// A folder that the index knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Where it is, without symbolic links; it lies below the folder of results.
    pub path: PathBuf,
    /// Whether it holds a result; a command that began a moment ago has none yet.
    pub holds_result: bool,
    /// Why its records cannot be read, where they cannot.
    pub broken: Option<String>,
}

impl History {
    /// Opens the history of a folder of results; makes the index where there is none. Nothing is read yet: [`History::refresh`].
    ///
    /// # Errors
    /// When there is no such folder, or the index is broken, another program's, from a later Plimsoll, or cannot be written.
    pub fn open(results: &Path) -> Result<Self, ReportError> {
        let root = root_of(results)?;
        let store = Store::open(&root.join(INDEX))?;
        Ok(Self { root, store })
    }

    /// Makes the index anew from the folders: under a temporary name, which then takes the place of whatever is there.
    ///
    /// # Errors
    /// When there is no such folder, or the index cannot be written.
    pub fn rebuild(results: &Path) -> Result<Self, ReportError> {
        let root = root_of(results)?;
        let file = root.join(INDEX);
        store::make_anew(&file, |store| {
            let mut made = Self {
                root: root.clone(),
                store,
            };
            made.refresh()?;
            Ok(made.store)
        })?;
        Self::open(&root)
    }

    /// Brings the index up to date: reads the folders that are new or whose record files have another size or time, and forgets those that are gone.
    ///
    /// A folder that is broken is in the answer, with the reason, and keeps none of the others from being read.
    ///
    /// # Errors
    /// When the folder of results cannot be read, or the index cannot be written.
    pub fn refresh(&mut self) -> Result<Refreshed, ReportError> {
        let seen = walk::below(&self.root)?;
        let known = self.store.stamps()?;
        let mut refreshed = Refreshed::default();
        let mut changed = Vec::new();
        for folder in &seen {
            if folder.live {
                refreshed.live.push(folder.name.clone());
            }
            if known.get(&folder.name) == Some(&folder.stamp) {
                refreshed.unchanged += 1;
            } else {
                changed.push((folder, self.read(folder)));
            }
        }
        let names: BTreeSet<&String> = seen.iter().map(|folder| &folder.name).collect();
        let gone: Vec<&String> = known.keys().filter(|name| !names.contains(name)).collect();
        refreshed.read = changed.len();
        refreshed.removed = gone.len();
        self.store.change(&changed, &gone)?;
        refreshed.broken = self.store.broken()?;
        Ok(refreshed)
    }

    /// What is in a folder now.
    fn read(&self, folder: &Seen) -> State {
        if let Some(why) = &folder.unreadable {
            return State::Broken(why.clone());
        }
        match load(self.root.join(&folder.name)) {
            Ok(results) => State::Result(entry::of(&folder.name, &results)),
            Err(ReportError::NoResult(_)) => State::Nothing,
            Err(error) => State::Broken(error.to_string()),
        }
    }

    /// The results that a filter lets through, newest first. Those whose time cannot be read come last.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, ReportError> {
        self.store.list(filter)
    }

    /// The results of one folder.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn of_folder(&self, folder: &str) -> Result<Vec<Entry>, ReportError> {
        self.store.of_folder(folder)
    }

    /// The load lines of a target over time, in groups of like conditions; the group with the newest result comes first, in each the oldest result.
    ///
    /// Of `filter` all but target, kind and limit count.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn trend(&self, target: &str, filter: &Filter) -> Result<Vec<TrendGroup>, ReportError> {
        let filter = Filter {
            target: Some(target.to_owned()),
            kind: Some(Kind::Find),
            limit: None,
            ..filter.clone()
        };
        Ok(trend::groups(self.list(&filter)?))
    }

    /// A folder by the name that the index has for it. `None` when the index knows none of that name, or when following symbolic links leads out of the
    /// folder of results. A name that came from outside is only looked up, never made into a path.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn known(&self, folder: &str) -> Result<Option<Known>, ReportError> {
        let Some((name, state)) = self.store.folder(folder)? else {
            return Ok(None);
        };
        let Some(path) = below(&self.root, Path::new(&name)) else {
            return Ok(None);
        };
        Ok(Some(Known {
            path,
            holds_result: matches!(state, State::Result(_)),
            broken: match state {
                State::Broken(why) => Some(why),
                State::Result(_) | State::Nothing => None,
            },
        }))
    }

    /// The folder of results, without symbolic links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// What a name leads to, if that is there and lies below the folder, with all symbolic links followed.
#[must_use]
pub fn below(folder: &Path, name: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let path = fs::canonicalize(folder.join(name)).ok()?;
    (path.starts_with(&folder) && path != folder).then_some(path)
}

fn root_of(results: &Path) -> Result<PathBuf, ReportError> {
    let root = fs::canonicalize(results).map_err(|error| ReportError::read(results, error))?;
    if root.is_dir() {
        Ok(root)
    } else {
        Err(ReportError::NotAFolder(results.to_owned()))
    }
}
