//! A result folder is written and read back, and it refuses what is not its own or is broken.

mod example;

use std::fs;
use std::path::Path;

use example::TELLERS;
use plimsoll_core::record::{Baseline, Bracket};
use plimsoll_report::{ReportError, ResultFolder, load, load_baselines, load_trial, render_all};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn one_line(error: &ReportError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn folder_with_a_run() -> (tempfile::TempDir, ResultFolder) {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path().join("new/run")).unwrap();
    let stem = folder
        .write_trial(
            &example::failed_run(),
            &example::seconds(),
            &example::intervals(),
        )
        .unwrap();
    assert_eq!(stem, "trial-001");
    (place, folder)
}

#[test]
fn every_record_comes_back_as_it_was_written() {
    let (_place, folder) = folder_with_a_run();
    let find = example::find();
    for trial in &find.trials {
        folder.write_trial(trial, &[], &[]).unwrap();
    }
    let mut bracket = find.bracket.clone();
    for (index, trial) in bracket.trials.iter_mut().enumerate() {
        trial.file = format!("trial-{:03}.json", index + 2);
    }
    folder.write_bracket(&bracket).unwrap();
    folder
        .write_calibration(&example::calibrations::engine())
        .unwrap();
    let ws = example::calibrations::client_costs();
    folder.write_client_costs(&ws).unwrap();
    folder.write_fleet(&example::fleet::two_agents()).unwrap();
    folder
        .write_inference(&example::calibrations::inference())
        .unwrap();
    folder.write_check(&example::check()).unwrap();

    let results = load(folder.path(), TELLERS).unwrap();
    assert_eq!(results.trials[0].trial, example::failed_run());
    let trials: Vec<_> = results.trials[1..]
        .iter()
        .map(|stored| stored.trial.clone())
        .collect();
    assert_eq!(trials, find.trials);
    assert_eq!(results.trials[13].stem, "trial-014");
    assert_eq!(results.bracket, Some(bracket));
    assert_eq!(results.calibration, Some(example::calibrations::engine()));
    assert_eq!(results.client_costs, [ws]);
    assert_eq!(results.fleet, Some(example::fleet::two_agents()));
    assert_eq!(results.inference, Some(example::calibrations::inference()));
    let check = results
        .check
        .map(|check| serde_json::to_value(check).unwrap());
    assert_eq!(check, Some(example::check()));
}

#[test]
fn costs_without_a_workload_are_of_the_one_in_the_name_of_their_file() {
    let (_place, folder) = folder_with_a_run();
    let ws = example::calibrations::client_costs();
    let mut earlier = serde_json::to_value(&ws).unwrap();
    earlier.as_object_mut().unwrap().remove("workload");
    let file = folder.path().join("calibration-ws.json");
    fs::write(file, earlier.to_string()).unwrap();
    let mut echo = example::calibrations::client_costs();
    "echo".clone_into(&mut echo.workload);
    folder.write_client_costs(&echo).unwrap();
    assert!(folder.path().join("calibration-echo.json").exists());
    let results = load(folder.path(), TELLERS).unwrap();
    assert_eq!(results.client_costs, [echo, ws]);
}

#[test]
fn a_trial_is_three_files_and_numbers_go_on() {
    let (_place, folder) = folder_with_a_run();
    assert_eq!(
        names(folder.path()),
        ["trial-001.csv", "trial-001.hlog", "trial-001.json"]
    );
    // What a crash left of trial 2. Its number is not used again, so nothing gets mixed up.
    fs::write(folder.path().join("trial-002.hlog"), "").unwrap();
    fs::write(
        folder.path().join(".trial-002.csv.plimsoll-tmp-17-3"),
        "half",
    )
    .unwrap();
    let again = ResultFolder::create(folder.path()).unwrap();
    let stem = again.write_trial(&example::failed_run(), &[], &[]).unwrap();
    assert_eq!(stem, "trial-003");
    let stems: Vec<_> = load(folder.path(), TELLERS)
        .unwrap()
        .trials
        .into_iter()
        .map(|t| t.stem)
        .collect();
    assert_eq!(stems, ["trial-001", "trial-003"]);
}

#[test]
fn only_empty_folders_and_our_own_are_taken() {
    let place = tempfile::tempdir().unwrap();
    ResultFolder::create(place.path()).unwrap();
    fs::write(
        place.path().join(".x.json.plimsoll-tmp-1-0"),
        "left by a crash",
    )
    .unwrap();
    ResultFolder::create(place.path()).unwrap();

    fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
    let error = one_line(&ResultFolder::create(place.path()).unwrap_err());
    assert!(
        error.contains("not empty") && error.contains("name another folder"),
        "{error}"
    );
    // A file that only has one of our names does not make the folder ours.
    fs::write(place.path().join("bracket.json"), "{\"colour\": 3}").unwrap();
    assert!(matches!(
        ResultFolder::create(place.path()),
        Err(ReportError::NotOurs(_))
    ));

    let file = place.path().join("thesis.tex");
    assert!(matches!(
        ResultFolder::create(file),
        Err(ReportError::NotAFolder(_))
    ));
}

#[test]
fn a_broken_file_is_named() {
    let (_place, folder) = folder_with_a_run();
    let file = folder.path().join("trial-001.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = one_line(&load(folder.path(), TELLERS).unwrap_err());
    assert!(error.contains("trial-001.json is broken"), "{error}");

    fs::write(
        &file,
        whole.replace("\"verdict\": \"fail\"", "\"verdict\": \"fine\""),
    )
    .unwrap();
    let error = one_line(&load(folder.path(), TELLERS).unwrap_err());
    assert!(
        error.contains("trial-001.json is broken") && error.contains("fine"),
        "{error}"
    );
    assert!(error.contains("line "), "no place: {error}");

    fs::write(
        &file,
        whole.replace("\"schema_version\": 1", "\"other\": 1"),
    )
    .unwrap();
    let error = one_line(&load(folder.path(), TELLERS).unwrap_err());
    assert!(error.contains("has no `schema_version`"), "{error}");
}

#[test]
fn a_later_schema_is_not_guessed_at() {
    let (_place, folder) = folder_with_a_run();
    let file = folder.path().join("trial-001.json");
    let later = "{\"schema_version\": 99, \"everything\": \"else\"}";
    fs::write(&file, later).unwrap();
    let error = one_line(&load(folder.path(), TELLERS).unwrap_err());
    assert!(
        error.contains("trial-001.json has schema version 99"),
        "{error}"
    );
    assert!(error.contains("newer Plimsoll"), "{error}");
    // The folder is still ours.
    ResultFolder::create(folder.path()).unwrap();
}

#[test]
fn a_bracket_without_its_evidence_is_broken() {
    let (_place, folder) = folder_with_a_run();
    folder.write_bracket(&example::find().bracket).unwrap();
    let error = one_line(&load(folder.path(), TELLERS).unwrap_err());
    assert!(
        error.contains("bracket.json is broken") && error.contains("trial-002.json"),
        "{error}"
    );
}

#[test]
fn a_folder_without_results_says_so() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("notes.txt"), "").unwrap();
    let error = one_line(&load(place.path(), TELLERS).unwrap_err());
    assert!(error.contains("holds no Plimsoll result"), "{error}");
    let error = one_line(&render_all(&place.path().join("gone"), TELLERS).unwrap_err());
    assert!(
        error.contains("cannot read") && error.contains("gone"),
        "{error}"
    );
}

#[test]
fn a_record_that_could_not_be_read_again_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let mut trial = example::failed_run();
    trial.client.cpu_share = f64::NAN;
    let error = folder.write_trial(&trial, &[], &[]).unwrap_err();
    assert!(one_line(&error).contains("trial-001.json"), "{error}");
    assert!(
        folder
            .write_check(&serde_json::json!({"passed": 3}))
            .is_err()
    );
    assert!(names(place.path()).is_empty());
}

#[test]
fn renderings_are_written_and_an_old_chart_goes() {
    let (_place, folder) = folder_with_a_run();
    let written = render_all(folder.path(), TELLERS).unwrap();
    let written: Vec<_> = written
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(
        written,
        [
            "chart.svg",
            "chart.png",
            "percentiles.svg",
            "percentiles.png",
            "timeline.svg",
            "timeline.png",
            "summary.md",
            "step-summary.md",
            "junit.xml",
            "report.html"
        ]
    );

    let mut other = example::failed_run();
    other.target.name = "go-nethttp".to_owned();
    folder.write_trial(&other, &[], &[]).unwrap();
    render_all(folder.path(), TELLERS).unwrap();
    for stem in ["chart", "percentiles", "timeline"] {
        for file in [format!("{stem}.svg"), format!("{stem}.png")] {
            assert!(
                !folder.path().join(&file).exists(),
                "{file} of one target among two"
            );
        }
    }
    let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(summary.contains("# rust-axum") && summary.contains("# go-nethttp"));
}

/// Real records of the first version, which had no evidence, edges, lengths or sanity checks.
#[test]
fn results_of_the_first_version_load_and_render() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results-of-0.1.0");
    let place = tempfile::tempdir().unwrap();
    for name in names(&old) {
        fs::copy(old.join(&name), place.path().join(&name)).unwrap();
    }
    let written = render_all(place.path(), TELLERS).unwrap();
    assert!(written.iter().all(|path| !path.ends_with("cost.svg")));
    let results = load(place.path(), TELLERS).unwrap();
    let bracket = results.bracket.unwrap();
    assert_eq!((bracket.confirmed, bracket.edge), (Some(1_000), None));
    assert_eq!(results.trials.len(), 9);
    let summary = fs::read_to_string(place.path().join("summary.md")).unwrap();
    assert!(
        summary.contains("rust-axum carries 1,000 sessions on 0.25 vCPU."),
        "{summary}"
    );
    let report = fs::read_to_string(place.path().join("junit.xml")).unwrap();
    assert!(report.contains("tests=\"1\" failures=\"0\" errors=\"0\""));
}

#[test]
fn brackets_of_several_slos_come_back_and_do_not_meet() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let find = example::evidence::two_slos();
    for trial in &find.trials {
        folder.write_trial(trial, &[], &[]).unwrap();
    }
    folder.write_bracket(&find.relaxed).unwrap();
    for slo in ["strict", "../../strict"] {
        let mut bracket = find.strict.clone();
        slo.clone_into(&mut bracket.slo);
        folder.write_further_bracket(&bracket).unwrap();
    }
    render_all(place.path(), TELLERS).unwrap();
    let results = load(place.path(), TELLERS).unwrap();
    assert_eq!(results.bracket.as_ref(), Some(&find.relaxed));
    let mut slos: Vec<_> = results
        .further_brackets
        .iter()
        .map(|bracket| bracket.slo.as_str())
        .collect();
    slos.sort_unstable();
    assert_eq!(slos, ["../../strict", "strict"]);
    assert_eq!(results.searches().len(), 3);
    assert_eq!(results.other_trials().count(), 0);
    assert!(place.path().join("chart-strict.svg").exists());
    // The further SLO judges the same trials differently.
    let strict = results
        .searches()
        .into_iter()
        .find(|view| view.bracket.slo == "strict")
        .unwrap();
    assert_eq!(strict.trials[1].trial.verdict.word(), "fail");
    assert_eq!(results.trials[1].trial.verdict.word(), "pass");

    fs::remove_file(place.path().join("trial-003.json")).unwrap();
    fs::remove_file(place.path().join("bracket.json")).unwrap();
    let error = one_line(&load(place.path(), TELLERS).unwrap_err());
    assert!(
        error.contains("bracket-") && error.contains("trial-003.json"),
        "{error}"
    );
}

#[test]
fn baselines_are_kept_apart_and_a_folder_with_nothing_else_can_be_used_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    assert!(load_baselines(place.path(), TELLERS).unwrap().is_empty());
    let mut trial = example::failed_run();
    trial.baseline = Some("baseline/trial-001.json".to_owned());
    let stem = folder.of_baselines().unwrap();
    let stem = stem.write_trial(&trial, &[], &[]).unwrap();
    // A crash after the baseline leaves this.
    let again = ResultFolder::create(place.path()).unwrap();
    assert_eq!(again.last_trial_number().unwrap(), 0);
    let kept = load_baselines(place.path(), TELLERS).unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!((&kept[0].stem, &kept[0].trial), (&stem, &trial));
    let file = place.path().join("baseline/trial-001.json");
    assert_eq!(load_trial(&file, TELLERS).unwrap(), trial);
    fs::write(&file, "{}").unwrap();
    for error in [
        load_baselines(place.path(), TELLERS).map(drop).unwrap_err(),
        load_trial(&file, TELLERS).map(drop).unwrap_err(),
    ] {
        assert!(one_line(&error).contains("trial-001.json is broken"));
    }
}

#[test]
fn a_result_says_what_its_trials_were_compared_with() {
    let find = example::find();
    let told = |not_used: Option<&str>| {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(place.path()).unwrap();
        for trial in &find.trials {
            folder.write_trial(trial, &[], &[]).unwrap();
        }
        let bracket = Bracket {
            baseline: Some(Baseline {
                what: "unloaded run".to_owned(),
                sessions: 1,
                file: "baseline/trial-001.json".to_owned(),
                not_used: not_used.map(str::to_owned),
            }),
            ..find.bracket.clone()
        };
        folder.write_bracket(&bracket).unwrap();
        render_all(folder.path(), TELLERS).unwrap();
        fs::read_to_string(place.path().join("summary.md")).unwrap()
    };
    let which = "unloaded run, 1 session (baseline/trial-001.json)";
    let page = told(None);
    assert!(
        page.contains("compared with") && page.contains(which),
        "{page}"
    );
    let page = told(Some("it was invalid"));
    assert!(
        page.contains("nothing: it was invalid; it was the unloaded run"),
        "{page}"
    );
}

#[test]
fn a_trial_is_repeated_with_its_baseline() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let mut trial = example::failed_run();
    trial.baseline = Some("runs/trial 1.json".to_owned());
    folder.write_trial(&trial, &[], &[]).unwrap();
    render_all(folder.path(), TELLERS).unwrap();
    let page = fs::read_to_string(place.path().join("summary.md")).unwrap();
    assert!(
        page.contains("--baseline 'runs/trial 1.json' --seed"),
        "{page}"
    );
}
