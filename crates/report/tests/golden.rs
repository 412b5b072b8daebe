//! Renderings of fixed folders, compared with checked-in files. After an intended change: `PLIMSOLL_UPDATE=1 cargo test
//! -p plimsoll-report`, then review the difference and the charts.

mod example;
mod golden_files;

use std::fs;

use example::TELLERS;
use golden_files::assert_golden;
use plimsoll_core::record::{Bracket, Trial};
use plimsoll_report::{ResultFolder, Results, load, render_all, text};

struct Rendered {
    folder: tempfile::TempDir,
    results: Results,
}

fn rendered(trials: &[Trial], bracket: Option<&Bracket>) -> Rendered {
    rendered_with(trials, bracket, |_| ())
}

fn rendered_with(
    trials: &[Trial],
    bracket: Option<&Bracket>,
    more: impl Fn(&ResultFolder),
) -> Rendered {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    for trial in trials {
        folder.write_trial(trial, &[], &[]).unwrap();
    }
    if let Some(bracket) = bracket {
        folder.write_bracket(bracket).unwrap();
    }
    more(&folder);
    render_all(place.path(), TELLERS).unwrap();
    let results = load(place.path(), TELLERS).unwrap();
    Rendered {
        folder: place,
        results,
    }
}

fn assert_renderings(name: &str, rendered: &Rendered) {
    let files = ["summary.md", "chart.svg", "step-summary.md", "junit.xml"];
    assert_files(name, rendered, &files);
    assert_image(name, rendered, "chart.png");
}

fn assert_files(name: &str, rendered: &Rendered, files: &[&str]) {
    for file in files {
        let now = fs::read_to_string(rendered.folder.path().join(file)).unwrap();
        assert_golden(&format!("{name}/{file}"), &now);
    }
}

fn assert_image(name: &str, rendered: &Rendered, file: &str) {
    assert_image_of_size(name, rendered, file, (1600, 1000));
}

fn assert_image_of_size(name: &str, rendered: &Rendered, file: &str, size_px: (u32, u32)) {
    let png = fs::read(rendered.folder.path().join(file)).unwrap();
    let image = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
    assert_eq!((image.width(), image.height()), size_px);
    assert!(
        title_is_drawn(&image),
        "{name}: the font is missing from the image"
    );
}

/// Whether there is something dark where the title is. An image without a font has no text at all.
fn title_is_drawn(image: &resvg::tiny_skia::Pixmap) -> bool {
    let dark = |x, y| image.pixel(x, y).is_some_and(|pixel| pixel.red() < 100);
    let found = (30..70)
        .flat_map(|y| (40..600).map(move |x| (x, y)))
        .filter(|(x, y)| dark(*x, *y));
    found.count() > 500
}

/// What the terminal shows of the searches.
fn searches(rendered: &Rendered, color: bool) -> String {
    let views = rendered.results.searches();
    let told: Vec<_> = views
        .iter()
        .map(|view| text::search(view, color, TELLERS))
        .collect();
    told.join("\n")
}

fn assert_find(name: &str, find: &example::Find) {
    let rendered = rendered(&find.trials, Some(&find.bracket));
    assert_renderings(name, &rendered);
    let plain = searches(&rendered, false);
    assert!(!plain.contains('\u{1b}'), "colour that nobody asked for");
    assert_golden(&format!("{name}/terminal.txt"), &plain);
}

#[test]
fn a_find_with_a_load_line() {
    assert_find("find", &example::find());
    let find = example::find();
    let rendered = rendered(&find.trials, Some(&find.bracket));
    // Without interval logs, the curves come from the records' percentiles.
    assert_files("find", &rendered, &["badge.svg", "percentiles.svg"]);
    assert_image("find", &rendered, "percentiles.png");
    assert!(!rendered.folder.path().join("timeline.svg").exists());
}

/// A trial with all of its files, and with more seconds than a timeline has points.
#[test]
fn a_trial_second_by_second_and_answer_by_answer() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let mut run = example::failed_run();
    run.target.name = "rust-axum & <another>".to_owned();
    let (seconds, intervals) = (example::many::seconds(), example::many::intervals());
    folder.write_trial(&run, &seconds, &intervals).unwrap();
    render_all(place.path(), TELLERS).unwrap();
    let rendered = Rendered {
        results: load(place.path(), TELLERS).unwrap(),
        folder: place,
    };
    assert_files("timeline", &rendered, &["timeline.svg", "percentiles.svg"]);
    assert_image("timeline", &rendered, "percentiles.png");
    assert_image_of_size("timeline", &rendered, "timeline.png", (1600, 1440));
    let timeline = fs::read_to_string(rendered.folder.path().join("timeline.svg")).unwrap();
    assert!(timeline.contains("each point is the greatest value of 2 s"));
}

#[test]
fn a_find_in_which_the_client_ran_out() {
    assert_find("lower-bound", &example::lower_bound());
}

#[test]
fn a_find_in_which_nothing_passed() {
    assert_find("nothing-passed", &example::nothing_passed());
}

#[test]
fn a_run_that_failed() {
    let run = example::failed_run();
    let rendered = rendered(std::slice::from_ref(&run), None);
    assert_renderings("failed-run", &rendered);
    let plain = text::trial(&run, false, TELLERS);
    assert!(
        !plain.contains('\u{1b}'),
        "an escape code from outside, or colour"
    );
    assert_golden("failed-run/terminal.txt", &plain);
}

/// A trial without a confirmation says nothing about one. The golden files cover that.
#[test]
fn a_confirmation_is_shown_where_there_is_one() {
    let mut run = example::failed_run();
    let unconfirmed = text::trial(&run, false, TELLERS);
    assert!(!unconfirmed.contains("confirm"), "{unconfirmed}");
    let mut confirm = example::latency((31.5, 47.5), (1.0, 2.0)).newest;
    confirm.from_schedule.censored = 7;
    run.latency.confirm = Some(confirm);
    let rendered = rendered(std::slice::from_ref(&run), None);
    let file = |name: &str| fs::read_to_string(rendered.folder.path().join(name)).unwrap();
    for page in [
        text::trial(&run, false, TELLERS),
        file("summary.md"),
        file("report.html"),
    ] {
        for shown in [
            "confirm, from the schedule",
            "confirm, from the write",
            "31.5",
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
    }
    let page = file("summary.md");
    let note = "count unconfirmed frames as unanswered";
    assert!(page.contains(note), "{page}");
    let property = r#"<property name="confirm_p95_ms" value="47.5"/>"#;
    assert!(
        file("junit.xml").contains(property),
        "{}",
        file("junit.xml")
    );
}

#[test]
fn a_search_shows_the_confirmation_at_each_load() {
    let mut find = example::find();
    let shown = |find: &example::Find| {
        let rendered = rendered(&find.trials, Some(&find.bracket));
        let page = fs::read_to_string(rendered.folder.path().join("summary.md")).unwrap();
        (page, searches(&rendered, false))
    };
    let (page, terminal) = shown(&find);
    assert!(!page.contains("confirm p") && !terminal.contains("confirm p"));
    for trial in &mut find.bracket.trials {
        trial.confirm_p50_ms = Some(3.0);
        trial.confirm_p95_ms = Some(77.0);
        trial.confirm_p99_ms = Some(5_555.0);
    }
    let (page, terminal) = shown(&find);
    assert!(
        page.contains("confirm p50") && page.contains("confirm p95"),
        "{page}"
    );
    assert!(
        page.contains("| 3 ms | 77 ms |") && !page.contains("5,555 ms"),
        "{page}"
    );
    assert!(terminal.contains("confirm p95"), "{terminal}");
}

#[test]
fn a_soak_with_all_that_can_be_known() {
    let soak = example::evidence::soak();
    let rendered = rendered(std::slice::from_ref(&soak), None);
    assert_renderings("soak", &rendered);
    assert_golden("soak/terminal.txt", &text::trial(&soak, false, TELLERS));
}

#[test]
fn a_ledger_that_does_not_add_up_is_told_once() {
    let mut run = example::failed_run();
    run.ledger.frames_answered += 1;
    let told = text::trial(&run, false, TELLERS);
    let gaps = told.matches("the ledger does not add up").count();
    assert_eq!(gaps, 1, "{told}");
}

#[test]
fn a_find_by_two_slos() {
    let find = example::evidence::two_slos();
    let rendered = rendered_with(&find.trials, Some(&find.relaxed), |folder| {
        let name = folder.write_further_bracket(&find.strict).unwrap();
        assert_eq!(name, "bracket-strict.json");
    });
    assert_renderings("two-slos", &rendered);
    assert_files("two-slos", &rendered, &["cost.svg", "chart-strict.svg"]);
    for image in ["cost.png", "chart-strict.png"] {
        assert_image("two-slos", &rendered, image);
    }
    assert_golden("two-slos/terminal.txt", &searches(&rendered, false));
}

#[test]
fn colour_changes_no_character() {
    let find = example::find();
    let rendered = rendered(&find.trials, Some(&find.bracket));
    let colored = searches(&rendered, true);
    let plain = searches(&rendered, false);
    assert_ne!(colored, plain);
    assert_eq!(without_codes(&colored), plain);
    let run = &find.trials[0];
    assert_eq!(
        without_codes(&text::trial(run, true, TELLERS)),
        text::trial(run, false, TELLERS)
    );
}

fn without_codes(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        text + piece.split_once('m').map_or("", |(_, rest)| rest)
    })
}

#[test]
fn check_and_calibration() {
    let rendered = rendered_with(&[], None, |folder| {
        folder.write_check(&example::check()).unwrap();
        folder
            .write_calibration(&example::calibrations::engine())
            .unwrap();
    });
    let files = ["summary.md", "step-summary.md", "junit.xml"];
    assert_files("check-and-calibration", &rendered, &files);
    assert!(!rendered.folder.path().join("chart.svg").exists());
}

#[test]
fn client_costs_of_workload_ws() {
    let rendered = rendered_with(&[], None, |folder| {
        let calibration = example::calibrations::client_costs();
        folder.write_client_costs(&calibration).unwrap();
    });
    let files = ["summary.md", "step-summary.md", "junit.xml"];
    assert_files("client-costs", &rendered, &files);
    let calibration = rendered.results.client_costs.first().unwrap();
    assert_golden(
        "client-costs/terminal.txt",
        &text::client_costs(calibration),
    );
}

#[test]
fn several_targets_are_ranked() {
    let rendered = rendered_with(&[], None, |folder| {
        folder.write_ranking(&example::ranking()).unwrap();
    });
    let files = ["summary.md", "ranking.svg", "step-summary.md", "junit.xml"];
    assert_files("ranking", &rendered, &files);
    // Its brackets have neither trials nor a cost curve.
    assert!(!rendered.folder.path().join("overlay.svg").exists());
    assert_image_of_size("ranking", &rendered, "ranking.png", (2000, 624));
    let ranking = rendered.results.ranking.as_ref().unwrap();
    assert_golden("ranking/terminal.txt", &text::ranking(ranking, false));
    assert!(!rendered.folder.path().join("chart.svg").exists());
}

#[test]
fn what_a_framework_costs_in_one_trial_has_no_spread() {
    let cost_in_rounds = |rounds: usize| {
        let rendered = rendered_with(&[], None, |folder| {
            let mut ranking = example::ranking();
            for row in &mut ranking.rows {
                let at = row.at_common_load.as_mut();
                at.into_iter().for_each(|at| at.trials.truncate(rounds));
            }
            folder.write_ranking(&ranking).unwrap();
        });
        fs::read_to_string(rendered.folder.path().join("summary.md")).unwrap()
    };
    assert!(cost_in_rounds(2).contains("| 1.306 (1.169 to 1.460), its cores |"));
    assert!(cost_in_rounds(1).contains("| 1.306, its cores |"));
}

#[test]
fn several_targets_are_laid_over_each_other() {
    let rendered = rendered_with(&[], None, |folder| {
        folder
            .write_ranking(&example::many::ranking_with_trials())
            .unwrap();
    });
    assert_files("overlay", &rendered, &["overlay.svg"]);
    assert_image_of_size("overlay", &rendered, "overlay.png", (1600, 1336));
}
