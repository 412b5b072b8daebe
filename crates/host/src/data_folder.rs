//! A fresh folder for what a target writes: made for one start, removed after its end.
//!
//! It may be on any disk, so there is no one place to look for what a killed run left behind. While a folder exists, there
//! is a mark of it in the user's state folder ([`crate::state`]): a link that leads to it and has its maker's name.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::record::FileSystem;

use crate::disk::{file_system, power};
use crate::error::{Error, Result};
use crate::maker::Maker;
use crate::state;

/// The variable in which a target gets the path of its folder.
pub const DATA_DIR: &str = "DATA_DIR";

/// How long to go on if files still appear while the folder is removed: a process that is killed may write until then.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// What a target needs of a folder for its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The folder in which it is made, as the user gave it with `--data-dir`; it must exist and be empty. `None`: beside
    /// the logs.
    pub at: Option<PathBuf>,
    /// The least free space there, in bytes.
    pub least_free_bytes: u64,
    /// Whether it must be on a disk, because the load measures what reaches one.
    pub on_disk: bool,
}

/// Checks that a folder that loses its power can be made ([`DataFolder::make_in_image`]), before anything is started.
///
/// # Errors
/// One line with the remedy.
pub fn must_lose_power() -> Result<()> {
    match power::why_not() {
        Some(why) => Err(Error::Usage(format!(
            "--crash power: {why}; or use --crash kill"
        ))),
        None => Ok(()),
    }
}

impl Data {
    /// Checks that such a folder can be made, before anything is started. `usual` is where it is made if the user gave no
    /// place; that need not exist yet.
    ///
    /// # Errors
    /// One line with the remedy.
    pub fn must_be_possible(&self, usual: &Path) -> Result<()> {
        if let Some(at) = &self.at {
            must_be_empty(at)?;
        }
        let place = existing(self.at.as_deref().unwrap_or(usual));
        let refuse = |why: &str| {
            Err(Error::Usage(format!(
                "{}: {why} with --data-dir",
                place.display()
            )))
        };
        let found = file_system(&place)
            .map_err(|error| Error::io("reading the file system of", &place, error))?;
        if found.in_memory && self.on_disk {
            return refuse(&format!(
                "a durability measured on {} says nothing; choose a folder on a disk",
                found.kind
            ));
        }
        let free = found.free_bytes;
        if free < self.least_free_bytes {
            return refuse(&format!(
                "{} MB are free, and the target's data may take {} MB; free some, or choose another folder",
                free / 1_000_000,
                self.least_free_bytes.div_ceil(1_000_000)
            ));
        }
        Ok(())
    }
}

fn must_be_empty(at: &Path) -> Result<()> {
    let refuse = |why: &str| Err(Error::Usage(format!("--data-dir {}: {why}", at.display())));
    match fs::read_dir(at).map(|mut entries| entries.next()) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => refuse("the folder is not empty; empty it, or give another one"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse("there is no such folder; make it, or leave the flag out")
        }
        Err(error) => refuse(&format!("{error}; give an empty folder")),
    }
}

/// The folder itself, or what exists above it.
fn existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let found = absolute.ancestors().find(|above| above.exists());
    found.map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// The folder. Dropping it removes it with everything in it; nobody may write there any more.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// What is mounted in the folder, if its power is cut.
    image: Option<power::Image>,
    /// The link that leads to it; `None` if there is no place for links.
    mark: Option<PathBuf>,
    file_system: Option<FileSystem>,
}

impl DataFolder {
    /// Makes the folder.
    ///
    /// # Errors
    /// As [`Data::must_be_possible`], or it cannot be made.
    pub fn make(data: &Data, usual: &Path) -> Result<Self> {
        Self::marked(data, usual, marks().as_deref())
    }

    /// Makes the folder on a file system of its own, in an image of [`Data::least_free_bytes`], so that its power can be cut.
    ///
    /// # Errors
    /// As [`must_lose_power`] and [`Data::must_be_possible`], or it cannot be made.
    pub fn make_in_image(data: &Data, usual: &Path) -> Result<Self> {
        Self::marked(data, usual, marks().as_deref())?.with_image(data)
    }

    fn with_image(mut self, data: &Data) -> Result<Self> {
        must_lose_power()?;
        let place = &self.path;
        let image = power::Image::make(place, data.least_free_bytes);
        let failed = |error| Error::io("making an image for the target's data in", place, error);
        self.image = Some(image.map_err(failed)?);
        self.file_system = file_system(self.path()).ok();
        Ok(self)
    }

    fn marked(data: &Data, usual: &Path, marks: Option<&Path>) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        data.must_be_possible(usual)?;
        let place = data.at.as_deref().unwrap_or(usual);
        let failed = |error| Error::io("making a folder for the target's data in", place, error);
        fs::create_dir_all(place).map_err(failed)?;
        let name = Maker::us().name(NEXT.fetch_add(1, Ordering::Relaxed));
        let path = place.canonicalize().map_err(failed)?.join(hidden(&name));
        fs::create_dir(&path).map_err(failed)?;
        let mut made = Self {
            // Without a mark, only a killed run is worse off: the user finds the folder where it is.
            mark: marks.and_then(|marks| mark(&marks.join(&name), &path).ok()),
            file_system: None,
            image: None,
            path,
        };
        made.file_system = file_system(made.path()).ok();
        Ok(made)
    }

    /// The absolute path that the target gets.
    #[must_use]
    pub fn path(&self) -> &Path {
        let image = self.image.as_ref();
        image.map_or(&self.path, power::Image::folder)
    }

    /// Cuts the power of its disk, if it can lose it ([`DataFolder::make_in_image`]): nothing that is written now is kept. Kill
    /// what uses the folder, then call [`DataFolder::restore_power`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cut_power(&self) -> Result<()> {
        self.of_image("cutting the power of", power::Image::cut)
    }

    /// Gives the power back. The folder then holds what had reached the disk.
    ///
    /// # Errors
    /// A process still uses the folder, or what is on the disk cannot be mounted.
    pub fn restore_power(&self) -> Result<()> {
        self.of_image("mounting again", power::Image::restore)
    }

    fn of_image(&self, what: &str, act: fn(&power::Image) -> io::Result<()>) -> Result<()> {
        let done = self.image.as_ref().map_or(Ok(()), act);
        done.map_err(|error| Error::io(what, self.path(), error))
    }

    /// The variable by which a target gets it.
    #[must_use]
    pub fn variable(&self) -> (String, String) {
        (DATA_DIR.to_owned(), self.path().display().to_string())
    }

    /// Its file system; `None` if the system does not tell.
    #[must_use]
    pub fn file_system(&self) -> Option<&FileSystem> {
        self.file_system.as_ref()
    }

    /// Removes it with everything in it.
    ///
    /// # Errors
    /// Something in it cannot be removed.
    pub fn remove(mut self) -> Result<()> {
        self.clear()
            .map_err(|error| Error::io("removing the target's data in", &self.path, error))
    }

    fn clear(&mut self) -> io::Result<()> {
        // What is mounted cannot be removed.
        drop(self.image.take());
        remove_all(&self.path)?;
        match self.mark.take() {
            Some(mark) => fs::remove_file(mark),
            None => Ok(()),
        }
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // Nobody is left to report a failure to. With its mark, the next run tries again.
        let _ = self.clear();
    }
}

fn hidden(name: &str) -> OsString {
    format!(".{name}").into()
}

/// Leaves a link that leads to the folder.
fn mark(at: &Path, path: &Path) -> io::Result<PathBuf> {
    let folder = at.parent().unwrap_or(at);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    symlink(path, at)?;
    Ok(at.to_owned())
}

/// The folder of the marks.
fn marks() -> Option<PathBuf> {
    Some(state::folder()?.join("data"))
}

/// Removes a folder with everything in it. It is no error if it is gone.
fn remove_all(path: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error)
                if error.kind() == ErrorKind::DirectoryNotEmpty
                    && began.elapsed() < REMOVAL_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            removed => return removed,
        }
    }
}

/// Removes what killed runs of this user left behind.
pub(crate) fn sweep_data() {
    if let Some(marks) = marks() {
        sweep(&marks);
    }
}

fn sweep(marks: &Path) {
    let marks = fs::read_dir(marks).into_iter().flatten().flatten();
    for mark in marks {
        let name = mark.file_name().to_string_lossy().into_owned();
        let stale = Maker::of(&name).is_some_and(Maker::is_dead);
        let Ok(path) = fs::read_link(mark.path()) else {
            continue;
        };
        // Wherever the link leads, only a folder of that name is one of ours.
        let is_ours = path.is_absolute() && path.file_name() == Some(hidden(&name).as_os_str());
        if stale && is_ours && remove_all(&path).is_ok() {
            // If this fails, the next run removes it.
            let _ = fs::remove_file(mark.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker::tests::{elsewhere, nobody};

    fn data(at: Option<&Path>) -> Data {
        Data {
            at: at.map(Path::to_owned),
            least_free_bytes: 1,
            on_disk: false,
        }
    }

    fn refused(data: &Data, usual: &Path) -> String {
        let error = data.must_be_possible(usual).expect_err("refused");
        assert!(matches!(error, Error::Usage(_)), "{error}");
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn a_folder_is_fresh_hidden_and_gone_after_it() {
        let home = tempfile::tempdir().expect("temp");
        let (usual, marks) = (home.path().join("a/logs"), home.path().join("marks"));
        let make = || DataFolder::marked(&data(None), &usual, Some(&marks)).expect("made");
        let (one, two) = (make(), make());
        let path = one.path().to_owned();
        assert!(path.is_absolute() && path != two.path());
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(name.starts_with(".plimsoll-"), "{name}");
        assert_eq!(
            one.variable(),
            ("DATA_DIR".into(), path.display().to_string())
        );
        assert!(one.file_system().is_some());
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 0);
        assert_eq!(fs::read_dir(&marks).expect("marks").count(), 2);
        fs::create_dir(path.join("segments")).expect("mkdir");
        fs::write(path.join("segments/0"), "x").expect("write");
        // Our own are not swept.
        sweep(&marks);
        assert!(path.join("segments/0").exists());
        one.remove().expect("removed");
        drop(two);
        assert_eq!(fs::read_dir(&usual).expect("logs").count(), 0);
        assert_eq!(fs::read_dir(&marks).expect("marks").count(), 0);
    }

    #[test]
    fn without_a_place_for_marks_there_is_a_folder_all_the_same() {
        let home = tempfile::tempdir().expect("temp");
        let file = home.path().join("file");
        fs::write(&file, "x").expect("write");
        for marks in [None, Some(file.as_path())] {
            let made = DataFolder::marked(&data(None), home.path(), marks).expect("made");
            let path = made.path().to_owned();
            assert!(path.is_dir());
            made.remove().expect("removed");
            assert!(!path.exists());
        }
    }

    #[test]
    fn the_users_folder_must_exist_and_be_empty_and_stays() {
        let home = tempfile::tempdir().expect("temp");
        let at = home.path().join("at");
        let text = refused(&data(Some(&at)), home.path());
        let told = format!("--data-dir {}: there is no such folder", at.display());
        assert!(text.starts_with(&told), "{text}");
        fs::write(&at, "x").expect("write");
        let text = refused(&data(Some(&at)), home.path());
        assert!(text.ends_with("give an empty folder"), "{text}");
        fs::remove_file(&at).expect("rm");
        fs::create_dir(&at).expect("mkdir");
        let made = DataFolder::marked(&data(Some(&at)), home.path(), None).expect("made");
        assert_eq!(made.path().parent(), Some(&*at.canonicalize().expect("at")));
        // While somebody uses it, nobody else may.
        let text = refused(&data(Some(&at)), home.path());
        assert!(text.contains("the folder is not empty; empty it"), "{text}");
        made.remove().expect("removed");
        assert_eq!(fs::read_dir(&at).expect("stays").count(), 0);
    }

    #[test]
    fn too_little_space_is_refused_before_anything_is_made() {
        let home = tempfile::tempdir().expect("temp");
        let usual = home.path().join("results/logs");
        let greedy = Data {
            least_free_bytes: u64::MAX,
            ..data(None)
        };
        let text = refused(&greedy, &usual);
        assert!(
            text.contains("MB are free") && text.ends_with("with --data-dir"),
            "{text}"
        );
        assert!(DataFolder::marked(&greedy, &usual, None).is_err());
        assert!(!home.path().join("results").exists());
    }

    #[test]
    fn memory_is_no_disk() {
        let memory = Path::new("/dev/shm");
        if !file_system(memory).is_ok_and(|found| found.in_memory) {
            plimsoll_testing::skipped!("/dev/shm is no tmpfs here");
            return;
        }
        let durable = Data {
            on_disk: true,
            ..data(None)
        };
        assert_eq!(
            refused(&durable, &memory.join("results/logs")),
            "/dev/shm: a durability measured on tmpfs says nothing; choose a folder on a disk with --data-dir"
        );
        assert!(data(None).must_be_possible(memory).is_ok());
    }

    #[test]
    fn a_folder_that_loses_its_power_keeps_what_was_synced() {
        let home = tempfile::tempdir().expect("temp");
        let data = Data {
            least_free_bytes: power::BYTES_MIN,
            ..data(None)
        };
        if let Some(why) = power::why_not() {
            let text = must_lose_power().expect_err("refused").to_string();
            assert_eq!(text, format!("--crash power: {why}; or use --crash kill"));
            plimsoll_testing::skipped!("{why}");
            return;
        }
        let made = match DataFolder::marked(&data, home.path(), None)
            .and_then(|made| made.with_image(&data))
        {
            Ok(made) => made,
            // The kernel may forbid it after all, as in a container.
            Err(error) => {
                plimsoll_testing::skipped!("no image can be had: {error}");
                return;
            }
        };
        let path = made.path().to_owned();
        assert_eq!(made.variable().1, path.display().to_string());
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 0);
        assert_eq!(made.file_system().expect("known").kind, "ext4");
        fs::write(path.join("synced"), "kept").expect("write");
        fs::File::open(path.join("synced"))
            .and_then(|file| file.sync_all())
            .expect("synced");
        fs::write(path.join("not"), "lost").expect("write");
        made.cut_power().expect("cut");
        made.restore_power().expect("restored");
        let synced = fs::read_to_string(path.join("synced"));
        assert_eq!(synced.expect("there"), "kept");
        assert!(fs::read(path.join("not")).unwrap_or_default().is_empty());
        made.remove().expect("removed");
        assert_eq!(fs::read_dir(home.path()).expect("home").count(), 0);
    }

    #[test]
    fn only_folders_of_dead_makers_are_swept() {
        let home = tempfile::tempdir().expect("temp");
        let marks = home.path().join("marks");
        let left = |maker: Maker, number: u32| {
            let name = maker.name(number);
            let path = home.path().join(hidden(&name));
            fs::create_dir(&path).expect("mkdir");
            fs::write(path.join("0"), "x").expect("write");
            mark(&marks.join(&name), &path).expect("marked");
            path
        };
        let dead = left(nobody(), 1);
        let kept = [left(Maker::us(), 77), left(elsewhere(), 1)];
        // A link that leads to something else touches nothing.
        let foreign = home.path().join("foreign");
        fs::create_dir(&foreign).expect("mkdir");
        mark(&marks.join(nobody().name(2)), &foreign).expect("marked");
        // One whose folder is gone is in the way.
        let gone = left(nobody(), 3);
        fs::remove_dir_all(&gone).expect("rm");
        sweep(&marks);
        assert!(!dead.exists() && kept.iter().all(|path| path.join("0").exists()));
        assert!(foreign.exists());
        let mut names: Vec<_> = fs::read_dir(&marks)
            .expect("marks")
            .map(|mark| {
                mark.expect("mark")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        names.sort();
        let mut left = vec![Maker::us().name(77), elsewhere().name(1), nobody().name(2)];
        left.sort();
        assert_eq!(names, left);
    }
}
