use proptest::prelude::*;

use super::*;
use crate::profile::Length;
use crate::record::{Edge, LoadUnit, SCHEMA_VERSION, Target};
use crate::search::edge::tests::at;

pub(crate) fn bracket(
    name: &str,
    confirmed: Option<u32>,
    edge: Option<(f64, f64, f64)>,
) -> Bracket {
    Bracket {
        build: crate::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        target: Target {
            name: name.to_owned(),
            ..Target::default()
        },
        workload: "stt".to_owned(),
        profile: "quick".to_owned(),
        slo: "stt".to_owned(),
        vcpu: Some(1.0),
        load_unit: LoadUnit::default(),
        confirmed,
        borderline: Vec::new(),
        first_fail: None,
        failing_gate: None,
        bottleneck: None,
        sessions_per_vcpu: confirmed.map(f64::from),
        lower_bound_only: false,
        interrupted: false,
        conclusion: String::new(),
        edge: edge.map(|(low, value, high)| Edge {
            value,
            low,
            high: Some(high),
            confidence: 0.95,
        }),
        evidence: Vec::new(),
        cost_curve: Vec::new(),
        escalation: None,
        baseline: None,
        goals: None,
        seed: 1,
        started_at: String::new(),
        trials: Vec::new(),
    }
}

fn row(name: &str, confirmed: Option<u32>, edge: Option<(f64, f64, f64)>) -> RankedTarget {
    RankedTarget {
        folder: name.to_owned(),
        language: String::new(),
        description: String::new(),
        lines_of_code: None,
        tuned: None,
        bracket: bracket(name, confirmed, edge),
        caveats: Vec::new(),
        at_common_load: None,
    }
}

#[test]
fn the_common_load_is_a_round_number_that_all_carry() {
    let of = |lines: &[Option<u32>]| {
        let brackets: Vec<_> = lines.iter().map(|line| bracket("x", *line, None)).collect();
        common_load(brackets.iter(), 20)
    };
    assert_eq!(of(&[Some(1000), Some(450)]), Some(300));
    assert_eq!(of(&[Some(95), Some(4000)]), Some(70));
    assert_eq!(of(&[Some(125)]), Some(100));
    assert_eq!(of(&[Some(190)]), Some(150));
    // 0.8 of 24 is less than 20: that target does not take part.
    assert_eq!(of(&[Some(24), Some(500)]), Some(300));
    assert_eq!(of(&[Some(24), None]), None);
    assert_eq!(of(&[]), None);
}

#[test]
fn the_highest_load_line_comes_first() {
    let mut rows = [
        row("none", None, None),
        row("low", Some(100), Some((90.0, 104.0, 120.0))),
        row("b", Some(400), Some((390.0, 410.0, 430.0))),
        row("a", Some(400), Some((390.0, 420.0, 430.0))),
    ];
    sort(&mut rows);
    assert_eq!(
        rows.each_ref().map(|row| row.folder.as_str()),
        ["a", "b", "low", "none"]
    );
    assert_eq!(places(&rows), [(1, 2), (1, 2), (3, 3), (4, 4)]);
}

#[test]
fn gateways_as_frameworks_have_them_come_first_and_have_places_of_their_own() {
    let mut rows = [
        row("tuned", Some(400), Some((390.0, 400.0, 410.0))),
        row("framework", Some(200), Some((190.0, 200.0, 210.0))),
        row("slow-framework", Some(100), Some((90.0, 100.0, 110.0))),
        row("also-tuned", Some(300), Some((290.0, 300.0, 310.0))),
    ];
    for row in &mut rows {
        if row.folder.ends_with("framework") {
            row.bracket.target.tier = "framework".to_owned();
        }
    }
    rows[1].tuned = Some("tuned".to_owned());
    rows[2].tuned = Some("not-measured".to_owned());
    for (row, cost_us) in rows.iter_mut().zip([100.0, 150.0]) {
        let trial = trial(Verdict::Pass, Some(cost_us));
        row.at_common_load = cost_at_load(&[(trial, "trial-001.json".to_owned())]);
    }
    sort(&mut rows);
    let names = rows.each_ref().map(|row| row.folder.as_str());
    let sorted = ["framework", "slow-framework", "tuned", "also-tuned"];
    assert_eq!(names, sorted);
    assert_eq!(places(&rows), [(1, 1), (2, 2), (1, 1), (2, 2)]);

    let costs = framework_costs(&rows);
    assert_eq!(costs.len(), 1);
    assert_eq!(costs[0].edge(), None, "no trials are known");
    let (account, ratio) = costs[0].cpu().expect("two costs");
    assert_eq!((account, ratio.value), (CostAccount::Charged, 1.5));
}

#[test]
fn what_a_framework_costs_is_told_from_the_trials_of_both() {
    let searched = |name: &str, edge: u32, core_us: [f64; 2]| {
        let mut row = row(name, Some(edge), Some((0.0, f64::from(edge), 0.0)));
        row.bracket.evidence = vec![
            at(edge - edge / 20, [3, 0, 0, 0]),
            at(edge + edge / 20, [0, 3, 0, 0]),
        ];
        let trials = core_us.map(|core_us| {
            let mut trial = trial(Verdict::Pass, Some(100.0));
            let resources = trial.target_resources.as_mut().expect("some");
            resources.core_us_per_session_second = Some(core_us);
            (trial, "trial-001.json".to_owned())
        });
        row.at_common_load = cost_at_load(&trials);
        row
    };
    let mut rows = [
        searched("framework", 200, [180.0, 220.0]),
        searched("tuned", 400, [90.0, 110.0]),
    ];
    rows[0].tuned = Some("tuned".to_owned());
    let costs = framework_costs(&rows);
    let edge = costs[0].edge().expect("both are bounded");
    assert!((edge.value - 0.5).abs() < 0.01, "{edge:?}");
    // It is narrower than the two ends that lie furthest apart.
    let end = |row: &RankedTarget, share: f64| {
        let edge = edge_of(&row.bracket.evidence).expect("bounded");
        edge.quantile(share)
    };
    assert!(
        edge.low > end(&rows[0], 0.025) / end(&rows[1], 0.975),
        "{edge:?}"
    );
    assert!(
        edge.high < end(&rows[0], 0.975) / end(&rows[1], 0.025),
        "{edge:?}"
    );
    let (account, cpu) = costs[0].cpu().expect("two costs");
    let (low, high) = (180.0 / 110.0, 220.0 / 90.0);
    let expected = Ratio {
        value: 2.0,
        low,
        high,
    };
    assert_eq!((account, cpu), (CostAccount::Core, expected));
    assert_eq!(common_account(&rows), CostAccount::Core);
    assert_eq!(common_account(&[]), CostAccount::Charged);
    let trial = trial(Verdict::Pass, Some(100.0));
    rows[1].at_common_load = cost_at_load(&[(trial, "trial-001.json".to_owned())]);
    assert_eq!(common_account(&rows), CostAccount::Charged, "not of all");

    rows[1].bracket.evidence.pop();
    assert_eq!(framework_costs(&rows)[0].edge(), None, "nothing failed");
}

#[test]
fn an_edge_without_a_high_end_overlaps_with_all_above_it() {
    let mut rows = [
        row("open", Some(900), None),
        row("b", Some(800), Some((700.0, 850.0, 950.0))),
    ];
    rows[0].bracket.edge = Some(Edge {
        value: 920.0,
        low: 900.0,
        high: None,
        confidence: 0.95,
    });
    assert_eq!(places(&rows), [(1, 2), (1, 2)]);
}

#[test]
fn a_latency_near_that_of_the_floor_is_doubted() {
    let with = |name: &str, p50_ms: Option<f64>| {
        let mut row = row(name, Some(100), None);
        let mut trial = trial(Verdict::Pass, Some(1.0));
        trial.latency.newest.from_write.p50_ms = p50_ms;
        // Gates look at this one. It says nothing about the floor.
        trial.latency.newest.from_schedule.p50_ms = Some(9.0);
        row.at_common_load = cost_at_load(&[(trial, "trial-001.json".to_owned())]);
        row
    };
    let mut rows = [
        with("near", Some(0.199)),
        with("floor", Some(0.1)),
        with("far", Some(0.2)),
        with("unknown", None),
    ];
    let ids = |rows: &[RankedTarget]| -> Vec<Vec<String>> {
        let of = |row: &RankedTarget| row.caveats.iter().map(|c| c.id.clone()).collect();
        rows.iter().map(of).collect()
    };
    note_the_floor(&mut rows, "another");
    assert_eq!(ids(&rows), vec![Vec::<String>::new(); 4]);
    note_the_floor(&mut rows, "floor");
    let none = Vec::new;
    assert_eq!(
        ids(&rows),
        [vec!["near-floor".to_owned()], none(), none(), none()]
    );
    assert!(
        rows.iter()
            .flat_map(|row| &row.caveats)
            .all(|c| !c.blocking)
    );
    let text = &rows[0].caveats[0].text;
    assert!(
        text.contains("0.199 ms") && text.contains("0.100 ms of floor"),
        "{text}"
    );
}

/// A passing trial with this cost, built from JSON: every other field has what a record must have.
pub(crate) fn trial(verdict: Verdict, cost: Option<f64>) -> Trial {
    let resources = cost.map(|cost| crate::record::TargetResources {
        cpu_us_per_session_second: Some(cost),
        rss_bytes_per_session: Some(cost * 100.0),
        ..Default::default()
    });
    Trial {
        schema_version: SCHEMA_VERSION,
        verdict,
        gates: Vec::new(),
        caveats: Vec::new(),
        workload: String::new(),
        parameters: crate::record::Parameters::new(),
        profile: String::new(),
        phases: crate::profile::Profile::quick(),
        slo: String::new(),
        sessions: 100,
        load_unit: LoadUnit::default(),
        length: Length::Full,
        target: Target::default(),
        start_ms: None,
        vcpu: Some(1.0),
        environment: crate::record::Environment::default(),
        baseline: None,
        seed: 1,
        started_at: String::new(),
        interrupted: false,
        ledger: crate::ledger::Ledger::default(),
        latency: crate::latency::Latency::default(),
        client: crate::record::Client::default(),
        target_resources: resources,
        companion: None,
        bottleneck: None,
        sanity: Vec::new(),
        sections: crate::record::Sections::default(),
        drift: None,
        further_slos: Vec::new(),
        goals: None,
        goodput: None,
    }
}

#[test]
fn only_passing_trials_tell_a_cost() {
    let trials = [
        (
            trial(Verdict::Pass, Some(300.0)),
            "trial-007.json".to_owned(),
        ),
        (
            trial(Verdict::Fail, Some(100.0)),
            "trial-008.json".to_owned(),
        ),
        (
            trial(Verdict::Pass, Some(320.0)),
            "trial-009.json".to_owned(),
        ),
        (trial(Verdict::Pass, None), "trial-010.json".to_owned()),
    ];
    let cost = cost_at_load(&trials).unwrap();
    assert_eq!(
        (cost.cpu_us_per_session_second, cost.low, cost.high),
        (310.0, 300.0, 320.0)
    );
    assert_eq!(cost.rss_bytes_per_session, Some(31_000.0));
    assert_eq!(cost.trials, ["trial-007.json", "trial-009.json"]);
    assert_eq!(cost.left_out, 2);
    assert_eq!(cost_at_load(&trials[1..2]), None);
}

proptest! {
    #[test]
    fn every_round_has_every_target_once(count in 0..20_usize, round in 0..50_u32, seed: u64) {
        let mut turns = turns(count, round, seed);
        turns.sort_unstable();
        prop_assert_eq!(turns, (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn a_common_load_is_within_reach_of_all_that_take_part(lines in prop::collection::vec(1..20_000_u32, 1..12)) {
        let brackets: Vec<_> = lines.iter().map(|line| bracket("x", Some(*line), None)).collect();
        if let Some(load) = common_load(brackets.iter(), 20) {
            let part = lines.iter().filter(|line| f64::from(**line) * SHARE_OF_LOWEST >= 20.0);
            prop_assert!(part.clone().count() > 0);
            for line in part {
                prop_assert!(f64::from(load) <= f64::from(*line) * SHARE_OF_LOWEST * 1.001, "{load} of {line}");
            }
        }
    }
}

#[test]
fn the_order_changes_from_round_to_round() {
    let first = turns(6, 0, 1);
    assert!((1..8).any(|round| turns(6, round, 1) != first));
    assert_eq!(turns(6, 3, 9), turns(6, 3, 9));
}
