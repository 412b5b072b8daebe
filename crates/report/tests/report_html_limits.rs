//! `report.html` at its limits: nothing from outside is markup in it, and it stays small however much data there is.

mod example;
mod page;

use std::collections::BTreeSet;
use std::fs;

use page::{HOSTILE, assert_sound, folder_of, found, page_of, raw, text_of};
use plimsoll_core::caveat::Doubt;
use plimsoll_core::record::{Bracket, Phase, Second, Trial, TrialSummary};
use plimsoll_report::words;

#[test]
fn nothing_from_outside_is_markup() {
    let mut find = example::evidence::two_slos();
    for trial in &mut find.trials {
        HOSTILE.clone_into(&mut trial.target.name);
        trial
            .target
            .versions
            .insert(HOSTILE.to_owned(), HOSTILE.to_owned());
        trial
            .environment
            .machine
            .insert(HOSTILE.to_owned(), HOSTILE.to_owned());
        trial.ledger.because(HOSTILE);
        HOSTILE.clone_into(&mut trial.slo);
        HOSTILE.clone_into(&mut trial.workload);
        for gate in &mut trial.gates {
            HOSTILE.clone_into(&mut gate.name);
        }
        for caveat in &mut trial.caveats {
            HOSTILE.clone_into(&mut caveat.id);
            HOSTILE.clone_into(&mut caveat.text);
        }
    }
    let bracket = &mut find.relaxed;
    HOSTILE.clone_into(&mut bracket.target.name);
    HOSTILE.clone_into(&mut bracket.slo);
    HOSTILE.clone_into(&mut bracket.conclusion);
    bracket.bottleneck = Some(HOSTILE.to_owned());
    bracket.failing_gate = Some(HOSTILE.to_owned());
    let place = folder_of(
        &find.trials,
        Some(&find.relaxed),
        &example::many::seconds(),
        &example::many::intervals(),
    );
    let source = page_of(place.path());
    let page = assert_sound(&source);
    assert!(found(&page, "img").is_empty());
    let as_it_is = words::plain(HOSTILE);
    assert!(text_of(&page, "[data-test=claim]").starts_with(&as_it_is));
    assert!(text_of(&page, "title").starts_with(&as_it_is));
    assert_eq!(raw(&page)["bracket.json"]["target"]["name"], HOSTILE);
    for file in ["badge.svg", "timeline.svg", "percentiles.svg"] {
        let svg = fs::read_to_string(place.path().join(file)).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let names: BTreeSet<_> = document
            .descendants()
            .map(|node| node.tag_name().name().to_owned())
            .collect();
        assert!(
            !names.contains("img") && !names.contains("script"),
            "{file}: {names:?}"
        );
    }
}

/// The worst that a search of sixty trials leaves: long trials, each with noisy seconds, some invalid, and reasons
/// without end.
#[test]
fn sixty_trials_stay_below_a_megabyte() {
    let noisy: Vec<Second> = (1..=1_850u64)
        .map(|at_s| {
            let noise = f64::from(u32::try_from(at_s.wrapping_mul(2_654_435_761) % 997).unwrap());
            Second {
                at_s,
                phase: Phase::Measured,
                newest_p50_ms: Some(90.0 + noise / 9.0),
                newest_p95_ms: Some(180.0 + noise),
                newest_max_ms: Some(300.0 + noise * 3.0),
                send_lag_p99_us: Some(100.0 + noise),
                send_wait_p99_us: Some(noise),
                client_cpu_share: noise / 1_000.0,
                target_cpu_cores: Some(noise / 1_100.0),
                target_rss_bytes: Some(60_000_000 + at_s * 1_000),
                companion_cpu_cores: Some(noise / 5_000.0),
                errors: at_s % 3,
                protocol_faults: at_s % 5,
                sessions_lost: at_s % 7,
                ..Second::default()
            }
        })
        .collect();
    let lag = [Doubt::SendLag {
        p999_us: 9_300.0,
        limit_us: 5_000.0,
        others: Vec::new(),
    }];
    let trials: Vec<Trial> = (0..60u32)
        .map(|number| {
            let doubts = &lag[..usize::from(number % 4 == 0)];
            let latency = example::latency((96.0, 180.0), (900.0, 1_500.0));
            let mut trial = example::trial(1_600 + number % 12, latency, doubts);
            for reason in 0..200 {
                trial
                    .ledger
                    .because(&format!("{reason} {}", "<&>".repeat(40)));
            }
            trial
        })
        .collect();
    let summaries = trials
        .iter()
        .enumerate()
        .map(|(index, trial)| TrialSummary::of(trial, &format!("trial-{:03}.json", index + 1)));
    let bracket = Bracket {
        trials: summaries.collect(),
        ..example::find().bracket
    };
    for bracket in [Some(&bracket), None] {
        let place = folder_of(&trials, bracket, &noisy, &[]);
        let source = page_of(place.path());
        let page = assert_sound(&source);
        assert!(
            source.len() > 300_000,
            "{} bytes: it has little in it",
            source.len()
        );
        // The page names what did not fit.
        let all = text_of(&page, "main");
        for number in 1..=60 {
            assert!(all.contains(&format!("trial-{number:03}")), "{number}");
        }
        assert!(!found(&page, "[data-test=chart-timeline] svg").is_empty());
    }
}
