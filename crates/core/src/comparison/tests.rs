//! The conclusion on synthetic numbers (how often it raises a false alarm, and what it detects), its rule, and the
//! conditions.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::json;

use super::*;
use crate::latency::Latency;
use crate::ledger::Ledger;
use crate::profile::{Length, Profile};
use crate::record::{
    Build, Client, Comparison, Conclusion, Environment, GateResult, LoadUnit, Network, NetworkMode,
    Parameters, SCHEMA_VERSION, Target, TargetResources, Trial, Verdict,
};
use crate::schedule::mix;
use crate::search::edge::tests::at;
use crate::stats::Ratio;

const CONFIDENCE: f64 = 0.95;

/// Uniform between 0 and 1, neither included.
fn even(seed: u64) -> f64 {
    ((mix(seed) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A standard normal number, by Box and Muller.
fn normal(seed: u64) -> f64 {
    (-2.0 * even(seed).ln()).sqrt() * (std::f64::consts::TAU * even(!seed)).cos()
}

/// One trial in ten is disturbed, with a deviation five times that of the others.
fn disturbed(seed: u64) -> f64 {
    let factor = if even(mix(seed) ^ 0xD15B) < 0.1 {
        5.0
    } else {
        1.0
    };
    factor * normal(seed)
}

/// Costs of pairs of trials: noise of 2 % for each trial, drift over the session, the order effect of the second trial
/// of a pair, and `b` more expensive by that factor.
fn pairs(seed: u64, n: u32, factor: f64, noise: fn(u64) -> f64) -> Vec<(f64, f64)> {
    let cost = |pair: u32, of_b: bool| {
        let second = b_goes_first(pair, seed) != of_b;
        let at = f64::from(2 * pair) + f64::from(u8::from(second));
        let noise = 0.02 * noise(mix(seed) ^ mix(u64::from(pair) * 2 + u64::from(of_b)));
        let drift = 0.002 * at + if second { 0.01 } else { 0.0 };
        250.0 * (noise + drift).exp() * if of_b { factor } else { 1.0 }
    };
    (0..n)
        .map(|pair| (cost(pair, false), cost(pair, true)))
        .collect()
}

const CASES: u64 = 2_000;

/// The load line ratios of 2,000 comparisons of two equal edges. Each edge is known with an error of 2 %, by a
/// posterior that knows its own width. (For a `b` that carries more, all three numbers are greater by that factor.)
fn load_line_ratios() -> &'static [Ratio] {
    static RATIOS: OnceLock<Vec<Ratio>> = OnceLock::new();
    RATIOS.get_or_init(|| {
        let steps = 1_000_usize;
        // The standard normal quantile, closely enough: Student's with many degrees of freedom.
        let quantiles: Vec<f64> = (0..steps)
            .map(|step| (step as f64 + 0.5) / steps as f64)
            .map(|q| crate::stats::t_quantile(q, 1_000).expect("inside"))
            .collect();
        let edge = |seed: u64| {
            let estimate = 500.0 * (0.02 * normal(mix(seed))).exp();
            let edges: Vec<f64> = quantiles
                .iter()
                .map(|z| estimate * (0.02 * z).exp())
                .collect();
            move |q: f64| edges[((q * steps as f64) as usize).min(steps - 1)]
        };
        let each = confidence_of_each(CONFIDENCE, 2);
        let ratio = |seed| load_line_ratio(edge(seed ^ 0xA000), edge(seed ^ 0xB000), each, seed);
        (0..CASES)
            .map(|seed| ratio(seed).expect("bounded"))
            .collect()
    })
}

/// The share of comparisons of cost and load line with this conclusion.
fn share(of: Conclusion, n: u32, cost: f64, load_line: f64, noise: fn(u64) -> f64) -> f64 {
    let each = confidence_of_each(CONFIDENCE, 2);
    let concluded = |(seed, found): (u64, &Ratio)| {
        let cost = paired_cost_ratio(&pairs(seed, n, cost, noise), each);
        assert!(cost.is_some());
        let load_line = ratio(
            found.value * load_line,
            found.low * load_line,
            found.high * load_line,
        );
        let findings = Findings {
            cost,
            load_line,
            ..Findings::default()
        };
        conclude("a", "b", &findings).conclusion == of
    };
    let cases = (0..CASES).zip(load_line_ratios());
    cases.filter(|case| concluded(*case)).count() as f64 / CASES as f64
}

/// Each row may miss by what 2,000 cases leave to chance (two standard errors, 1 %); all rows together may not.
#[test]
fn the_same_target_twice_shows_no_difference_nineteen_times_in_twenty() {
    let mut all = Vec::new();
    for noise in [normal, disturbed] {
        for pairs in [4, 6, 8, 12] {
            let quiet = share(Conclusion::NoDifferenceShown, pairs, 1.0, 1.0, noise);
            assert!(quiet >= 0.94, "{pairs} pairs: {quiet}");
            all.push(quiet);
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean >= 0.95, "{all:?}");
}

#[test]
fn five_percent_more_cpu_is_seen_and_never_the_wrong_way_round() {
    let seen = share(Conclusion::Worse, 8, 1.05, 1.0, normal);
    assert!(seen > 0.9, "{seen}");
    let wrong = share(Conclusion::Better, 8, 1.05, 1.0 / 1.05, normal);
    assert!(wrong < 0.005, "{wrong}");
    let better = share(Conclusion::Better, 8, 1.0 / 1.05, 1.05, normal);
    assert!(better > 0.9, "{better}");
}

#[test]
fn few_seeds_would_not_tell_the_same_story() {
    // The tests above can fail: they catch intervals that are a third too narrow.
    let narrow = |ratio: Ratio| Ratio {
        low: ratio.value * (ratio.low / ratio.value).powf(0.66),
        high: ratio.value * (ratio.high / ratio.value).powf(0.66),
        ..ratio
    };
    let alarms = (0..2_000)
        .filter_map(|seed| paired_cost_ratio(&pairs(seed, 8, 1.0, normal), 0.95))
        .filter(|ratio| narrow(*ratio).low > 1.0 || narrow(*ratio).high < 1.0)
        .count();
    assert!(alarms > 150, "{alarms}");
}

fn ratio(value: f64, low: f64, high: f64) -> Option<Ratio> {
    Some(Ratio { value, low, high })
}

#[test]
fn errors_are_shared_out() {
    assert!((confidence_of_each(0.95, 2) - 0.975).abs() < 1e-12);
    assert!((confidence_of_each(0.95, 1) - 0.95).abs() < 1e-12);
    assert!((confidence_of_each(0.95, 0) - 0.95).abs() < 1e-12);
}

fn trial() -> Trial {
    let gate = GateResult {
        name: "newest_p95_ms".to_owned(),
        threshold: 350.0,
        observed: Some(200.0),
        pass: true,
    };
    let fact = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Trial {
        schema_version: SCHEMA_VERSION,
        verdict: Verdict::Pass,
        gates: vec![gate],
        caveats: Vec::new(),
        workload: "stt".to_owned(),
        parameters: Parameters::new(),
        profile: "quick".to_owned(),
        phases: Profile::quick(),
        slo: "stt".to_owned(),
        sessions: 400,
        load_unit: LoadUnit::default(),
        length: Length::Full,
        target: Target {
            name: "rust-axum".to_owned(),
            tier: "idiomatic".to_owned(),
            versions: BTreeMap::from([fact(("axum", "0.8.4"))]),
            ..Target::default()
        },
        start_ms: None,
        vcpu: Some(0.25),
        environment: Environment {
            machine: [("kernel", "6.1"), ("cores", "2"), ("load_average", "0.3")]
                .map(fact)
                .into(),
            client_cpus: vec![0],
            target_cpus: vec![1],
            ..Environment::default()
        },
        baseline: None,
        seed: 1,
        started_at: String::new(),
        interrupted: false,
        ledger: Ledger::default(),
        latency: Latency::default(),
        client: Client::default(),
        target_resources: None,
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
fn every_condition_that_differs_is_named_with_both_values() {
    type Change = fn(&mut Trial);
    let changes: [(&str, Change); 20] = [
        ("workload", |t| t.workload = "echo".into()),
        ("profile", |t| t.profile = "standard".into()),
        ("phases", |t| t.phases.measured_s = 11.0),
        ("SLO", |t| t.slo = "strict".into()),
        ("gates", |t| t.gates[0].threshold = 300.0),
        ("vCPU", |t| t.vcpu = Some(0.5)),
        ("cpu_model", |t| {
            drop(
                t.environment
                    .machine
                    .insert("cpu_model".into(), "Z80".into()),
            )
        }),
        ("cores", |t| {
            drop(t.environment.machine.insert("cores".into(), "4".into()))
        }),
        ("kernel", |t| drop(t.environment.machine.remove("kernel"))),
        ("memory_bytes", |t| {
            drop(
                t.environment
                    .machine
                    .insert("memory_bytes".into(), "1".into()),
            )
        }),
        ("clock_source", |t| {
            drop(
                t.environment
                    .machine
                    .insert("clock_source".into(), "hpet".into()),
            )
        }),
        ("target CPUs", |t| t.environment.target_cpus.clear()),
        ("client CPUs", |t| t.environment.client_cpus.push(3)),
        ("isolation", |t| t.environment.isolation = "affinity".into()),
        ("network", |t| {
            t.environment.network = Some(Network {
                mode: NetworkMode::Own,
                ..Network::default()
            });
        }),
        ("file system of the data", |t| {
            t.environment.data_file_system = Some("xfs".into())
        }),
        ("quota period in ms", |t| {
            t.environment.quota_period_ms = Some(100.0)
        }),
        ("tick in µs", |t| t.environment.engine_tick_us = 250),
        ("TCP_NODELAY", |t| t.environment.nodelay = true),
        ("Plimsoll's version", |t| {
            t.environment.plimsoll_version = "9".into()
        }),
    ];
    for (name, change) in changes {
        let mut other = trial();
        change(&mut other);
        let found = differences(&trial(), &other);
        let [difference] = found.as_slice() else {
            panic!("{name}: {found:?}");
        };
        assert_eq!(difference.name, name);
        assert_ne!(difference.a, difference.b);
    }
    let shown = differences(&trial(), &{
        let mut other = trial();
        other.vcpu = None;
        other
    });
    assert_eq!(shown[0].to_string(), "vCPU (0.25 against none)");
}

/// Like [`trial`], but of a WebSocket server.
fn ws_trial() -> Trial {
    Trial {
        load_unit: LoadUnit::MESSAGES_PER_SECOND,
        parameters: [
            ("test", json!("matrix")),
            ("connections", json!(100)),
            ("message_bytes", json!(256)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        ..trial()
    }
}

#[test]
fn every_parameter_is_a_condition() {
    let changes = [
        ("test", Some(json!("throughput"))),
        ("connections", Some(json!(50))),
        ("message bytes", None),
        ("linger ms", Some(json!(0))),
        ("poisson", Some(json!(true))),
    ];
    for (name, value) in changes {
        let mut other = ws_trial();
        let key = name.replace(' ', "_");
        match value {
            Some(value) => other.parameters.insert(key, value),
            None => other.parameters.remove(&key),
        };
        let found = differences(&ws_trial(), &other);
        assert_eq!((found.len(), found[0].name.as_str()), (1, name));
    }
    let mut unknown = ws_trial();
    unknown.parameters.clear();
    assert_eq!(differences(&ws_trial(), &unknown), []);
}

#[test]
fn a_comparison_says_what_its_loads_count() {
    let mut a = measured("old", &[(400, 250.0), (400, 251.0)]);
    for (_, trial) in &mut a.trials {
        *trial = ws_trial();
    }
    let comparison = compared(&a, &a).expect("the same conditions");
    assert_eq!(comparison.load_unit, LoadUnit::MESSAGES_PER_SECOND);
}

#[test]
fn what_a_comparison_is_about_may_differ() {
    let mut other = trial();
    other.sessions = 500;
    other.seed = 2;
    other.verdict = Verdict::Fail;
    other.gates[0].observed = None;
    other.target.name = "go-gws".to_owned();
    other
        .environment
        .machine
        .insert("load_average".into(), "1.0".into());
    assert_eq!(differences(&trial(), &other), []);
    // A short trial of the same profile compares, either way round.
    other.length = Length::Short;
    other.phases = other.phases.of_length(Length::Short);
    assert_eq!(differences(&trial(), &other), []);
    assert_eq!(differences(&other, &trial()), []);
    other.phases.ramp_s += 1.0;
    assert_eq!(differences(&other, &trial()).len(), 1);
}

#[test]
fn targets_differ_by_name_tier_variant_and_versions() {
    assert_eq!(differences_of_targets(&trial(), &trial()), []);
    let mut other = trial();
    other
        .target
        .versions
        .insert("axum".to_owned(), "0.9.0".to_owned());
    other
        .target
        .versions
        .insert("mimalloc".to_owned(), "0.1".to_owned());
    other.target.tier = "engine".to_owned();
    other.target.variant = Some("tuned".to_owned());
    other.target.settings = vec!["reuseport".to_owned()];
    let found: Vec<String> = differences_of_targets(&trial(), &other)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "tier (idiomatic against engine)",
            "variant (none against tuned)",
            "settings (none against reuseport)",
            "version of axum (0.8.4 against 0.9.0)",
            "version of mimalloc (none against 0.1)"
        ]
    );
}

/// A folder with passing trials at these loads and costs.
fn measured(folder: &str, costs: &[(u32, f64)]) -> Measured {
    let trial = |(index, (sessions, cost)): (usize, &(u32, f64))| {
        let mut trial = trial();
        trial.sessions = *sessions;
        trial.target_resources = Some(TargetResources {
            cpu_us_per_session_second: Some(*cost),
            ..TargetResources::default()
        });
        (format!("trial-{:03}.json", index + 1), trial)
    };
    Measured {
        folder: folder.to_owned(),
        trials: costs.iter().enumerate().map(trial).collect(),
        bracket: None,
    }
}

fn compared(a: &Measured, b: &Measured) -> Result<Comparison, Incomparable> {
    compare_measured(a, b, CONFIDENCE, 1, "2026-01-02T03:04:05Z".to_owned())
}

#[test]
fn folders_are_compared_at_the_loads_in_common() {
    let a = measured(
        "old",
        &[
            (200, 300.0),
            (400, 250.0),
            (400, 252.0),
            (400, 249.0),
            (50, 9.0),
        ],
    );
    let b = measured(
        "new",
        &[
            (200, 330.0),
            (400, 275.0),
            (400, 277.0),
            (400, 274.0),
            (800, 1.0),
        ],
    );
    let comparison = compared(&a, &b).expect("the same conditions");
    let ratio = comparison.cost_ratio.expect("trials enough");
    assert!((ratio.value - 1.1).abs() < 0.01, "{ratio:?}");
    assert_eq!(comparison.conclusion, Conclusion::Worse);
    assert_eq!(comparison.load_line_ratio, None);
    let loads: Vec<u32> = comparison.loads.iter().map(|load| load.sessions).collect();
    assert_eq!(loads, [200, 400]);
    assert_eq!(comparison.a.folder.as_deref(), Some("old"));
    assert_eq!(comparison.a.trials.len(), 5);
    assert!((comparison.a.cpu_us_per_session_second.expect("known") - 262.75).abs() < 1e-9);
}

#[test]
fn folders_of_two_builds_are_compared_with_a_warning_that_names_both() {
    let of_build = |folder: &str, commit: &str, dirty: bool| {
        let mut folder = measured(folder, &[(400, 250.0), (400, 251.0), (400, 252.0)]);
        for (_, trial) in &mut folder.trials {
            trial.environment.build = Build {
                commit: Some(commit.to_owned()),
                dirty: Some(dirty),
                ..Build::default()
            };
        }
        folder
    };
    let notes = |a: &Measured, b: &Measured| {
        let comparison = compared(a, b).expect("a difference of builds refuses nothing");
        comparison.notes.join("\n")
    };
    let old = of_build("old", "aaa", false);
    assert!(!notes(&old, &of_build("new", "aaa", false)).contains("build"));
    let of_two = notes(&old, &of_build("new", "bbb", false));
    assert!(
        of_two.contains("old is from commit aaa") && of_two.contains("new is from commit bbb"),
        "{of_two}"
    );
    let dirty = of_build("new", "aaa", true);
    assert!(notes(&old, &dirty).contains("commit aaa (dirty)"));
    let both_dirty = notes(&of_build("old", "aaa", true), &dirty);
    assert!(both_dirty.contains("modified sources"), "{both_dirty}");
    let unknown = measured("new", &[(400, 250.0)]);
    assert!(notes(&old, &unknown).contains("commit unknown"));
    let mut mixed = old.clone();
    mixed.trials[1].1.environment.build = Build::default();
    assert!(notes(&mixed, &old).contains("old has trials of 2 builds"));
}

#[test]
fn a_short_trial_a_failed_one_and_one_of_unknown_cost_are_no_equals() {
    let a = measured("a", &[(400, 250.0), (400, 251.0), (400, 252.0)]);
    let mut b = a.clone();
    b.trials[0].1.length = Length::Short;
    b.trials[0].1.phases = b.trials[0].1.phases.of_length(Length::Short);
    b.trials[1].1.verdict = Verdict::Fail;
    b.trials[2].1.target_resources = None;
    let comparison = compared(&a, &b).expect("the same conditions");
    assert_eq!((comparison.cost_ratio, comparison.loads.len()), (None, 0));
    assert!(
        comparison
            .notes
            .iter()
            .any(|note| note.contains("No load passed on both sides"))
    );
}

#[test]
fn folders_that_do_not_compare_are_refused_in_one_line_with_all_reasons() {
    let a = measured("old", &[(400, 250.0), (400, 251.0)]);
    let line = |b: &Measured| {
        let line = compared(&a, b).expect_err("refused").to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let mut other = a.clone();
    "new".clone_into(&mut other.folder);
    for (_, trial) in &mut other.trials {
        trial.vcpu = Some(1.0);
        trial.environment.nodelay = true;
    }
    let refusal = line(&other);
    for part in [
        "old and new",
        "vCPU (0.25 against 1)",
        "TCP_NODELAY (false against true)",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
    other.trials[0].1.vcpu = Some(0.25);
    assert!(line(&other).contains("new differ among themselves in vCPU"));
    other = a.clone();
    "go-gws".clone_into(&mut other.trials[1].1.target.name);
    assert!(line(&other).contains("several targets (go-gws, rust-axum)"));
    other.trials.clear();
    assert!(line(&other).contains("holds no trial"));
}

#[test]
fn an_edge_needs_a_pass_and_a_fail() {
    assert_eq!(edge_of(&[at(400, [3, 0, 0, 0])]), None);
    assert_eq!(edge_of(&[at(400, [0, 3, 0, 0])]), None);
    assert_eq!(edge_of(&[]), None);
}
