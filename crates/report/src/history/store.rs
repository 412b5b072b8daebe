//! The index as an SQLite file.
//!
//! One table has the folders, each with the stamp that its records had when they were read. Another has their results:
//! every field used to filter or sort has a column, and the whole result is kept as JSON. Every statement binds its
//! values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::walk::Seen;
use super::{Broken, Entry, Filter, Kind};
use crate::error::ReportError;
use crate::words::plain;

/// Tells our file from that of another program: `PLIM` in ASCII.
const APPLICATION_ID: i64 = 0x504c_494d;
/// Version of the tables and their content.
const VERSION: i64 = 2;
/// How long a command waits for another one that is writing.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    DROP TABLE IF EXISTS target;
    DROP TABLE IF EXISTS entry;
    DROP TABLE IF EXISTS folder;
    CREATE TABLE folder (
        name TEXT PRIMARY KEY,
        stamp TEXT NOT NULL,
        state TEXT NOT NULL,
        why TEXT NOT NULL
    );
    CREATE TABLE entry (
        folder TEXT NOT NULL REFERENCES folder (name),
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        workload TEXT NOT NULL,
        vcpu REAL,
        started_s INTEGER,
        record TEXT NOT NULL,
        PRIMARY KEY (folder, number)
    );
    CREATE INDEX entry_by_time ON entry (started_s);
    CREATE TABLE target (
        folder TEXT NOT NULL,
        number INTEGER NOT NULL,
        name TEXT NOT NULL
    );
    CREATE INDEX target_by_folder ON target (folder, number);
    CREATE INDEX target_by_name ON target (name);
";

/// What a folder contains.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// Results.
    Result(Vec<Entry>),
    /// Records that cannot be read, and why.
    Broken(String),
    /// JSON files, but no result, or no result yet.
    Nothing,
}

impl State {
    fn word(&self) -> &'static str {
        match self {
            Self::Result(_) => "result",
            Self::Broken(_) => "broken",
            Self::Nothing => "nothing",
        }
    }
}

/// The open index.
#[derive(Debug)]
pub(super) struct Store {
    file: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens the index, or creates an empty one.
    pub(super) fn open(file: &Path) -> Result<Self, ReportError> {
        let store = Self::open_plainly(file)?;
        store.done(write_ahead(&store.connection))?;
        Ok(store)
    }

    /// The same without a write-ahead log.
    fn open_plainly(file: &Path) -> Result<Self, ReportError> {
        // Without the URI flag, because the name could otherwise be read as a URI.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(file, flags);
        let connection = opened.map_err(|error| failed(file, &error))?;
        let mut store = Self {
            file: file.to_owned(),
            connection,
        };
        store.done(store.connection.busy_timeout(BUSY))?;
        store.make_ready()?;
        Ok(store)
    }

    fn make_ready(&mut self) -> Result<(), ReportError> {
        match self.done(contents_at_once(&self.connection))? {
            Contents::Ours(VERSION) => Ok(()),
            Contents::Ours(version) if version > VERSION => Err(unusable(
                &self.file,
                format!("its version is {version}, and this Plimsoll knows {VERSION}"),
                REBUILD,
            )),
            Contents::Ours(_) | Contents::Empty => {
                let made = create(&mut self.connection);
                self.done(made)
            }
            Contents::Foreign => Err(unusable(
                &self.file,
                "it is the database of another program".to_owned(),
                REBUILD,
            )),
        }
    }

    /// The stamp of every known folder.
    pub(super) fn stamps(&self) -> Result<BTreeMap<String, String>, ReportError> {
        let read = || -> rusqlite::Result<BTreeMap<String, String>> {
            let mut statement = self.connection.prepare("SELECT name, stamp FROM folder")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        self.done(read())
    }

    /// Stores what was read from folders and forgets those that are gone, as one transaction.
    pub(super) fn change(
        &mut self,
        changed: &[(&Seen, State)],
        gone: &[&String],
    ) -> Result<(), ReportError> {
        if changed.is_empty() && gone.is_empty() {
            // The usual case takes no lock.
            return Ok(());
        }
        let file = self.file.clone();
        let change = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for name in gone {
                forget(&transaction, name)?;
            }
            for (folder, state) in changed {
                forget(&transaction, &folder.name)?;
                remember(&transaction, folder, state)?;
            }
            transaction.commit()
        };
        change(&mut self.connection).map_err(|error| failed(&file, &error))
    }

    /// All folders that cannot be read, by name.
    pub(super) fn broken(&self) -> Result<Vec<Broken>, ReportError> {
        let read = || -> rusqlite::Result<Vec<Broken>> {
            let mut statement = self
                .connection
                .prepare("SELECT name, why FROM folder WHERE state = 'broken' ORDER BY name")?;
            let rows = statement.query_map([], |row| {
                Ok(Broken {
                    folder: row.get(0)?,
                    why: row.get(1)?,
                })
            })?;
            rows.collect()
        };
        self.done(read())
    }

    /// The folder of that name, as the index has it.
    pub(super) fn folder(&self, name: &str) -> Result<Option<(String, State)>, ReportError> {
        let found: Option<(String, String, String)> = self.done(
            self.connection
                .query_row(
                    "SELECT name, state, why FROM folder WHERE name = ?1",
                    params![name],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional(),
        )?;
        let Some((name, state, why)) = found else {
            return Ok(None);
        };
        let state = match state.as_str() {
            "result" => State::Result(self.of_folder(&name)?),
            "broken" => State::Broken(why),
            _ => State::Nothing,
        };
        Ok(Some((name, state)))
    }

    /// The results of one folder.
    pub(super) fn of_folder(&self, name: &str) -> Result<Vec<Entry>, ReportError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self
                .connection
                .prepare("SELECT record FROM entry WHERE folder = ?1 ORDER BY number")?;
            let rows = statement.query_map(params![name], |row| row.get(0))?;
            rows.collect()
        };
        self.entries(self.done(read())?)
    }

    /// The results that match the filter, newest first.
    pub(super) fn list(&self, filter: &Filter) -> Result<Vec<Entry>, ReportError> {
        let limit = filter.limit.map_or(-1, i64::from);
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(
                "SELECT record FROM entry
                 WHERE (?1 IS NULL OR kind = ?1)
                   AND (?2 IS NULL OR workload = ?2)
                   AND (?3 IS NULL OR started_s >= ?3)
                   AND (?4 IS NULL OR abs(vcpu - ?4) < 1e-9)
                   AND (?5 IS NULL OR EXISTS (
                       SELECT 1 FROM target
                       WHERE target.folder = entry.folder AND target.number = entry.number
                         AND target.name = ?5))
                 ORDER BY started_s DESC, folder DESC, number
                 LIMIT ?6",
            )?;
            let rows = statement.query_map(
                params![
                    filter.kind.map(Kind::word),
                    filter.workload,
                    filter.since.map(unix_s),
                    filter.vcpu,
                    filter.target,
                    limit
                ],
                |row| row.get(0),
            )?;
            rows.collect()
        };
        self.entries(self.done(read())?)
    }

    fn entries(&self, records: Vec<String>) -> Result<Vec<Entry>, ReportError> {
        let entry = |record: String| {
            serde_json::from_str(&record)
                .map_err(|error| unusable(&self.file, error.to_string(), REBUILD))
        };
        records.into_iter().map(entry).collect()
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, ReportError> {
        result.map_err(|error| failed(&self.file, &error))
    }
}

/// Which program the file belongs to.
enum Contents {
    Ours(i64),
    Empty,
    Foreign,
}

fn contents(connection: &Connection) -> rusqlite::Result<Contents> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(match (application, version, tables) {
        (APPLICATION_ID, version, _) => Contents::Ours(version),
        (0, 0, 0) => Contents::Empty,
        _ => Contents::Foreign,
    })
}

/// The same in one transaction, because another command may be creating the tables right now.
fn contents_at_once(connection: &Connection) -> rusqlite::Result<Contents> {
    let transaction = connection.unchecked_transaction()?;
    let contents = contents(&transaction)?;
    transaction.commit()?;
    Ok(contents)
}

/// Creates the tables, unless another command was faster. Tables of an earlier version are dropped, because the folders
/// have all the data.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !matches!(contents(&transaction)?, Contents::Ours(VERSION)) {
        transaction.execute_batch(SCHEMA)?;
        let pragmas =
            format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};");
        transaction.execute_batch(&pragmas)?;
    }
    transaction.commit()
}

/// With write-ahead logging, readers and a writer do not wait for each other. Where the file system does not support
/// it, or another command is switching it on, the journal stays as it is. That is slower, but just as safe.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
        row.get::<_, String>(0)
    });
    match mode {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

fn forget(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM target WHERE folder = ?1",
        "DELETE FROM entry WHERE folder = ?1",
        "DELETE FROM folder WHERE name = ?1",
    ] {
        transaction.execute(sql, params![name])?;
    }
    Ok(())
}

fn remember(transaction: &Transaction<'_>, folder: &Seen, state: &State) -> rusqlite::Result<()> {
    let (entries, why): (&[Entry], &str) = match state {
        State::Result(entries) => (entries, ""),
        State::Broken(why) => (&[], why),
        State::Nothing => (&[], ""),
    };
    transaction.execute(
        "INSERT INTO folder (name, stamp, state, why) VALUES (?1, ?2, ?3, ?4)",
        params![folder.name, folder.stamp, state.word(), plain(why)],
    )?;
    for (number, entry) in (0_i64..).zip(entries) {
        let record = serde_json::to_string(entry)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        transaction.execute(
            "INSERT INTO entry (folder, number, kind, workload, vcpu, started_s, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                folder.name,
                number,
                entry.kind.word(),
                entry.workload,
                entry.vcpu,
                entry.began().map(unix_s),
                record
            ],
        )?;
        for target in &entry.targets {
            transaction.execute(
                "INSERT INTO target (folder, number, name) VALUES (?1, ?2, ?3)",
                params![folder.name, number, target],
            )?;
        }
    }
    Ok(())
}

/// Seconds since 1970; 0 for an earlier time.
fn unix_s(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The name of a file under construction. It says which program it belongs to, in case a crash leaves it behind.
fn temporary(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.plimsoll-tmp-{}", std::process::id()))
}

/// Builds the index under a temporary name and puts it in place of the old one.
///
/// The log of the old file is removed first, so that it is not taken for the new file's log. A command that has the old
/// file open keeps using it, without a name.
pub(super) fn make_anew(
    file: &Path,
    fill: impl FnOnce(Store) -> Result<Store, ReportError>,
) -> Result<(), ReportError> {
    let temporary = temporary(file);
    remove(&temporary)?;
    let made = Store::open_plainly(&temporary)
        .and_then(fill)
        .and_then(|store| {
            let closed = store.connection.close();
            closed.map_err(|(_, error)| failed(&temporary, &error))
        })
        .and_then(|()| {
            for suffix in ["-wal", "-shm", "-journal"] {
                remove(&beside(file, suffix))?;
            }
            fs::rename(&temporary, file).map_err(|error| ReportError::write(file, error))
        });
    if made.is_err() {
        // If this fails, there is nothing better to do, and the reported error came first.
        let _ = fs::remove_file(&temporary);
        let _ = fs::remove_file(beside(&temporary, "-journal"));
    }
    made
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(file: &Path) -> Result<(), ReportError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(ReportError::write(file, error))
        }
        _ => Ok(()),
    }
}

const REBUILD: &str = "`plimsoll history --rebuild` makes it anew from the result folders";

fn unusable(file: &Path, why: String, remedy: &'static str) -> ReportError {
    ReportError::Index {
        path: file.to_owned(),
        why,
        remedy,
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn failed(file: &Path, error: &rusqlite::Error) -> ReportError {
    let remedy = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another plimsoll is writing it: try again"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "check the permissions of the folder that it is in"
        }
        Some(ErrorCode::DiskFull) => "free space on that disk",
        _ => REBUILD,
    };
    unusable(file, plain(&error.to_string()), remedy)
}
