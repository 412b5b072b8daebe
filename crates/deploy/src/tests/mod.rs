//! What the command writes for a target and for a URL, compared with files beside this one, and rules that hold for all
//! settings. `PLIMSOLL_UPDATE=1 cargo test -p plimsoll-deploy` writes the files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::catalogue::{
    Catalogue, Companion, FURTHER_PORTS, Family, Image, Target, worker_threads,
};
use crate::settings::{COORDINATOR_PORT, Settings, Subject, Token};
use crate::{files, objects, render};

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn target() -> Target {
    Target {
        name: "gateway".to_owned(),
        workload: "calls".to_owned(),
        threads_per_vcpu: 2,
        scheme: "http",
        health_path: Some("/health".to_owned()),
        health_port: FURTHER_PORTS,
        further_ports: vec!["METRICS_PORT".to_owned()],
        start_timeout_s: 90,
        has_data: true,
        variables: texts(&[("PASSES", "4")]),
        companion: Some(Companion {
            program: "plimsoll-back-end".to_owned(),
            settings: texts(&[("SEED", "1")]),
            url_variable: "BACK_END_URL".to_owned(),
        }),
        image: Some(Image {
            family: Family::Rust,
            description: "an example".to_owned(),
            installs: vec!["sh targets/calls/gateway/install.sh".to_owned()],
            build: Some(vec!["cargo".to_owned(), "build".to_owned()]),
            run: vec!["target/release/gateway".to_owned()],
            variables: texts(&[("MODE", "production")]),
            stop_signal: "SIGTERM".to_owned(),
        }),
    }
}

fn of_target() -> Settings {
    Settings {
        namespace: Some("trials".to_owned()),
        subject: Subject::Target(Box::new(target())),
        sessions: Some(500),
        vcpu: 1.5,
        observer: true,
        arguments: vec!["--profile".to_owned(), "standard".to_owned()],
        token: Token::Made("ab".repeat(32)),
        ..Settings::default()
    }
}

fn catalogue() -> Catalogue {
    Catalogue {
        targets: vec![target()],
        workloads: vec!["calls".to_owned()],
        versions: BTreeMap::from([(Family::Rust, "1.95.0".to_owned())]),
    }
}

fn compare(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/tests/golden")
        .join(name);
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        std::fs::write(&file, text).expect("written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "{name} differs: PLIMSOLL_UPDATE=1 cargo test -p plimsoll-deploy\n{text}"
    );
}

#[test]
fn a_target_and_a_url_are_rendered_as_they_were() {
    compare("target.yaml", &render(&of_target()));
    compare("url.yaml", &render(&Settings::default()));
}

#[test]
fn the_files_of_a_catalogue_are_as_they_were() {
    let files = files(&catalogue());
    for (path, name) in [
        ("deploy/chart/plimsoll/targets.yaml", "targets.yaml"),
        ("deploy/compose.yaml", "compose.yaml"),
        ("deploy/images/rust.Containerfile", "rust.Containerfile"),
        (
            "deploy/images/command.Containerfile",
            "command.Containerfile",
        ),
    ] {
        compare(name, &files[path]);
    }
}

#[test]
fn every_template_begins_and_ends_its_conditions() {
    for (path, text) in files(&catalogue()) {
        if path.contains("/templates/") {
            let count = |word: &str| text.matches(word).count();
            let opened = count("{{- if ") + count("{{- range ") + count("{{- define ");
            assert_eq!(opened, count("{{- end }}"), "{path}");
            assert_eq!(count("{{"), count("}}"), "{path}");
        }
    }
}

#[test]
fn a_url_brings_neither_target_nor_companion() {
    let text = render(&Settings::default());
    assert!(!text.contains("kind: Deployment") && !text.contains("kind: Secret"));
    assert!(!text.contains("--await") && text.contains("- \"http://server:3000\""));
    let text = render(&of_target());
    for kind in ["Deployment", "Secret", "Job", "Service"] {
        assert!(text.contains(&format!("kind: {kind}")), "{kind}");
    }
}

#[test]
fn agents_are_told_the_port_that_the_coordinator_listens_at() {
    let text = render(&of_target());
    let named = format!("plimsoll-coordinator-1:{COORDINATOR_PORT}");
    // The observer, too.
    assert_eq!(text.matches(&named).count(), 2);
    assert!(text.contains(&format!("\"0.0.0.0:{COORDINATOR_PORT}\"")));
}

#[test]
fn each_object_has_a_file_of_its_own() {
    let objects = objects::all();
    let names: std::collections::BTreeSet<&str> =
        objects.iter().map(|object| object.file).collect();
    assert_eq!(names.len(), objects.len());
}

#[test]
fn threads_are_those_of_each_begun_vcpu() {
    for (per_vcpu, vcpu, threads) in [(1, 0.25, 1), (1, 1.0, 1), (2, 1.5, 4), (3, 8.0, 24)] {
        assert_eq!(worker_threads(per_vcpu, vcpu), threads);
    }
}
