//! Packed records: they give the same report byte for byte, and only records are ever unpacked.

mod example;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use example::TELLERS;
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_report::history::{Filter, History};
use plimsoll_report::{PACKED, ReportError, ResultFolder, load, pack, render_to};
use tar::{EntryType, Header};

/// The folder of a search, with rows per second and histograms.
fn search(place: &Path) -> ResultFolder {
    let folder = ResultFolder::create(place.join("search")).unwrap();
    let find = example::find();
    for trial in &find.trials {
        let (seconds, intervals) = (example::seconds(), example::intervals());
        folder.write_trial(trial, &seconds, &intervals).unwrap();
    }
    folder.write_bracket(&find.bracket).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_packed_folder_has_the_same_report_byte_for_byte() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    let (loose, packed) = (place.path().join("loose"), place.path().join("packed"));
    render_to(folder.path(), &loose, TELLERS).unwrap();
    let packing = pack(folder.path()).unwrap();
    assert_eq!(names(folder.path()), [PACKED]);
    assert!(packing.bytes * 2 < packing.bytes_before, "{packing:?}");

    render_to(folder.path(), &packed, TELLERS).unwrap();
    let drawn = names(&loose);
    assert!(
        drawn.iter().any(|name| name == "percentiles.svg"),
        "histograms were read: {drawn:?}"
    );
    assert!(
        drawn.iter().any(|name| name == "timeline.svg"),
        "rows were read: {drawn:?}"
    );
    assert_eq!(drawn, names(&packed));
    for name in drawn {
        let same = fs::read(loose.join(&name)).unwrap() == fs::read(packed.join(&name)).unwrap();
        assert!(same, "{name} differs");
    }
    // The file alone works too, under any name.
    let elsewhere = place.path().join("from-a-colleague.tar.gz");
    fs::copy(folder.path().join(PACKED), &elsewhere).unwrap();
    let trials = |path: &Path| load(path, TELLERS).unwrap().trials.len();
    assert_eq!(trials(&elsewhere), trials(folder.path()));
}

#[test]
fn the_same_records_make_the_same_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    let copy = place.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in names(folder.path()) {
        let to = copy.join(&name);
        fs::copy(folder.path().join(&name), &to).unwrap();
        let at = fs::metadata(folder.path().join(&name)).unwrap().modified();
        let to = File::options().write(true).open(to).unwrap();
        to.set_modified(at.unwrap()).unwrap();
    }
    for folder in [folder.path(), &copy] {
        pack(folder).unwrap();
    }
    let bytes = |folder: &Path| fs::read(folder.join(PACKED)).unwrap();
    assert!(bytes(folder.path()) == bytes(&copy));
}

#[test]
fn what_a_crash_left_loose_is_removed_and_what_differs_is_not() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    let one = folder.path().join("trial-001.json");
    let record = fs::read(&one).unwrap();
    pack(folder.path()).unwrap();
    let again = pack(folder.path()).unwrap_err().to_string();
    assert!(again.contains("packed already"), "{again}");

    fs::write(&one, &record).unwrap();
    let both = load(folder.path(), TELLERS).unwrap_err().to_string();
    assert!(
        both.contains("trial-001.json beside records.tar.gz"),
        "{both}"
    );
    assert_eq!(pack(folder.path()).unwrap().records, 1);
    assert_eq!(names(folder.path()), [PACKED]);

    fs::write(&one, b"{}").unwrap();
    assert!(matches!(
        pack(folder.path()),
        Err(ReportError::PackedAndLoose { .. })
    ));
    assert!(one.exists());
}

#[test]
fn a_folder_that_is_broken_or_live_or_empty_is_not_packed() {
    let place = tempfile::tempdir().unwrap();
    assert!(matches!(pack(place.path()), Err(ReportError::NoResult(_))));
    let folder = search(place.path());
    let before = names(folder.path());
    fs::write(folder.path().join("live.json"), b"{}").unwrap();
    let live = pack(folder.path()).unwrap_err().to_string();
    assert!(live.contains("still writing to it"), "{live}");
    fs::remove_file(folder.path().join("live.json")).unwrap();
    fs::write(folder.path().join("bracket.json"), b"not JSON").unwrap();
    let broken = pack(folder.path()).unwrap_err().to_string();
    assert!(broken.contains("bracket.json is broken"), "{broken}");
    assert_eq!(names(folder.path()), before);
}

#[test]
fn nothing_is_measured_into_a_packed_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    pack(folder.path()).unwrap();
    let refused = ResultFolder::create(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("tar -xzf records.tar.gz"), "{refused}");
    let refused = plimsoll_report::load_search_plan(folder.path()).unwrap_err();
    assert!(matches!(refused, ReportError::IsPacked(_)));
}

#[test]
fn the_history_knows_packed_results() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    let mut history = History::open(place.path(), TELLERS).unwrap();
    history.refresh().unwrap();
    let loose = history.list(&Filter::default()).unwrap();
    assert!(!loose.is_empty());
    pack(folder.path()).unwrap();
    let refreshed = history.refresh().unwrap();
    assert_eq!((refreshed.read, refreshed.broken.len()), (1, 0));
    assert_eq!(history.list(&Filter::default()).unwrap(), loose);
}

/// An archive with these entries: kind, name as in the header, content.
fn archive(folder: &Path, entries: &[(EntryType, &str, &[u8])]) {
    let file = File::create(folder.join(PACKED)).unwrap();
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    for (kind, name, content) in entries {
        let mut header = Header::new_ustar();
        // Written as bytes, because the library refuses such names.
        header.as_ustar_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/hostname").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
}

#[track_caller]
fn refused(entries: &[(EntryType, &str, &[u8])], why: &str) {
    let place = tempfile::tempdir().unwrap();
    archive(place.path(), entries);
    let error = load(place.path(), TELLERS).unwrap_err().to_string();
    assert!(error.contains("records.tar.gz is broken"), "{error}");
    assert!(error.contains(why), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn hostile_archives_are_refused() {
    let plain = "which is not the plain file of a record";
    let file = EntryType::Regular;
    for name in [
        "../trial-001.json",
        "/tmp/trial-001.json",
        "logs/trial-001.json",
        "./trial-001.json",
        "trial-001.json/../../x",
        "index.sqlite",
        ".bashrc",
        "bracket-../../x.json",
        "",
    ] {
        refused(&[(file, name, b"{}")], plain);
    }
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::GNULongName,
        EntryType::XHeader,
        EntryType::GNUSparse,
    ] {
        refused(&[(kind, "trial-001.json", b"")], plain);
    }
    let twice: &[(EntryType, &str, &[u8])] =
        &[(file, "check.json", b"{}"), (file, "check.json", b"[]")];
    refused(twice, "holds check.json twice");
    refused(&[], "holds no record");
}

#[test]
fn an_archive_of_very_many_files_is_refused() {
    let names: Vec<String> = (0..10_001)
        .map(|number| format!("trial-{number:05}.csv"))
        .collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| (EntryType::Regular, name.as_str(), &b""[..]))
        .collect();
    refused(&entries, "more than 10000 files");
}

/// A gigabyte of zeros packs into a megabyte.
#[test]
fn an_archive_that_unpacks_to_very_much_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = File::create(place.path().join(PACKED)).unwrap();
    let mut gzip = GzEncoder::new(file, Compression::fast());
    let mut header = Header::new_ustar();
    header.set_path("trial-001.csv").unwrap();
    header.set_entry_type(EntryType::Regular);
    // More than the archive holds: the limit must count the actual bytes.
    header.set_size(1 << 40);
    header.set_cksum();
    gzip.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..1_025 {
        gzip.write_all(&zeros).unwrap();
    }
    gzip.finish().unwrap();
    let error = load(place.path(), TELLERS).unwrap_err().to_string();
    assert!(
        error.contains("unpacks to more than 1073741824 bytes"),
        "{error}"
    );
}

#[test]
fn an_archive_that_is_cut_or_none_is_named() {
    let place = tempfile::tempdir().unwrap();
    let folder = search(place.path());
    pack(folder.path()).unwrap();
    let file = folder.path().join(PACKED);
    let whole = fs::read(&file).unwrap();
    for bytes in [&whole[..whole.len() / 2], b"not gzip", b""] {
        fs::write(&file, bytes).unwrap();
        let error = load(folder.path(), TELLERS).unwrap_err().to_string();
        assert!(error.contains("records.tar.gz is broken"), "{error}");
    }
}

#[test]
fn a_broken_record_within_is_named_by_the_archive() {
    let place = tempfile::tempdir().unwrap();
    archive(
        place.path(),
        &[(EntryType::Regular, "trial-001.json", b"{}")],
    );
    let error = load(place.path(), TELLERS).unwrap_err().to_string();
    assert!(
        error.contains("records.tar.gz/trial-001.json is broken"),
        "{error}"
    );
    assert!(!error.contains("plimsoll-records-"), "{error}");
}
