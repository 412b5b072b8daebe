//! Latencies per second as an HdrHistogram interval log, version 1.3, which HdrHistogram tools in any language can
//! read.
//!
//! The log has one line per series and second, tagged with the series' name. An interval without samples has an empty
//! histogram. A series that only some workloads have has no line there. Values are microseconds. Interval times are seconds since the trial began: both `StartTime` and
//! `BaseTime` give that moment, so no reader has to guess.
//!
//! [`sum`] reads a log back. The log contains only frames of the measured window, whenever they were answered. So the
//! sum over all intervals has the percentiles of the trial's record.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError,
    LogEntry, LogIteratorError, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use plimsoll_core::latency::{LatencySet, Series};

use crate::error::ReportError;

/// The name of the file in messages.
const FILE: &str = "trial-*.hlog";

/// The latencies recorded in one interval of a trial.
#[derive(Debug, Clone)]
pub struct IntervalHistograms {
    /// When the interval began, in seconds since the trial began.
    pub start_s: f64,
    /// The length of the interval, in seconds.
    pub duration_s: f64,
    /// The latencies recorded.
    pub set: LatencySet,
}

/// An interval log under construction. Each interval is compressed when it is added.
#[derive(Debug)]
pub struct IntervalLog {
    bytes: Vec<u8>,
}

impl IntervalLog {
    /// Begins the log of a trial that began at this time (RFC 3339 in UTC).
    ///
    /// # Errors
    /// When the time is not RFC 3339.
    pub fn begin(started_at: &str) -> Result<Self, ReportError> {
        let start = start_time(started_at)?;
        let mut bytes = Vec::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[Latencies of one Plimsoll trial; all values are microseconds]")
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut bytes, &mut V2DeflateSerializer::new())
            .map_err(|error| ReportError::record(FILE, error))?;
        bytes.extend_from_slice(LEGEND.as_bytes());
        Ok(Self { bytes })
    }

    /// Adds an interval that began `start_s` after the trial began and lasted `duration_s`: one line per series, except
    /// where a series that only some workloads have has no sample.
    ///
    /// # Errors
    /// When its times are negative or not finite.
    pub fn push(
        &mut self,
        start_s: f64,
        duration_s: f64,
        set: &LatencySet,
    ) -> Result<(), ReportError> {
        let start = seconds(start_s)?;
        let duration = seconds(duration_s)?;
        let mut serializer = V2DeflateSerializer::new();
        let mut writer = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.bytes, &mut serializer)
            .map_err(|error| ReportError::record(FILE, error))?;
        for series in Series::ALL {
            let histogram = set.histogram(series);
            if series.is_optional() && histogram.is_empty() {
                continue;
            }
            let tag = Tag::new(series.tag());
            writer
                .write_histogram(histogram, start, duration, tag)
                .map_err(|error| ReportError::record(FILE, describe(&error)))?;
        }
        Ok(())
    }

    /// The bytes added since the last call. All of them in sequence make up the file.
    #[must_use]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// What a log recorded of one series, over all intervals: values in microseconds. The histogram is empty for a log
/// without that series or without intervals.
///
/// # Errors
/// When it is not an interval log, or a histogram is broken. The message says where.
pub fn sum(log: &[u8], series: Series) -> Result<Histogram<u64>, String> {
    let mut total = LatencySet::new().histogram(series).clone();
    for entry in IntervalLogIterator::new(log) {
        let entry = entry.map_err(|LogIteratorError::ParseError { offset }| {
            format!("not an interval log at byte {offset}")
        })?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        if interval
            .tag()
            .is_some_and(|tag| tag.as_str() == series.tag())
        {
            let of_interval = decoded(&interval).map_err(|why| {
                let at_s = interval.start_timestamp().as_secs_f64();
                format!("the histogram `{}` at {at_s} s: {why}", series.tag())
            })?;
            total
                .add(&of_interval)
                .map_err(|error| format!("{error:?}"))?;
        }
    }
    Ok(total)
}

fn decoded(interval: &IntervalLogHistogram<'_>) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|error| error.to_string())?;
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| error.to_string())
}

/// The column names that other writers of this format put before the first interval. Readers skip them.
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

fn start_time(started_at: &str) -> Result<SystemTime, ReportError> {
    humantime::parse_rfc3339(started_at).map_err(|_| {
        let why = format!("`started_at` is `{started_at}`, not a time in RFC 3339 and UTC");
        ReportError::record(FILE, why)
    })
}

fn seconds(value: f64) -> Result<Duration, ReportError> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| ReportError::record(FILE, format!("an interval of {value} s: {error}")))
}

fn describe<E: std::fmt::Debug>(error: &IntervalLogWriterError<E>) -> String {
    match error {
        IntervalLogWriterError::SerializeError(error) => format!("{error:?}"),
        IntervalLogWriterError::IoError(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::profile::{NS_PER_MS, NS_PER_US};

    use super::*;

    const STARTED_AT: &str = "2026-01-02T03:04:05.250Z";
    const STARTED_AT_S: f64 = 1_767_323_045.25;

    fn two_seconds() -> Vec<IntervalHistograms> {
        let mut busy = LatencySet::new();
        for ms in 0..500 {
            busy.record_ns(Series::NewestFromSchedule, (80 + ms) * NS_PER_MS);
            busy.record_ns(Series::OldestFromSchedule, (1_080 + ms) * NS_PER_MS);
            busy.record_ns(Series::SendLag, (10 + ms) * NS_PER_US);
        }
        busy.record_unanswered(6_000 * NS_PER_MS, 5_999 * NS_PER_MS);
        let interval = |start_s, set| IntervalHistograms {
            start_s,
            duration_s: 1.0,
            set,
        };
        vec![interval(6.0, busy), interval(7.0, LatencySet::new())]
    }

    fn log_of(intervals: &[IntervalHistograms]) -> Vec<u8> {
        let mut log = IntervalLog::begin(STARTED_AT).unwrap();
        for interval in intervals {
            log.push(interval.start_s, interval.duration_s, &interval.set)
                .unwrap();
        }
        log.take_bytes()
    }

    fn decode(encoded: &str) -> Histogram<u64> {
        let bytes = STANDARD.decode(encoded).unwrap();
        Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
    }

    #[test]
    fn every_count_is_read_back() {
        let mut intervals = two_seconds();
        let confirmed = &mut intervals[1].set;
        confirmed.record_ns(Series::ConfirmFromSchedule, 3 * NS_PER_MS);
        confirmed.record_unconfirmed(4_000 * NS_PER_MS, 3_999 * NS_PER_MS);
        let bytes = log_of(&intervals);
        let mut read = Vec::new();
        let mut times = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            match entry.unwrap() {
                LogEntry::Interval(interval) => read.push(interval),
                LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                    times.push(time.as_secs_f64());
                }
            }
        }
        assert_eq!(times, [STARTED_AT_S, STARTED_AT_S]);
        // Six series in each second, and those of the confirmation in the second that has one.
        assert_eq!(read.len(), 6 + 8);
        let written = intervals.iter().flat_map(|interval| {
            let of_interval = Series::ALL.map(|series| (interval, series)).into_iter();
            of_interval.filter(|(interval, series)| {
                !series.is_optional() || !interval.set.histogram(*series).is_empty()
            })
        });
        for (line, (interval, series)) in read.iter().zip(written) {
            assert_eq!(line.tag().unwrap().as_str(), series.tag());
            assert!((line.start_timestamp().as_secs_f64() - interval.start_s).abs() < 1e-6);
            assert!((line.duration().as_secs_f64() - interval.duration_s).abs() < 1e-6);
            assert_eq!(
                &decode(line.encoded_histogram()),
                interval.set.histogram(series)
            );
        }
    }

    #[test]
    fn the_head_says_version_unit_and_start() {
        let bytes = log_of(&[]);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "#[Histogram log format version 1.3]");
        assert!(lines[1].starts_with('#') && lines[1].contains("microseconds"));
        assert_eq!(
            lines[2],
            "#[StartTime: 1767323045.250 (seconds since epoch)]"
        );
        assert_eq!(
            lines[3],
            "#[BaseTime: 1767323045.250 (seconds since epoch)]"
        );
        assert!(lines[4].starts_with("\"StartTimestamp\""));
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn what_is_taken_piece_by_piece_is_the_same_log() {
        let intervals = two_seconds();
        let mut log = IntervalLog::begin(STARTED_AT).unwrap();
        let mut pieces = log.take_bytes();
        for interval in &intervals {
            log.push(interval.start_s, interval.duration_s, &interval.set)
                .unwrap();
            pieces.extend(log.take_bytes());
        }
        assert!(log.take_bytes().is_empty());
        assert_eq!(pieces, log_of(&intervals));
    }

    #[test]
    fn the_sum_is_that_of_all_intervals() {
        let mut intervals = two_seconds();
        let late = 7_000 * NS_PER_MS;
        intervals[1].set.record_ns(Series::NewestFromSchedule, late);
        intervals[1].set.record_ns(Series::ConfirmFromWrite, late);
        let log = log_of(&intervals);
        let mut expected = intervals[0].set.clone();
        expected.merge(&intervals[1].set);
        for series in Series::ALL {
            assert_eq!(&sum(&log, series).unwrap(), expected.histogram(series));
        }
        assert!(sum(&log_of(&[]), Series::SendLag).unwrap().is_empty());
    }

    #[test]
    fn a_broken_log_says_where() {
        let log = String::from_utf8(log_of(&two_seconds())).unwrap();
        let cut = &log[..log.len() / 2];
        assert!(sum(cut.as_bytes(), Series::SendWait).is_err());
        let wrong = log.replace("HISTFAAA", "HISTAAAA");
        let why = sum(wrong.as_bytes(), Series::SendLag).unwrap_err();
        assert!(why.contains("send_lag") && why.contains("at 6 s"), "{why}");
    }

    #[test]
    fn bad_times_are_refused() {
        assert!(IntervalLog::begin("yesterday").is_err());
        let mut log = IntervalLog::begin(STARTED_AT).unwrap();
        for start_s in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(
                log.push(start_s, 1.0, &LatencySet::new()).is_err(),
                "{start_s}"
            );
        }
    }
}
