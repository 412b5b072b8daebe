//! Latencies as sent from process to process: the histograms in HdrHistogram's own format, version 2, as base64.
//! Histograms without samples are left out.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2Serializer};
use plimsoll_core::latency::{LatencySet, Series};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct WireLatencies {
    censored: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    unconfirmed: u64,
    /// The histograms, by the tag of their series.
    histograms: BTreeMap<String, String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(crate) fn serialize<S: Serializer>(set: &LatencySet, to: S) -> Result<S::Ok, S::Error> {
    let mut writer = V2Serializer::new();
    let mut histograms = BTreeMap::new();
    for series in Series::ALL {
        let histogram = set.histogram(series);
        if histogram.is_empty() {
            continue;
        }
        let mut bytes = Vec::new();
        writer
            .serialize(histogram, &mut bytes)
            .map_err(|error| S::Error::custom(format!("{}: {error}", series.tag())))?;
        histograms.insert(series.tag().to_owned(), STANDARD.encode(bytes));
    }
    let told = WireLatencies {
        censored: set.censored(),
        unconfirmed: set.unconfirmed(),
        histograms,
    };
    told.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LatencySet, D::Error> {
    let told = WireLatencies::deserialize(from)?;
    let mut histograms = Vec::new();
    for (tag, text) in &told.histograms {
        let histogram = read(tag, text)
            .map_err(|why| D::Error::custom(format!("the histogram {tag}: {why}")))?;
        histograms.push(histogram);
    }
    LatencySet::of(histograms, told.censored, told.unconfirmed)
        .ok_or_else(|| D::Error::custom("a histogram reaches beyond the range of latencies"))
}

fn read(tag: &str, text: &str) -> Result<(Series, Histogram<u64>), String> {
    let series = Series::ALL.into_iter().find(|series| series.tag() == tag);
    let series = series.ok_or("there is no such series")?;
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    let histogram = Reader::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| error.to_string())?;
    Ok((series, histogram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Line {
        #[serde(with = "super")]
        latency: LatencySet,
    }

    fn refusal(line: &str) -> String {
        match serde_json::from_str::<Line>(line) {
            Ok(_) => panic!("{line} is taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_empty_set_is_short() {
        let latency = LatencySet::new();
        let line = serde_json::to_string(&Line { latency }).unwrap();
        assert_eq!(line, r#"{"latency":{"censored":0,"histograms":{}}}"#);
    }

    #[test]
    fn what_is_no_histogram_says_so() {
        let of = |histograms: &str| {
            refusal(&format!(
                r#"{{"latency":{{"censored":0,"histograms":{histograms}}}}}"#
            ))
        };
        assert!(of(r#"{"x":""}"#).contains("no such series"));
        assert!(of(r#"{"send_lag":"?"}"#).contains("histogram send_lag"));
        assert!(of(r#"{"send_lag":"AAAA"}"#).contains("histogram send_lag"));
    }

    #[test]
    fn a_wider_histogram_is_refused() {
        let mut wide = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 3).unwrap();
        wide.record(u64::MAX / 4).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&wide, &mut bytes).unwrap();
        let line = format!(
            r#"{{"latency":{{"censored":0,"histograms":{{"send_lag":"{}"}}}}}}"#,
            STANDARD.encode(bytes)
        );
        assert!(refusal(&line).contains("beyond the range"));
    }
}
