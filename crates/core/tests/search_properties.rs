//! What must hold for the search on any server, exact or noisy, measurable or not.

mod synthetic_server;

use plimsoll_core::least_load::LeastLoads;
use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::search::edge::EdgePosterior;
use plimsoll_core::search::{Ended, LoadClass, Search, SearchResult, Settings, Step, TrialVerdict};
use plimsoll_core::slo::{Gate, Metric, Percentile, Slo};
use proptest::prelude::*;
use synthetic_server::{Shape, Spent, SyntheticServer, Wander, run, uniform};

/// Time of a short trial as a share of a full one's, in these tests.
const SHORT_SHARE: f64 = 0.5;

fn settings() -> impl Strategy<Value = Settings> {
    (
        (1_u32..200, 0_u32..400),
        200_u32..100_000,
        1_u32..100_000,
        0.02..0.2_f64,
        1_u32..6,
        any::<u64>(),
    )
        .prop_map(
            |((min, above), max, start, relative_width, repeats, seed)| Settings {
                start,
                min,
                short_min: min + above,
                max,
                relative_width,
                confidence: 0.95,
                repeats,
                max_trials: 80,
                seed,
                short_share: SHORT_SHARE,
            },
        )
}

/// The settings for profile `quick`, over an unrestricted range.
fn quick(seed: u64) -> Settings {
    Settings {
        start: 100,
        min: 1,
        short_min: 1,
        max: 100_000,
        relative_width: 0.05,
        confidence: 0.95,
        repeats: 3,
        max_trials: 60,
        seed,
        short_share: SHORT_SHARE,
    }
}

fn search(
    settings: &Settings,
    mut server: impl FnMut(u32, u32) -> TrialVerdict,
) -> (SearchResult, Spent) {
    let mut search = Search::new(*settings).expect("the settings make sense");
    run(&mut search, SHORT_SHARE, |load, _, trial, _| {
        server(load, trial)
    })
}

fn exact(edge: u32) -> impl Fn(u32, u32) -> TrialVerdict {
    move |load, _| {
        if load <= edge {
            TrialVerdict::Pass
        } else {
            TrialVerdict::Fail
        }
    }
}

/// What holds for every outcome, whatever the server did.
fn is_consistent(outcome: &SearchResult) -> Result<(), TestCaseError> {
    let at = |load: u32| {
        let mut of_load = outcome.evidence.iter().filter(|e| e.sessions == load);
        of_load.next().expect("a load that was tried")
    };
    if let Some(load) = outcome.confirmed {
        prop_assert_eq!(at(load).class, LoadClass::Passing);
        prop_assert!(at(load).passed > at(load).failed, "{:?}", outcome);
    }
    if let Some(load) = outcome.first_fail {
        prop_assert_eq!(at(load).class, LoadClass::Failing);
        prop_assert!(at(load).failed + at(load).short_failed > 0, "{:?}", outcome);
        prop_assert!(outcome.confirmed.is_none_or(|confirmed| confirmed < load));
    }
    for load in &outcome.borderline {
        prop_assert_eq!(at(*load).class, LoadClass::Borderline);
    }
    if let Some(edge) = outcome.edge {
        prop_assert!(edge.low <= edge.value && edge.high.is_none_or(|high| edge.value <= high));
    }
    prop_assert_eq!(
        outcome.lower_bound_only,
        outcome.confirmed.is_some() && outcome.first_fail.is_none()
    );
    prop_assert!(outcome.conclusion.ends_with('.'));
    Ok(())
}

proptest! {
    // Each case is a whole search.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn an_exact_edge_is_found(settings in settings(), place in 0.0..=1.0_f64) {
        // Anywhere in the range, on a logarithmic scale, or just outside it.
        let (min, max) = (f64::from(settings.min), f64::from(settings.max));
        let edge = ((min - 1.0).max(0.5) * (max * 2.0 / min).powf(place)) as u32;
        let (outcome, _) = search(&settings, exact(edge));
        is_consistent(&outcome)?;
        prop_assert!(outcome.confirmed.is_none_or(|load| load <= edge), "{outcome:?}");
        prop_assert!(outcome.first_fail.is_none_or(|load| load > edge), "{outcome:?}");
        if edge < settings.min {
            prop_assert_eq!((outcome.confirmed, outcome.ended), (None, Ended::AtMinimum));
        } else if edge >= settings.max {
            prop_assert_eq!((outcome.confirmed, outcome.ended), (Some(settings.max), Ended::AtMaximum));
        } else if let Some(found) = outcome.edge {
            // The edge of a server that passes whole numbers up to `edge` lies anywhere between that and the next.
            let high = found.high.unwrap_or(f64::INFINITY);
            prop_assert!(found.low <= f64::from(edge) + 1.0 && f64::from(edge) <= high, "{outcome:?}");
        }
    }

    #[test]
    fn a_single_false_verdict_anywhere_moves_nothing_far(edge in 300_u32..5_000, flipped in 0_u32..20, seed in any::<u64>()) {
        let server = exact(edge);
        let (outcome, _) = search(&quick(seed), |load, trial| match (server(load, trial), trial == flipped) {
            (TrialVerdict::Pass, true) => TrialVerdict::Fail,
            (TrialVerdict::Fail, true) => TrialVerdict::Pass,
            (verdict, _) => verdict,
        });
        is_consistent(&outcome)?;
        let found = outcome.edge.unwrap();
        prop_assert!((found.value / f64::from(edge) - 1.0).abs() < 0.03, "{outcome:?}");
        prop_assert!(outcome.confirmed.is_some_and(|load| f64::from(load) > 0.9 * f64::from(edge)), "{outcome:?}");
    }

    #[test]
    fn it_ends_and_stays_in_range_on_arbitrary_verdicts(settings in settings(), seed in any::<u64>(), shares in (0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64)) {
        let mut search = Search::new(settings).unwrap();
        for trial in 0.. {
            let left = search.remaining_trials_estimate();
            prop_assert!(trial + left <= settings.max_trials);
            let (load, length) = match search.next() {
                Step::Done(outcome) => {
                    is_consistent(&outcome)?;
                    prop_assert_eq!(left, 0);
                    break;
                }
                Step::Trial { load, length, .. } => (load, length),
            };
            prop_assert!(left >= 1);
            prop_assert!((settings.min..=settings.max).contains(&load));
            prop_assert!(length == Length::Full || load >= settings.short_min);
            let draw = uniform(seed, trial) * (shares.0 + shares.1 + shares.2 + 0.1);
            search.record(load, length, if draw < shares.0 {
                TrialVerdict::Pass
            } else if draw < shares.0 + shares.1 {
                TrialVerdict::Invalid { client_ran_out: uniform(!seed, trial) < 0.5 }
            } else {
                TrialVerdict::Fail
            });
        }
    }

    #[test]
    fn a_resumed_search_takes_the_same_step(edge in 100.0..8_000_f64, seed in any::<u64>(), trials in 1_usize..25) {
        let server = SyntheticServer { softness: 0.02, false_fails: 0.05, ..SyntheticServer::sharp(edge, seed) };
        let mut search = Search::new(quick(seed)).unwrap();
        let mut recorded = Vec::new();
        for n in 0..trials {
            let Step::Trial { load, length, .. } = search.next() else { break };
            let verdict = server.verdict(load, length, n as u32, 0.0);
            search.record(load, length, verdict);
            recorded.push((load, length, verdict));
        }
        let mut resumed = Search::new(quick(seed)).unwrap();
        for (load, length, verdict) in recorded.into_iter().rev() {
            resumed.record(load, length, verdict);
        }
        prop_assert_eq!(search.next(), resumed.next());
    }

    #[test]
    fn where_the_client_runs_out_nothing_above_is_claimed(settings in settings(), reach in 1_u32..100_000, edge in 1_u32..100_000) {
        let (outcome, _) = search(&settings, |load, trial| {
            if load > reach { TrialVerdict::Invalid { client_ran_out: true } } else { exact(edge)(load, trial) }
        });
        is_consistent(&outcome)?;
        prop_assert!(outcome.first_fail.is_none_or(|load| load <= reach && load > edge));
        prop_assert!(outcome.confirmed.is_none_or(|load| load <= reach && load <= edge));
        if edge >= reach && reach >= settings.min && reach < settings.max && outcome.ended != Ended::TrialBudget {
            // Everything within reach passes, and the search gets as close to the reach as it gets to an edge.
            prop_assert!(outcome.lower_bound_only, "{outcome:?}");
            prop_assert_eq!(outcome.ended, Ended::OutOfReach);
            let low = outcome.confirmed.unwrap();
            prop_assert!(f64::from(reach) <= f64::from(low) * (1.0 + settings.relative_width) + 1.0, "{outcome:?}");
        }
    }

    #[test]
    fn a_client_at_its_limit_never_makes_a_load_line(reach in 200_u32..5_000, seed in any::<u64>(), survivors in 0.0..0.3_f64) {
        // Above its reach the client runs out in most trials; the valid ones there fail.
        let (outcome, _) = search(&quick(seed), |load, trial| {
            if load <= reach {
                TrialVerdict::Pass
            } else if uniform(seed, trial) < survivors {
                TrialVerdict::Fail
            } else {
                TrialVerdict::Invalid { client_ran_out: true }
            }
        });
        is_consistent(&outcome)?;
        prop_assert!(outcome.confirmed.is_none_or(|load| load <= reach), "{outcome:?}");
    }

    #[test]
    fn every_second_trial_invalid_costs_trials_but_not_the_answer(edge in 100_u32..10_000, seed in any::<u64>(), client_ran_out in any::<bool>()) {
        let settings = Settings { max_trials: 200, ..quick(seed) };
        let (undisturbed, spent) = search(&settings, exact(edge));
        let (outcome, disturbed) = search(&settings, |load, trial| {
            if trial % 2 == 0 { TrialVerdict::Invalid { client_ran_out } } else { exact(edge)(load, trial) }
        });
        prop_assert_eq!((outcome.confirmed, outcome.first_fail, outcome.edge), (undisturbed.confirmed, undisturbed.first_fail, undisturbed.edge));
        prop_assert_eq!(disturbed.trials, 2 * spent.trials);
    }
}

/// An SLO of one to three percentiles, and a gate on a count.
fn slo() -> impl Strategy<Value = Slo> {
    let percentile = prop::sample::select(vec![
        Percentile::P50,
        Percentile::P90,
        Percentile::P95,
        Percentile::P99,
        Percentile::P999,
        Percentile::Max,
    ]);
    prop::collection::vec(percentile, 0..3).prop_map(|percentiles| {
        let gate = |metric| Gate {
            metric,
            threshold: 100.0,
        };
        let latencies = percentiles.into_iter().map(Metric::Newest);
        Slo {
            name: "random".to_owned(),
            gates: latencies.chain([Metric::FramesLost]).map(gate).collect(),
        }
    })
}

proptest! {
    // Each case is a whole search.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_trial_runs_at_a_load_at_which_no_verdict_is_possible(
        slo in slo(),
        profile in prop::sample::select(vec![Profile::quick(), Profile::standard()]),
        measured_s in 1.0..60.0_f64,
        each_per_s in 0.1..20.0_f64,
        edge in 0.5..20_000.0_f64,
        (softness, false_fails, invalid, wrong) in (0.0..0.1_f64, 0.0..0.3_f64, 0.0..0.5_f64, any::<bool>()),
        (start, budget, seed) in (1_u32..3_000, 1_u32..40, any::<u64>()),
        // Trials of another SLO's search below.
        foreign in prop::collection::vec((1_u32..200, 0..3_u32), 0..4),
    ) {
        let profile = Profile { measured_s, ..profile };
        let most = 100_000;
        let least = LeastLoads::of(&slo, &profile, most, |load| f64::from(load) * each_per_s);
        let Some(min) = least.full else { return Ok(()) };
        let settings = Settings {
            start,
            min,
            short_min: least.short.unwrap_or(u32::MAX),
            max: most,
            short_share: profile.short_share(),
            ..quick(seed)
        };
        let server = SyntheticServer { softness, false_fails, ..SyntheticServer::sharp(edge, seed) };
        let mut search = Search::new(settings).unwrap();
        for (load, what) in foreign {
            search.record(load, Length::Full, match what {
                0 => TrialVerdict::Fail,
                1 => TrialVerdict::Pass,
                _ => TrialVerdict::Invalid { client_ran_out: load % 2 == 0 },
            });
        }
        for trial in 0_u32.. {
            search.expect_time_for(budget.saturating_sub(trial));
            let (load, length) = match search.next() {
                Step::Trial { load, length, .. } => (load, length),
                Step::Done(outcome) => {
                    is_consistent(&outcome)?;
                    break;
                }
            };
            let answers = f64::from(load) * each_per_s * profile.of_length(length).measured_s;
            prop_assert!(answers >= slo.samples_needed() as f64, "{load} {length:?} {answers}");
            let verdict = server.verdict(load, length, trial, 0.0);
            search.record(load, length, match verdict {
                _ if uniform(!seed, trial) < invalid => TrialVerdict::Invalid { client_ran_out: trial % 2 == 0 },
                _ if wrong => TrialVerdict::Fail,
                verdict => verdict,
            });
        }
    }

    #[test]
    fn an_edge_below_the_least_load_ends_the_search_early(
        (min, above) in (2_u32..2_000, 0_u32..3_000),
        edge in 0.0..1.0_f64,
        (start, seed, repeats) in (1_u32..10_000, any::<u64>(), 1_u32..6),
    ) {
        let settings = Settings { start, min, short_min: min + above, repeats, ..quick(seed) };
        let (outcome, spent) = search(&settings, exact((f64::from(min) * edge) as u32));
        is_consistent(&outcome)?;
        if f64::from(min) * edge < f64::from(min) {
            prop_assert_eq!((outcome.confirmed, outcome.first_fail), (None, Some(min)));
            prop_assert_eq!((outcome.ended, outcome.lower_bound_only), (Ended::AtMinimum, false));
            prop_assert!(outcome.conclusion.contains(&format!("{min} is the least load")), "{}", outcome.conclusion);
            // Each halving takes one trial, and rounding to two significant digits a few more; then comes the majority
            // at the least load.
            let halvings = (f64::from(settings.start.max(min)) / f64::from(min)).log2().ceil() as u32;
            prop_assert!(spent.trials <= halvings + 3 + repeats, "{spent:?}");
        }
    }
}

/// For this many servers of a kind: how many intervals contain the edge, and how many load lines lie within `share` of
/// it.
fn hits(servers: u64, like: SyntheticServer, share: f64) -> (usize, usize) {
    let outcomes = (0..servers).map(|seed| {
        let edge = 200.0 * 40_f64.powf(uniform(seed, u32::MAX));
        let server = SyntheticServer { edge, seed, ..like };
        let mut search = Search::new(quick(seed)).unwrap();
        let (outcome, _) = run(&mut search, SHORT_SHARE, |load, length, n, time| {
            server.verdict(load, length, n, time)
        });
        (outcome, server.half_passes())
    });
    outcomes.fold((0, 0), |(contain, near), (outcome, edge)| {
        let found = outcome.edge.unwrap();
        let contains = found.low <= edge && found.high.is_none_or(|high| edge <= high);
        let line = f64::from(outcome.confirmed.unwrap_or(0));
        let is_near = (line / edge - 1.0).abs() <= share;
        (contain + usize::from(contains), near + usize::from(is_near))
    })
}

#[test]
fn intervals_contain_the_edge_and_lines_lie_near_it() {
    let sharp = SyntheticServer::sharp(0.0, 0);
    let soft = |softness, false_fails| SyntheticServer {
        softness,
        false_fails,
        ..sharp
    };
    let normal = SyntheticServer {
        shape: Shape::Normal,
        ..soft(0.01, 0.02)
    };
    let flattering = SyntheticServer {
        short_optimism: 0.03,
        ..soft(0.01, 0.0)
    };
    let drifts = |drift, wander| SyntheticServer {
        drift,
        wander,
        ..soft(0.01, 0.0)
    };
    // The seeds are fixed, so these counts do not change by chance. Nine in ten leaves room for a change of the search.
    for (name, servers, like, share) in [
        ("sharp", 10, sharp, 0.06),
        ("soft", 40, soft(0.02, 0.0), 0.08),
        ("disturbed", 40, soft(0.01, 0.1), 0.08),
        ("normal", 10, normal, 0.06),
        ("short trials that flatter", 10, flattering, 0.06),
        ("drift 5 %", 20, drifts(0.05, Wander::Sine), 0.15),
        ("drift 15 %", 20, drifts(0.15, Wander::Sine), 0.3),
        ("two states", 20, drifts(0.05, Wander::TwoStates), 0.15),
    ] {
        let (contain, near) = hits(servers, like, share);
        let least = servers as usize * 9 / 10;
        assert!(contain >= least, "{name}: {contain} of {servers} intervals");
        assert!(near >= least, "{name}: {near} of {servers} load lines");
    }
}

#[test]
fn the_evidence_of_an_outcome_gives_its_interval_again() {
    let server = SyntheticServer {
        softness: 0.02,
        ..SyntheticServer::sharp(1_234.0, 5)
    };
    let mut search = Search::new(quick(5)).unwrap();
    let (outcome, _) = run(&mut search, SHORT_SHARE, |load, length: Length, n, time| {
        server.verdict(load, length, n, time)
    });
    let again = EdgePosterior::of(&outcome.evidence).map(|posterior| posterior.interval(0.95));
    assert_eq!(again, outcome.edge);
}
