//! `report.html`: its numbers are those of the records, and each kind of result has the parts that it needs.

mod example;
mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use example::TELLERS;
use page::{HOSTILE, assert_sound, folder_of, found, page_of, raw, text, text_of, written};
use plimsoll_report::{ResultFolder, facts, render_all, words};
use scraper::Selector;

#[test]
fn a_find_says_what_its_record_says() {
    let find = example::evidence::two_slos();
    let place = folder_of(
        &find.trials,
        Some(&find.relaxed),
        &example::seconds(),
        &example::intervals(),
    );
    let folder = ResultFolder::create(place.path()).unwrap();
    folder.write_further_bracket(&find.strict).unwrap();
    let page = assert_sound(&page_of(place.path()));

    assert_eq!(
        text_of(&page, "[data-test=claim]"),
        "rust-axum carries 980 sessions on 1 vCPU"
    );
    assert_eq!(text_of(&page, "[data-test=load-line]"), "980 sessions");
    let edge = facts::edge(find.relaxed.edge.as_ref().unwrap());
    assert_eq!(text_of(&page, "[data-test=edge]"), edge);
    assert_eq!(text_of(&page, "[data-test=verdict]"), "load line found");
    assert_eq!(
        found(&page, "[data-test=claim]").len(),
        2,
        "one for each SLO"
    );
    for hook in [
        "chart-latency",
        "chart-percentiles",
        "chart-timeline",
        "chart-cost",
        "ledger",
        "evidence",
        "environment",
        "raw-json",
        "theme-toggle",
        "trial-picker",
        "caveats",
    ] {
        assert!(
            !found(&page, &format!("[data-test={hook}]")).is_empty(),
            "{hook}"
        );
    }
    // The chart on the page is the one in the file.
    let file = fs::read_to_string(place.path().join("chart.svg")).unwrap();
    let circles = Selector::parse("circle").unwrap();
    let in_page = found(&page, "[data-test=chart-latency] svg")[0];
    assert_eq!(
        in_page.select(&circles).count(),
        file.matches("<circle").count()
    );

    let raw = raw(&page);
    assert_eq!(raw["bracket.json"], written(&find.relaxed));
    assert_eq!(raw["bracket-strict.json"], written(&find.strict));
    for (index, trial) in find.trials.iter().enumerate() {
        let name = format!("trial-{:03}.json", index + 1);
        assert_eq!(raw[&name], written(trial), "{name}");
    }
}

#[test]
fn the_ledger_and_the_evidence_are_those_of_the_records() {
    let find = example::find();
    let place = folder_of(&find.trials, Some(&find.bracket), &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    let heads: Vec<String> = found(&page, "[data-test=ledger] thead th")
        .into_iter()
        .map(text)
        .collect();
    // The load line, the first fail, and the loads next to them, one trial each.
    assert_eq!(heads.len(), 6, "{heads:?}");
    for (column, head) in heads.iter().enumerate().skip(1) {
        let number: usize = head["trial-".len()..][..3].parse().unwrap();
        let ledger = facts::trial::ledger(&find.trials[number - 1], TELLERS);
        let rows = found(&page, "[data-test=ledger] tbody tr");
        assert_eq!(rows.len(), ledger.len());
        for (row, (name, value)) in rows.iter().zip(ledger) {
            let cells: Vec<_> = row.child_elements().map(text).collect();
            assert_eq!(cells[0], name);
            assert_eq!(cells[column], words::count(value), "{name} of {head}");
        }
    }
    let loads: Vec<String> = found(&page, "[data-test=evidence] tbody th")
        .into_iter()
        .map(text)
        .collect();
    let expected = [250, 500, 1_000, 1_500, 1_600, 1_650, 1_700, 1_750, 2_000].map(words::count);
    assert_eq!(loads, expected);
    assert!(text_of(&page, "[data-test=raw-json]").starts_with("14 records"));
    assert!(
        found(&page, "[data-test=chart-timeline]").is_empty(),
        "there are no rows per second"
    );
    assert!(text_of(&page, "main").contains("no per-second rows stored with the record"));
}

#[test]
fn every_caveat_has_its_remedy() {
    let find = example::lower_bound();
    let place = folder_of(&find.trials, Some(&find.bracket), &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    let shown: Vec<String> = found(&page, "[data-test=caveats] li")
        .into_iter()
        .map(text)
        .collect();
    let raised: BTreeSet<_> = find
        .trials
        .iter()
        .flat_map(|trial| &trial.caveats)
        .map(|c| &c.id)
        .collect();
    assert_eq!(shown.len(), raised.len());
    for trial in &find.trials {
        for caveat in &trial.caveats {
            let told =
                |shown: &&String| shown.starts_with(&caveat.id) && shown.contains(&caveat.text);
            assert!(
                shown.iter().any(|shown| told(&shown)),
                "{} in {shown:?}",
                caveat.text
            );
        }
    }
    assert_eq!(
        text_of(&page, "[data-test=load-line]"),
        "at least 4,000 sessions"
    );
    assert_eq!(text_of(&page, "[data-test=verdict]"), "lower bound only");
}

#[test]
fn a_run_with_everything_is_a_page() {
    let soak = example::evidence::soak();
    let place = folder_of(
        std::slice::from_ref(&soak),
        None,
        &example::many::seconds(),
        &example::many::intervals(),
    );
    let page = assert_sound(&page_of(place.path()));
    assert_eq!(text_of(&page, "[data-test=verdict]"), "fail");
    assert_eq!(
        text_of(&page, "[data-test=claim]"),
        words::outcome(&soak, TELLERS)
    );
    let all = text_of(&page, "main");
    for row in facts::drift_of(&soak) {
        assert!(
            all.contains(&row.slope) && all.contains(row.reading),
            "{row:?}"
        );
    }
    for (name, value) in facts::trial::client(&soak.client) {
        assert!(all.contains(&format!("{name} {value}")), "{name}");
    }
    assert!(
        found(&page, "[data-test=trial-picker]").is_empty(),
        "there is one trial"
    );
    assert!(all.contains("kernel_bytes_sent does not agree"));
}

#[test]
fn a_ranking_leads_to_each_target() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let mut ranking = example::many::ranking_with_trials();
    ranking.rows[1].folder = "javascript:alert(1)//".to_owned();
    HOSTILE.clone_into(&mut ranking.left_out[0].reason);
    folder.write_ranking(&ranking).unwrap();
    let page = assert_sound(&page_of(place.path()));
    let links: Vec<_> = found(&page, "tbody th a")
        .iter()
        .filter_map(|a| a.value().attr("href"))
        .collect();
    assert_eq!(links.len(), ranking.rows.len());
    assert_eq!(links[0], "./rust-axum-plain/report.html");
    assert_eq!(found(&page, "[data-test=chart-ranking] svg").len(), 1);
    assert_eq!(found(&page, "[data-test=chart-overlay] svg").len(), 1);
    assert!(text_of(&page, "[data-test=caveats]").contains("python-asgi-ft"));
    let doubted = text_of(&page, "[data-test=row-caveats]");
    assert!(
        doubted.contains("near-floor") && doubted.contains("<floor>"),
        "{doubted}"
    );
}

#[test]
fn check_and_calibration_are_tables() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    folder.write_check(&example::check()).unwrap();
    folder
        .write_calibration(&example::calibrations::engine())
        .unwrap();
    let page = assert_sound(&page_of(place.path()));
    assert_eq!(text_of(&page, "[data-test=verdict]"), "fail");
    let cases: Vec<String> = found(&page, "article:first-of-type tbody th")
        .into_iter()
        .map(text)
        .collect();
    let expected = "size cadence order idle drain health ping twice";
    assert_eq!(cases.join(" "), expected);
    assert!(text_of(&page, "main").contains("This client can drive 4,200 sessions on time"));
}

#[test]
fn client_costs_are_a_table() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let calibration = example::calibrations::client_costs();
    folder.write_client_costs(&calibration).unwrap();
    let page = assert_sound(&page_of(place.path()));
    let claim = "One core of this client is on time with 172,500 messages per second";
    assert!(text_of(&page, "[data-test=claim]").starts_with(claim));
    let rows = found(&page, "[data-test=client-costs] tbody tr");
    assert_eq!(rows.len(), calibration.costs.len());
}

#[test]
fn the_loads_of_an_inference_server_are_a_table() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    let calibration = example::calibrations::inference();
    folder.write_inference(&calibration).unwrap();
    let page = assert_sound(&page_of(place.path()));
    let claim = "The inference server at http://127.0.0.1:9000 holds 80 sessions";
    assert!(text_of(&page, "[data-test=claim]").starts_with(claim));
    let rows = found(&page, "[data-test=inference-loads] tbody tr");
    assert_eq!(rows.len(), calibration.loads.len());
}

#[test]
fn the_agents_of_a_fleet_are_a_table() {
    let place = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(place.path()).unwrap();
    folder.write_fleet(&example::fleet::two_agents()).unwrap();
    let page = assert_sound(&page_of(place.path()));
    let claim = "2 agents can drive 7,000 sessions on time (speech)";
    assert!(text_of(&page, "[data-test=claim]").starts_with(claim));
    assert_eq!(found(&page, "[data-test=fleet] tbody tr").len(), 1);
    assert_eq!(found(&page, "[data-test=fleet-agents] tbody tr").len(), 2);
}

#[test]
fn results_of_the_first_version_have_a_page() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results-of-0.1.0");
    let place = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&old).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, place.path().join(from.file_name().unwrap())).unwrap();
    }
    let page = assert_sound(&page_of(place.path()));
    assert_eq!(text_of(&page, "[data-test=load-line]"), "1,000 sessions");
    assert!(!found(&page, "[data-test=chart-percentiles]").is_empty());
}

#[test]
fn a_broken_file_beside_a_record_is_named() {
    let run = example::failed_run();
    for file in ["trial-001.csv", "trial-001.hlog"] {
        let runs = std::slice::from_ref(&run);
        let place = folder_of(runs, None, &example::seconds(), &example::intervals());
        fs::write(place.path().join(file), "no longer what it was\n").unwrap();
        let error = render_all(place.path(), TELLERS).unwrap_err().to_string();
        assert!(
            error.contains(file) && error.contains("is broken"),
            "{error}"
        );
        fs::remove_file(place.path().join(file)).unwrap();
        render_all(place.path(), TELLERS).unwrap();
    }
}

#[test]
fn a_badge_says_the_load_line() {
    let (find, bound) = (example::find(), example::lower_bound());
    for (find, said) in [
        (&find, "1,650 sessions / 1 vCPU"),
        (&bound, "at least 4,000 sessions / 1 vCPU"),
        (&example::nothing_passed(), "none found"),
    ] {
        let place = folder_of(&find.trials, Some(&find.bracket), &[], &[]);
        render_all(place.path(), TELLERS).unwrap();
        let badge = fs::read_to_string(place.path().join("badge.svg")).unwrap();
        let document = roxmltree::Document::parse(&badge).unwrap();
        let texts = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        let texts: Vec<_> = texts.filter_map(|node| node.text()).collect();
        assert_eq!(texts, ["load line", said]);
        fs::remove_file(place.path().join("bracket.json")).unwrap();
        render_all(place.path(), TELLERS).unwrap();
        assert!(!place.path().join("badge.svg").exists());
    }
}
