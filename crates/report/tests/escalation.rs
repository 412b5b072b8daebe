//! What a target does at each load: the table and the chart of a search, and of trials without one.

mod example;

use std::fs;
use std::path::Path;

use example::{TELLERS, latency, trial};
use plimsoll_core::caveat::Doubt;
use plimsoll_core::record::{
    Bracket, Collapse, CollapseSign, Escalation, Goodput, Knee, LiveEnded, LoadUnit, Trial, Verdict,
};
use plimsoll_report::{ResultFolder, StoredTrial, render_all, text};

/// A trial of so many callers with a turn each eight seconds.
fn callers(load: u32, good_share: f64, failed_share: f64) -> Trial {
    let due_per_s = f64::from(load) / 8.0;
    let newest = if failed_share > 0.0 {
        (420.0, 880.0)
    } else {
        (100.0, 150.0)
    };
    Trial {
        load_unit: LoadUnit::of("callers"),
        goodput: Some(Goodput {
            due_per_s,
            good_per_s: due_per_s * good_share,
            failed_share,
        }),
        ..trial(load, latency(newest, (600.0, 900.0)), &[])
    }
}

/// Three loads: all is well, it does most, it does less than half.
fn stages() -> Vec<Trial> {
    vec![
        callers(80, 1.0, 0.0),
        callers(160, 0.9, 0.01),
        callers(320, 0.2, 0.3),
    ]
}

fn rendered(trials: &[Trial], bracket: Option<&Bracket>) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    for trial in trials {
        folder.write_trial(trial, &[], &[]).unwrap();
    }
    if let Some(bracket) = bracket {
        folder.write_bracket(bracket).unwrap();
    }
    render_all(place.path(), TELLERS).unwrap();
    place
}

fn read(place: &Path, name: &str) -> String {
    fs::read_to_string(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The words of the table's row that begins with this cell.
#[track_caller]
fn row(summary: &str, first: &str) -> Vec<String> {
    let begins = format!("| {first} |");
    let table = summary.split("What the target did at each load").nth(1);
    let mut lines = table.expect("the table").lines();
    let line = lines.find(|line| line.starts_with(&begins));
    let cells = line.unwrap_or_else(|| panic!("no row {first}: {summary}"));
    let cells = cells.trim_matches('|').split('|');
    cells
        .map(|cell| cell.trim().trim_matches(['*', '`']).to_owned())
        .collect()
}

#[test]
fn stages_have_a_row_each_and_the_three_loads() {
    let trials = stages();
    assert_eq!(trials[0].verdict, Verdict::Pass);
    assert_eq!(trials[2].verdict, Verdict::Fail);
    let place = rendered(&trials, None);
    let summary = read(place.path(), "summary.md");
    let cells = row(&summary, "80");
    assert_eq!(cells[..5], ["80", "pass", "10", "10", "0 %"]);
    let cells = row(&summary, "320");
    assert_eq!(cells[..5], ["320", "fail", "40", "8", "30 %"]);
    // The latency that exceeds its threshold by the greatest factor.
    assert_eq!(cells.last().unwrap(), "newest_p95_ms");
    for words in [
        "80 callers",
        "160 callers (goodput 18/s)",
        "320 callers (not yet at 160), because 5 % of what was due failed",
    ] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    let svg = read(place.path(), "escalation.svg");
    for words in ["SLO limit: 80", "knee: 160", "collapse: 320"] {
        assert!(svg.contains(words), "{words}");
    }
    let png = fs::read(place.path().join("escalation.png")).unwrap();
    let image = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
    assert_eq!(image.width(), 1600);
    let page = read(place.path(), "report.html");
    assert!(page.contains("data-test=\"chart-escalation\""));
    let stored: Vec<_> = (1..)
        .zip(&trials)
        .map(|(number, trial)| StoredTrial {
            stem: format!("trial-{number:03}"),
            trial: trial.clone(),
        })
        .collect();
    let terminal = text::side_by_side(&stored, TELLERS);
    assert!(
        terminal.contains("SLO limit") && terminal.contains("collapse"),
        "{terminal}"
    );
}

/// A stage with too few turns for a percentile is invalid. What it counted is shown, and says nothing of the three loads.
#[test]
fn what_an_invalid_trial_counted_is_seen_and_decides_nothing() {
    let doubt = Doubt::Interrupted;
    let invalid = |of: Trial| Trial {
        verdict: Verdict::Invalid,
        caveats: vec![(&doubt).into()],
        ..of
    };
    let trials: Vec<_> = stages().into_iter().map(invalid).collect();
    let place = rendered(&trials, None);
    let summary = read(place.path(), "summary.md");
    let cells = row(&summary, "160");
    assert_eq!(cells[..5], ["160", "invalid", "20", "18", "1 %"]);
    assert!(cells[5].ends_with("ms"), "{cells:?}");
    let svg = read(place.path(), "escalation.svg");
    assert!(!svg.contains("knee") && !svg.contains("SLO limit"));
}

#[test]
fn a_search_has_the_three_loads_that_it_found() {
    let find = example::find();
    let trials: Vec<_> = find
        .trials
        .iter()
        .map(|of| Trial {
            goodput: callers(of.sessions, 1.0, 0.0).goodput,
            ..of.clone()
        })
        .collect();
    let bracket = Bracket {
        escalation: Some(Escalation {
            knee: Some(Knee {
                load: 1_750,
                goodput_per_s: 218.75,
                is_passed: true,
            }),
            collapse: Some(Collapse {
                load: 2_000,
                highest_without: Some(1_750),
                sign: CollapseSign::GoodputHalved,
            }),
            ..Escalation::default()
        }),
        ..find.bracket.clone()
    };
    let place = rendered(&trials, Some(&bracket));
    let svg = read(place.path(), "escalation.svg");
    for words in ["SLO limit: 1,650", "knee: 1,750", "collapse: 2,000"] {
        assert!(svg.contains(words), "{words}");
    }
    let summary = read(place.path(), "summary.md");
    assert!(summary.contains("2,000 sessions (not yet at 1,750), because it did half as much"));
    assert_eq!(row(&summary, "1,700").len(), 8);
}

/// While a command runs, it shows the same of each trial that has ended.
#[test]
fn a_trial_that_ended_shows_what_broke_first() {
    let ended: Vec<LiveEnded> = (1..)
        .zip(&stages())
        .map(|(number, trial)| LiveEnded::of(number, "rust-axum", trial))
        .collect();
    assert_eq!(ended[0].broke_first, None);
    assert_eq!(ended[2].broke_first.as_deref(), Some("newest_p95_ms"));
    let goodput = ended[2].goodput.expect("voice says how much was done");
    assert_eq!((goodput.due_per_s, goodput.good_per_s), (40.0, 8.0));
}

#[test]
fn without_goodput_there_is_no_escalation() {
    let find = example::find();
    let place = rendered(&find.trials, Some(&find.bracket));
    assert!(!place.path().join("escalation.svg").exists());
    assert!(!read(place.path(), "summary.md").contains("Escalation"));
    // Trials that differ in more than their loads are no escalation either.
    let mut trials = stages();
    let odd = serde_json::json!("calls");
    trials[1].parameters.insert("test".to_owned(), odd);
    let place = rendered(&trials, None);
    assert!(!place.path().join("escalation.svg").exists());
}
