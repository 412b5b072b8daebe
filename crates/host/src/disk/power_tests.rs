//! Tests of power cuts. They need root; without it they say that they were skipped.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

use plimsoll_testing::{eventually, skipped};

use super::*;

const BYTES: u64 = BYTES_MIN;

/// A folder and an image in it; `None` where there can be none.
fn image() -> Option<(tempfile::TempDir, Image)> {
    let folder = tempfile::tempdir().expect("temp");
    match Image::make(folder.path(), BYTES) {
        Ok(image) => Some((folder, image)),
        Err(error) => {
            cannot_be_had(&error);
            None
        }
    }
}

/// An error is a failure, unless this machine has no images, or the kernel forbids them after all, as in a container.
fn cannot_be_had(error: &io::Error) {
    let no_device =
        error.kind() == io::ErrorKind::NotFound && error.to_string().contains("/dev/loop");
    let excused = matches!(
        error.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
    );
    assert!(no_device || excused, "{error}");
    skipped!("no image can be had: {error}");
}

/// Whether the loop device still has the file of the image that was mounted here. Other tests use the same devices.
fn attached(device: &Path, point: &Path) -> bool {
    let device = Path::new("/sys/block").join(device.file_name().expect("a name"));
    let file = std::fs::read_to_string(device.join("loop/backing_file"));
    let name = point.file_name().and_then(|name| name.to_str());
    file.is_ok_and(|file| file.contains(name.expect("a name")))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("read").next().is_none()
}

fn write(path: &Path, content: &[u8], synced: bool) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("opened");
    file.write_all(content).expect("written");
    if synced {
        file.sync_all().expect("synced");
    }
}

#[test]
fn what_was_synced_survives_a_cut_and_the_rest_does_not() {
    let Some((_folder, image)) = image() else {
        return;
    };
    let of = |name: &str| image.folder().join(name);
    let synced = vec![7u8; 100_000];
    write(&of("synced"), &synced, true);
    // The tail of a log that was not synced, and a file that never was.
    write(&of("half"), b"synced", true);
    write(&of("half"), b" and not", false);
    write(&of("not"), &synced, false);
    assert_eq!(std::fs::read(of("not")).expect("in memory"), synced);
    image.cut().expect("cut");
    // A second cut changes nothing.
    image.cut().expect("cut");
    let late = OpenOptions::new().append(true).open(of("synced"));
    let late = late.and_then(|mut file| file.write_all(b"late").and_then(|()| file.sync_all()));
    assert!(late.is_err(), "nothing is synced without power");
    image.restore().expect("restored");
    assert_eq!(std::fs::read(of("synced")).expect("there"), synced);
    assert_eq!(std::fs::read(of("half")).expect("there"), b"synced");
    let left = std::fs::read(of("not")).unwrap_or_default();
    assert!(
        left.is_empty(),
        "{} bytes of a file that was never synced",
        left.len()
    );
    // It is a disk like any other afterwards, and can lose its power again.
    write(&of("again"), b"again", true);
    write(&of("lost"), b"lost", false);
    image.cut().expect("cut");
    image.restore().expect("restored");
    assert_eq!(std::fs::read(of("again")).expect("there"), b"again");
    assert!(std::fs::read(of("lost")).unwrap_or_default().is_empty());
}

#[test]
fn an_image_is_a_disk_of_its_own_and_goes_with_its_owner() {
    let Some((folder, image)) = image() else {
        return;
    };
    assert!(is_empty(image.folder()));
    let found = crate::disk::file_system(image.folder()).expect("known");
    assert_eq!((found.kind.as_str(), found.in_memory), ("ext4", false));
    let device = found.device.expect("a loop device");
    assert_eq!(Path::new("/dev").join(&device.name), image.device.path());
    assert!(found.free_bytes > BYTES / 2 && found.free_bytes < BYTES);
    // The image's file has no name.
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
    write(&image.folder().join("file"), b"not synced", false);
    let (path, point) = (image.device.path().to_owned(), image.point.clone());
    assert!(attached(&path, &point));
    drop(image);
    assert!(is_empty(folder.path()));
    eventually("the loop device lets go of its file", || {
        !attached(&path, &point)
    });
}

#[test]
fn an_image_goes_after_a_panic_and_while_somebody_uses_it() {
    let Some((folder, image)) = image() else {
        return;
    };
    let (path, point) = (image.device.path().to_owned(), image.point.clone());
    let mut user = Command::new("sleep")
        .arg("600")
        .current_dir(image.folder())
        .spawn()
        .expect("sleep");
    let panicked = std::thread::spawn(move || {
        let _image = image;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(is_empty(folder.path()));
    assert!(attached(&path, &point), "somebody still has a folder there");
    user.kill().expect("kill");
    user.wait().expect("reaped");
    eventually("the loop device lets go of its file", || {
        !attached(&path, &point)
    });
}

#[test]
fn power_does_not_come_back_while_somebody_uses_the_folder() {
    let Some((_folder, image)) = image() else {
        return;
    };
    let path = image.folder().join("file");
    write(&path, b"synced", true);
    let used = File::open(&path).expect("opened");
    image.cut().expect("cut");
    std::thread::scope(|scope| {
        let restored = scope.spawn(|| image.restore());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!restored.is_finished(), "it waits for those who use it");
        drop(used);
        restored.join().expect("no panic").expect("restored");
    });
    assert_eq!(std::fs::read(&path).expect("there"), b"synced");
}

/// The variable that makes the next test be the process that is killed; its value is the folder.
const VICTIM: &str = "PLIMSOLL_TEST_IMAGE_IN";

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next_one() {
    if let Some(folder) = std::env::var_os(VICTIM) {
        let _image = Image::make(Path::new(&folder), BYTES).expect("made");
        // Until it is killed; but not for ever if nobody does.
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let Some((_of_ours, ours)) = image() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temp");
    let test = "disk::power::tests::what_a_killed_run_leaves_is_removed_by_the_next_one";
    let mut victim = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", test])
        .env(VICTIM, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    let mounted = || {
        let mounts = mounts::all().expect("visible").into_iter();
        let at = folder.path().canonicalize().expect("there");
        let mut in_folder = mounts.filter(|mount| mount.point.starts_with(&at));
        in_folder
            .next()
            .filter(|mount| mount.point.join(DATA).is_dir())
    };
    eventually("it has made its image", || mounted().is_some());
    let left = mounted().expect("mounted");
    // While its maker lives, it is left alone.
    unmount_stale();
    assert!(left.point.join(DATA).is_dir());
    victim.kill().expect("kill");
    victim.wait().expect("reaped");
    // The tests of sweeps do the same at the same time.
    eventually("it is unmounted", || {
        unmount_stale();
        is_empty(folder.path())
    });
    eventually("the loop device lets go of its file", || {
        !attached(&left.source, &left.point)
    });
    write(&ours.folder().join("file"), b"synced", true);
}

#[test]
fn a_folder_that_a_killed_run_did_not_mount_yet_is_removed_too() {
    let Some((folder, image)) = image() else {
        return;
    };
    drop(image);
    let left = folder.path().join(Maker::nobody().name(1));
    std::fs::create_dir(&left).expect("made");
    drop(Image::make(folder.path(), BYTES).expect("made"));
    assert!(is_empty(folder.path()));
}

#[test]
fn what_is_too_small_or_too_large_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("temp");
    if let Some(why) = why_not() {
        assert!(!why.contains('\n'), "{why}");
        let error = Image::make(folder.path(), BYTES).expect_err("it cannot be");
        assert_eq!(error.to_string(), why);
        skipped!("no image can be had: {why}");
        return;
    }
    let small = Image::make(folder.path(), BYTES_MIN - 1).expect_err("too small");
    assert!(small.to_string().contains("too small"), "{small}");
    let large = Image::make(folder.path(), 1 << 62).expect_err("too large");
    assert!(large.to_string().starts_with("taking "), "{large}");
    assert!(Image::make(&folder.path().join("gone"), BYTES).is_err());
    assert!(is_empty(folder.path()));
}

#[test]
fn capabilities_are_read_from_the_status() {
    let root = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001fffeffffff\n";
    assert!(effective_capabilities(root).is_some_and(|set| set & SYS_ADMIN != 0));
    let user = "CapEff:\t0000000000000000\n";
    assert_eq!(effective_capabilities(user), Some(0));
    assert_eq!(effective_capabilities("CapPrm:\t00\n"), None);
}
