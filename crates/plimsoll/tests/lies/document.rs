//! Writes `docs/explanation/lying-servers.md`. With `PLIMSOLL_UPDATE=1` every test writes its own row, from the record
//! of the trial that it has just compared with the table. So each row comes from a run that passed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::entry::{Counter, Lie, SOAK, Verdict};
use crate::support::{Trial, root};
use crate::{starved, table};

const FILE: &str = "docs/explanation/lying-servers.md";

const HEAD: &str = "# The lying servers

`targets/stt/lying-server` is a gateway that is honest until the variable `LIE` names a fault. It then has that fault
and no other. The tests in `crates/plimsoll/tests/lies` write this page. Each row comes from a run of the real command
over real sockets, and the code of the tests explains the arithmetic behind every number. A test fails if the verdict, a
failed gate, a caveat or a counter differs from its row, or if the record reports anything that the row does not name. A
fault in the server's list that has no row is a failed test, too.

A trial that a busy machine disturbs is `invalid`, whatever the target does. The test then runs it again, at most four
times in total. If every attempt was disturbed, the result is *inconclusive*: `make test` counts the test as skipped and
lists it with the reason. No verdict is ever changed. This command writes the rows, each from a conclusive run:

    PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test lies

*Not held* names the gates that did not hold; `±` marks a gate that may or may not hold, because of jitter. If a value
varies between trials, *expected* gives a range, and *seen* is rounded to two significant digits.

";

const STARVED: &str = "
## An honest target, with a starved client or target

The opposite case: Plimsoll must not charge the target for what the client could not do, or for what others kept the
target from. Such a trial is `invalid`, never `fail`. A search never reports the client's limit as a load line.

";

/// What the last column means.
const LEGEND: &str = "*verdict*: the lie changes the verdict. *soak only*: the trial passes, and a soak with the same fault fails. *shown as
cost*: the trial passes, and the record shows what the lie costs. *placement*: the trial is `invalid` for a reason that
also holds without the lie.

";

const LIES_TABLE: &str =
    "| test | fault | expected | seen | how it is caught |\n|---|---|---|---|---|\n";
const STARVED_TABLE: &str = "| test | fault | expected | seen |\n|---|---|---|---|\n";

const INCONCLUSIVE: &str = "*inconclusive*";

/// One row of the document.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) fault: String,
    pub(crate) expected: String,
}

impl Row {
    fn start(&self) -> String {
        format!("| `{}` | {} | {} |", self.name, self.fault, self.expected)
    }

    /// What a document says was seen; `None` if the row is missing, or its fault or expectation has changed since.
    fn seen_in<'a>(&self, document: &'a str) -> Option<&'a str> {
        let start = self.start();
        let rest = document
            .lines()
            .find_map(|line| line.strip_prefix(&start))?;
        rest.split('|').next().map(str::trim)
    }
}

/// How a lie is caught. The table decides this, not the author of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    NothingToCatch,
    ByVerdict,
    InASoakOnly,
    AsCost,
    ByPlacement,
    Not,
}

impl Caught {
    pub(crate) fn of(lie: &Lie) -> Self {
        let in_a_soak = |other: &Lie| {
            other.lie == lie.lie && other.flags == SOAK && other.verdict != Verdict::Pass
        };
        let cost = |counter: &Counter| counter.path.contains("cpu_us_per_session_second");
        match lie.verdict {
            // Client and target on one core are `invalid`, whatever they do.
            Verdict::Invalid if lie.caveats == ["shared-cores"] => Self::ByPlacement,
            Verdict::Fail | Verdict::Invalid => Self::ByVerdict,
            Verdict::Pass if lie.lie == "none" => Self::NothingToCatch,
            Verdict::Pass if table::all().any(in_a_soak) => Self::InASoakOnly,
            Verdict::Pass if lie.counters.iter().any(cost) => Self::AsCost,
            Verdict::Pass => Self::Not,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NothingToCatch => "nothing to catch",
            Self::ByVerdict => "verdict",
            Self::InASoakOnly => "soak only",
            Self::AsCost => "shown as cost",
            Self::ByPlacement => "placement",
            Self::Not => "**no**",
        }
    }
}

/// How many lies there are and how they are caught. Each lie counts by the best of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) lies: usize,
    pub(crate) by_verdict: usize,
    /// Of those, the ones that only a soak reveals.
    pub(crate) in_a_soak_only: usize,
    pub(crate) as_cost: usize,
}

impl Sum {
    pub(crate) fn of_the_table() -> Self {
        let mut sum = Self::default();
        let lies: BTreeSet<&str> = table::all().map(|lie| lie.lie).collect();
        for name in lies.into_iter().filter(|name| *name != "none") {
            let rows = || table::all().filter(|lie| lie.lie == name);
            let short = rows().any(|lie| lie.flags != SOAK && Caught::of(lie) == Caught::ByVerdict);
            let any = rows().any(|lie| Caught::of(lie) == Caught::ByVerdict);
            sum.lies += 1;
            sum.by_verdict += usize::from(any);
            sum.in_a_soak_only += usize::from(any && !short);
            sum.as_cost += usize::from(!any && rows().any(|lie| Caught::of(lie) == Caught::AsCost));
        }
        sum
    }

    fn sentence(self) -> String {
        let Self {
            lies,
            by_verdict,
            in_a_soak_only,
            as_cost,
        } = self;
        format!(
            "There are {lies} lies. {by_verdict} change a verdict ({in_a_soak_only} of them only in a soak); {as_cost} does not, and is shown as cost.\n\n"
        )
    }
}

/// Every row, in order: the lies, then the starved clients.
pub(crate) fn rows() -> [Vec<Row>; 2] {
    [table::all().map(row_of).collect(), starved::rows()]
}

/// Writes this lie's row if rows are to be written.
pub(crate) fn note(lie: &Lie, trial: &Trial) {
    write(lie.name, &seen_of(lie, trial));
}

/// Writes what was seen into the row with this name if rows are to be written.
pub(crate) fn write(name: &str, seen: &str) {
    update(Some((name, seen)));
}

/// A row whose trials were all disturbed keeps what an earlier, conclusive run saw.
pub(crate) fn inconclusive(name: &str, disturbances: &[String]) {
    let seen = format!("{INCONCLUSIVE}: `{}`", disturbances.join("`, `"));
    let known = |text: &str| {
        let rows = rows();
        let row = rows.iter().flatten().find(|row| row.name == name);
        let seen = row.and_then(|row| row.seen_in(text));
        seen.is_some_and(|seen| !seen.starts_with(INCONCLUSIVE))
    };
    if !known(&text()) {
        update(Some((name, &seen)));
    }
}

/// If rows are to be written: writes the document again, with what it knows and one more row.
pub(crate) fn update(news: Option<(&str, &str)>) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if std::env::var_os("PLIMSOLL_UPDATE").is_none() {
        return;
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join(FILE);
    let text = made_of(&text(), news);
    let temporary = path.with_extension("md.new");
    std::fs::write(&temporary, text).expect("docs/ can be written");
    std::fs::rename(&temporary, &path).expect("docs/ can be written");
}

pub(crate) fn text() -> String {
    std::fs::read_to_string(root().join(FILE)).unwrap_or_default()
}

/// The document as it should be, with what was seen as the old one has it.
pub(crate) fn made_of(old: &str, news: Option<(&str, &str)>) -> String {
    let rows_of = |rows: &[Row]| {
        let mut text = String::new();
        for row in rows {
            let new = news.filter(|(name, _)| *name == row.name);
            let Some(seen) = new.map(|(_, seen)| seen).or_else(|| row.seen_in(old)) else {
                continue;
            };
            write!(text, "{} {seen} |", row.start()).expect("a string");
            if let Some(lie) = table::all().find(|lie| lie.name == row.name) {
                let caught = Caught::of(lie).words();
                let caught = if seen.starts_with(INCONCLUSIVE) {
                    ""
                } else {
                    caught
                };
                write!(text, " {caught} |").expect("a string");
            }
            text.push('\n');
        }
        text
    };
    let [lies, clients] = rows();
    format!(
        "{HEAD}## A target that lies\n\n{}{LEGEND}{LIES_TABLE}{}{STARVED}{STARVED_TABLE}{}",
        Sum::of_the_table().sentence(),
        rows_of(&lies),
        rows_of(&clients)
    )
}

/// Rows that the document should have but does not: never run, or run before the table was changed.
pub(crate) fn missing() -> Vec<&'static str> {
    let text = text();
    let rows = rows();
    let absent = rows
        .iter()
        .flatten()
        .filter(|row| row.seen_in(&text).is_none());
    absent.map(|row| row.name).collect()
}

fn row_of(lie: &'static Lie) -> Row {
    let mut fault = lie.fault.to_owned();
    let set: Vec<String> = std::iter::once(format!("LIE={}", lie.lie))
        .chain(lie.parameters.iter().map(|(n, v)| format!("LIE_{n}={v}")))
        .collect();
    write!(fault, "<br>`{}`", set.join(" ")).expect("a string");
    let mut expected = format!("**{}**", lie.verdict.word());
    let perhaps = lie.gates_perhaps.iter().map(|gate| format!("± `{gate}`"));
    let gates: Vec<String> = lie.gates.iter().map(|gate| format!("`{gate}`")).collect();
    let gates: Vec<String> = gates.into_iter().chain(perhaps).collect();
    if !gates.is_empty() {
        write!(expected, "; not held: {}", gates.join(", ")).expect("a string");
    }
    if !lie.caveats.is_empty() {
        write!(expected, "; caveat `{}`", lie.caveats.join("`, `")).expect("a string");
    }
    for counter in lie.counters {
        write!(expected, "; {}", range_of(counter)).expect("a string");
    }
    Row {
        name: lie.name,
        fault,
        expected,
    }
}

fn range_of(counter: &Counter) -> String {
    let name = short(counter.path);
    let (low, high) = (number(counter.low), number(counter.high));
    if counter.high.is_infinite() {
        format!("`{name}` ≥ {low}")
    } else if low == high {
        format!("`{name}` {low}")
    } else {
        format!("`{name}` {low} to {high}")
    }
}

fn seen_of(lie: &Lie, trial: &Trial) -> String {
    let mut seen = format!("**{}**", trial.verdict());
    let failed = trial.failed_gates();
    if !failed.is_empty() {
        write!(seen, "; not held: `{}`", failed.join("`, `")).expect("a string");
    }
    let mut caveats = trial.blocking_caveats();
    // There is one for each account that disagrees.
    caveats.dedup();
    if !caveats.is_empty() {
        write!(seen, "; caveat `{}`", caveats.join("`, `")).expect("a string");
    }
    for counter in lie.counters {
        let (name, value) = (short(counter.path), trial.number_at(counter.path));
        let exact = counter.low.to_bits() == counter.high.to_bits();
        let value = number(if exact { value } else { rounded(value) });
        write!(seen, "; `{name}` {value}").expect("a string");
    }
    seen
}

/// The path without the words that every path of its kind begins with.
fn short(path: &str) -> String {
    let path = path.strip_prefix("ledger.").unwrap_or(path);
    let path = path.strip_prefix("target_resources.").unwrap_or(path);
    let path = path.strip_prefix("latency.").unwrap_or(path);
    path.replace(".from_schedule", "")
}

/// Rounds to two significant digits, but no finer than a thousandth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let step = 10f64.powf(value.abs().log10().floor() - 1.0).max(0.001);
    (value / step).round() * step
}

/// A number, with separators if there are many digits.
fn number(value: f64) -> String {
    if value.fract() != 0.0 {
        return format!("{value:.3}").trim_end_matches('0').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
