//! Workload `http`: renderings against checked-in files. After an intended change: `PLIMSOLL_UPDATE=1 cargo test -p
//! plimsoll-report`, then review the difference.

mod example;
mod golden_files;
mod page;

use std::fs;

use example::TELLERS;
use golden_files::assert_golden;
use page::{HOSTILE, assert_sound, folder_of, found, page_of};
use plimsoll_core::record::Trial;
use plimsoll_report::{load, render_all, text};

/// Renders a folder, and compares these files with those that are checked in.
fn assert_renderings(name: &str, trials: &[Trial], files: &[&str]) {
    let place = folder_of(trials, None, &[], &[]);
    render_all(place.path(), TELLERS).unwrap();
    for file in files {
        let now = fs::read_to_string(place.path().join(file)).unwrap();
        assert_golden(&format!("{name}/{file}"), &now);
    }
    assert_sound(&page_of(place.path()));
}

#[test]
fn a_run_with_all_that_can_be_said() {
    let run = example::http::rate();
    let files = ["summary.md", "step-summary.md", "junit.xml"];
    assert_renderings("http-rate", std::slice::from_ref(&run), &files);
    let plain = text::trial(&run, false, TELLERS);
    assert_golden("http-rate/terminal.txt", &plain);
    // Microseconds matter here.
    assert!(plain.contains("0.085"), "{plain}");
    assert!(
        plain.contains("20,000 requests per second of GET /bytes/64 on 100 connections"),
        "{plain}"
    );
}

#[test]
fn numbers_of_connections_stand_side_by_side() {
    let trials = example::http::connections();
    assert_renderings("http-connections", &trials, &["summary.md"]);
    let place = folder_of(&trials, None, &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    let rows = found(&page, "[data-test=test-table] tbody tr");
    assert_eq!(rows.len(), 3);
    let told = text::side_by_side(&load(place.path(), TELLERS).unwrap().trials, TELLERS);
    assert_golden("http-connections/terminal.txt", &told);
    // A terminal is narrow, and all rows have one request, which the caption names.
    assert_eq!(told.matches("GET").count(), 1, "{told}");
}

#[test]
fn hostile_names_are_text_wherever_they_stand() {
    let mut trials = example::http::connections();
    for trial in &mut trials {
        let mut http = example::http::record(trial);
        HOSTILE.clone_into(&mut http.request);
        http.outcomes = vec![plimsoll_workload_http::record::HttpOutcome {
            name: format!("{HOSTILE}\u{1b}[31m"),
            count: 1,
        }];
        example::http::set(trial, &http);
        HOSTILE.clone_into(&mut trial.target.name);
        trial.parameters.insert("test".to_owned(), HOSTILE.into());
        trial
            .parameters
            .insert("protocol".to_owned(), HOSTILE.into());
    }
    let place = folder_of(&trials, None, &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    assert_eq!(found(&page, "[data-test=test-table] tbody tr").len(), 3);
    let told = text::side_by_side(&load(place.path(), TELLERS).unwrap().trials, TELLERS);
    assert!(!told.contains('\u{1b}'), "{told}");
}
