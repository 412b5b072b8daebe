//! Plain text for terminals: the verdict first, then the evidence, in aligned columns. Colour is optional, and never
//! the only sign of anything.

mod client_cost;
mod comparison;
mod ranking;
mod table;
mod trial;
mod ws;

use std::collections::BTreeMap;

use plimsoll_core::record::{Bracket, LoadClass, LoadUnit, Verdict};

use crate::facts;
use crate::folder::StoredTrial;
use crate::loads::{self, Load};
use crate::words::{self, count, maybe, ms, percent, plain, range, us};
use table::{Align, Table};

pub use client_cost::client_costs;
pub use comparison::comparison;
pub use ranking::ranking;
pub use trial::trial;
pub use ws::side_by_side;

/// Whether and how to colour.
#[derive(Debug, Clone, Copy)]
struct Paint {
    color: bool,
}

impl Paint {
    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn verdict(self, verdict: Verdict, text: &str) -> String {
        let code = match verdict {
            Verdict::Pass => "1;32",
            Verdict::Fail => "1;31",
            Verdict::Invalid => "1;33",
        };
        self.wrap(code, text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The block for a search: the load line, what bounds it, one row per load, caveats with their remedies.
#[must_use]
pub fn bracket(bracket: &Bracket, trials: &[StoredTrial], color: bool) -> String {
    let paint = Paint { color };
    let trials = &facts::judged_by(&bracket.slo, trials);
    let headline = words::headline(bracket, trials);
    let mut lines = vec![match bracket.sessions_per_vcpu {
        Some(density) => format!(
            "{} ({} per vCPU)",
            paint.bold(&headline.claim),
            words::number(density)
        ),
        None => paint.bold(&headline.claim),
    }];
    if !headline.bounds.is_empty() {
        lines.push(headline.bounds);
    }
    if let Some(edge) = &bracket.edge {
        lines.push(format!("edge: {}", facts::edge(edge)));
    }
    if let Some(bottleneck) = &bracket.bottleneck {
        lines.push(format!("bottleneck: {}", plain(bottleneck)));
    }
    lines.push(plain(&bracket.conclusion));
    lines.push(String::new());
    let loads = loads::of_bracket(bracket);
    lines.extend(loads_table(&loads, bracket.load_unit, paint).lines());
    lines.push(
        "  (target, client: share of the CPU that each was given; send lag: the client's own, p99.9)"
            .to_owned(),
    );
    lines.extend(caveat_lines(words::of_search(bracket, trials)));
    join(&lines)
}

fn loads_table(loads: &[Load], unit: LoadUnit, paint: Paint) -> Table {
    let mut table = Table::new(&[
        (unit.name(), Align::Right),
        ("verdict", Align::Left),
        ("newest p95", Align::Right),
        ("oldest p95", Align::Right),
        (words::cpu_cost_in_brief(unit), Align::Right),
        ("target", Align::Right),
        ("client", Align::Right),
        ("send lag", Align::Right),
        ("against it", Align::Left),
    ]);
    for load in loads {
        let verdicts = load.verdicts();
        let agreed = load.trials.first().map(|t| t.verdict);
        let agreed = agreed.filter(|first| load.trials.iter().all(|t| t.verdict == *first));
        let settled = match load.class {
            Some(class) => matches!(class, LoadClass::Passing | LoadClass::Failing),
            None => !load.borderline,
        };
        let painted = match agreed {
            Some(verdict) if settled => paint.verdict(verdict, &verdicts),
            _ => verdicts.clone(),
        };
        table.row(vec![
            count(u64::from(load.sessions)).into(),
            (verdicts, painted).into(),
            range(load.range(|t| t.newest_p95_ms), ms).into(),
            range(load.range(|t| t.oldest_p95_ms), ms).into(),
            range(load.range(|t| t.cpu_us_per_session_second), us).into(),
            range(load.range(|t| t.target_cpu_share), percent).into(),
            range(load.range(|t| Some(t.client_cpu_share)), percent).into(),
            range(load.range(|t| t.send_lag_p999_us), us).into(),
            plain(&load.what_failed().join(", ")).into(),
        ]);
    }
    table
}

/// Every caveat once, with the number of trials that raised it, and its text from the last of them.
fn caveat_lines<'a>(trials: impl Iterator<Item = &'a StoredTrial>) -> Vec<String> {
    let mut found: BTreeMap<&str, (u64, bool, &str)> = BTreeMap::new();
    for stored in trials {
        for caveat in &stored.trial.caveats {
            let entry = found.entry(&caveat.id).or_insert((0, false, ""));
            *entry = (entry.0 + 1, entry.1 || caveat.blocking, &caveat.text);
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), "caveats".to_owned()];
    for (id, (times, blocking, text)) in found {
        let blocking = if blocking { ", blocking" } else { "" };
        let trials = if times == 1 { "trial" } else { "trials" };
        lines.push(format!(
            "  {} ({times} {trials}{blocking}): {}",
            plain(id),
            plain(text)
        ));
    }
    lines
}

/// A latency cell without its unit.
fn ms_cell(value: Option<f64>) -> String {
    maybe(value, words::ms_digits)
}

/// A column whose name begins with `>` has numbers and is aligned to the right.
fn head(column: &'static str) -> (&'static str, Align) {
    match column.strip_prefix('>') {
        Some(name) => (name, Align::Right),
        None => (column, Align::Left),
    }
}

fn join(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
