//! `plimsoll report --pack`, and what other commands make of packed records, with the real command.

#[path = "support/past_results.rs"]
mod past_results;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn plimsoll(place: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(line.split_whitespace())
        .current_dir(place)
        .env("NO_COLOR", "1")
        .output()
        .expect("the command runs")
}

#[track_caller]
fn says(output: &Output, code: i32, words: &str) {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{words:?} is not in: {said}");
}

#[test]
fn a_folder_is_packed_and_shown_again() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let place = place.path();
    past_results::copy(&place.join("one"), |_| {});
    let loose = plimsoll(place, "report one --out loose --json");
    says(&loose, 0, "\"confirmed\": 1400");
    let text = plimsoll(place, "report one --out loose");
    says(&text, 0, "rust-axum-plain carries 1,400 sessions");

    says(
        &plimsoll(place, "report one --pack"),
        0,
        "one/records.tar.gz",
    );
    let left = fs::read_dir(place.join("one"))
        .expect("it is there")
        .flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    let raw = |name: &&String| name.starts_with("trial-") || name.ends_with(".json");
    assert_eq!(left.iter().filter(raw).count(), 0, "{left:?}");
    assert!(left.contains(&"summary.md".to_owned()), "{left:?}");

    let packed = plimsoll(place, "report one --out packed --json");
    assert!(packed.stdout == loose.stdout, "the records are the same");
    for entry in fs::read_dir(place.join("loose")).expect("pages").flatten() {
        let other = place.join("packed").join(entry.file_name());
        let same = fs::read(entry.path()).ok() == fs::read(other).ok();
        assert!(same, "{:?} differs", entry.file_name());
    }
    says(&plimsoll(place, "report one"), 0, "wrote one/report.html");
}

#[test]
fn the_file_alone_needs_a_place_for_its_pages() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let place = place.path();
    past_results::copy(&place.join("one"), |_| {});
    says(&plimsoll(place, "report one --pack"), 0, "packed");
    fs::rename(place.join("one/records.tar.gz"), place.join("one.tar.gz")).expect("moved");
    says(&plimsoll(place, "report one.tar.gz"), 2, "--out DIR");
    says(
        &plimsoll(place, "report one.tar.gz --out pages"),
        0,
        "wrote pages/report.html",
    );
    says(
        &plimsoll(place, "report one.tar.gz --out pages --pack"),
        2,
        "cannot be used with",
    );
}

#[test]
fn packed_folders_are_compared_and_known_to_the_history() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let place = place.path();
    past_results::copy(&place.join("results/before"), past_results::on_day(1));
    past_results::copy(&place.join("results/after"), |record| {
        past_results::on_day(2)(record);
        past_results::halved(record);
    });
    let before = plimsoll(place, "compare results/before results/after --out loose");
    for folder in ["before", "after"] {
        says(
            &plimsoll(place, &format!("report results/{folder} --pack")),
            0,
            "packed",
        );
    }
    let after = plimsoll(place, "compare results/before results/after --out packed");
    assert_eq!(before.status.code(), after.status.code());
    says(&after, 0, "worse");
    says(&plimsoll(place, "history"), 0, "700");
    let resumed = plimsoll(place, "find --resume results/before");
    says(&resumed, 2, "tar -xzf records.tar.gz");
}
