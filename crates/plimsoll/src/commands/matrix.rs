//! `plimsoll run --workload ws --test matrix|formats`: one trial for each size or format at one rate, all in one result
//! folder.

use std::process::ExitCode;

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Trial, Verdict};
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial::{self, Conditions, FinishedTrial, Load, Subject};
use plimsoll_report::{ResultFolder, StoredTrial, text, words};
use plimsoll_workload_ws::{Format, Test};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::workloads::TELLERS;

/// The message sizes, exact to the byte.
const SIZES_BYTES: [usize; 6] = [64, 256, 1_024, 4_096, 16_384, 65_536];
/// The formats that a `wse` server is said to accept. MessagePack with the suite's own prefix does not count as one of
/// them; for that, use `--test throughput --format msgpack-prefixed`.
const FORMATS: [Format; 3] = [Format::Json, Format::Msgpack, Format::Zlib];

/// A row of the table: one trial.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    load: Load,
}

/// The rows of a load; none if it is a single load.
pub(super) fn rows(load: &Load) -> Vec<Row> {
    let Load::Ws(ws) = load else {
        return Vec::new();
    };
    match ws.test {
        Test::Matrix => SIZES_BYTES
            .into_iter()
            .map(|message_bytes| {
                let mut ws = ws.clone();
                ws.message_bytes = message_bytes;
                Row {
                    name: format!("{} B", words::count(message_bytes as u64)),
                    load: Load::Ws(ws),
                }
            })
            .collect(),
        Test::Formats => FORMATS
            .into_iter()
            .map(|format| {
                let mut ws = ws.clone();
                ws.format = format;
                Row {
                    name: format.name().to_owned(),
                    load: Load::Ws(ws),
                }
            })
            .collect(),
        Test::Storm | Test::Ping | Test::Throughput | Test::Hold | Test::Limit | Test::Fanout => {
            Vec::new()
        }
    }
}

/// Measures the rows one after the other. Whatever ends this, the trials so far are kept and shown.
pub(super) fn run(
    args: &RunArgs,
    conditions: &Conditions,
    subject: &Subject,
    rows: &[Row],
    mut progress: Progress,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(folder));
    let mut trials: Vec<StoredTrial> = Vec::new();
    let mut cut_short = None;
    for ((number, trials_left), row) in (1..).zip((1..=count(rows)).rev()).zip(rows) {
        keeper.trial_begins(&TrialBegins {
            number,
            sessions: args.sessions,
            why: &row.name,
            trials_left,
            ..TrialBegins::default()
        });
        match one(args.sessions, conditions, subject, row, &mut keeper, stop) {
            Ok(outcome) => {
                let trial = outcome.trial.clone();
                let interrupted = trial.interrupted;
                let file = keeper.trial_ends(outcome).map_err(Failure::Usage)?;
                let stem = file.trim_end_matches(".json").to_owned();
                trials.push(StoredTrial { stem, trial });
                if interrupted {
                    break;
                }
            }
            // Nothing is known yet, so there is nothing to show.
            Err(error) if trials.is_empty() => return Err(error.into()),
            Err(error) => {
                cut_short = Some(error);
                break;
            }
        }
    }
    drop(keeper);
    drop(progress);
    output::render(folder.path())?;
    if args.out.json {
        let trials: Vec<&Trial> = trials.iter().map(|stored| &stored.trial).collect();
        output::print_json(&trials)?;
    } else {
        output::print(&text::side_by_side(&trials, TELLERS));
        say!("result: {}", folder.path().display());
    }
    match cut_short {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::from(code_number_of(&trials))),
    }
}

fn count(rows: &[Row]) -> u32 {
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

fn one(
    load: u32,
    conditions: &Conditions,
    subject: &Subject,
    row: &Row,
    keeper: &mut Keeper<'_>,
    stop: &Stop,
) -> plimsoll_lab::Result<FinishedTrial> {
    let mut conditions = conditions.clone();
    conditions.load = row.load.clone();
    let subject = match subject {
        // If a URL has no path, the default path says what a session speaks.
        Subject::Running { url, resources } => Subject::Running {
            url: url.with_default_path(row.load.default_path())?,
            resources: resources.clone(),
        },
        Subject::Started(_) => subject.clone(),
    };
    trial::run(
        &conditions,
        &subject,
        load,
        Length::Full,
        stop,
        &mut |second| keeper.second(second),
    )
}

/// The exit code: 130 if interrupted, 3 if a row could not be measured, 1 if one failed, else 0.
fn code_number_of(trials: &[StoredTrial]) -> u8 {
    let any = |verdict| trials.iter().any(|stored| stored.trial.verdict == verdict);
    if trials.iter().any(|stored| stored.trial.interrupted) {
        130
    } else if any(Verdict::Invalid) {
        3
    } else if any(Verdict::Fail) {
        1
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lab::trial::WsLoad;
    use plimsoll_workload_ws::Dialect;

    fn rows_of(test: Test) -> Vec<Row> {
        rows(&Load::Ws(Box::new(WsLoad::new(test, Dialect::Wse))))
    }

    #[test]
    fn a_matrix_has_a_row_for_each_size_and_formats_for_each_format() {
        let names = |test| -> Vec<String> {
            let rows = rows_of(test);
            rows.into_iter().map(|row| row.name).collect()
        };
        assert_eq!(
            names(Test::Matrix),
            [
                "64 B", "256 B", "1,024 B", "4,096 B", "16,384 B", "65,536 B"
            ]
        );
        assert_eq!(names(Test::Formats), ["json", "msgpack", "zlib"]);
        assert_eq!(names(Test::Throughput), Vec::<String>::new());
        for test in [Test::Matrix, Test::Formats] {
            for row in rows_of(test) {
                row.load.check().expect("every row can be measured");
            }
        }
        // A MessagePack session is requested by its path.
        let paths: Vec<_> = rows_of(Test::Formats)
            .iter()
            .map(|row| row.load.default_path())
            .collect();
        assert_ne!(paths[0], paths[1]);
    }
}
