//! Test `stages`: loads one after the other, each a trial of its own with its own window.

use std::time::Duration;

use plimsoll_core::profile::Phases;
use plimsoll_document::words::count;
use plimsoll_workload::{Refusal, Row, Value, Values, Workload};

use crate::Voice;

/// Callers that connect each second.
const CONNECT_PER_S: f64 = 100.0;
/// How long all of them talk before the window.
const SETTLE_S: f64 = 3.0;
/// How long the machine rests between two stages.
const COOL_DOWN_S: u64 = 3;
/// The most stages in a list.
const STAGES_MAX: usize = 100;
/// The most callers of a stage.
const CALLERS_MAX: u32 = 1_000_000;
/// The longest window of a stage, in seconds.
const STEADY_MAX_S: u32 = 86_400;

/// The list of a public report, by its name.
const PUBLIC: &str = "public";
/// Its stages, callers and seconds.
const PUBLIC_STAGES: [(u32, u32); 7] = [
    (10, 30),
    (100, 60),
    (500, 60),
    (1_000, 60),
    (2_000, 60),
    (5_000, 60),
    (10_000, 60),
];
/// Its rest between two stages.
const PUBLIC_COOL_DOWN_S: u64 = 5;

/// The usual list.
pub(crate) const USUAL: &str = "5x10,20x15,50x15,100x15";

/// One load for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage {
    callers: u32,
    /// The length of its window.
    steady_s: u32,
}

/// Stages and the rest between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stages {
    list: Vec<Stage>,
    pub(crate) cool_down: Duration,
}

impl Stages {
    /// Reads a list, `5x10,20x15`: callers and seconds of each stage. `public` is a list that has a name.
    ///
    /// # Errors
    /// One line that names the piece that is no stage.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        if text == PUBLIC {
            let stage = |(callers, steady_s)| Stage { callers, steady_s };
            return Ok(Self {
                list: PUBLIC_STAGES.map(stage).into(),
                cool_down: Duration::from_secs(PUBLIC_COOL_DOWN_S),
            });
        }
        let pieces: Vec<&str> = text.split(',').collect();
        if pieces.len() > STAGES_MAX {
            return Err(Refusal::new(format!(
                "--stages: {} stages; give at most {STAGES_MAX}",
                pieces.len()
            )));
        }
        let list = pieces.into_iter().map(Stage::parse);
        Ok(Self {
            list: list.collect::<Result<_, _>>()?,
            cool_down: Duration::from_secs(COOL_DOWN_S),
        })
    }

    /// A trial of test `talk` for each stage.
    ///
    /// # Errors
    /// One line with the remedy: the other values do not go with it.
    pub(crate) fn rows(&self, values: &Values) -> Result<Vec<Row>, Refusal> {
        let talk = Value::Word("talk".to_owned());
        let values = values.clone().without("stages").with("test", talk);
        let stages = self.list.iter();
        stages.map(|stage| stage.row(values.clone())).collect()
    }
}

impl Stage {
    fn parse(piece: &str) -> Result<Self, Refusal> {
        let stage = piece.split_once('x').and_then(|(callers, steady_s)| {
            Some(Self {
                callers: whole(callers, CALLERS_MAX)?,
                steady_s: whole(steady_s, STEADY_MAX_S)?,
            })
        });
        stage.ok_or_else(|| {
            Refusal::new(format!(
                "--stages: `{piece}` is no stage; give callers x seconds with commas between them, such as {USUAL}, or {PUBLIC}"
            ))
        })
    }

    /// Connect at a fixed rate, settle, steady.
    fn phases(self) -> Phases {
        Phases {
            ramp_s: f64::from(self.callers) / CONNECT_PER_S,
            warm_up_s: SETTLE_S,
            measured_s: f64::from(self.steady_s),
        }
    }

    fn row(self, values: Values) -> Result<Row, Refusal> {
        let Self { callers, steady_s } = self;
        Ok(Row {
            name: format!("stage {} x {steady_s} s", count(callers.into())),
            plan: Voice.plan(values)?,
            load: Some(callers),
            phases: Some(self.phases()),
        })
    }
}

/// A whole number from 1 to `most`, in digits only.
fn whole(text: &str, most: u32) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (1..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::PARAMETERS;
    use plimsoll_core::profile::{NS_PER_MS, Profile};
    use plimsoll_workload::Series;
    use proptest::prelude::*;

    fn series(stages: &str) -> Result<Series, Refusal> {
        let word = |text: &str| Value::Word(text.to_owned());
        let values = Values::default()
            .with("test", word("stages"))
            .with("stages", word(stages));
        let plan = Voice.plan(values.or_usual(&PARAMETERS))?;
        Ok(plan.series()?.expect("a series"))
    }

    #[test]
    fn each_stage_is_a_trial_with_its_own_window() {
        let series = series(USUAL).expect("a list");
        assert_eq!(series.pause, Duration::from_secs(3));
        let loads: Vec<_> = series.rows.iter().map(|row| row.load).collect();
        assert_eq!(loads, [5, 20, 50, 100].map(Some));
        let row = &series.rows[1];
        assert_eq!(row.name, "stage 20 x 15 s");
        let profile = Profile::quick().with_phases(row.phases.expect("its own"));
        // 20 callers at 100 a second, then 3 s.
        assert_eq!(profile.window().start_ns, 3_200 * NS_PER_MS);
        assert_eq!(profile.window().end_ns, 18_200 * NS_PER_MS);
        assert!(row.plan.series().expect("a plan").is_none());
        // A process of the client, or a target that is started, makes the plan again from its values.
        let values = row.plan.values();
        assert_eq!(
            (values.word("test"), values.get("stages")),
            (Some("talk"), None)
        );
    }

    #[test]
    fn the_public_list_has_a_name() {
        let series = series(PUBLIC).expect("a list");
        assert_eq!(series.pause, Duration::from_secs(5));
        let last = series.rows.last().expect("stages");
        let phases = last.phases.expect("its own");
        assert_eq!(last.load, Some(10_000));
        assert_eq!(
            (series.rows.len(), phases.ramp_s, phases.measured_s),
            (7, 100.0, 60.0)
        );
    }

    #[test]
    fn what_is_no_stage_is_named() {
        for (list, piece) in [
            ("", "``"),
            ("5x10,", "``"),
            ("5x10;20x15", "`5x10;20x15`"),
            ("5x10,20", "`20`"),
            ("0x10", "`0x10`"),
            ("5x0", "`5x0`"),
            ("+5x10", "`+5x10`"),
            ("5x1e9", "`5x1e9`"),
            ("5 x 10", "`5 x 10`"),
            ("5000000000x10", "`5000000000x10`"),
            ("5X10", "`5X10`"),
        ] {
            let line = series(list).expect_err(list).0;
            assert!(line.contains(piece) && line.contains(USUAL), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
        let many = vec!["1x1"; STAGES_MAX + 1].join(",");
        let line = series(&many).expect_err("too many").0;
        assert!(line.contains("101 stages; give at most 100"), "{line}");
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(
            stages in prop::collection::vec((1..=CALLERS_MAX, 1..=STEADY_MAX_S), 1..20)
        ) {
            let pieces: Vec<_> = stages.iter().map(|(n, s)| format!("{n}x{s}")).collect();
            let read = Stages::parse(&pieces.join(",")).expect("a list");
            let read: Vec<_> = read.list.iter().map(|stage| (stage.callers, stage.steady_s)).collect();
            prop_assert_eq!(read, stages);
        }

        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "[0-9x, +a-c]{0,12}") {
            if let Err(refused) = Stages::parse(&text) {
                prop_assert!(refused.0.starts_with("--stages: ") && !refused.0.contains('\n'));
            }
        }
    }
}
