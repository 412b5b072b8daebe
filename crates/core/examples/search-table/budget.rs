//! Searches that end by a time budget, as nearly every published one does.

use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::search::{
    Search, SearchResult, Settings, SettingsError, Step, TrialVerdict, trials_in,
};

use crate::synthetic_server::{SyntheticServer, uniform};
use crate::{MAX, SEARCHES, at, in_parallel, kinds, server};

/// The load at which `plimsoll find` starts.
const START: u32 = 400;
/// Time to start and stop the target and the simulator, beyond the trial itself, as in the records of fast targets.
const OVERHEAD_S: f64 = 2.0;
/// Above this load, as a share of the edge, answers are missing and the trial waits through its grace.
const OVERLOAD: f64 = 1.1;
/// The share of trials that are invalid because the client ran out, at loads up to the edge and above it.
#[derive(Debug, Clone, Copy)]
struct Invalid {
    below: f64,
    above: f64,
}

/// The machine took the client's time: 7 of 27 in a search on a quarter of a vCPU.
const A_QUARTER: Invalid = Invalid {
    below: 0.25,
    above: 0.25,
};
const NONE: Invalid = Invalid {
    below: 0.0,
    above: 0.0,
};
/// An overloaded target makes a client beside it late.
const MOST_ABOVE: Invalid = Invalid {
    below: 0.05,
    above: 0.7,
};

/// The settings of a search.
struct Plan {
    title: &'static str,
    profile: Profile,
    relative_width: f64,
    minutes: f64,
}

fn plans() -> Vec<Plan> {
    let plan = |title, profile, relative_width, minutes| Plan {
        title,
        profile,
        relative_width,
        minutes,
    };
    vec![
        plan("quick, 4 minutes", Profile::quick(), 0.05, 4.0),
        plan("quick, 6 minutes", Profile::quick(), 0.05, 6.0),
        plan("standard, 10 minutes", Profile::standard(), 0.02, 10.0),
        plan("standard, 30 minutes", Profile::standard(), 0.02, 30.0),
        plan("standard, 60 minutes", Profile::standard(), 0.02, 60.0),
    ]
}

/// The result of one search.
struct Answer {
    /// Whether its interval contains the edge; `None` if it has no interval, or only a lower end.
    contains: Option<bool>,
    /// Errors of the estimated edge and of the load line against the true edge, in per cent; `None` if there is none.
    edge_error: Option<f64>,
    line_error: Option<f64>,
    /// high / low - 1, in per cent.
    width: Option<f64>,
    at_least: bool,
    trials: f64,
}

/// Prints a table for each plan whose title has this text, as Markdown.
pub(crate) fn tables(servers: u64, titled: &str) -> Result<(), SettingsError> {
    println!(
        "Ended by a time budget: {servers} servers a row, each searched {SEARCHES} times; edges 200 to 8,000 (log-uniform); start {START}; at most 60 trials."
    );
    println!(
        "A trial takes its phases and {OVERHEAD_S:.0} s, and the grace of 5 s where the load is above {OVERLOAD} of the edge. {:.0} % of the trials are invalid, except where a row says otherwise: \"most above invalid\" are {:.0} % of those above the edge, and {:.0} % of those below.\n",
        A_QUARTER.below * 100.0,
        MOST_ABOVE.above * 100.0,
        MOST_ABOVE.below * 100.0,
    );
    for plan in plans().iter().filter(|plan| plan.title.contains(titled)) {
        let rows = [
            (&KINDS[..], "", A_QUARTER),
            (&FEWER_KINDS, ", most above invalid", MOST_ABOVE),
            (&FEWER_KINDS, ", none invalid", NONE),
        ];
        let rows = rows.into_iter().flat_map(|(names, suffix, invalid)| {
            let of_names = kinds()
                .into_iter()
                .filter(|kind| names.contains(&kind.name));
            of_names.map(move |kind| (format!("{}{suffix}", kind.name), kind, invalid))
        });
        println!("{}\n", plan.title);
        println!(
            "| server | has both ends | of those, contain the edge | width p50, p95 | edge error p50, p95, worst | load line error p50, p95, worst | line above the edge | no line | at least | trials p50, least, most |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        for (name, kind, invalid) in rows {
            let answers = in_parallel(servers * SEARCHES, |number| {
                searched(plan, &server(&kind, number), invalid)
            })?;
            println!("{}", row(&name, &answers));
        }
        println!();
    }
    Ok(())
}

/// Those that are also searched with other shares of invalid trials.
const FEWER_KINDS: [&str; 3] = ["sharp", "soft 1 %", "soft 5 %"];

/// The kinds of server that are searched.
const KINDS: [&str; 12] = [
    "sharp",
    "soft 1 %",
    "soft 2 %",
    "soft 5 %",
    "soft 1 %, 2 % false fails",
    "soft 2 %, 10 % false fails",
    "soft 1 %, short +3 %",
    "soft 1 %, drift 3 %",
    "soft 1 %, drift 5 %",
    "soft 1 %, drift 15 %",
    "soft 1 %, two states, 5 % to either side",
    "soft 1 %, two states, 15 % to either side",
];

fn searched(
    plan: &Plan,
    server: &SyntheticServer,
    invalid: Invalid,
) -> Result<Answer, SettingsError> {
    let mut search = Search::new(Settings {
        start: START,
        min: 1,
        short_min: 1,
        max: MAX,
        relative_width: plan.relative_width,
        confidence: 0.95,
        repeats: 3,
        max_trials: 60,
        seed: server.seed,
        short_share: plan.profile.short_share(),
    })?;
    let (outcome, trials) = run(&mut search, plan, server, invalid);
    let edge = server.half_passes();
    let error = |value: f64| (value / edge - 1.0) * 100.0;
    let ends = outcome
        .edge
        .and_then(|found| Some((found.low, found.high?)));
    Ok(Answer {
        contains: ends.map(|(low, high)| low <= edge && edge <= high),
        edge_error: outcome
            .edge
            .filter(|found| found.high.is_some())
            .map(|found| error(found.value)),
        line_error: outcome.confirmed.map(|load| error(f64::from(load))),
        width: ends.map(|(low, high)| (high / low - 1.0) * 100.0),
        at_least: outcome.lower_bound_only,
        trials: f64::from(trials),
    })
}

/// Runs a search as `plimsoll find` does, with a clock that only its trials advance.
fn run(
    search: &mut Search,
    plan: &Plan,
    server: &SyntheticServer,
    invalid: Invalid,
) -> (SearchResult, u32) {
    let (budget_s, full_s) = (plan.minutes * 60.0, plan.profile.lasts_s());
    let (mut elapsed_s, mut trials) = (0.0, 0);
    loop {
        search.expect_time_for(trials_in(budget_s, elapsed_s, trials, full_s));
        let (load, length) = match search.next() {
            Step::Done(outcome) => return (outcome, trials),
            Step::Trial { load, length, .. } => (load, length),
        };
        let invalid = if f64::from(load) > server.edge {
            invalid.above
        } else {
            invalid.below
        };
        let verdict = if uniform(server.seed ^ 0x1234_5678, trials) < invalid {
            TrialVerdict::Invalid {
                client_ran_out: true,
            }
        } else {
            server.verdict(load, length, trials, elapsed_s / full_s)
        };
        search.record(load, length, verdict);
        elapsed_s += trial_s(plan, length, f64::from(load) > OVERLOAD * server.edge);
        trials += 1;
    }
}

fn trial_s(plan: &Plan, length: Length, overload: bool) -> f64 {
    let grace_s = if overload { plan.profile.grace_s } else { 0.0 };
    plan.profile.of_length(length).lasts_s() + OVERHEAD_S + grace_s
}

fn row(name: &str, answers: &[Answer]) -> String {
    let share = |count: usize, of: usize| count as f64 / of.max(1) as f64 * 100.0;
    let count = |holds: &dyn Fn(&Answer) -> bool| answers.iter().filter(|a| holds(a)).count();
    let of = |value: &dyn Fn(&Answer) -> Option<f64>| -> Vec<f64> {
        answers.iter().filter_map(value).collect()
    };
    let both_ends = count(&|a| a.contains.is_some());
    let contain = count(&|a| a.contains == Some(true));
    let edge = of(&|a| a.edge_error.map(f64::abs));
    let line = of(&|a| a.line_error.map(f64::abs));
    let width = of(&|a| a.width);
    let trials = of(&|a| Some(a.trials));
    let above = count(&|a| a.line_error.is_some_and(|error| error > 0.0));

    format!(
        "| {name} | {:.1} % | {:.1} % | {:.1}, {:.1} % | {:.2}, {:.2}, {:.1} % | {:.1}, {:.1}, {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.0}, {:.0}, {:.0} |",
        share(both_ends, answers.len()),
        share(contain, both_ends),
        at(&width, 0.5),
        at(&width, 0.95),
        at(&edge, 0.5),
        at(&edge, 0.95),
        at(&edge, 1.0),
        at(&line, 0.5),
        at(&line, 0.95),
        at(&line, 1.0),
        share(above, answers.len()),
        share(count(&|a| a.line_error.is_none()), answers.len()),
        share(count(&|a| a.at_least), answers.len()),
        at(&trials, 0.5),
        at(&trials, 0.0),
        at(&trials, 1.0),
    )
}
