//! The search beyond the load line, on synthetic servers.

use proptest::prelude::*;

use super::*;
use crate::schedule::mix;

/// What each caller asks for, per second.
const DUE_PER_S: f64 = 0.125;

/// A server that does all that is asked of it up to `knee`.
#[derive(Debug, Clone, Copy)]
struct Server {
    knee: u32,
    beyond: Beyond,
}

#[derive(Debug, Clone, Copy)]
enum Beyond {
    /// It does less and less: half at this load.
    HalfAt(u32),
    /// It does as much as at the knee, but fails more and more: 5 % at this load.
    FailsAt(u32),
    /// It does as much as at the knee, and dies at this load.
    DiesAt(u32),
    /// It does as much as at the knee, for ever.
    Never,
}

impl Server {
    fn goodput(self, load: u32) -> Goodput {
        let due_per_s = f64::from(load) * DUE_PER_S;
        let most = f64::from(self.knee) * DUE_PER_S;
        let past = |at: u32| {
            let past = f64::from(load.saturating_sub(self.knee));
            past / f64::from(at - self.knee)
        };
        let (good_per_s, failed_share) = match self.beyond {
            Beyond::HalfAt(at) => (most * (1.0 - 0.5 * past(at)).max(0.0), 0.0),
            Beyond::FailsAt(at) => (most, (0.05 * past(at)).min(1.0)),
            Beyond::DiesAt(_) | Beyond::Never => (most, 0.0),
        };
        Goodput {
            due_per_s,
            good_per_s: good_per_s.min(due_per_s),
            failed_share,
        }
    }

    fn shown(self, load: u32, noise: f64) -> Shown {
        if matches!(self.beyond, Beyond::DiesAt(at) if load >= at) {
            return Shown::Gone;
        }
        let mut goodput = self.goodput(load);
        goodput.good_per_s *= 1.0 + noise;
        Shown::Goodput(goodput)
    }

    /// Runs a search from `limit`, with noise of at most this share. Returns its trials and what it found.
    fn searched(self, settings: Settings, noise: f64, seed: u64) -> (Vec<(u32, Why)>, Escalation) {
        let mut search = Escalator::new(settings);
        search.know(settings.limit, &self.shown(settings.limit, 0.0));
        let mut draw = seed;
        drive(&mut search, |load, _| {
            draw = mix(draw);
            #[expect(clippy::cast_precision_loss, reason = "a draw")]
            let share = draw as f64 / u64::MAX as f64;
            self.shown(load, noise * (2.0 * share - 1.0))
        })
    }
}

fn settings(limit: u32) -> Settings {
    Settings {
        limit,
        min: 1,
        max: 1_000_000,
        max_trials: 40,
    }
}

/// Runs a search against `server`, which receives the load and the number of earlier trials at this load.
fn drive(
    search: &mut Escalator,
    mut server: impl FnMut(u32, usize) -> Shown,
) -> (Vec<(u32, Why)>, Escalation) {
    let mut steps: Vec<(u32, Why)> = Vec::new();
    loop {
        match search.next() {
            Step::Done(outcome) => {
                assert_eq!(search.remaining_trials_estimate(), 0);
                return (steps, outcome);
            }
            Step::Trial { load, why } => {
                assert!(steps.len() < 1_000, "the search does not end: {steps:?}");
                assert!(search.remaining_trials_estimate() > 0);
                let nth = steps.iter().filter(|step| step.0 == load).count();
                let shown = server(load, nth);
                steps.push((load, why));
                search.record(load, &shown);
            }
        }
    }
}

fn goodput(good_per_s: f64, failed_share: f64) -> Shown {
    Shown::Goodput(Goodput {
        due_per_s: good_per_s,
        good_per_s,
        failed_share,
    })
}

fn loads(steps: &[(u32, Why)], why: Why) -> Vec<u32> {
    let of_kind = steps.iter().filter(|step| step.1 == why);
    of_kind.map(|step| step.0).collect()
}

/// A report called "stable" what failed less than 5 %, at 94 % less throughput. Here the SLO limit is 100, the target
/// does most at 190, and at 600 half as much: three different loads.
#[test]
fn a_slowing_servers_limit_knee_and_collapse_are_three_loads() {
    let server = Server {
        knee: 190,
        beyond: Beyond::HalfAt(600),
    };
    let (steps, found) = server.searched(settings(100), 0.0, 1);
    assert_eq!(loads(&steps, Why::Beyond), [140, 190, 260, 360, 500, 700]);
    let knee = found.knee.expect("a knee");
    assert_eq!((knee.load, knee.is_passed), (190, true));
    assert!((knee.goodput_per_s - 190.0 * DUE_PER_S).abs() < 1e-9);
    let collapse = found.collapse.expect("a collapse");
    assert_eq!(collapse.sign, CollapseSign::GoodputHalved);
    assert!((600..=630).contains(&collapse.load), "{found:?}");
    let without = collapse.highest_without.expect("a load without");
    assert!((570..600).contains(&without), "{found:?}");
    assert_eq!(found.no_collapse_up_to, None);
    let repeated = loads(&steps, Why::Repeat);
    assert_eq!(repeated.len(), 4, "each of the two was tried before");
    assert!(
        found
            .conclusion
            .contains("half as much as at its knee, or less (3 of 3 trials show one)"),
        "{}",
        found.conclusion
    );
    assert!(found.conclusion.contains("is none (0 of 3"));
}

/// The server dies right above its SLO limit, so the knee is the limit itself, and one load below it is tried.
#[test]
fn a_cliff_right_above_the_limit_is_found() {
    let server = Server {
        knee: 1_000_000,
        beyond: Beyond::DiesAt(110),
    };
    let (steps, found) = server.searched(settings(100), 0.0, 1);
    assert_eq!(loads(&steps, Why::Beyond), [140]);
    assert_eq!(loads(&steps, Why::Knee), [72]);
    let collapse = found.collapse.expect("a collapse");
    assert_eq!(collapse.sign, CollapseSign::TargetGone);
    assert_eq!(collapse.load, 110);
    let knee = found.knee.expect("a knee");
    assert_eq!(Some(knee.load), collapse.highest_without);
}

#[test]
fn a_server_that_never_collapses_ends_at_the_maximum() {
    let server = Server {
        knee: 150,
        beyond: Beyond::Never,
    };
    let bounded = Settings {
        max: 1_000,
        ..settings(100)
    };
    let (steps, found) = server.searched(bounded, 0.0, 1);
    assert_eq!(
        loads(&steps, Why::Beyond),
        [140, 190, 260, 360, 500, 700, 980, 1_000]
    );
    assert_eq!(found.collapse, None);
    assert_eq!(found.no_collapse_up_to, Some(1_000));
    assert_eq!(
        found.conclusion,
        "No collapse was found up to 1000, the highest load that this search may try; raise its maximum (--max) to go on."
    );
    // Nothing is left to try if the limit is the maximum.
    let (steps, found) = server.searched(
        Settings {
            max: 100,
            min: 100,
            ..bounded
        },
        0.0,
        1,
    );
    assert_eq!(steps, []);
    assert_eq!(found.no_collapse_up_to, Some(100));
    assert!(!found.knee.expect("a knee").is_passed);
}

/// The limit of a strict SLO is far below the knee. What is asked for there is less than half of what the knee has.
#[test]
fn a_load_below_the_knee_has_not_collapsed_because_less_is_asked() {
    let server = Server {
        knee: 1_000,
        beyond: Beyond::DiesAt(2_000),
    };
    let (_, found) = server.searched(settings(100), 0.0, 1);
    assert!(found.collapse.expect("a collapse").load >= 2_000);
}

#[test]
fn two_invalid_trials_in_a_row_end_the_search_with_a_lower_bound() {
    let server = Server {
        knee: 200,
        beyond: Beyond::HalfAt(900),
    };
    let invalid = || Shown::Invalid("send-lag".to_owned());
    let with = |invalid_at: &dyn Fn(u32, usize) -> bool| {
        let mut search = Escalator::new(settings(100));
        search.know(100, &server.shown(100, 0.0));
        // An invalid trial of the first search says nothing.
        search.know(140, &invalid());
        drive(&mut search, |load, nth| {
            if invalid_at(load, nth) {
                invalid()
            } else {
                server.shown(load, 0.0)
            }
        })
    };
    let (steps, found) = with(&|load, _| load >= 260);
    assert_eq!(loads(&steps, Why::Beyond), [140, 190, 260, 260]);
    assert_eq!(found.collapse, None);
    assert_eq!(found.no_collapse_up_to, Some(190));
    assert!(
        found
            .conclusion
            .contains("trials at 260 stayed invalid (send-lag)")
    );
    // One is repeated, and nothing is lost.
    let (steps, found) = with(&|load, nth| load == 260 && nth == 0);
    assert_eq!(loads(&steps, Why::Beyond)[2..4], [260, 260]);
    assert!(found.collapse.is_some());
}

/// Three trials at an edge that disagree: the median decides, in either direction, and the sentence says it.
#[test]
fn the_median_of_three_decides_at_an_edge() {
    let run = |signs: [bool; 3]| {
        let mut search = Escalator::new(settings(1_000));
        search.know(1_000, &goodput(1_000.0, 0.0));
        drive(&mut search, move |load, nth| {
            let failed = load > 1_450 || (load > 1_350 && signs[nth.min(2)]);
            goodput(
                1_000.0 - f64::from(load) / 100.0,
                if failed { 0.2 } else { 0.0 },
            )
        })
    };
    let (_, found) = run([true, false, true]);
    let collapse = found.collapse.expect("a collapse");
    assert_eq!(collapse.load, 1_400, "{found:?}");
    assert!(
        found.conclusion.contains("trials at 1400 disagree"),
        "{found:?}"
    );
    assert!(found.conclusion.contains("(2 of 3 trials show one)"));
    let (_, found) = run([true, false, false]);
    let collapse = found.collapse.expect("a collapse");
    assert!(collapse.load > 1_450, "{found:?}");
    let (_, found) = run([false, true, true]);
    assert_eq!(found.collapse.expect("a collapse").load, 1_400, "{found:?}");
}

#[test]
fn budgets_and_signals_end_the_search_with_what_is_known() {
    let server = Server {
        knee: 200,
        beyond: Beyond::HalfAt(900),
    };
    let known = |cut: &dyn Fn(&mut Escalator)| {
        let mut search = Escalator::new(settings(100));
        search.know(100, &server.shown(100, 0.0));
        search.record(140, &server.shown(140, 0.0));
        cut(&mut search);
        match search.next() {
            Step::Done(found) => found,
            Step::Trial { load, .. } => panic!("a trial at {load}"),
        }
    };
    let found = known(&|search| search.expect_time_for(0));
    assert!(
        found
            .conclusion
            .starts_with("Ended by the time budget, give more (--time-budget)")
    );
    assert_eq!(found.no_collapse_up_to, Some(140));
    let found = known(&Escalator::interrupt);
    assert!(
        found
            .conclusion
            .starts_with("Interrupted: no collapse was found up to 140")
    );
    let few = Settings {
        max_trials: 3,
        ..settings(100)
    };
    let (steps, found) = server.searched(few, 0.0, 1);
    assert_eq!(steps.len(), 3);
    assert!(
        found
            .conclusion
            .starts_with("Ended by the limit of 3 trials")
    );
}

fn any_server() -> impl Strategy<Value = (u32, Server)> {
    let factors = (20_u32..3_000, 1.0_f64..5.0, 1.1_f64..5.0, 0..3);
    factors.prop_map(|(limit, to_knee, to_collapse, kind)| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small positive loads"
        )]
        let times = |load: u32, factor: f64| (f64::from(load) * factor) as u32;
        let knee = times(limit, to_knee);
        let collapse = times(knee, to_collapse).max(knee + 2);
        let beyond = match kind {
            0 => Beyond::HalfAt(collapse),
            1 => Beyond::FailsAt(collapse),
            _ => Beyond::DiesAt(collapse),
        };
        (limit, Server { knee, beyond })
    })
}

proptest! {
    #[test]
    fn knee_and_collapse_lie_where_they_should((limit, server) in any_server()) {
        let (steps, found) = server.searched(settings(limit), 0.0, 1);
        prop_assert!(steps.len() <= 25, "{steps:?}");
        let knee = found.knee.expect("a knee");
        let collapse = found.collapse.expect("a collapse");
        let without = collapse.highest_without.expect("a load without");
        prop_assert!(
            !grid::too_wide(without, collapse.load, 0.05),
            "{found:?}"
        );
        // Known as finely as the ladder.
        let most = f64::from(server.knee) * DUE_PER_S;
        prop_assert!(knee.goodput_per_s >= most / STEP - DUE_PER_S, "{found:?}");
        match server.beyond {
            Beyond::HalfAt(_) => {
                let (below, above) = grid::within(server.knee, STEP);
                prop_assert!((below..=above).contains(&knee.load), "{found:?}");
                let half = 0.5 * knee.goodput_per_s;
                prop_assert!(server.goodput(collapse.load).good_per_s <= half);
                prop_assert!(server.goodput(without).good_per_s > half);
            }
            Beyond::FailsAt(at) | Beyond::DiesAt(at) => {
                prop_assert!(without < at && at <= collapse.load, "{found:?}");
            }
            Beyond::Never => unreachable!(),
        }
    }

    #[test]
    fn noise_moves_them_only_a_little((limit, server) in any_server(), seed in any::<u64>()) {
        let (steps, found) = server.searched(settings(limit), 0.05, seed);
        prop_assert!(steps.len() <= 32, "{steps:?}");
        let knee = found.knee.expect("a knee");
        let most = f64::from(server.knee) * DUE_PER_S;
        prop_assert!(knee.goodput_per_s >= 0.95 * (most / STEP - DUE_PER_S), "{found:?}");
        prop_assert!(knee.goodput_per_s <= 1.05 * most, "{found:?}");
        let collapse = found.collapse.expect("a collapse");
        let without = collapse.highest_without.expect("a load without");
        match server.beyond {
            Beyond::HalfAt(_) => {
                let half = 0.5 * knee.goodput_per_s;
                prop_assert!(server.goodput(collapse.load).good_per_s <= half / 0.95);
                prop_assert!(server.goodput(without).good_per_s >= half / 1.05);
            }
            Beyond::FailsAt(at) | Beyond::DiesAt(at) => {
                prop_assert!(without < at && at <= collapse.load, "{found:?}");
            }
            Beyond::Never => unreachable!(),
        }
    }

    #[test]
    fn a_server_that_never_collapses_is_tried_up_to_the_maximum(
        limit in 1_u32..2_000, factor in 1_u32..50, seed in any::<u64>(), noise in 0.0_f64..0.05,
    ) {
        let max = limit * factor;
        let server = Server { knee: limit, beyond: Beyond::Never };
        let (steps, found) = server.searched(Settings { max, ..settings(limit) }, noise, seed);
        prop_assert_eq!(found.collapse, None);
        prop_assert_eq!(found.no_collapse_up_to, Some(max));
        prop_assert!(steps.len() <= 20, "{steps:?}");
        prop_assert!(steps.iter().all(|(load, _)| *load <= max));
    }
}
