//! Sets of trials: several loads of several tests, each three times.

use plimsoll_document::words::count;
use plimsoll_workload::{Refusal, Row, Value, Values, Workload};

use crate::Broker;
use crate::load::SIZES_BYTES;

/// How often each load is measured.
const REPEATS: u32 = 3;
/// Bytes per second of set `payload`.
const PAYLOAD_BYTES_PER_S: u64 = 4_000_000;
/// The loads of `baseline` and `confirmed`.
const RATES: [u32; 5] = [1_000, 5_000, 10_000, 20_000, 50_000];

/// What tells a trial from the others of its set, its load, and the parameters that it changes.
type Trial = (String, u32, Vec<(&'static str, Value)>);

/// A set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// One small load.
    Smoke,
    /// A queue without confirmations, at five rates.
    Baseline,
    /// The same with confirmations, and four windows at one rate.
    Confirmed,
    /// Six sizes, at one rate of bytes.
    Payload,
    /// One level at three rates, with a wide window.
    Tiers,
    /// A stream to 1 to 256 readers.
    Fanout,
    /// More than the broker carries.
    Backlog,
}

impl Set {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Smoke, "smoke"),
        (Self::Baseline, "baseline"),
        (Self::Confirmed, "confirmed"),
        (Self::Payload, "payload"),
        (Self::Tiers, "tiers"),
        (Self::Fanout, "fanout"),
        (Self::Backlog, "backlog"),
    ];

    /// The set of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == name).map(|(set, _)| *set)
    }

    /// Its trials.
    fn trials(self, values: &Values) -> Result<Vec<Trial>, Refusal> {
        let number = |number: u64| Value::Whole(number);
        let at = |rate: u32| format!("{} per second", count(rate.into()));
        Ok(match self {
            Self::Smoke => vec![(at(1_000), 1_000, vec![])],
            Self::Baseline => RATES
                .map(|rate| (at(rate), rate, vec![("unconfirmed", Value::Flag(true))]))
                .into(),
            Self::Confirmed => {
                let windows = [1, 64, 1_024, 4_096].map(|window| {
                    let name = format!("{}, window {}", at(5_000), count(window));
                    (name, 5_000, vec![("confirm", number(window))])
                });
                let rates = RATES.map(|rate| (at(rate), rate, vec![("confirm", number(1_024))]));
                rates.into_iter().chain(windows).collect()
            }
            Self::Payload => SIZES_BYTES
                .map(|bytes| {
                    let rate = (PAYLOAD_BYTES_PER_S / bytes).max(1);
                    let rate = u32::try_from(rate).unwrap_or(1);
                    let name = format!("{} B, {}", count(bytes), at(rate));
                    (name, rate, vec![("message_bytes", number(bytes))])
                })
                .into(),
            Self::Tiers => [1_000, 5_000, 20_000]
                .map(|rate| (at(rate), rate, vec![("confirm", number(4_096))]))
                .into(),
            Self::Fanout => {
                let fanout = |readers: u32, rate: u32| {
                    let name = format!("{} readers, {}", count(readers.into()), at(rate));
                    let test = Value::Word("fanout".to_owned());
                    let changed = vec![("test", test), ("readers", number(readers.into()))];
                    (name, rate, changed)
                };
                let few = [1, 2, 4, 8, 16, 32].map(|readers| fanout(readers, 2_000));
                let many = [32, 64, 128, 256].map(|readers| fanout(readers, 100));
                few.into_iter().chain(many).collect()
            }
            Self::Backlog => backlog(values)?,
        })
    }

    /// Its trials with these values, each three times. A set that is repeated as a whole would show a machine that
    /// changes; a load that is repeated at once shows a broker that differs from start to start.
    ///
    /// # Errors
    /// One line with the remedy: the values do not go with a trial of the set.
    pub(crate) fn rows(self, values: &Values) -> Result<Vec<Row>, Refusal> {
        let mut rows = Vec::new();
        for (name, load, changed) in self.trials(values)? {
            let values = values.clone().without("set").without("load_line");
            let values = changed
                .into_iter()
                .fold(values, |values, (name, value)| values.with(name, value));
            for repeat in 1..=REPEATS {
                rows.push(Row {
                    name: format!("{name}, {repeat} of {REPEATS}"),
                    plan: Broker.plan(values.clone())?,
                    load: Some(load),
                    phases: None,
                });
            }
        }
        Ok(rows)
    }
}

/// One and a half and twice the load line; and one and a half times its bytes per second in long messages.
fn backlog(values: &Values) -> Result<Vec<Trial>, Refusal> {
    let line = values.whole("load_line").ok_or_else(|| {
        Refusal::new(
            "--set backlog goes beyond the load line: say it with --load-line N, in messages per second, as plimsoll find shows it",
        )
    })?;
    let bytes = values.whole("message_bytes").unwrap_or(1_024);
    let rows = [
        ("1.5 times the load line", 3 * line / 2, bytes),
        ("twice the load line", 2 * line, bytes),
        (
            "512 KiB, 1.5 times its bytes",
            line * bytes * 3 / 2 / (512 << 10),
            512 << 10,
        ),
        (
            "1 MiB, 1.5 times its bytes",
            line * bytes * 3 / 2 / (1 << 20),
            1 << 20,
        ),
    ];
    let trial = |(name, rate, bytes): (&str, u64, u64)| {
        let rate = u32::try_from(rate.max(1)).unwrap_or(u32::MAX);
        let name = format!("{name}, {} per second", count(rate.into()));
        (name, rate, vec![("message_bytes", Value::Whole(bytes))])
    };
    Ok(rows.map(trial).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;

    #[test]
    fn every_set_has_plans_with_loads_of_its_own() {
        for (set, name) in Set::ALL {
            assert_eq!(Set::by_name(name), Some(set));
            let values = Values::default()
                .with("set", Value::Word(name.to_owned()))
                .with("load_line", Value::Whole(10_000));
            let rows = set.rows(&values.or_usual(&PARAMETERS)).unwrap();
            assert_eq!(rows.len() % 3, 0, "{name}");
            for row in rows {
                assert!(row.load > Some(0), "{name}: {}", row.name);
                assert!(row.plan.series().unwrap().is_none(), "no set in a set");
            }
        }
        let payload = Set::Payload.rows(&Values::default()).unwrap();
        let loads: Vec<_> = payload
            .iter()
            .step_by(3)
            .map(|row| row.load.unwrap())
            .collect();
        assert_eq!(loads, [15_625, 3_906, 488, 61, 7, 3]);
    }

    #[test]
    fn a_backlog_needs_a_load_line_to_go_beyond() {
        let values = Values::default().with("message_bytes", Value::Whole(2_048));
        let refused = Set::Backlog.rows(&values).unwrap_err();
        assert!(refused.0.contains("--load-line N"), "{refused}");
        let rows = Set::Backlog.rows(&values.with("load_line", Value::Whole(1_000)));
        let rows = rows.unwrap();
        let loads: Vec<_> = rows
            .iter()
            .step_by(3)
            .map(|row| row.load.unwrap())
            .collect();
        assert_eq!(loads, [1_500, 2_000, 5, 2]);
        let bytes = rows[9].plan.values().whole("message_bytes");
        assert_eq!((rows.len(), bytes), (12, Some(1 << 20)));
    }
}
