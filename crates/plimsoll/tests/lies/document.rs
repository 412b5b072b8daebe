//! `docs/explanation/lying-servers.md`: with `PLIMSOLL_UPDATE=1` every test writes its own row of it, from the record of the trial that it just held against the table. So each row is a
//! run that passed.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use crate::entry::{Counter, Lie};
use crate::support::{Trial, root};
use crate::{starved, table};

const FILE: &str = "docs/explanation/lying-servers.md";

const HEAD: &str = "# The lying servers

`targets/stt/lying-server` is a gateway that is honest until `LIE` names a fault; then it has that one fault and no other. Each row is
a trial by the real command over real sockets, in `crates/plimsoll/tests/lies`, where the arithmetic behind every number stands beside
it; a test fails when the verdict, a failed gate, a caveat or a counter is another, or when anything is told that is not named here.
A fault of the server's list without a row is a failed test too. The rows are written by the run itself:

    PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test lies

Gates that did not hold are *not held*; `±` marks those that hold or not as the jitter falls. What varies is given as a range, and
rounded where it was seen.

## A target that lies

";

const STARVED: &str = "
## An honest target, and somebody who is starved

The opposite: what the client could not do, and what others kept the target from, must not be charged to the target. `invalid`, never `fail`; and a search never ends
with a load line that is the client's.

";

const TABLE: &str = "| test | fault | expected | seen | caught |\n|---|---|---|---|---|\n";

/// One row.
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
}

/// Every row, in order: the lies, then the starved clients.
pub(crate) fn rows() -> [Vec<Row>; 2] {
    [table::all().map(row_of).collect(), starved::rows()]
}

/// Writes this lie's row, when rows are to be written.
pub(crate) fn note(lie: &Lie, trial: &Trial) {
    write(lie.name, &seen_of(lie, trial));
}

/// Writes what was seen into the row of that name, when rows are to be written.
pub(crate) fn write(name: &str, seen: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    if std::env::var_os("PLIMSOLL_UPDATE").is_none() {
        return;
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join(FILE);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let section = |rows: &[Row]| {
        let mut text = TABLE.to_owned();
        for row in rows {
            let start = row.start();
            if row.name == name {
                writeln!(text, "{start} {seen} | yes |").expect("a string");
            } else if let Some(line) = old.lines().find(|line| line.starts_with(&start)) {
                // A row whose fault or expectation was changed since is gone until it is run again.
                writeln!(text, "{line}").expect("a string");
            }
        }
        text
    };
    let [lies, clients] = rows();
    let text = format!("{HEAD}{}{STARVED}{}", section(&lies), section(&clients));
    let temporary = path.with_extension("md.new");
    std::fs::write(&temporary, text).expect("docs/ can be written");
    std::fs::rename(&temporary, &path).expect("docs/ can be written");
}

/// Rows that the document should have and has not: never run, or run before the table was changed.
pub(crate) fn missing() -> Vec<&'static str> {
    let text = std::fs::read_to_string(root().join(FILE)).unwrap_or_default();
    let rows = rows();
    let absent = rows.iter().flatten().filter(|row| {
        let start = row.start();
        !text.lines().any(|line| line.starts_with(&start))
    });
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
    // One for each account that disagrees.
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

/// Without the words that every path of its kind begins with.
fn short(path: &str) -> String {
    let path = path.strip_prefix("ledger.").unwrap_or(path);
    let path = path.strip_prefix("target_resources.").unwrap_or(path);
    let path = path.strip_prefix("latency.").unwrap_or(path);
    path.replace(".from_schedule", "")
}

/// Two significant digits, and no more than a thousandth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let step = 10f64.powf(value.abs().log10().floor() - 1.0).max(0.001);
    (value / step).round() * step
}

/// With separators where there are many digits.
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
