//! A comparison: its schema, its trials, and its renderings against checked-in files. After an intended change:
//! `PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report`, then review the difference.

mod example;
mod golden_files;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use example::TELLERS;
use golden_files::assert_golden;
use plimsoll_core::profile::Length;
use plimsoll_core::record::{
    Carried, Comparison, Conclusion, CostAccount, Edge, LoadClass, LoadCosts, LoadEvidence,
    LoadUnit, Pair, SCHEMA_VERSION, Side, Trial, TrialSummary, Verdict,
};
use plimsoll_core::stats::Ratio;
use plimsoll_report::words::comparison as say;
use plimsoll_report::{ReportError, ResultFolder, load, render_all, text};

fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Eight trials of two targets at 400 sessions: four pairs, of which the last is left out.
fn trials() -> Vec<Trial> {
    let trial = |index: u32| {
        let latency = example::latency((96.0, 150.0), (610.0, 1_120.0));
        let mut trial = example::trial(400, latency, &[]);
        if index % 2 == 1 {
            "taxed|axum".clone_into(&mut trial.target.name);
        }
        trial
    };
    (0..8).map(trial).collect()
}

fn side(name: &str, confirmed: u32, cost: f64, trials: &[Trial], first: usize) -> Side {
    let of_side = trials.iter().enumerate().skip(first).step_by(2);
    let evidence = |sessions, passed, failed, class| LoadEvidence {
        sessions,
        passed,
        failed,
        short_passed: 1,
        short_failed: 0,
        invalid: 0,
        class,
    };
    Side {
        name: name.to_owned(),
        variant: (name == "rust-axum").then(|| "default".to_owned()),
        folder: None,
        confirmed: Some(confirmed),
        first_fail: Some(confirmed + 30),
        edge: Some(Edge {
            value: f64::from(confirmed) + 12.0,
            low: f64::from(confirmed) - 3.0,
            high: Some(f64::from(confirmed) + 27.4),
            confidence: 0.95,
        }),
        cpu_us_per_session_second: Some(cost),
        core_us_per_session_second: Some(cost + 41.0),
        search: Some("The interval is as narrow as asked for.".to_owned()),
        evidence: vec![
            evidence(confirmed, 2, 0, LoadClass::Passing),
            evidence(confirmed + 30, 0, 2, LoadClass::Failing),
        ],
        trials: of_side
            .map(|(index, trial)| TrialSummary::of(trial, &format!("trial-{:03}.json", index + 1)))
            .collect(),
    }
}

fn of_targets() -> Comparison {
    let pair = |number: usize, a: f64, b: f64| Pair {
        sessions: 400,
        b_first: number % 2 == 1,
        a_file: format!("trial-{:03}.json", 2 * number + 1),
        b_file: format!("trial-{:03}.json", 2 * number + 2),
        a_cpu_us_per_session_second: Some(a),
        b_cpu_us_per_session_second: Some(b),
        a_core_us_per_session_second: Some(a + 40.0),
        b_core_us_per_session_second: Some(b + 42.0),
        a_verdict: Some(Verdict::Pass),
        b_verdict: Some(Verdict::Pass),
        left_out: None,
    };
    let mut pairs = vec![
        pair(0, 251.0, 263.0),
        pair(1, 249.0, 262.0),
        pair(2, 252.0, 263.5),
        pair(3, 250.0, 260.0),
    ];
    pairs[3].left_out = Some("the trial of B was invalid (send-lag)".to_owned());
    pairs[3].b_cpu_us_per_session_second = None;
    pairs[3].b_core_us_per_session_second = None;
    pairs[3].b_verdict = Some(Verdict::Invalid);
    let trials = trials();
    Comparison {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        a: side("rust-axum", 590, 250.7, &trials, 0),
        b: side("taxed|axum", 560, 262.8, &trials, 1),
        cost_ratio: Some(Ratio {
            value: 1.0487,
            low: 1.0312,
            high: 1.0666,
        }),
        cost_account: CostAccount::Core,
        load_line_ratio: Some(Ratio {
            value: 0.95,
            low: 0.89,
            high: 1.01,
        }),
        carried: Some(Carried {
            sessions: 400,
            both: 3,
            only_a: 0,
            only_b: 0,
            neither: 0,
            p_value: 1.0,
            shows: Conclusion::NoDifferenceShown,
        }),
        confidence: 0.95,
        conclusion: Conclusion::Worse,
        explanation: "taxed|axum costs 1.049 times the core time of rust-axum (1.031 to 1.067), and taxed|axum carries 0.950 times the load of rust-axum (0.890 to 1.010): worse".to_owned(),
        notes: Vec::new(),
        workload: "stt".to_owned(),
        profile: "quick".to_owned(),
        vcpu: Some(0.25),
        load_unit: LoadUnit::SESSIONS,
        pairs,
        loads: Vec::new(),
        interrupted: false,
        seed: 42,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
    }
}

fn of_folders() -> Comparison {
    let targets = of_targets();
    let side = |folder: &str| Side {
        name: "rust-axum".to_owned(),
        folder: Some(folder.to_owned()),
        trials: targets.a.trials.clone(),
        ..Side::default()
    };
    Comparison {
        a: side("results/last week"),
        b: side("results/today"),
        cost_ratio: None,
        cost_account: CostAccount::Charged,
        load_line_ratio: None,
        carried: None,
        conclusion: Conclusion::NoDifferenceShown,
        explanation: "neither the costs nor the load lines of A and B could be compared".to_owned(),
        notes: vec!["The two were measured at *different* times.".to_owned()],
        pairs: Vec::new(),
        loads: vec![LoadCosts {
            sessions: 1_400,
            length: Length::Short,
            a_cpu_us_per_session_second: vec![250.0, 251.0],
            b_cpu_us_per_session_second: vec![262.0],
            a_core_us_per_session_second: Vec::new(),
            b_core_us_per_session_second: Vec::new(),
        }],
        interrupted: true,
        ..targets
    }
}

fn written(comparison: &Comparison, trials: &[Trial]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    for trial in trials {
        folder.write_trial(trial, &[], &[]).unwrap();
    }
    folder.write_comparison(comparison).unwrap();
    place
}

fn assert_renderings(name: &str, comparison: &Comparison, trials: &[Trial]) {
    let place = written(comparison, trials);
    render_all(place.path(), TELLERS).unwrap();
    let summary = fs::read_to_string(place.path().join("summary.md")).unwrap();
    assert_golden(&format!("{name}/summary.md"), &summary);
    let ratios = fs::read_to_string(place.path().join("ratios.svg")).unwrap();
    assert_golden(&format!("{name}/ratios.svg"), &ratios);
    assert!(place.path().join("ratios.png").exists());
    assert_page(place.path(), comparison);
    let results = load(place.path(), TELLERS).unwrap();
    assert_eq!(results.comparison.as_ref(), Some(comparison));
    let plain = text::comparison(comparison, false);
    assert!(!plain.contains('\u{1b}'));
    assert_golden(&format!("{name}/terminal.txt"), &plain);
    assert_ne!(text::comparison(comparison, true), plain);
}

/// The page has the conclusion, the ratios and every pair.
fn assert_page(folder: &Path, comparison: &Comparison) {
    let page = page::assert_sound(&page::page_of(folder));
    let conclusion = say::conclusion(comparison.conclusion);
    assert_eq!(page::text_of(&page, "[data-test=verdict]"), conclusion);
    assert_eq!(page::found(&page, "[data-test=chart-ratios] svg").len(), 1);
    let all = page::text_of(&page, "main");
    for ratio in [comparison.cost_ratio, comparison.load_line_ratio] {
        let told = ratio.map(say::interval);
        assert!(told.is_none_or(|told| all.contains(&told)), "{ratio:?}");
    }
    let steps = comparison.pairs.len() + comparison.loads.len();
    let rows = page::found(&page, "[data-test=evidence] tbody tr");
    assert_eq!(rows.len(), steps);
    let raw = page::raw(&page);
    assert_eq!(raw["comparison.json"], page::written(comparison));
}

#[test]
fn of_two_targets() {
    assert_renderings("compare-targets", &of_targets(), &trials());
}

#[test]
fn of_two_folders() {
    assert_renderings("compare-folders", &of_folders(), &[]);
}

#[test]
fn a_load_that_only_the_baseline_carries() {
    let mut comparison = of_targets();
    for pair in &mut comparison.pairs {
        pair.a_verdict = Some(Verdict::Pass);
        pair.b_verdict = Some(Verdict::Fail);
        pair.left_out = Some("B did not carry this load (newest_p95_ms), so its cost is not the cost of carrying this load".to_owned());
    }
    (comparison.cost_ratio, comparison.load_line_ratio) = (None, None);
    comparison.carried = Some(Carried {
        sessions: 400,
        both: 0,
        only_a: 8,
        only_b: 0,
        neither: 0,
        p_value: 0.007_812_5,
        shows: Conclusion::Worse,
    });
    comparison.explanation = "rust-axum carried 400 sessions and taxed|axum did not in 8 of 8 pairs (the other way round in 0; sign test, p = 0.0078): worse".to_owned();
    assert_renderings("compare-carrying", &comparison, &trials());
}

#[test]
fn a_record_from_before_verdicts_were_kept_is_read() {
    let mut record = serde_json::to_value(of_targets()).unwrap();
    record.as_object_mut().unwrap().remove("carried");
    for pair in record["pairs"].as_array_mut().unwrap() {
        for name in ["a_verdict", "b_verdict"] {
            pair.as_object_mut().unwrap().remove(name);
        }
    }
    let comparison: Comparison = serde_json::from_value(record).unwrap();
    assert_eq!(comparison.carried, None);
    assert_eq!(comparison.pairs[0].a_verdict, None);
}

#[test]
fn a_comparison_without_its_trials_is_broken_and_one_of_folders_has_none() {
    let place = written(&of_targets(), &trials());
    fs::remove_file(place.path().join("trial-003.json")).unwrap();
    let error = load(place.path(), TELLERS).unwrap_err();
    assert!(matches!(error, ReportError::Broken { .. }), "{error}");
    assert!(error.to_string().contains("trial-003.json"), "{error}");
    assert!(load(written(&of_folders(), &[]).path(), TELLERS).is_ok());
}

#[test]
fn records_hold_to_the_schema_and_older_ones_are_read() {
    let path = crate_folder().join("schema/comparison.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for comparison in [of_targets(), of_folders()] {
        let record = serde_json::to_value(&comparison).unwrap();
        validator.validate(&record).unwrap();
        // The fields that others rely on.
        for name in ["a", "b", "cost_ratio", "load_line_ratio", "conclusion"] {
            let mut without = record.clone();
            without.as_object_mut().unwrap().remove(name);
            assert!(!validator.is_valid(&without), "{name} is not required");
        }
        let mut odd = record;
        odd["conclusion"] = "fine".into();
        assert!(!validator.is_valid(&odd));
    }
    let ratio = serde_json::to_value(of_targets().cost_ratio).unwrap();
    assert_eq!(
        ratio,
        serde_json::json!({"value": 1.0487, "low": 1.0312, "high": 1.0666})
    );
}

#[test]
fn the_summary_says_how_to_repeat_it() {
    let place = written(&of_folders(), &[]);
    render_all(place.path(), TELLERS).unwrap();
    let summary = read(place.path(), "summary.md");
    assert!(
        summary.contains("plimsoll compare 'results/last week' results/today"),
        "{summary}"
    );
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}
