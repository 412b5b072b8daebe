//! A power cut beside a program that has copied all mounts. It is alone in this program, because it would keep the power
//! from the images of other tests as well.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::process::Command;

use plimsoll_host::disk::power::{BYTES_MIN, Image};
use plimsoll_testing::{eventually, skipped};

/// The kernel keeps a file system alive while somebody has a copy of its mount. It must not look as if its writer had failed.
#[test]
fn who_copies_the_mount_keeps_the_power_away() {
    let folder = tempfile::tempdir().expect("temp");
    let image = match Image::make(folder.path(), BYTES_MIN) {
        Ok(image) => image,
        Err(error) => {
            skipped!("no image can be had: {error}");
            return;
        }
    };
    let mut copier = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sleep", "60"])
        .spawn()
        .expect("unshare runs");
    let mounts_of = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let ours = mounts_of(std::process::id());
    eventually("the mounts are copied", || {
        mounts_of(copier.id()).is_some_and(|its| Some(its) != ours)
    });
    let file = image.folder().join("synced");
    let mut synced = File::create(&file).expect("created");
    synced.write_all(b"kept").expect("written");
    synced.sync_all().expect("synced");
    drop(synced);
    // And its name.
    let named = File::open(image.folder()).and_then(|folder| folder.sync_all());
    named.expect("synced");
    image.cut().expect("cut");
    let error = image.restore().expect_err("there is a copy of the mount");
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    assert!(
        error.to_string().contains("has a copy of this mount"),
        "{error}"
    );
    copier.kill().expect("killed");
    copier.wait().expect("waited for");
    image.restore().expect("restored");
    assert_eq!(std::fs::read(&file).expect("read"), b"kept");
}
