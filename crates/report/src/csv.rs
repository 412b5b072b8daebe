//! One row per second of a trial, for spreadsheets and scripts. This module writes the file, and reads it back for the
//! timeline.

use std::fmt::{Display, Write};
use std::str::FromStr;

use plimsoll_core::record::{Phase, Second};

/// The file's text: a header of field names, then one row per second. An unknown value is an empty cell; numbers are
/// plain. The columns of the confirmation are left out if no second has one.
#[must_use]
pub fn of(seconds: &[Second]) -> String {
    let confirmed = seconds.iter().any(is_confirmed);
    let written = |(name, _): &(&'static str, String)| confirmed || !is_of_confirmation(name);
    let cells_of = |second: &Second| cells(second).into_iter().filter(written);
    let names: Vec<_> = cells_of(&Second::default()).map(|(name, _)| name).collect();
    let mut text = names.join(",");
    text.push('\n');
    for second in seconds {
        let row: Vec<_> = cells_of(second).map(|(_, value)| value).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", row.join(","));
    }
    text
}

/// The column that has another name than its field: as in the records.
const COMPANION_CPU_CORES: &str = "inference_cpu_cores";

fn is_confirmed(second: &Second) -> bool {
    second.confirm_p50_ms.is_some() || second.confirm_p99_ms.is_some()
}

fn is_of_confirmation(column: &str) -> bool {
    column.starts_with("confirm_")
}

/// Every field with its name. The pattern has no `..` on purpose: a field added to [`Second`] must be added here, or
/// this does not compile.
fn cells(second: &Second) -> Vec<(&'static str, String)> {
    macro_rules! cells_of {
        ($($name:ident: $kind:ident,)+) => {{
            let Second { $($name,)+ companion_cpu_cores } = second;
            let mut cells = vec![$((stringify!($name), $kind(*$name))),+];
            cells.push((COMPANION_CPU_CORES, maybe_real(*companion_cpu_cores)));
            cells
        }};
    }
    cells_of! {
        at_s: whole,
        phase: word,
        sessions_open: whole,
        frames_sent: whole,
        partials: whole,
        errors: whole,
        protocol_faults: whole,
        sessions_lost: whole,
        newest_p50_ms: maybe_real,
        newest_p95_ms: maybe_real,
        newest_p99_ms: maybe_real,
        newest_max_ms: maybe_real,
        oldest_p50_ms: maybe_real,
        oldest_p95_ms: maybe_real,
        confirm_p50_ms: maybe_real,
        confirm_p99_ms: maybe_real,
        send_lag_p99_us: maybe_real,
        send_wait_p99_us: maybe_real,
        client_cpu_share: real,
        target_cpu_cores: maybe_real,
        target_rss_bytes: maybe_whole,
        target_throttled_share: maybe_real,
        target_run_queue_wait_share: maybe_real,
        target_fds: maybe_whole,
    }
}

/// Reads the text of such a file. A missing column, as in files of earlier versions, is unknown in every row. An
/// unknown column is skipped.
///
/// # Errors
/// When there is no header with `at_s` and `phase`, or a cell does not match its column. The message names line and
/// column.
pub fn read(text: &str) -> Result<Vec<Second>, String> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    for name in ["at_s", "phase"] {
        if !header.contains(&name) {
            return Err(format!("its first line has no column `{name}`"));
        }
    }
    lines
        .zip(2..)
        .map(|(line, number)| {
            let cells: Vec<&str> = line.split(',').collect();
            let row = Row {
                header: &header,
                cells: &cells,
            };
            row.second().map_err(|why| format!("line {number}: {why}"))
        })
        .collect()
}

/// A line of the file.
struct Row<'a> {
    header: &'a [&'a str],
    cells: &'a [&'a str],
}

impl Row<'_> {
    /// The literal has no `..` on purpose: a field added to [`Second`] must be read here, or this does not compile.
    fn second(&self) -> Result<Second, String> {
        let (cells, names) = (self.cells.len(), self.header.len());
        if cells != names {
            return Err(format!("{cells} cells under {names} names"));
        }
        Ok(Second {
            at_s: self.whole("at_s")?,
            phase: self.phase()?,
            sessions_open: self.whole("sessions_open")?,
            frames_sent: self.whole("frames_sent")?,
            partials: self.whole("partials")?,
            errors: self.whole("errors")?,
            protocol_faults: self.whole("protocol_faults")?,
            sessions_lost: self.whole("sessions_lost")?,
            newest_p50_ms: self.real("newest_p50_ms")?,
            newest_p95_ms: self.real("newest_p95_ms")?,
            newest_p99_ms: self.real("newest_p99_ms")?,
            newest_max_ms: self.real("newest_max_ms")?,
            oldest_p50_ms: self.real("oldest_p50_ms")?,
            oldest_p95_ms: self.real("oldest_p95_ms")?,
            confirm_p50_ms: self.real("confirm_p50_ms")?,
            confirm_p99_ms: self.real("confirm_p99_ms")?,
            send_lag_p99_us: self.real("send_lag_p99_us")?,
            send_wait_p99_us: self.real("send_wait_p99_us")?,
            client_cpu_share: self.real("client_cpu_share")?.unwrap_or_default(),
            target_cpu_cores: self.real("target_cpu_cores")?,
            target_rss_bytes: self.parsed("target_rss_bytes")?,
            target_throttled_share: self.real("target_throttled_share")?,
            target_run_queue_wait_share: self.real("target_run_queue_wait_share")?,
            target_fds: self.parsed("target_fds")?,
            companion_cpu_cores: self.real(COMPANION_CPU_CORES)?,
        })
    }

    /// The cell of a column; `None` when it is empty or there is no such column.
    fn cell(&self, name: &str) -> Option<&str> {
        let at = self.header.iter().position(|found| *found == name)?;
        self.cells.get(at).copied().filter(|cell| !cell.is_empty())
    }

    fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, String>
    where
        T::Err: Display,
    {
        let parse = |cell: &str| {
            let parsed = cell.parse::<T>();
            parsed.map_err(|error| format!("`{name}` is `{}`: {error}", crate::words::plain(cell)))
        };
        self.cell(name).map(parse).transpose()
    }

    /// A count; 0 where the cell is empty.
    fn whole(&self, name: &str) -> Result<u64, String> {
        Ok(self.parsed(name)?.unwrap_or_default())
    }

    fn real(&self, name: &str) -> Result<Option<f64>, String> {
        match self.parsed::<f64>(name)? {
            Some(value) if !value.is_finite() => Err(format!("`{name}` is not a number")),
            value => Ok(value),
        }
    }

    fn phase(&self) -> Result<Phase, String> {
        let word = self.cell("phase").unwrap_or_default();
        let known = Phase::OF_SECONDS
            .into_iter()
            .find(|phase| phase.key() == word);
        known.ok_or_else(|| format!("`phase` is `{}`", crate::words::plain(word)))
    }
}

fn whole(value: u64) -> String {
    value.to_string()
}

/// A phase is one of four words, none with a comma or a quote.
fn word(phase: Phase) -> String {
    phase.key().to_owned()
}

/// Plain decimal. A value that is not finite is unknown.
fn real(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

fn maybe_real(value: Option<f64>) -> String {
    value.map(real).unwrap_or_default()
}

fn maybe_whole(value: Option<u64>) -> String {
    value.map(whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn second()(
            at_s in 0u64..4_000, phase in prop::sample::select(Phase::OF_SECONDS.to_vec()), errors: u64,
            p95 in prop::option::of(0.0f64..1e7), lag in prop::option::of(0.0f64..1e7),
            share in 0.0f64..8.0, rss: Option<u64>, confirm in prop::option::of(0.0f64..1e7),
        ) -> Second {
            Second {
                at_s, phase, errors, newest_p95_ms: p95, send_lag_p99_us: lag, client_cpu_share: share,
                target_rss_bytes: rss, confirm_p99_ms: confirm, ..Second::default()
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in prop::collection::vec(second(), 0..20)) {
            prop_assert_eq!(read(&of(&seconds)), Ok(seconds));
        }
    }

    #[test]
    fn the_reference_page_has_every_column_in_its_order() {
        let page = include_str!("../../../docs/reference/results.md");
        let (_, section) = page.split_once("\n## trial-NNN.csv\n").expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let first_cells = rows.filter_map(|row| row.split(" | ").next());
        let on_page: Vec<&str> = first_cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let text = of(&[confirmed_second()]);
        let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(on_page, columns);
    }

    fn confirmed_second() -> Second {
        Second {
            confirm_p50_ms: Some(1.5),
            ..Second::default()
        }
    }

    #[test]
    fn the_confirmation_has_columns_where_there_is_one() {
        let columns = |seconds: &[Second]| {
            let text = of(seconds);
            let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert!(widths.windows(2).all(|two| two[0] == two[1]), "{text}");
            (text.contains("confirm_p50_ms"), widths[0])
        };
        let (without, few) = columns(&[Second::default(), Second::default()]);
        let (with, all) = columns(&[Second::default(), confirmed_second()]);
        assert!(!without && with);
        assert_eq!(all, few + 2);
    }

    #[test]
    fn fewer_columns_are_unknown_and_further_ones_are_passed_over() {
        let seconds = read("colour,phase,at_s,newest_p95_ms\nred,measured,3,\nblue,grace,4,7.5\n");
        let seconds = seconds.unwrap();
        assert_eq!((seconds[0].at_s, seconds[0].newest_p95_ms), (3, None));
        assert_eq!(
            (seconds[1].phase, seconds[1].newest_p95_ms),
            (Phase::Grace, Some(7.5))
        );
        assert_eq!(seconds[1].target_rss_bytes, None);
    }

    #[test]
    fn what_is_broken_is_named() {
        for (text, named) in [
            ("", "`at_s`"),
            ("at_s\n1\n", "`phase`"),
            ("at_s,phase\n1,lunch\n", "line 2: `phase` is `lunch`"),
            ("at_s,phase\n1,ramp\n2\n", "line 3: 1 cells under 2 names"),
            ("at_s,phase\n-1,ramp\n", "line 2: `at_s` is `-1`"),
            (
                "at_s,phase,client_cpu_share\n1,ramp,inf\n",
                "`client_cpu_share` is not a number",
            ),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(named), "{text:?}: {why}");
        }
    }

    #[test]
    fn unknown_is_empty_and_numbers_are_plain() {
        let seconds = [
            Second {
                at_s: 7,
                phase: Phase::Measured,
                sessions_open: 1_650,
                frames_sent: 82_500,
                newest_p95_ms: Some(212.5),
                client_cpu_share: 0.000_001,
                target_rss_bytes: Some(90_000_000_000),
                ..Second::default()
            },
            Second {
                at_s: 8,
                phase: Phase::Grace,
                target_cpu_cores: Some(f64::NAN),
                ..Second::default()
            },
        ];
        let text = of(&seconds);
        let mut lines = text.lines();
        let header: Vec<_> = lines.next().unwrap().split(',').collect();
        assert_eq!(header[..3], ["at_s", "phase", "sessions_open"]);
        let row: Vec<_> = lines.next().unwrap().split(',').collect();
        assert_eq!(row.len(), header.len());
        let cell = |name: &str| row[header.iter().position(|n| *n == name).unwrap()];
        assert_eq!(cell("frames_sent"), "82500");
        assert_eq!(cell("newest_p95_ms"), "212.5");
        assert_eq!(cell("newest_p50_ms"), "");
        assert_eq!(cell("client_cpu_share"), "0.000001");
        assert_eq!(cell("target_rss_bytes"), "90000000000");
        let grace: Vec<_> = lines.next().unwrap().split(',').collect();
        let cores = header
            .iter()
            .position(|n| *n == "target_cpu_cores")
            .unwrap();
        assert_eq!(grace[cores], "");
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_trial_without_seconds_has_its_header() {
        assert_eq!(of(&[]).lines().count(), 1);
    }
}
