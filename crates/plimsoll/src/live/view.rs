//! How a terminal shows [`Live`], as lines. A pure function: the same snapshot gives the same lines.

use plimsoll_core::record::{Live, LiveBracket, LiveCommand, LiveGate, LoadUnit, Second};
use plimsoll_report::words;

use super::axis;
use super::line::{Line, Paint, bar, narrow, sparkline};

/// The most gates that get a line.
const GATES_MAX: usize = 5;
/// A gate is close from this share of its threshold on.
const NEAR: f64 = 0.8;
/// Below this many columns, words are shortened.
const ROOMY: usize = 70;
/// Below this many columns, the least important words are left out.
const NARROW: usize = 50;

/// The view in this many columns and at most this many lines, the most important lines first.
pub(super) fn lines(live: &Live, columns: usize, lines_max: usize) -> Vec<Line> {
    let mut lines = vec![title(live), trial(live), time(live, columns)];
    lines.extend(gates(live, columns));
    lines.push(newest_p95(live, columns));
    lines.push(sessions(live));
    lines.push(cpu(live, columns));
    if live.command != LiveCommand::Run {
        lines.push(bracket(live));
        lines.push(axis::line(live, columns));
    }
    lines.truncate(lines_max);
    lines.into_iter().map(|line| line.fitted(columns)).collect()
}

fn title(live: &Live) -> Line {
    let vcpu = words::on_vcpu(live.vcpu);
    Line::default()
        .with(Paint::Bold, narrow(&live.target))
        .with(
            Paint::Plain,
            format!(
                "{vcpu}, SLO {}, profile {}",
                narrow(&live.slo),
                narrow(&live.profile)
            ),
        )
}

fn trial(live: &Live) -> Line {
    let Some(trial) = &live.trial else {
        return Line::default().with(Paint::Dim, "between two trials");
    };
    let load = words::load(trial.sessions, live.load_unit);
    let line = Line::default().with(Paint::Plain, format!("trial {}: {load}", trial.number));
    match trial.why.as_str() {
        "" => line,
        why => line.with(Paint::Plain, format!(" ({})", narrow(why))),
    }
}

/// The trial's phase and time, and how long the whole command will still take.
fn time(live: &Live, columns: usize) -> Line {
    let whole_s = live.phases.to_window_end_s();
    let (phase, at_s) = match &live.trial {
        Some(trial) => (trial.phase.word(), trial.at_s),
        None => ("waiting", 0),
    };
    let trials = match live.trials_left {
        0 | 1 => String::new(),
        left => format!(", {left} trials"),
    };
    let about = if columns < NARROW { "" } else { "about " };
    let left = format!(" {about}{} left{trials}", clock(live.time_left_s));
    let line = Line::default().with(Paint::Plain, format!("{phase:<8} {at_s:>3} s "));
    let room = columns
        .saturating_sub(line.width())
        .saturating_sub(left.chars().count());
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    let share = at_s as f64 / whole_s.max(1.0);
    bar(line, share, room.min(40), Paint::Plain).with(Paint::Plain, left)
}

/// `3:07`; from an hour on, `1:03:07`.
fn clock(seconds: f64) -> String {
    let whole = std::time::Duration::try_from_secs_f64(seconds.max(0.0))
        .unwrap_or_default()
        .as_secs();
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// One line for each gate on a latency.
fn gates(live: &Live, columns: usize) -> impl Iterator<Item = Line> {
    let latencies = live.gates.iter().filter(|gate| gate.name.ends_with("_ms"));
    latencies
        .take(GATES_MAX)
        .map(move |gate| gate_line(gate, columns))
}

fn gate_line(gate: &LiveGate, columns: usize) -> Line {
    let observed = words::maybe(gate.observed, words::ms_digits);
    let share = gate.observed.map_or(0.0, |ms| ms / gate.threshold);
    // Anything above 0 breaks a threshold of 0.
    let broken = gate.observed.is_some_and(|ms| ms > gate.threshold);
    let paint = if broken {
        Paint::Bad
    } else if share >= NEAR {
        Paint::Near
    } else {
        Paint::Good
    };
    let observed = if broken {
        format!("!{observed}")
    } else {
        observed
    };
    let line = Line::default()
        .with(Paint::Plain, format!("{:<14} ", narrow(&gate.name)))
        .with(paint, format!("{observed:>8} "))
        .with(
            Paint::Dim,
            format!("of {:<7} ", words::number(gate.threshold)),
        );
    let room = columns.saturating_sub(line.width());
    bar(line, share, room.min(48), paint)
}

/// One column per second of the window.
fn newest_p95(live: &Live, columns: usize) -> Line {
    let label = "newest p95     ";
    let of = |second: &Second| second.newest_p95_ms;
    let greatest = live.seconds.iter().filter_map(of).reduce(f64::max);
    let most = greatest.map_or(String::new(), |ms| format!(" up to {}", words::ms(ms)));
    let used = label.len() + most.chars().count();
    let room = columns.saturating_sub(used);
    let newest = &live.seconds[live.seconds.len().saturating_sub(room)..];
    // The gate is the top, unless a second exceeded it. So the line stays calm while all is well.
    let gate = live.gates.iter().find(|gate| gate.name == "newest_p95_ms");
    let top = gate
        .map_or(0.0, |gate| gate.threshold)
        .max(greatest.unwrap_or(0.0));
    Line::default()
        .with(Paint::Plain, label)
        .with(Paint::Plain, sparkline(newest.iter().map(of), top))
        .with(Paint::Dim, most)
}

/// How many are open, of the number that the load asks for. A rate asks for no number.
fn sessions(live: &Live) -> Line {
    let open = live.seconds.last().map_or(0, |second| second.sessions_open);
    let what = match live.load_unit {
        unit if unit.is_rate() => LoadUnit::CONNECTIONS.name(),
        unit => unit.name(),
    };
    let line = Line::default().with(Paint::Plain, format!("{what} {}", words::count(open)));
    let Some(trial) = &live.trial else {
        return line;
    };
    let counted = |line: Line, what: &str, count: u64| {
        let paint = if count > 0 { Paint::Bad } else { Paint::Plain };
        line.with(paint, format!("  {what} {}", words::count(count)))
    };
    let asked = if live.load_unit.is_rate() {
        String::new()
    } else {
        format!(" of {}", words::count(u64::from(trial.sessions)))
    };
    let line = line.with(Paint::Plain, asked);
    let line = counted(line, "errors", trial.errors);
    counted(line, "lost", trial.sessions_lost)
}

/// CPU of the three parties: for the target as a share of its vCPU, for client and simulator as a share of one core.
fn cpu(live: &Live, columns: usize) -> Line {
    let last = live.seconds.last();
    let target = last.and_then(|second| second.target_cpu_cores);
    let simulator = if columns < ROOMY { "sim" } else { "simulator" };
    let parties = [
        (
            "target",
            target.map(|cores| cores / live.vcpu.unwrap_or(1.0)),
        ),
        ("client", last.map(|second| second.client_cpu_share)),
        (
            simulator,
            last.and_then(|second| second.companion_cpu_cores),
        ),
    ];
    let mut line = Line::default().with(Paint::Plain, "CPU");
    for (name, share) in parties {
        let percent = share.map_or_else(
            || words::UNKNOWN.to_owned(),
            |share| format!("{:.0} %", share * 100.0),
        );
        line = if columns < ROOMY {
            line.with(Paint::Plain, format!(" {name} {percent}"))
        } else {
            let line = line.with(Paint::Plain, format!("  {name} {percent:>5} "));
            bar(line, share.unwrap_or(0.0), 8, Paint::Plain)
        };
    }
    line
}

/// The bracket in words, with the same marks as the axis below.
fn bracket(live: &Live) -> Line {
    let LiveBracket {
        highest_pass,
        lowest_fail,
    } = live.bracket;
    let load = |load: Option<u32>| {
        load.map_or_else(
            || words::UNKNOWN.to_owned(),
            |load| words::count(u64::from(load)),
        )
    };
    let now = live.trial.as_ref().map(|trial| trial.sessions);
    let mark = |mark: char, what: &str, value| format!("{mark} {what} {}", load(value));
    Line::default()
        .with(Paint::Good, mark(axis::PASS, "passed", highest_pass))
        .with(
            Paint::Bad,
            format!("  {}", mark(axis::FAIL, "failed", lowest_fail)),
        )
        .with(Paint::Plain, format!("  {}", mark(axis::NOW, "now", now)))
}
