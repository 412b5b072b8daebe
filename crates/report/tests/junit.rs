//! `junit.xml` follows the schema that build servers share, whatever a target says. An invalid trial is an error, never
//! a failure.
//!
//! The rules are those of `junit-10.xsd` of Jenkins' xUnit plugin: which element may contain which, which attributes
//! exist, and which are required.

mod example;

use std::collections::BTreeSet;
use std::fs;

use example::TELLERS;
use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::record::{Bracket, Comparison, Trial, Verdict};
use plimsoll_report::{ResultFolder, StoredTrial, junit, load};
use proptest::prelude::*;
use roxmltree::{Document, Node};

/// An element, the elements that it may contain, its attributes, and those that are required.
const SCHEMA: [(&str, &str, &str, &str); 9] = [
    (
        "testsuites",
        "testsuite",
        "name time tests failures errors",
        "",
    ),
    (
        "testsuite",
        "testsuite properties testcase system-out system-err",
        "name tests failures errors group time skipped timestamp hostname id package file log url",
        "name tests failures errors",
    ),
    ("properties", "property", "", ""),
    ("property", "", "name value", "name value"),
    (
        "testcase",
        "skipped error failure system-out system-err",
        "name time classname group",
        "name",
    ),
    ("failure", "", "type message", ""),
    ("error", "", "type message", ""),
    ("skipped", "", "type message", ""),
    ("system-out", "", "", ""),
];

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

/// Panics where the document breaks the schema or its counts are wrong.
fn assert_valid(xml: &str) {
    let document = Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    assert_eq!(document.root_element().tag_name().name(), "testsuites");
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        let rule = SCHEMA.iter().find(|(known, ..)| *known == name);
        let (_, children, may, must) = rule.unwrap_or_else(|| panic!("<{name}> is unknown"));
        for child in node.children().filter(Node::is_element) {
            let child = child.tag_name().name();
            assert!(words(children).contains(child), "<{child}> in <{name}>");
        }
        let attributes: BTreeSet<_> = node.attributes().map(|a| a.name()).collect();
        assert!(attributes.is_subset(&words(may)), "<{name}> {attributes:?}");
        assert!(
            words(must).is_subset(&attributes),
            "<{name}> {attributes:?}"
        );
        let holds_text = ["failure", "error", "skipped", "system-out"].contains(&name);
        let text: String = node
            .children()
            .filter(Node::is_text)
            .filter_map(|text| text.text())
            .collect();
        assert!(
            holds_text || text.trim().is_empty(),
            "text in <{name}>: {text}"
        );
    }
    for suite in document
        .descendants()
        .filter(|n| n.has_tag_name("testsuite"))
    {
        assert_counts(suite);
    }
    assert_counts(document.root_element());
}

/// The counts match the cases, and each case has at most one outcome.
fn assert_counts(node: Node<'_, '_>) {
    let cases: Vec<_> = node
        .descendants()
        .filter(|n| n.has_tag_name("testcase"))
        .collect();
    let counted = |name| {
        node.attribute(name)
            .map(|text| text.parse::<usize>().unwrap())
    };
    let with = |outcome| {
        let has = |case: &&Node<'_, '_>| case.children().any(|n| n.has_tag_name(outcome));
        cases.iter().filter(has).count()
    };
    assert_eq!(counted("tests"), Some(cases.len()));
    assert_eq!(counted("failures"), Some(with("failure")));
    assert_eq!(counted("errors"), Some(with("error")));
    assert!(counted("skipped").is_none_or(|skipped| skipped == with("skipped")));
    for case in &cases {
        assert!(case.children().filter(Node::is_element).count() <= 1);
    }
}

/// The outcome of the case with that name: `passed`, `failure`, `error` or `skipped`, and its message.
fn outcome(xml: &str, name: &str) -> (String, String) {
    let document = Document::parse(xml).unwrap();
    let of_name =
        |n: &Node<'_, '_>| n.has_tag_name("testcase") && n.attribute("name") == Some(name);
    let case = document.descendants().find(of_name);
    let case = case.unwrap_or_else(|| panic!("no case {name} in {xml}"));
    case.children().find(Node::is_element).map_or_else(
        || ("passed".to_owned(), String::new()),
        |found| {
            let message = found.attribute("message").unwrap_or_default();
            (found.tag_name().name().to_owned(), message.to_owned())
        },
    )
}

struct Folder {
    place: tempfile::TempDir,
    folder: ResultFolder,
}

impl Folder {
    fn new(trials: &[Trial]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        for trial in trials {
            folder.write_trial(trial, &[], &[]).unwrap();
        }
        Self { place, folder }
    }

    fn report(&self) -> String {
        let xml = junit::of(&load(self.place.path(), TELLERS).unwrap());
        assert_valid(&xml);
        xml
    }

    fn find(trials: &[Trial], bracket: &Bracket) -> String {
        let folder = Self::new(trials);
        folder.folder.write_bracket(bracket).unwrap();
        folder.report()
    }
}

#[test]
fn every_golden_report_is_valid() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = 0;
    for entry in fs::read_dir(golden).unwrap() {
        let file = entry.unwrap().path().join("junit.xml");
        if file.exists() {
            assert_valid(&fs::read_to_string(file).unwrap());
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen}");
}

#[test]
#[should_panic(expected = "<properties> in <testcase>")]
fn this_schema_refuses_what_does_not_belong() {
    assert_valid(
        "<testsuites tests=\"1\" failures=\"0\" errors=\"0\"><testsuite name=\"x\" tests=\"1\" failures=\"0\" errors=\"0\">\
         <testcase name=\"y\"><properties/></testcase></testsuite></testsuites>",
    );
}

#[test]
fn a_gate_that_does_not_hold_is_a_failure() {
    let xml = Folder::new(&[example::failed_run()]).report();
    let (kind, message) = outcome(&xml, "oldest_p95_ms");
    assert_eq!(kind, "failure");
    assert_eq!(message, "oldest_p95_ms 1,650.04 against at most 1,650");
    assert_eq!(outcome(&xml, "newest_p95_ms").0, "passed");
}

#[test]
fn invalid_is_an_error_with_its_remedy_and_never_a_failure() {
    let mut trial = example::failed_run();
    let lag = Doubt::SendLag {
        p999_us: 9_300.0,
        limit_us: 5_000.0,
        others: Vec::new(),
    };
    trial.caveats.push(Caveat::from(&lag));
    trial.verdict = Verdict::Invalid;
    let xml = Folder::new(&[trial]).report();
    let (kind, message) = outcome(&xml, "caveat: send-lag");
    assert_eq!(kind, "error");
    assert!(message.contains("--client-cpus"), "{message}");
    assert_eq!(outcome(&xml, "oldest_p95_ms").0, "skipped");
    assert_eq!(outcome(&xml, "newest_p95_ms").0, "skipped");
    assert!(!xml.contains("<failure"));
    assert!(
        !xml.contains("caveat: no-quota\""),
        "not blocking, so no case"
    );
}

#[test]
fn a_load_line_passes_and_has_its_numbers() {
    let find = example::evidence::two_slos();
    let xml = Folder::find(&find.trials, &find.relaxed);
    assert_eq!(outcome(&xml, "load line, SLO relaxed").0, "passed");
    let document = Document::parse(&xml).unwrap();
    let property = |name: &str| {
        let of_name = |n: &Node<'_, '_>| n.attribute("name") == Some(name);
        let found = document.descendants().find(of_name)?;
        Some(found.attribute("value")?.to_owned())
    };
    for (name, value) in [
        ("confirmed", "980"),
        ("first_fail", "1020"),
        ("edge_low", "978"),
        ("edge_high", "1019.6"),
        ("sessions_per_vcpu", "980"),
    ] {
        assert_eq!(property(name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn a_find_without_a_load_line_fails_and_one_that_could_not_tell_is_an_error() {
    let find = example::nothing_passed();
    let mut bracket = find.bracket.clone();
    let name = "load line, SLO stt";
    assert_eq!(
        outcome(&Folder::find(&find.trials, &bracket), name).0,
        "error"
    );
    bracket.interrupted = false;
    assert_eq!(
        outcome(&Folder::find(&find.trials, &bracket), name).0,
        "failure"
    );
    bracket.first_fail = None;
    assert_eq!(
        outcome(&Folder::find(&find.trials, &bracket), name).0,
        "error"
    );
}

/// A search without a load line says whether trials passed.
#[test]
fn a_find_without_a_load_line_says_what_passed() {
    let find = example::nothing_passed();
    let says = |passed, short_passed| {
        let evidence = serde_json::json!([{"sessions": 4, "passed": passed, "failed": 1,
            "short_passed": short_passed, "short_failed": 0, "invalid": 3, "class": "undecided"}]);
        let bracket = Bracket {
            evidence: serde_json::from_value(evidence).expect("evidence"),
            ..find.bracket.clone()
        };
        plimsoll_report::words::headline(&bracket, &[]).claim
    };
    for (passed, short_passed, words) in [
        (0, 0, "no load passed"),
        (0, 2, "no full trial passed"),
        (1, 0, "no load surely passed"),
    ] {
        let claim = says(passed, short_passed);
        assert!(claim.ends_with(words), "{claim}");
    }
}

fn comparison(cost: [f64; 3], line: Option<[f64; 3]>, conclusion: &str) -> Comparison {
    let ratio = |[value, low, high]: [f64; 3]| serde_json::json!({"value": value, "low": low, "high": high});
    let side = |name: &str| serde_json::json!({"name": name});
    serde_json::from_value(serde_json::json!({
        "schema_version": 1, "a": side("rust-axum"), "b": side("taxed-axum"),
        "cost_ratio": ratio(cost), "load_line_ratio": line.map(ratio), "confidence": 0.95, "conclusion": conclusion,
        "explanation": "taxed-axum costs more", "pairs": [], "interrupted": false, "seed": 1,
        "started_at": "2026-01-02T03:04:05Z"
    }))
    .unwrap()
}

fn compared(comparison: &Comparison) -> String {
    let folder = Folder::new(&[]);
    folder.folder.write_comparison(comparison).unwrap();
    folder.report()
}

#[test]
fn a_comparison_fails_where_it_is_worse() {
    let xml = compared(&comparison(
        [1.049, 1.031, 1.067],
        Some([0.98, 0.95, 1.01]),
        "worse",
    ));
    let (kind, message) = outcome(&xml, "cost");
    assert_eq!(kind, "failure");
    assert!(message.ends_with("1.049 (1.031 to 1.067)"), "{message}");
    assert_eq!(outcome(&xml, "load line").0, "passed");
    let same = comparison([1.001, 0.98, 1.02], None, "no_difference_shown");
    let xml = compared(&same);
    assert_eq!(outcome(&xml, "cost").0, "passed");
    assert_eq!(outcome(&xml, "load line").0, "skipped");
    let carried = |shows: &str| {
        Comparison {
        cost_ratio: None,
        conclusion: serde_json::from_value(shows.into()).unwrap(),
        carried: serde_json::from_value(serde_json::json!({
            "sessions": 400, "both": 0, "only_a": 8, "only_b": 0, "neither": 0, "p_value": 0.0078, "shows": shows
        }))
        .unwrap(),
        ..same.clone()
    }
    };
    let xml = compared(&carried("worse"));
    let (kind, message) = outcome(&xml, "carrying");
    assert_eq!(kind, "failure");
    assert!(message.contains("only A 8"), "{message}");
    assert_eq!(outcome(&xml, "cost").0, "skipped");
    let xml = compared(&carried("no_difference_shown"));
    assert_eq!(outcome(&xml, "carrying").0, "error");
    assert_eq!(outcome(&xml, "cost").0, "error");
    let cut = Comparison {
        interrupted: true,
        ..same
    };
    assert_eq!(outcome(&compared(&cut), "cost").0, "error");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_target_says_the_report_is_valid(name: String, text: String, id: String) {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        folder.write_check(&serde_json::json!({
            "target": name, "passed": 0, "failed": 1,
            "cases": [{"id": id, "title": text, "pass": false, "expected": id, "seen": format!("]]>{text}\u{0}\u{1b}")}],
        })).unwrap();
        let mut results = load(place.path(), TELLERS).unwrap();
        let mut trial = example::failed_run();
        trial.target.name.clone_from(&name);
        trial.slo.clone_from(&id);
        trial.caveats.push(Caveat { id: id.clone(), blocking: true, text: text.clone() });
        trial.gates[0].name.clone_from(&text);
        trial.bottleneck = Some(text);
        results.trials.push(StoredTrial { stem: "trial-001".to_owned(), trial });
        assert_valid(&junit::of(&results));
    }
}
