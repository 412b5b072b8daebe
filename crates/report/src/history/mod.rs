//! The history: finds every result below a folder of results, filters them, and follows them over time.
//!
//! The folders are the truth. Next to them, an SQLite file, `history.sqlite`, remembers what was read from each. So
//! each use reads only the folders whose records changed. You can delete the file at any time.
//!
//! - [`entry`] is one result in brief, made from the records of a folder;
//! - [`Filter`] selects results;
//! - [`trend`] groups the load lines of one target by their conditions;
//! - a walk over the folders finds what changed, and the store keeps it.

pub mod entry;
mod filter;
mod store;
pub mod trend;
mod walk;

use plimsoll_document::Tellers;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use entry::{Entry, Kind};
pub use filter::{Filter, since};
pub use trend::{ResultConditions, TrendGroup, TrendPoint};

use crate::error::ReportError;
use crate::folder::load;
use store::{State, Store};
use walk::Seen;

/// The file name of the index in the folder of results.
pub const INDEX: &str = "history.sqlite";

/// The results below one folder.
#[derive(Debug)]
pub struct History {
    /// The folder of results, without symbolic links.
    root: PathBuf,
    store: Store,
    tellers: Tellers,
}

/// A folder whose records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The folder, relative to the folder of results.
    pub folder: String,
    /// Why, in one line.
    pub why: String,
}

/// The outcome of updating the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Folders that were read because they are new or their records changed.
    pub read: usize,
    /// Known folders that no longer exist.
    pub removed: usize,
    /// Folders whose records did not change.
    pub unchanged: usize,
    /// All folders that cannot be read, by name.
    pub broken: Vec<Broken>,
    /// Folders in which a command shows what it is doing, or did so when it crashed, by name.
    pub live: Vec<String>,
}

/// A folder that the index knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The path without symbolic links. It lies below the folder of results.
    pub path: PathBuf,
    /// Whether the folder holds a result. A command that has just started has none yet.
    pub holds_result: bool,
    /// Why its records cannot be read, if they cannot.
    pub broken: Option<String>,
}

impl History {
    /// Opens the history of a folder of results, and creates the index if there is none. This reads no results;
    /// [`History::refresh`] does.
    ///
    /// # Errors
    /// When the folder does not exist, or the index is broken, belongs to another program, is from a later Plimsoll, or
    /// cannot be written.
    pub fn open(results: &Path, tellers: Tellers) -> Result<Self, ReportError> {
        let root = root_of(results)?;
        let store = Store::open(&root.join(INDEX))?;
        Ok(Self {
            root,
            store,
            tellers,
        })
    }

    /// Rebuilds the index from the folders under a temporary name, which then replaces whatever is there.
    ///
    /// # Errors
    /// When the folder does not exist, or the index cannot be written.
    pub fn rebuild(results: &Path, tellers: Tellers) -> Result<Self, ReportError> {
        let root = root_of(results)?;
        let file = root.join(INDEX);
        store::make_anew(&file, |store| {
            let mut made = Self {
                root: root.clone(),
                store,
                tellers,
            };
            made.refresh()?;
            Ok(made.store)
        })?;
        Self::open(&root, tellers)
    }

    /// Updates the index: reads the folders that are new or whose record files have a different size or time, and
    /// forgets those that are gone.
    ///
    /// The answer names each broken folder with the reason. A broken folder does not keep the others from being read.
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

    /// Reads what a folder holds now.
    fn read(&self, folder: &Seen) -> State {
        if let Some(why) = &folder.unreadable {
            return State::Broken(why.clone());
        }
        match load(self.root.join(&folder.name), self.tellers) {
            Ok(results) => State::Result(entry::of(&folder.name, &results)),
            Err(ReportError::NoResult(_)) => State::Nothing,
            Err(error) => State::Broken(error.to_string()),
        }
    }

    /// The results that match a filter, newest first. Results whose time cannot be read come last.
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

    /// The load lines of a target over time, grouped by conditions. The group with the newest result comes first;
    /// within a group the oldest result comes first.
    ///
    /// Uses every field of `filter` except target, kind and limit.
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

    /// A folder by its name in the index. `None` when the index has no such name, or when following symbolic links
    /// leads out of the folder of results. A name from outside is only looked up, never turned into a path.
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

/// The path that a name leads to with all symbolic links followed, if it exists and lies below the folder.
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
