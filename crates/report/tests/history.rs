//! The history: an index of result folders, which follows their changes and can be deleted.

mod example;

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use example::TELLERS;
use plimsoll_core::record::{Bracket, Trial};
use plimsoll_report::history::{Entry, Filter, History, INDEX, Kind, Refreshed};
use plimsoll_report::{ReportError, ResultFolder};

/// A folder of results.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn folder(&self, name: &str) -> ResultFolder {
        ResultFolder::create(self.path().join(name)).unwrap()
    }

    fn find(&self, name: &str, bracket: &Bracket, trials: &[Trial]) {
        let folder = self.folder(name);
        for trial in trials {
            folder.write_trial(trial, &[], &[]).unwrap();
        }
        folder.write_bracket(bracket).unwrap();
    }

    /// A search like the example's, with this load line, begun on this day of January.
    fn find_on(&self, name: &str, day: u32, load_line: u32) -> Bracket {
        let example = example::find();
        let bracket = Bracket {
            confirmed: Some(load_line),
            started_at: format!("2026-01-{day:02}T03:04:05Z"),
            ..example.bracket
        };
        self.find(name, &bracket, &example.trials);
        bracket
    }

    /// One folder of each kind.
    fn of_all_kinds() -> Self {
        let place = Self::new();
        place.find_on("a-find", 5, 1_650);
        place
            .folder("b-run")
            .write_trial(&example::failed_run(), &[], &[])
            .unwrap();
        place
            .folder("c-calibrate")
            .write_calibration(&example::calibrations::engine())
            .unwrap();
        place
            .folder("sorted/d-check")
            .write_check(&example::check())
            .unwrap();
        // The record of a check has no time; its file does: 2026-02-01.
        let written = UNIX_EPOCH + Duration::from_secs(1_769_904_000);
        let check = place.path().join("sorted/d-check/check.json");
        let check = fs::File::options().write(true).open(check).unwrap();
        check.set_modified(written).unwrap();
        let mut ranking = example::ranking();
        ranking.started_at = "2026-01-04T00:00:00Z".to_owned();
        place.folder("e-ranking").write_ranking(&ranking).unwrap();
        place.find_on("e-ranking/rust-axum", 4, 1_600);
        place
    }

    fn history(&self) -> History {
        History::open(self.path(), TELLERS).unwrap()
    }

    fn refreshed(&self) -> (History, Refreshed) {
        let mut history = self.history();
        let refreshed = history.refresh().unwrap();
        (history, refreshed)
    }
}

fn folders(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.folder.as_str()).collect()
}

fn all(history: &History) -> Vec<Entry> {
    history.list(&Filter::default()).unwrap()
}

#[test]
fn every_kind_of_result_is_found_however_deep() {
    let place = Place::of_all_kinds();
    let (history, refreshed) = place.refreshed();
    assert_eq!((refreshed.read, refreshed.unchanged), (6, 0));
    assert!(refreshed.broken.is_empty(), "{:?}", refreshed.broken);
    let found = all(&history);
    assert_eq!(
        folders(&found),
        [
            "sorted/d-check",
            "a-find",
            "e-ranking/rust-axum",
            "e-ranking",
            "c-calibrate",
            "b-run",
        ]
    );
    let kinds: Vec<Kind> = found.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Check,
            Kind::Find,
            Kind::Find,
            Kind::Ranking,
            Kind::Calibrate,
            Kind::Run
        ]
    );
    let find = &found[1];
    assert_eq!(find.targets, ["rust-axum"]);
    assert_eq!(find.claim, "rust-axum carries 1,650 sessions on 1 vCPU");
    assert_eq!(find.in_short(), "1,650 sessions");
    assert_eq!((find.load_line, find.vcpu), (Some(1_650), Some(1.0)));
    assert_eq!(find.cpu_model, "Example CPU @ 2.0 GHz");
    assert_eq!(find.cores, "4");
    assert_eq!(find.trials, 13);
    let run = &found[5];
    assert_eq!(run.in_short(), "fail at 1,600");
    assert_eq!(run.cost.as_ref().unwrap().sessions, 1_600);
    assert_eq!(found[0].in_short(), "fail");
    assert!(found[3].targets.contains(&"go-nethttp".to_owned()));
}

#[test]
fn a_search_with_two_slos_is_two_results_and_its_cost_is_that_of_the_load_line() {
    let place = Place::new();
    let two = example::evidence::two_slos();
    place.find("two", &two.relaxed, &two.trials);
    place
        .folder("two")
        .write_further_bracket(&two.strict)
        .unwrap();
    let (history, _) = place.refreshed();
    let mut found = all(&history);
    found.sort_by(|a, b| a.slo.cmp(&b.slo));
    let slos: Vec<_> = found
        .iter()
        .map(|e| (e.slo.as_str(), e.load_line))
        .collect();
    assert_eq!(slos, [("relaxed", Some(980)), ("strict", Some(250))]);
    let costs: Vec<_> = found
        .iter()
        .map(|entry| entry.cost.as_ref().unwrap())
        .map(|cost| (cost.sessions, cost.cpu_us_per_session_second))
        .collect();
    assert_eq!(costs, [(980, 598.0), (250, 612.0)]);
}

#[test]
fn a_calibration_of_workload_ws_stands_by_its_first_cost() {
    let place = Place::new();
    place
        .folder("costs")
        .write_client_costs(&example::calibrations::client_costs())
        .unwrap();
    let (history, _) = place.refreshed();
    let found = all(&history);
    assert_eq!((found.len(), found[0].kind), (1, Kind::Calibrate));
    assert_eq!(found[0].workload, "ws");
    assert_eq!(found[0].in_short(), "172,500 messages per second");
}

#[test]
fn a_calibration_of_agents_stands_by_what_they_drive_at_once() {
    let place = Place::new();
    let folder = place.folder("fleet");
    folder.write_fleet(&example::fleet::two_agents()).unwrap();
    let (history, _) = place.refreshed();
    let found = all(&history);
    assert_eq!((found.len(), found[0].kind), (1, Kind::Calibrate));
    assert_eq!(found[0].in_short(), "7,000 sessions");
}

#[test]
fn a_calibration_of_an_inference_server_stands_by_what_the_server_holds() {
    let place = Place::new();
    place
        .folder("inference")
        .write_inference(&example::calibrations::inference())
        .unwrap();
    let (history, _) = place.refreshed();
    let found = all(&history);
    assert_eq!((found.len(), found[0].kind), (1, Kind::Calibrate));
    assert_eq!(found[0].targets, ["http://127.0.0.1:9000"]);
    assert_eq!(found[0].in_short(), "80 sessions");
}

#[test]
fn only_what_changed_is_read_again_and_what_is_gone_vanishes() {
    let place = Place::of_all_kinds();
    drop(place.refreshed());
    let (_, again) = place.refreshed();
    assert_eq!((again.read, again.removed, again.unchanged), (0, 0, 6));

    place.find_on("a-find", 6, 1_700);
    let (history, changed) = place.refreshed();
    assert_eq!((changed.read, changed.unchanged), (1, 5));
    let found = history.of_folder("a-find").unwrap();
    assert_eq!(found[0].load_line, Some(1_700));

    fs::remove_dir_all(place.path().join("e-ranking")).unwrap();
    let (history, gone) = place.refreshed();
    assert_eq!((gone.read, gone.removed, gone.unchanged), (0, 2, 4));
    let found = all(&history);
    assert!(!folders(&found).iter().any(|f| f.starts_with("e-ranking")));
    let of_target = Filter {
        target: Some("go-nethttp".to_owned()),
        ..Filter::default()
    };
    assert!(history.list(&of_target).unwrap().is_empty());
}

#[test]
fn made_anew_it_says_the_same() {
    let place = Place::of_all_kinds();
    let (history, _) = place.refreshed();
    let before = all(&history);
    // An index that is still open must do no harm.
    let anew = History::rebuild(place.path(), TELLERS).unwrap();
    assert_eq!(all(&anew), before);
    drop(history);
    drop(anew);
    let (again, refreshed) = place.refreshed();
    assert_eq!(all(&again), before);
    assert_eq!((refreshed.read, refreshed.unchanged), (0, 6));
    let left: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_broken_folder_is_named_and_stops_nothing() {
    let place = Place::of_all_kinds();
    fs::write(place.path().join("a-find/bracket.json"), "{").unwrap();
    let later = "{\"schema_version\": 99}";
    fs::write(place.path().join("b-run/trial-001.json"), later).unwrap();
    let (history, refreshed) = place.refreshed();
    let broken: Vec<_> = refreshed
        .broken
        .iter()
        .map(|broken| broken.folder.as_str())
        .collect();
    assert_eq!(broken, ["a-find", "b-run"]);
    assert!(refreshed.broken[0].why.contains("bracket.json is broken"));
    assert!(refreshed.broken[1].why.contains("schema version 99"));
    assert_eq!(all(&history).len(), 4);
    let known = history.known("a-find").unwrap().unwrap();
    assert!(!known.holds_result && known.broken.is_some());
    // Broken folders are reported each time, not only when they are read.
    let (_, again) = place.refreshed();
    assert_eq!((again.read, again.broken.len()), (0, 2));
    // Once fixed, the result is back.
    place.find_on("a-find", 5, 1_650);
    let (history, mended) = place.refreshed();
    assert_eq!(mended.broken.len(), 1);
    assert_eq!(history.of_folder("a-find").unwrap().len(), 1);
}

#[test]
fn filters_hold_together() {
    let place = Place::of_all_kinds();
    let (history, _) = place.refreshed();
    let list = |filter: Filter| {
        let found = history.list(&filter).unwrap();
        folders(&found).join(" ")
    };
    let none = Filter::default;
    let of = |name: &str| Some(name.to_owned());
    let kind = |kind| Filter {
        kind: Some(kind),
        ..none()
    };
    assert_eq!(list(kind(Kind::Find)), "a-find e-ranking/rust-axum");
    assert_eq!(list(kind(Kind::Compare)), "");
    let python = Filter {
        target: of("python-asgi"),
        ..none()
    };
    assert_eq!(list(python), "e-ranking");
    let since = UNIX_EPOCH + Duration::from_secs(1_767_484_800);
    let since_january_4 = Filter {
        since: Some(since),
        ..none()
    };
    assert_eq!(
        list(since_january_4.clone()),
        "sorted/d-check a-find e-ranking/rust-axum e-ranking"
    );
    let both = Filter {
        target: of("rust-axum"),
        kind: Some(Kind::Find),
        limit: Some(1),
        vcpu: Some(1.0),
        workload: of("stt"),
        ..since_january_4
    };
    assert_eq!(list(both.clone()), "a-find");
    let vcpu = Filter {
        vcpu: Some(0.5),
        ..both
    };
    assert_eq!(list(vcpu), "");
    // Values stay values, whatever they look like.
    let hostile = Filter {
        target: of("' OR 1=1 --"),
        ..none()
    };
    assert_eq!(list(hostile), "");
}

#[test]
fn a_trend_keeps_like_with_like() {
    let place = Place::new();
    place.find_on("new", 9, 1_700);
    place.find_on("old", 2, 1_500);
    let mut quarter = place.find_on("quarter", 5, 400);
    quarter.vcpu = Some(0.25);
    place.folder("quarter").write_bracket(&quarter).unwrap();
    let other = example::find();
    let mut trials = other.trials;
    for trial in &mut trials {
        let facts = &mut trial.environment.machine;
        facts.insert("cores".to_owned(), "96".to_owned());
    }
    place.find("elsewhere", &other.bracket, &trials);
    let (history, _) = place.refreshed();
    let groups = history.trend("rust-axum", &Filter::default()).unwrap();
    let seen: Vec<Vec<&str>> = groups
        .iter()
        .map(|group| group.points.iter().map(|p| p.folder.as_str()).collect())
        .collect();
    assert_eq!(
        seen,
        [vec!["old", "new"], vec!["quarter"], vec!["elsewhere"]]
    );
    assert_eq!(groups[0].points[1].load_line, Some(1_700));
    assert_eq!(
        groups[1].conditions.words(),
        "workload stt, profile quick, SLO stt, 0.25 vCPU, on Example CPU @ 2.0 GHz, 4 cores"
    );
    assert!(groups[2].conditions.words().ends_with("96 cores"));
    assert!(
        history
            .trend("nobody", &Filter::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_index_that_is_no_use_is_named_with_the_remedy() {
    let place = Place::of_all_kinds();
    let index = place.path().join(INDEX);
    let refused = |expected: &str| {
        let error = History::open(place.path(), TELLERS)
            .unwrap_err()
            .to_string();
        assert!(error.contains(INDEX), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.contains("--rebuild"), "{error}");
        assert!(!error.contains('\n'), "{error}");
        let anew = History::rebuild(place.path(), TELLERS).unwrap();
        assert_eq!(all(&anew).len(), 6);
        drop(anew);
        assert_eq!(all(&place.refreshed().0).len(), 6);
    };
    fs::write(
        &index,
        "no database at all, and longer than a header of SQLite ".repeat(9),
    )
    .unwrap();
    refused("not a database");
    let pragma = |text: &str| {
        let connection = rusqlite::Connection::open(&index).unwrap();
        connection.execute_batch(text).unwrap();
    };
    pragma("PRAGMA user_version = 7");
    refused("version is 7");
    fs::remove_file(&index).unwrap();
    pragma("CREATE TABLE somebody (elses TEXT)");
    refused("another program");
}

#[test]
fn an_earlier_version_is_made_anew_by_itself() {
    let place = Place::of_all_kinds();
    drop(place.refreshed());
    let connection = rusqlite::Connection::open(place.path().join(INDEX)).unwrap();
    connection
        .execute_batch("PRAGMA user_version = 0; DROP TABLE target;")
        .unwrap();
    drop(connection);
    let (history, refreshed) = place.refreshed();
    assert_eq!(refreshed.read, 6);
    assert_eq!(all(&history).len(), 6);
}

#[test]
fn two_commands_at_once_do_not_get_into_each_others_way() {
    let place = Place::of_all_kinds();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let (history, refreshed) = place.refreshed();
                    assert!(refreshed.broken.is_empty());
                    assert_eq!(all(&history).len(), 6);
                }
            });
        }
    });
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let place = Place::new();
    let gone = place.path().join("gone");
    let error = History::open(&gone, TELLERS).unwrap_err();
    assert!(matches!(error, ReportError::Read { .. }), "{error}");
    assert!(error.to_string().contains("gone"));
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        History::open(&file, TELLERS),
        Err(ReportError::NotAFolder(_))
    ));
}

#[test]
fn links_lead_nowhere_and_only_known_names_are_folders() {
    let elsewhere = Place::of_all_kinds();
    let place = Place::new();
    place.find_on("inside", 5, 1_650);
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, place.path().join(name)).unwrap();
    };
    link(&elsewhere.path().join("a-find"), "linked");
    let (mut history, refreshed) = place.refreshed();
    assert_eq!(refreshed.read, 1);
    for name in [
        "linked",
        "..",
        "../",
        "inside/..",
        "inside/../inside",
        "./inside",
        "/etc",
        "",
        ".",
        "inside\0",
    ] {
        assert_eq!(history.known(name).unwrap(), None, "{name:?}");
    }
    let known = history.known("inside").unwrap().unwrap();
    assert!(known.holds_result);
    assert!(known.path.starts_with(history.root()));
    // A record that is a symbolic link is not read at all.
    fs::remove_file(place.path().join("inside/trial-001.json")).unwrap();
    link(Path::new("/etc/hostname"), "inside/trial-001.json");
    let refreshed = history.refresh().unwrap();
    assert!(refreshed.broken[0].why.contains("symbolic link"));
    // A folder that became a symbolic link after it was read.
    fs::remove_dir_all(place.path().join("inside")).unwrap();
    link(&elsewhere.path().join("a-find"), "inside");
    assert_eq!(history.known("inside").unwrap(), None);
}

#[test]
fn a_folder_without_a_result_is_known_once_a_command_shows_itself_there() {
    let place = Place::new();
    fs::create_dir_all(place.path().join("begun/logs")).unwrap();
    fs::create_dir_all(place.path().join("somebody")).unwrap();
    fs::write(place.path().join("somebody/package.json"), "{}").unwrap();
    let (mut history, refreshed) = place.refreshed();
    assert!(refreshed.live.is_empty() && refreshed.broken.is_empty());
    assert_eq!(history.known("begun").unwrap(), None);
    fs::write(place.path().join("begun/live.json"), "{}").unwrap();
    let refreshed = history.refresh().unwrap();
    assert_eq!(refreshed.live, ["begun"]);
    let known = history.known("begun").unwrap().unwrap();
    assert!(!known.holds_result && known.broken.is_none());
    assert!(all(&history).is_empty());
}

#[test]
fn hostile_names_are_one_line_in_what_is_told() {
    let place = Place::new();
    let odd = example::nothing_passed();
    place.find("odd", &odd.bracket, &odd.trials);
    fs::create_dir_all(place.path().join("a\nb")).unwrap();
    fs::write(place.path().join("a\nb/check.json"), "{").unwrap();
    let (history, refreshed) = place.refreshed();
    let entry = &all(&history)[0];
    assert_eq!(entry.in_short(), "no load line");
    assert!(entry.target().contains("<b>"), "as it is: {entry:?}");
    assert!(!entry.claim.contains('\n'));
    assert_eq!(refreshed.broken[0].folder, "a\nb");
    assert!(!refreshed.broken[0].why.contains('\n'));
}

#[test]
fn a_baseline_is_part_of_its_result() {
    let place = Place::new();
    place.find_on("a-find", 5, 1_650);
    let mut run = example::failed_run();
    let baselines = place.folder("a-find").of_baselines().unwrap();
    baselines.write_trial(&run, &[], &[]).unwrap();
    // A folder that the user gave this name, by itself or in one that sorts results, is a result.
    run.started_at = "2026-01-06T00:00:00Z".to_owned();
    for name in ["baseline", "sorted/baseline"] {
        place.folder(name).write_trial(&run, &[], &[]).unwrap();
    }
    let (history, refreshed) = place.refreshed();
    assert!(refreshed.broken.is_empty(), "{:?}", refreshed.broken);
    let found = all(&history);
    let mut found = folders(&found);
    found.sort_unstable();
    assert_eq!(found, ["a-find", "baseline", "sorted/baseline"]);
}
