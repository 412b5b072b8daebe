//! Result folders made from one that is checked in: a search of `rust-axum-plain` on one vCPU.
#![allow(dead_code)] // Each test file uses only a part.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The project's root. The rest of the support is not used, because it brings the simulator up to date.
fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_folder.ancestors().nth(2);
    root.expect("crates/plimsoll is two folders down")
        .to_owned()
}

/// Unpacks the search's records into this folder, each modified by `change`.
pub(crate) fn copy(to: &Path, change: impl Fn(&mut Value)) {
    let packed = root().join("docs/results/rust-axum-plain-one-vcpu/1/records.tar.gz");
    let packed = fs::File::open(packed).expect("it is checked in");
    fs::create_dir_all(to).expect("mkdir");
    let unzipped = flate2::read::GzDecoder::new(packed);
    let mut archive = tar::Archive::new(unzipped);
    archive.unpack(to).expect("an archive of ours");
    for entry in fs::read_dir(to).expect("it was made").flatten() {
        let path = entry.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = fs::read_to_string(&path).expect("read");
            let mut record: Value = serde_json::from_str(&text).expect("JSON");
            change(&mut record);
            fs::write(&path, record.to_string()).expect("written");
        }
    }
}

/// Sets the start to this day of December.
pub(crate) fn on_day(day: u32) -> impl Fn(&mut Value) {
    move |record| record["started_at"] = format!("2026-12-{day:02}T01:02:03Z").into()
}

/// Halves what a record says was carried.
pub(crate) fn halved(record: &mut Value) {
    let is_bracket = record.get("confirmed").is_some();
    if !is_bracket {
        return halve(&mut record["sessions"]);
    }
    for name in ["confirmed", "first_fail", "sessions_per_vcpu"] {
        halve(&mut record[name]);
    }
    for name in ["value", "low", "high"] {
        halve(&mut record["edge"][name]);
    }
    record["borderline"] = Value::Array(Vec::new());
    for list in ["trials", "evidence", "cost_curve"] {
        for item in record[list].as_array_mut().into_iter().flatten() {
            halve(&mut item["sessions"]);
        }
    }
}

fn halve(value: &mut Value) {
    if let Some(count) = value.as_u64() {
        *value = (count / 2).into();
    } else if let Some(number) = value.as_f64() {
        *value = (number / 2.0).into();
    }
}
