//! Several targets.

use plimsoll_core::caveat::{Caveat, Doubt};
use plimsoll_core::record::{
    Bracket, CostAtLoad, Edge, LeftOut, LoadClass, LoadEvidence, LoadUnit, RankedTarget, Ranking,
    SCHEMA_VERSION, Target,
};

use super::{find, target};

fn at_common_load(cost_us: f64) -> CostAtLoad {
    CostAtLoad {
        cpu_us_per_session_second: cost_us,
        core_us_per_session_second: Some(cost_us * 1.8),
        low: cost_us * 0.97,
        high: cost_us * 1.05,
        core_low: Some(cost_us * 1.7),
        core_high: Some(cost_us * 1.9),
        rss_bytes_per_session: Some(48_200.0),
        newest_p95_ms: Some(140.0),
        newest_p99_ms: Some(170.0),
        newest_write_p50_ms: Some(cost_us / 1_000.0),
        trials: vec!["trial-011.json".to_owned(), "trial-012.json".to_owned()],
        left_out: u32::from(cost_us > 500.0),
    }
}

/// What was tried at the two ends of an interval: as trials go, two passes and two fails.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "loads of an example"
)]
fn around(edge: Edge) -> Vec<LoadEvidence> {
    let load = |sessions: f64, passed, failed, class| LoadEvidence {
        sessions: sessions as u32,
        passed,
        failed,
        short_passed: 0,
        short_failed: 0,
        invalid: 0,
        class,
    };
    let passing = load(edge.low, 2, 0, LoadClass::Passing);
    let failing = edge.high.map(|high| load(high, 0, 2, LoadClass::Failing));
    std::iter::once(passing).chain(failing).collect()
}

/// A target by itself.
fn row(
    name: &str,
    tier: &str,
    confirmed: Option<u32>,
    edge: Option<Edge>,
    cost_us: Option<f64>,
) -> RankedTarget {
    let bracket = Bracket {
        target: Target {
            name: name.to_owned(),
            tier: tier.to_owned(),
            ..target()
        },
        confirmed,
        sessions_per_vcpu: confirmed.map(f64::from),
        edge,
        trials: Vec::new(),
        evidence: edge.map_or_else(Vec::new, around),
        cost_curve: Vec::new(),
        ..find().bracket
    };
    RankedTarget {
        folder: name.to_owned(),
        language: "Language".to_owned(),
        description: "a library & another".to_owned(),
        lines_of_code: Some(1_234),
        tuned: (tier == "framework").then(|| "rust-axum".to_owned()),
        bracket,
        caveats: Vec::new(),
        at_common_load: cost_us.map(at_common_load),
    }
}

/// A framework's gateway beside the tuned one, and others, two of which share their places, and one that this machine cannot run.
pub(crate) fn ranking() -> Ranking {
    let edge = |low: f64, value: f64, high: Option<f64>| {
        Some(Edge {
            value,
            low,
            high,
            confidence: 0.95,
        })
    };
    let mut at_least = row(
        "rust-epoll",
        "engine",
        Some(4_100),
        edge(4_100.0, 4_400.0, None),
        Some(92.0),
    );
    at_least.bracket.lower_bound_only = true;
    let why = "its own codec does without";
    let deviations = &mut at_least.bracket.target.deviations;
    deviations.insert("fragments-of-control".to_owned(), why.to_owned());
    at_least.bracket.failing_gate = None;
    at_least.bracket.target.variant = Some("tuned".to_owned());
    at_least.bracket.target.settings = vec!["<one> worker".to_owned()];
    let mut second = row(
        "rust-axum",
        "idiomatic",
        Some(1_600),
        edge(1_580.0, 1_640.0, Some(1_700.0)),
        Some(310.0),
    );
    second.bracket.target.tier = "tuned".to_owned();
    second.caveats = vec![Caveat::from(&Doubt::NearFloor {
        p50_ms: 0.18,
        floor: "<floor>".to_owned(),
        floor_ms: 0.092,
    })];
    let mut framework = row(
        "rust-axum-plain",
        "framework",
        Some(1_200),
        edge(1_150.0, 1_230.0, Some(1_300.0)),
        Some(405.0),
    );
    let versions = &mut framework.bracket.target.versions;
    versions.insert("axum".to_owned(), "0.8.9".to_owned());
    Ranking {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        workload: "stt".to_owned(),
        profile: "quick".to_owned(),
        slo: "stt".to_owned(),
        vcpu: 1.0,
        load_unit: LoadUnit::SESSIONS,
        common_load: Some(300),
        rounds: 3,
        rows: vec![
            framework,
            at_least,
            second,
            row(
                "go-nethttp",
                "idiomatic",
                Some(1_500),
                edge(1_450.0, 1_560.0, Some(1_650.0)),
                Some(520.0),
            ),
            row("python-asgi", "idiomatic", None, None, None),
        ],
        left_out: vec![LeftOut {
            name: "python-asgi-ft".to_owned(),
            reason: "needs CPython 3.13t: sh build-cpython.sh".to_owned(),
        }],
        interrupted: false,
        seed: 1,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
    }
}
