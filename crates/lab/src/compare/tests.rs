//! Comparisons on a bench that is a table: what runs in which order, what counts, and what is kept if a comparison ends
//! early.

use plimsoll_core::record::Conclusion;

use super::*;

/// The result of a trial on the bench.
type Script = fn(&Wanted, u32) -> std::result::Result<(Verdict, Option<f64>), Error>;

struct Table {
    script: Script,
    ran: Vec<Wanted>,
}

impl Bench for Table {
    fn run(&mut self, wanted: &Wanted) -> Result<Ran> {
        let number = u32::try_from(self.ran.len()).expect("few") + 1;
        self.ran.push(*wanted);
        let (verdict, cost) = (self.script)(wanted, number)?;
        let mut summary: TrialSummary = serde_json::from_value(serde_json::json!({
            "file": format!("trial-{number:03}.json"), "sessions": wanted.sessions, "verdict": verdict,
            "failed_gates": [], "caveats": [], "client_cpu_share": 0.4, "cpu_us_per_session_second": cost,
        }))
        .expect("a summary");
        match verdict {
            Verdict::Fail => summary.failed_gates.push("newest_p95_ms".to_owned()),
            Verdict::Invalid => summary.caveats.push("send-lag".to_owned()),
            Verdict::Pass => {}
        }
        summary.length = wanted.length;
        Ok(Ran {
            summary,
            verdict: match verdict {
                Verdict::Pass => TrialVerdict::Pass,
                Verdict::Fail => TrialVerdict::Fail,
                Verdict::Invalid => TrialVerdict::Invalid {
                    client_ran_out: false,
                },
            },
            hopeless: false,
        })
    }
}

fn compared(plan: &ComparePlan, script: Script) -> (Comparison, Vec<Wanted>, bool) {
    let mut table = Table {
        script,
        ran: Vec::new(),
    };
    let mut known = Known::default();
    let cut_short = measure(&mut table, plan, &mut known).is_err();
    let comparison = known.comparison(["x", "y"], plan, cut_short, String::new());
    (comparison, table.ran, cut_short)
}

fn at(load: u32, pairs: u32) -> ComparePlan {
    ComparePlan {
        at: At::Load(load),
        pairs,
        confidence: 0.95,
        seed: 7,
    }
}

fn is_b(wanted: &Wanted) -> bool {
    wanted.which == Which::B.index()
}

/// `b` costs a tenth more, and every trial a little more than the one before.
fn a_tenth_more(wanted: &Wanted, number: u32) -> Result<(Verdict, Option<f64>)> {
    let base = if is_b(wanted) { 275.0 } else { 250.0 };
    Ok((
        Verdict::Pass,
        Some(base * (1.0 + 0.001 * f64::from(number))),
    ))
}

#[test]
fn pairs_are_neighbours_in_balanced_order_with_one_seed_each() {
    let (comparison, ran, _) = compared(&at(40, 6), a_tenth_more);
    assert_eq!(ran.len(), 12);
    let mut seeds = Vec::new();
    for pair in ran.chunks(2) {
        assert_ne!(pair[0].which, pair[1].which);
        assert_eq!(pair[0].seed, pair[1].seed);
        seeds.push(pair[0].seed);
    }
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 6, "each pair draws a seed of its own");
    let b_first = ran.chunks(2).filter(|pair| is_b(&pair[0]));
    assert_eq!(b_first.count(), 3);
    assert_eq!(comparison.pairs.len(), 6);
    for pair in &comparison.pairs {
        assert_eq!(pair.left_out, None);
        // The file names show the order.
        assert_eq!(pair.b_first, pair.b_file < pair.a_file);
    }
    let ratio = comparison.cost_ratio.expect("six pairs");
    assert!(ratio.low < 1.1 && 1.1 < ratio.high, "{ratio:?}");
    assert_eq!(comparison.conclusion, Conclusion::Worse);
    assert_eq!(comparison.load_line_ratio, None);
    assert_eq!(comparison.a.trials.len(), 6);
}

#[test]
fn an_invalid_pair_is_run_again_once_and_then_left_out_with_its_reason() {
    // Trials 2 and 4 are invalid: the first pair and its repetition.
    let (comparison, ran, _) = compared(&at(40, 4), |wanted, number| match number {
        2 | 4 => Ok((Verdict::Invalid, None)),
        _ => a_tenth_more(wanted, number),
    });
    assert_eq!(ran.len(), 2 * 2 + 3 * 2);
    assert_eq!(comparison.pairs.len(), 5);
    let left_out: Vec<_> = comparison
        .pairs
        .iter()
        .filter_map(|pair| pair.left_out.as_deref())
        .collect();
    assert_eq!(left_out.len(), 2);
    assert!(left_out[0].contains("invalid (send-lag)"), "{left_out:?}");
    assert_eq!(comparison.conclusion, Conclusion::Worse);
    assert_eq!(ran[0].which, ran[2].which, "again in the same order");
    assert_ne!(ran[0].seed, ran[2].seed);
}

#[test]
fn when_the_first_trial_of_a_pair_is_spoilt_the_second_is_spared() {
    let (comparison, ran, _) = compared(&at(40, 2), |_, _| Ok((Verdict::Invalid, None)));
    assert_eq!(ran.len(), 4);
    assert_eq!(comparison.cost_ratio, None);
    assert_eq!(comparison.conclusion, Conclusion::NoDifferenceShown);
    for pair in &comparison.pairs {
        assert!(pair.a_file.is_empty() || pair.b_file.is_empty());
    }
    assert!(
        comparison.notes[0].starts_with("0 pairs of trials counted"),
        "{:?}",
        comparison.notes
    );
}

/// `b` does not carry the load; `a` does.
fn b_fails(wanted: &Wanted, number: u32) -> Result<(Verdict, Option<f64>)> {
    if is_b(wanted) {
        return Ok((Verdict::Fail, Some(1.0)));
    }
    a_tenth_more(wanted, number)
}

fn counts(carried: Carried) -> [u32; 4] {
    [
        carried.both,
        carried.only_a,
        carried.only_b,
        carried.neither,
    ]
}

#[test]
fn a_load_that_b_does_not_carry_and_a_does_is_worse_with_the_default_number_of_pairs() {
    let (comparison, ran, _) = compared(&at(40, 8), b_fails);
    assert_eq!(ran.len(), 16, "each pair is whole, and none is run again");
    let carried = comparison.carried.expect("valid pairs");
    assert_eq!((carried.sessions, counts(carried)), (40, [0, 8, 0, 0]));
    assert_eq!(comparison.conclusion, Conclusion::Worse);
    assert!(
        comparison
            .explanation
            .contains("x carried 40 sessions and y did not in 8 of 8 pairs"),
        "{}",
        comparison.explanation
    );
    // The cost of not carrying the load is not a cost.
    assert_eq!(comparison.cost_ratio, None);
    for pair in &comparison.pairs {
        let verdicts = (pair.a_verdict, pair.b_verdict);
        assert_eq!(verdicts, (Some(Verdict::Pass), Some(Verdict::Fail)));
        assert!(!pair.a_file.is_empty() && !pair.b_file.is_empty());
        let reason = pair.left_out.as_deref().expect("left out");
        assert!(
            reason.contains("B did not carry this load (newest_p95_ms)"),
            "{reason}"
        );
    }
    let (swapped, _, _) = compared(&at(40, 8), |wanted, number| {
        let which = 1 - wanted.which;
        b_fails(&Wanted { which, ..*wanted }, number)
    });
    assert_eq!(swapped.conclusion, Conclusion::Better);
}

#[test]
fn six_pairs_are_enough_alone_and_five_are_not() {
    assert_eq!(
        compared(&at(40, 6), b_fails).0.conclusion,
        Conclusion::Worse
    );
    let (five, _, _) = compared(&at(40, 5), b_fails);
    assert_eq!(five.conclusion, Conclusion::NoDifferenceShown);
    assert!(
        five.notes
            .iter()
            .any(|note| note.contains("only A 5") && note.contains("at least 6 pairs")),
        "{:?}",
        five.notes
    );
}

#[test]
fn a_load_that_neither_carries_says_nothing_and_names_the_remedy() {
    let (comparison, ran, _) = compared(&at(40, 8), |_, _| Ok((Verdict::Fail, Some(1.0))));
    assert_eq!(ran.len(), 16);
    assert_eq!(comparison.carried.map(counts), Some([0, 0, 0, 8]));
    assert_eq!(comparison.conclusion, Conclusion::NoDifferenceShown);
    let reason = comparison.pairs[0].left_out.as_deref().expect("left out");
    assert!(
        reason.contains("A did not") && reason.contains("B did not"),
        "{reason}"
    );
    assert!(
        comparison
            .notes
            .iter()
            .any(|note| note.contains("lower load")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn an_invalid_trial_beside_a_fail_has_the_pair_run_again() {
    // The first pair's trial of A is invalid, whether it ran before B's fail or after it.
    for seed in 0..8 {
        let (comparison, _, _) = compared(&ComparePlan { seed, ..at(40, 3) }, |wanted, number| {
            if !is_b(wanted) && number <= 2 && wanted.why == "pair" {
                return Ok((Verdict::Invalid, None));
            }
            b_fails(wanted, number)
        });
        assert_eq!(comparison.pairs.len(), 4, "seed {seed}");
        assert_eq!(comparison.pairs[0].a_verdict, Some(Verdict::Invalid));
        assert_eq!(comparison.carried.map(counts), Some([0, 3, 0, 0]));
    }
}

#[test]
fn what_ends_it_early_keeps_what_was_measured() {
    let (comparison, _, cut_short) = compared(&at(40, 6), |wanted, number| match number {
        10 => Err(Error::Interrupted("comparing".to_owned())),
        _ => a_tenth_more(wanted, number),
    });
    assert!(cut_short && comparison.interrupted);
    assert_eq!(comparison.pairs.len(), 5);
    assert_eq!(
        comparison.pairs[4].left_out.as_deref(),
        Some("it was not finished")
    );
    assert!(comparison.cost_ratio.is_some(), "four pairs are whole");
}

fn searched() -> ComparePlan {
    ComparePlan {
        at: At::ShareOfLoadLine {
            settings: Settings {
                start: 400,
                min: 1,
                short_min: 1,
                max: 20_000,
                relative_width: 0.05,
                confidence: 0.95,
                repeats: 3,
                max_trials: 60,
                seed: 7,
                short_share: 0.5,
            },
            time_budget: None,
            share: 0.7,
        },
        ..at(0, 4)
    }
}

/// `a` carries 1,000 sessions, `b` 600.
fn edges(wanted: &Wanted, number: u32) -> Result<(Verdict, Option<f64>)> {
    let edge = if is_b(wanted) { 600 } else { 1_000 };
    let (_, cost) = a_tenth_more(wanted, number)?;
    let verdict = if wanted.sessions <= edge {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    Ok((verdict, cost))
}

#[test]
fn searches_take_turns_and_pairs_run_below_the_lower_load_line() {
    let (comparison, ran, _) = compared(&searched(), edges);
    let sides: Vec<usize> = ran.iter().take(8).map(|wanted| wanted.which).collect();
    assert!(sides.windows(2).all(|two| two[0] != two[1]), "{sides:?}");
    let confirmed = comparison.b.confirmed.expect("found");
    assert!((540..=600).contains(&confirmed), "{confirmed}");
    let load = comparison.pairs[0].sessions;
    assert!(
        (f64::from(load) - 0.7 * f64::from(confirmed)).abs() <= 0.5,
        "{load}"
    );
    assert_eq!(comparison.pairs.len(), 4);
    let ratio = comparison.load_line_ratio.expect("both are bounded");
    assert!((0.5..0.7).contains(&ratio.value), "{ratio:?}");
    assert_eq!(comparison.conclusion, Conclusion::Worse);
    // The intervals hold together with the requested confidence, so each is wider than alone.
    let alone = compared(&at(load, 4), a_tenth_more)
        .0
        .cost_ratio
        .expect("four pairs");
    let beside = comparison.cost_ratio.expect("four pairs");
    assert!(beside.high / beside.low > alone.high / alone.low);
    let files = comparison.a.trials.len() + comparison.b.trials.len();
    assert_eq!(files, ran.len(), "every trial is told");
}

#[test]
fn load_lines_that_nothing_bounds_have_no_ratio() {
    let mut plan = searched();
    if let At::ShareOfLoadLine { settings, .. } = &mut plan.at {
        settings.max = 500;
    }
    let (comparison, _, _) = compared(&plan, edges);
    assert_eq!(comparison.load_line_ratio, None);
    assert!(comparison.cost_ratio.is_some());
    assert!(
        comparison
            .notes
            .iter()
            .any(|note| note.contains("A (x) is a lower bound only")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn without_a_load_line_there_is_no_load_to_compare_costs_at() {
    let (comparison, _, _) = compared(&searched(), |_, _| Ok((Verdict::Fail, Some(1.0))));
    assert!(comparison.pairs.is_empty() && comparison.cost_ratio.is_none());
    assert!(
        comparison
            .notes
            .iter()
            .any(|note| note.contains("--sessions")),
        "{:?}",
        comparison.notes
    );
    assert!(
        comparison.explanation.contains("could not")
            || comparison.explanation.contains("could be compared")
    );
}

#[test]
fn a_search_that_is_cut_short_is_told_as_such() {
    let (comparison, _, cut_short) = compared(&searched(), |wanted, number| match number {
        6 => Err(Error::Interrupted("comparing".to_owned())),
        _ => edges(wanted, number),
    });
    assert!(cut_short && comparison.interrupted);
    assert!(comparison.a.search.is_some() && comparison.b.search.is_some());
    assert_eq!(comparison.a.trials.len() + comparison.b.trials.len(), 5);
    assert!(comparison.pairs.is_empty());
}
