//! One trial: its verdict, whether you can believe it, and everything that was measured.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{GateResult, SanityCheck, Trial, Verdict};

use super::{environment, ws};
use crate::facts::{
    self,
    trial::{LATENCY_COLUMNS, latency_cells},
};
use crate::folder::StoredTrial;
use crate::html::Page;
use crate::html::parts::{self, Cell, Contents, Levels, yes_or_no};
use crate::html::write::Html;
use crate::words::{self, count, number};

/// The caption of the percentile plot.
pub(super) const PERCENTILES: &str = "Latency of the newest frame by percentile; each further nine takes the same room. Solid from the schedule, dashed from the write: where they part, the client was late or the target made it wait. A bar is a gate: the curve of a trial that passes goes below it.";

/// Everything about one trial. If it is the only one, it also has the folder's charts.
///
/// Lists its parts in `contents` when the page is about this trial.
pub(super) fn write(
    html: &mut Html,
    mut contents: Option<&mut Contents>,
    page: &Page<'_>,
    stored: &StoredTrial,
    level: Levels,
) {
    let id = |part: &str| format!("{}-{part}", stored.stem);
    html.inside(
        "article",
        &[("aria-labelledby", &id("claim")), ("id", &stored.stem)],
        |html| {
            answer(html, page, stored, level);
            let trial = &stored.trial;
            let mut part = |name: &str, title: &str, inside: &dyn Fn(&mut Html)| {
                let id = id(name);
                if let Some(contents) = &mut contents {
                    contents.push(&id, title);
                }
                parts::unlisted_part(html, (&id, title, level.part), inside);
            };
            if is_alone(page) && page.chart(crate::render::PERCENTILES).is_some() {
                part("percentiles", "Percentiles", &|html| {
                    percentiles(html, page)
                });
            }
            ws::of_trial(trial, &mut part);
            part("timeline", "Second by second", &|html| {
                page.timelines.write(html, &[stored])
            });
            part("ledger", "Ledger", &|html| {
                html.inside("div", &[("data-test", "ledger")], |html| {
                    ledgers(html, &[stored])
                });
            });
            part("latency", "Latency", &|html| latency(html, trial));
            drift(trial, &mut part);
            part("client", "Client", &|html| client(html, trial));
            part("target", "Resources of the target", &|html| {
                target(html, trial)
            });
            if let Some(inference) = &trial.inference {
                part("inference", "Inference simulator", &|html| {
                    let rows = facts::trial::inference(inference);
                    parts::facts(html, "What the inference simulator used", &rows);
                });
            }
            part("environment", "Environment", &|html| {
                environment::table(html, trial)
            });
            let repeat = ("run", Some(trial.sessions), trial.seed);
            environment::repeat(html, (&id("repeat"), level), trial, repeat);
            let files = format!(
                "Measured at {at}; every second in {stem}.csv, histograms in {stem}.hlog.",
                at = trial.started_at,
                stem = stored.stem
            );
            parts::note(html, &files);
        },
    );
}

/// Whether the folder's charts show only this trial.
fn is_alone(page: &Page<'_>) -> bool {
    page.results.other_trials().count() == 1 && page.results.searches().is_empty()
}

fn answer(html: &mut Html, page: &Page<'_>, stored: &StoredTrial, level: Levels) {
    let trial = &stored.trial;
    html.inside("div", &[("class", "answer")], |html| {
        html.inside("div", &[], |html| {
            let good = match trial.verdict {
                Verdict::Pass => Some(true),
                Verdict::Fail => Some(false),
                Verdict::Invalid => None,
            };
            parts::pill(html, good, trial.verdict.word());
            let id = format!("{}-claim", stored.stem);
            let heading = [("id", id.as_str()), ("data-test", "claim")];
            html.element(level.result, &heading, &words::outcome(trial));
            if trial.interrupted {
                parts::paragraph(html, "The trial was interrupted: these are the measurements up to that point.");
            }
            if trial.length == Length::Short {
                let measured = number(trial.phases.measured_s);
                let text = format!("A short trial of a search: measured for {measured} s, not for the whole profile.");
                parts::paragraph(html, &text);
            }
            if let Some(bottleneck) = &trial.bottleneck {
                parts::terms(html, &[("bottleneck", bottleneck.clone(), "bottleneck")]);
            }
            belief(html, stored, level);
            gates(html, &format!("Gates of the SLO {}", trial.slo), &trial.gates);
            for further in &trial.further_slos {
                let caption = format!("Gates of the SLO {}: {}", further.slo, further.verdict.word());
                gates(html, &caption, &further.gates);
            }
        });
        if let Some(svg) = page.chart(crate::render::CHART).filter(|_| is_alone(page)) {
            let caption = "Latency from the schedule at this load, with the gates as dashed lines.";
            parts::figure(html, "chart-latency", svg, caption);
        }
    });
}

/// What casts doubt on the trial, with remedies.
fn belief(html: &mut Html, stored: &StoredTrial, level: Levels) {
    let trial = &stored.trial;
    let id = format!("{}-belief", stored.stem);
    parts::unlisted_part(html, (&id, "Can it be believed?", level.part), |html| {
        let broken = broken_accounts(trial);
        if trial.caveats.is_empty() && broken.is_empty() {
            parts::paragraph(html, "No caveats: nothing casts doubt on the result.");
        }
        if !trial.caveats.is_empty() {
            parts::paragraph(html, "Caveats, each with its remedy:");
            html.inside("ul", &[("data-test", "caveats")], |html| {
                for caveat in &trial.caveats {
                    let blocking = if caveat.blocking { " (blocking)" } else { "" };
                    html.inside("li", &[], |html| {
                        html.element("strong", &[], &caveat.id);
                        html.text(&format!("{blocking}: {}", caveat.text));
                    });
                }
            });
        }
        parts::list(html, &[("class", "bad")], &broken);
        if !trial.sanity.is_empty() {
            html.inside("details", &[], |html| {
                html.element("summary", &[], "Cross-checks of two accounts");
                sanity(html, trial);
            });
        }
    });
}

/// The accounts of a trial that do not agree, and a ledger that does not add up.
pub(super) fn broken_accounts(trial: &Trial) -> Vec<String> {
    let told =
        |check: &SanityCheck| format!("{} does not agree: {}", check.name, facts::sanity(check));
    let disagreeing = facts::disagreeing(trial).map(told);
    disagreeing.chain(words::ledger_gap(trial)).collect()
}

fn sanity(html: &mut Html, trial: &Trial) {
    let rows = trial.sanity.iter().map(|check| {
        vec![
            Cell::from(check.name.as_str()),
            Cell::Text(number(check.observed)),
            Cell::Text(number(check.low)),
            Cell::Text(number(check.high)),
            yes_or_no(check.holds),
        ]
    });
    let columns = ["account", ">observed", ">consistent from", ">to", "agrees"];
    parts::table(html, "Compared", &columns, rows);
}

fn gates(html: &mut Html, caption: &str, gates: &[GateResult]) {
    let rows = gates.iter().map(|gate| {
        vec![
            Cell::from(gate.name.as_str()),
            Cell::Text(words::observed(gate)),
            Cell::Text(number(gate.threshold)),
            yes_or_no(gate.pass),
        ]
    });
    parts::table(
        html,
        caption,
        &["gate", ">observed", ">at most", "held"],
        rows,
    );
}

fn percentiles(html: &mut Html, page: &Page<'_>) {
    if let Some(svg) = page.chart(crate::render::PERCENTILES) {
        parts::figure(html, "chart-percentiles", svg, PERCENTILES);
    }
}

/// How latency and memory changed over the window, where this is known.
fn drift(trial: &Trial, part: &mut impl FnMut(&str, &str, &dyn Fn(&mut Html))) {
    let drift: Vec<_> = facts::drift_of(trial).collect();
    if drift.is_empty() {
        return;
    }
    part("drift", "Drift over the window", &|html| {
        let rows = drift.iter().map(|row| {
            let cells = [row.name, &row.slope, &row.interval, row.reading];
            cells.map(Cell::from).into()
        });
        let columns = ["what", ">change", ">interval", "reading"];
        parts::table(html, "Change per hour", &columns, rows);
    });
}

/// What happened to every frame, with one column per trial, and why sessions broke.
pub(super) fn ledgers(html: &mut Html, trials: &[&StoredTrial]) {
    let name = |stored: &&StoredTrial| {
        let trial = &stored.trial;
        let load = count(trial.sessions.into());
        format!(">{} at {load} ({})", stored.stem, trial.verdict.word())
    };
    let names: Vec<String> = trials.iter().map(name).collect();
    let columns: Vec<&str> = std::iter::once("what")
        .chain(names.iter().map(String::as_str))
        .collect();
    let ledgers: Vec<_> = trials
        .iter()
        .map(|stored| facts::trial::ledger(&stored.trial))
        .collect();
    let first = ledgers.first().map(Vec::as_slice).unwrap_or_default();
    let rows = first.iter().enumerate().map(|(index, (what, _))| {
        let values = ledgers.iter().filter_map(|ledger| ledger.get(index));
        let values = values.map(|(_, value)| Cell::Text(count(*value)));
        std::iter::once(Cell::from(what.as_str()))
            .chain(values)
            .collect()
    });
    let caption = "Every frame due is answered, errored or lost";
    parts::table(html, caption, &columns, rows);
    for stored in trials {
        let reasons = stored.trial.ledger.reasons.iter();
        let title = format!(
            "{}: why sessions failed or died, and what the protocol faults were:",
            stored.stem
        );
        parts::reasons(html, &title, reasons);
    }
}

fn latency(html: &mut Html, trial: &Trial) {
    let rows = words::latency_rows(&trial.latency)
        .map(|(name, quantiles)| latency_cells(name, quantiles).map(Cell::Text).into());
    parts::table(
        html,
        "Latency of the newest and of the oldest frame of an answer",
        &LATENCY_COLUMNS,
        rows,
    );
    parts::note(
        html,
        "Gates look at the latency from the schedule. An unanswered frame counts with the time we waited, a lower bound.",
    );
}

fn client(html: &mut Html, trial: &Trial) {
    let rows = facts::trial::client(&trial.client);
    parts::facts(
        html,
        "What the load client used, and how late it was",
        &rows,
    );
    parts::note(
        html,
        "Send lag is the client's own lateness; send wait is the time that due frames waited for a full socket, the target's back-pressure.",
    );
    let faults = trial.client.faults.iter();
    parts::reasons(html, "Faults of the client's own machine:", faults);
}

fn target(html: &mut Html, trial: &Trial) {
    let Some(resources) = &trial.target_resources else {
        parts::paragraph(html, "Not measured.");
        return;
    };
    let caption = format!("What the target used, by {}", resources.source);
    parts::facts(html, &caption, &facts::trial::target(trial, resources));
}
