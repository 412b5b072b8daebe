//! A search: the load line, whether you can believe it, and all its evidence.

use plimsoll_core::record::{Bracket, LoadUnit};

use super::{environment, trial, ws};
use crate::choice;
use crate::facts::belief::{self, RaisedCaveat};
use crate::folder::{SearchView, StoredTrial};
use crate::html::Page;
use crate::html::parts::{self, Cell, Contents, Levels, Term, part};
use crate::html::write::Html;
use crate::loads::{self, Load};
use crate::markdown::evidence::exemplar;
use crate::words::{self, bytes, count, maybe, number, plain, us};
use crate::{facts, render};

/// The content of a search's section, and its place on the page.
struct Search<'a> {
    view: &'a SearchView<'a>,
    /// The prefix of the ids of its parts.
    prefix: String,
    /// Only the first SLO's section has what does not depend on the SLO.
    is_first: bool,
    level: Levels,
    /// The trials of the search.
    trials: Vec<&'a StoredTrial>,
    /// The trials that represent the loads around the edge.
    around: Vec<&'a StoredTrial>,
}

/// The load line in words.
pub(in crate::html) fn claim(view: &SearchView<'_>) -> String {
    words::headline(view.bracket, &view.trials).claim
}

/// The load line by one SLO.
pub(in crate::html) fn write(
    html: &mut Html,
    contents: &mut Contents,
    page: &Page<'_>,
    (view, number): (&SearchView<'_>, usize),
    level: Levels,
) {
    let search = Search {
        view,
        prefix: format!("search-{}", number + 1),
        is_first: number == 0,
        level,
        trials: view.of_search(),
        around: choice::around_edge(view),
    };
    html.inside(
        "article",
        &[("aria-labelledby", &search.id("claim"))],
        |html| {
            let title = if view.one_of_several {
                format!("Load line by {}", plain(&view.bracket.slo))
            } else {
                "Load line".to_owned()
            };
            contents.push(&search.id("claim"), &title);
            search.answer(html, page);
            if search.is_first {
                search.percentiles(html, contents, page);
                search.timelines(html, contents, page);
                search.cost(html, contents, page);
                search.ledger(html, contents);
            }
            search.evidence(html, contents);
            let Some(exemplar) = exemplar(&search.trials) else {
                return;
            };
            if search.is_first {
                environment::write(html, contents, (&search.id("environment"), level), exemplar);
            }
            let repeat = ("find", None, view.bracket.seed);
            environment::repeat(html, (&search.id("repeat"), level), exemplar, repeat);
            let measured = format!("Measured at {}.", view.bracket.started_at);
            parts::note(html, &measured);
        },
    );
}

impl Search<'_> {
    fn id(&self, part: &str) -> String {
        format!("{}-{part}", self.prefix)
    }

    fn part(
        &self,
        html: &mut Html,
        contents: &mut Contents,
        (id, title): (&str, &str),
        inside: impl FnOnce(&mut Html),
    ) {
        part(
            html,
            contents,
            (&self.id(id), title, self.level.part),
            inside,
        );
    }

    /// The first screen: the claim, what bounds it, whether you can believe it, and the chart.
    fn answer(&self, html: &mut Html, page: &Page<'_>) {
        let bracket = self.view.bracket;
        html.inside("div", &[("class", "answer")], |html| {
            html.inside("div", &[], |html| {
                let (good, word) = outcome(bracket);
                parts::pill(html, good, word);
                let headline = words::headline(bracket, &self.view.trials);
                let id = self.id("claim");
                let heading = [("id", id.as_str()), ("data-test", "claim")];
                html.element(self.level.result, &heading, &headline.claim);
                if !headline.bounds.is_empty() {
                    parts::paragraph(html, &format!("{}.", headline.bounds));
                }
                parts::terms(html, &terms(bracket, self.view.one_of_several));
                self.belief(html);
            });
            if let Some(svg) = page.chart(&render::chart_name(bracket, self.is_first)) {
                let caption = "Latency from the schedule against the load, with the gates as dashed lines. Each mark is a trial.";
                parts::figure(html, "chart-latency", svg, caption);
            }
        });
    }

    /// What casts doubt on the result, with remedies. What was checked is folded.
    fn belief(&self, html: &mut Html) {
        let bracket = self.view.bracket;
        let id = self.id("belief");
        parts::unlisted_part(
            html,
            (&id, "Can it be believed?", self.level.part),
            |html| {
                let caveats = belief::caveats(&self.trials);
                if caveats.is_empty() {
                    parts::paragraph(html, &belief::no_caveat(self.trials.len()));
                }
                raised(html, &caveats);
                if let Some(lower_bound) = belief::lower_bound(bracket) {
                    parts::paragraph(html, &lower_bound);
                }
                let broken = self.broken_accounts();
                parts::list(html, &[("class", "bad")], &broken);
                let checked = self.checked(broken.is_empty());
                if !checked.is_empty() {
                    html.inside("details", &[], |html| {
                        html.element("summary", &[], "What was checked");
                        parts::list(html, &[], &checked);
                    });
                }
            },
        );
    }

    /// Accounts that do not agree, trial by trial.
    fn broken_accounts(&self) -> Vec<String> {
        let of_trial = |stored: &&StoredTrial| {
            let told = trial::broken_accounts(&stored.trial);
            let told = told
                .into_iter()
                .map(|told| format!("{}: {told}", stored.stem));
            told.collect::<Vec<_>>()
        };
        self.trials.iter().flat_map(of_trial).collect()
    }

    fn checked(&self, all_agree: bool) -> Vec<String> {
        let accounts = belief::accounts(&self.trials).map(|accounts| {
            let names: Vec<&str> = accounts.names.into_iter().collect();
            let outcome = if all_agree {
                "all agree"
            } else {
                "see above for those that do not agree"
            };
            format!(
                "Cross-checks of two accounts ({}): {} comparisons, {outcome}.",
                names.join(", "),
                count(accounts.compared)
            )
        });
        belief::client_room(&self.trials)
            .into_iter()
            .chain(belief::audit(&self.trials))
            .chain(belief::both_clocks(self.view.bracket, &self.trials))
            .chain(accounts)
            .collect()
    }

    fn percentiles(&self, html: &mut Html, contents: &mut Contents, page: &Page<'_>) {
        let Some(svg) = page.chart(render::PERCENTILES) else {
            return;
        };
        self.part(html, contents, ("percentiles", "Percentiles"), |html| {
            parts::figure(html, "chart-percentiles", svg, trial::PERCENTILES);
        });
    }

    fn timelines(&self, html: &mut Html, contents: &mut Contents, page: &Page<'_>) {
        self.part(html, contents, ("timeline", "Second by second"), |html| {
            page.timelines.write(html, &self.trials);
        });
    }

    fn cost(&self, html: &mut Html, contents: &mut Contents, page: &Page<'_>) {
        let bracket = self.view.bracket;
        if bracket.cost_curve.is_empty() {
            return;
        }
        self.part(html, contents, ("cost", "Cost"), |html| {
            if let Some(svg) = page.chart(render::COST) {
                let unit = bracket.load_unit;
                let caption = format!(
                    "CPU time of the target {}. What {} costs at the load line need not be what it costs when the target has little to do.",
                    words::per_second_and_one(unit),
                    words::what_costs(unit)
                );
                parts::figure(html, "chart-cost", svg, &caption);
            }
            cost_table(html, bracket);
        });
    }

    /// The ledgers of the trials around the edge, side by side.
    fn ledger(&self, html: &mut Html, contents: &mut Contents) {
        if self.around.is_empty() {
            return;
        }
        self.part(html, contents, ("ledger", "Ledger"), |html| {
            html.inside("div", &[("data-test", "ledger")], |html| {
                trial::ledgers(html, &self.around);
            });
        });
    }

    fn evidence(&self, html: &mut Html, contents: &mut Contents) {
        let bracket = self.view.bracket;
        self.part(html, contents, ("evidence", "Evidence"), |html| {
            parts::paragraph(
                html,
                &format!(
                    "Workload {}, profile {}, SLO {}; latencies from the schedule; a range where the trials of a load differ.",
                    bracket.workload, bracket.profile, bracket.slo
                ),
            );
            if let Some(trial) = exemplar(&self.trials) {
                parts::paragraph(html, &gates(&trial.gates));
            }
            html.inside("div", &[("data-test", "evidence")], |html| {
                if !bracket.evidence.is_empty() {
                    evidence_table(html, bracket);
                }
                loads_table(html, &loads::of_bracket(bracket), bracket.load_unit);
                ws::side_by_side(html, &self.trials);
            });
        });
    }
}

/// The outcome of the search in a word or two, and whether that is an answer.
fn outcome(bracket: &Bracket) -> (Option<bool>, &'static str) {
    match (bracket.confirmed, bracket.first_fail) {
        (Some(_), _) if bracket.lower_bound_only => (None, "lower bound only"),
        (Some(_), _) => (Some(true), "load line found"),
        (None, Some(_)) => (Some(false), "no load passed"),
        (None, None) => (None, "nothing could be judged"),
    }
}

fn terms(bracket: &Bracket, several_slos: bool) -> Vec<Term<'static>> {
    let at_least = if bracket.lower_bound_only {
        "at least "
    } else {
        ""
    };
    let unit = bracket.load_unit;
    let mut terms: Vec<Term<'static>> = Vec::new();
    let mut term = |name, value: Option<String>, hook| {
        terms.extend(value.map(|value| (name, value, hook)));
    };
    let line = bracket
        .confirmed
        .map(|load| format!("{at_least}{}", words::load(load, unit)));
    term("load line", line, "load-line");
    term("edge", bracket.edge.as_ref().map(facts::edge), "edge");
    let density = bracket
        .sessions_per_vcpu
        .map(|density| format!("{at_least}{} {}", number(density), unit.name()));
    term("per vCPU", density, "per-vcpu");
    term("broke first", bracket.failing_gate.clone(), "broke-first");
    let borderline: Vec<String> = bracket
        .borderline
        .iter()
        .map(|load| count((*load).into()))
        .collect();
    let borderline = (!borderline.is_empty()).then(|| borderline.join(", "));
    term("borderline", borderline, "");
    term("bottleneck", bracket.bottleneck.clone(), "bottleneck");
    term("by the SLO", several_slos.then(|| bracket.slo.clone()), "");
    let end = Some(bracket.conclusion.clone()).filter(|end| !end.is_empty());
    term("why it ended", end, "");
    terms
}

/// Caveats of several trials, each with its remedy.
fn raised(html: &mut Html, caveats: &[RaisedCaveat<'_>]) {
    if caveats.is_empty() {
        return;
    }
    parts::paragraph(html, "Caveats, each with its remedy:");
    html.inside("ul", &[("data-test", "caveats")], |html| {
        for caveat in caveats {
            html.inside("li", &[], |html| {
                html.element("strong", &[], caveat.id);
                html.text(&format!(" ({}): {}", caveat.raised(), caveat.text));
            });
        }
    });
}

/// Every gate with its threshold.
fn gates(gates: &[plimsoll_core::record::GateResult]) -> String {
    let told = gates
        .iter()
        .map(|gate| format!("{} ≤ {}", gate.name, number(gate.threshold)));
    let told: Vec<_> = told.collect();
    format!("A trial passes when every gate holds: {}.", told.join(", "))
}

fn cost_table(html: &mut Html, bracket: &Bracket) {
    let unit = bracket.load_unit;
    let heads = [unit.name(), words::cpu_cost(unit), words::rss_per_one(unit)]
        .map(|name| format!(">{name}"));
    let columns = [
        heads[0].as_str(),
        &heads[1],
        ">least",
        ">greatest",
        ">of its cores",
        &heads[2],
        ">trials",
    ];
    let rows = bracket.cost_curve.iter().map(|point| {
        [
            count(point.sessions.into()),
            us(point.cpu_us_per_session_second),
            us(point.low),
            us(point.high),
            maybe(point.core_us_per_session_second, us),
            maybe(point.rss_bytes_per_session, bytes),
            count(point.trials.into()),
        ]
        .map(Cell::Text)
        .into()
    });
    let caption = format!(
        "What {} costs: mean over the valid trials of a load, the least and the greatest",
        words::what_costs(unit)
    );
    parts::table(html, &caption, &columns, rows);
}

/// How often each load passed and failed, and the class that the search gives it.
fn evidence_table(html: &mut Html, bracket: &Bracket) {
    let head = format!(">{}", bracket.load_unit.name());
    let columns = [
        head.as_str(),
        ">passed",
        ">failed",
        ">short passed",
        ">short failed",
        ">invalid",
        "the load is",
    ];
    let rows = bracket.evidence.iter().map(|load| {
        let mut cells = vec![Cell::Text(count(load.sessions.into()))];
        cells.extend(facts::evidence_counts(load).map(Cell::Text));
        cells.push(load.class.word().into());
        cells
    });
    let caption =
        "Trials at each load, and what the search makes of them, neighbouring loads considered";
    parts::table(html, caption, &columns, rows);
}

/// One row per load.
pub(in crate::html) fn loads_table(html: &mut Html, loads: &[Load], unit: LoadUnit) {
    let columns = Load::columns(unit);
    let rows = loads.iter().map(|load| {
        let against = load.what_failed().join(", ");
        let cells = load.measured().into_iter().chain([against]);
        cells.map(Cell::Text).collect()
    });
    parts::table(
        html,
        "What was measured at each load",
        &columns.each_ref().map(String::as_str),
        rows,
    );
}
