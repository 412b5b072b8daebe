//! The target's counters label by label, for a plan that compares them itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_host::http::Series;

use super::metrics::{LOOK_AGAIN_AFTER, told};

/// Counters that have not moved for so long have settled: several processes gather theirs only now and then.
const STILL: Duration = Duration::from_millis(600);
/// How long they may take to settle.
const SETTLING_TIME: Duration = Duration::from_secs(3);

/// Values by series.
pub(super) type Counted = BTreeMap<Series, f64>;

/// The counters of these names from before the trial.
#[derive(Debug)]
pub(super) struct ByLabel {
    url: String,
    names: &'static [&'static str],
    before: Counted,
}

impl ByLabel {
    /// Reads them at `host` (with its port). `None` if there are no such names, or if `/metrics` cannot be read.
    pub(super) fn read(host: &str, names: &'static [&'static str]) -> Option<Self> {
        let url = format!("http://{host}/metrics");
        let before = (!names.is_empty()).then(|| counted(&url, names))??;
        Some(Self { url, names, before })
    }

    /// How much each has grown, once they have settled. Empty if they cannot be read any more.
    pub(super) fn grown(&self) -> Counted {
        let began = Instant::now();
        let (mut last, mut since) = (counted(&self.url, self.names), began);
        while since.elapsed() < STILL && began.elapsed() < SETTLING_TIME {
            std::thread::sleep(LOOK_AGAIN_AFTER);
            let now = counted(&self.url, self.names);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        let grown = last.unwrap_or_default().into_iter().map(|(series, now)| {
            let before = self.before.get(&series).copied().unwrap_or(0.0);
            (series, now - before)
        });
        grown.collect()
    }
}

fn counted(url: &str, names: &[&str]) -> Option<Counted> {
    let metrics = told(url)?;
    let all = metrics.iter();
    let named = all.filter(|(series, _)| names.contains(&series.name.as_str()));
    let owned = named.map(|(series, value)| (series.clone(), value));
    Some(owned.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::metrics::tests::target;

    const NAMES: &[&str] = &["asked_total"];

    #[test]
    fn series_count_from_the_trials_start_and_may_take_a_moment() {
        let host = target(&[
            "asked_total{of=\"a\"} 5\nother_total 7\n",
            "asked_total{of=\"a\"} 6\n",
            "asked_total{of=\"a\"} 9\nasked_total{of=\"b\"} 2\nother_total 8\n",
        ]);
        let before = ByLabel::read(&host, NAMES).expect("metrics");
        let grown = before.grown();
        let told: Vec<(&str, f64)> = grown
            .iter()
            .map(|(series, value)| (series.labels["of"].as_str(), *value))
            .collect();
        assert_eq!(told, [("a", 4.0), ("b", 2.0)]);
    }

    #[test]
    fn without_names_or_metrics_there_is_nothing() {
        assert!(ByLabel::read(&target(&["asked_total 1\n"]), &[]).is_none());
        assert!(ByLabel::read(&target(&[""]), NAMES).is_none());
    }
}
