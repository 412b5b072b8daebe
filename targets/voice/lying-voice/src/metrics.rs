//! The counters of section 7 of the contract.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lies::Lies;

/// A family of counters: its name, and the names of its labels.
type Family = (&'static str, &'static [&'static str]);

/// Sessions that were opened.
pub const SESSIONS: Family = ("voice_sessions_total", &[]);
/// Upgrades that were refused.
pub const REFUSED: Family = ("voice_refused_total", &["cause"]);
/// Audio of callers and of replies.
pub const AUDIO_BYTES: Family = ("voice_audio_bytes_total", &["direction"]);
/// Results that were sent.
pub const RESULTS: Family = ("voice_results_total", &["final"]);
/// How each `speak` ended.
pub const SPEAKS: Family = ("voice_speaks_total", &["outcome"]);
/// Errors that were sent.
pub const ERRORS: Family = ("voice_errors_total", &["kind"]);
/// How each request to a provider ended.
pub const REQUESTS: Family = ("voice_requests_total", &["provider", "outcome"]);

const FAMILIES: [Family; 7] = [SESSIONS, REFUSED, AUDIO_BYTES, RESULTS, SPEAKS, ERRORS, REQUESTS];

/// Series that are shown before anything is counted.
const ALWAYS: [(Family, [&str; 2]); 8] = [
    (SESSIONS, ["", ""]),
    (AUDIO_BYTES, ["in", ""]),
    (AUDIO_BYTES, ["out", ""]),
    (RESULTS, ["true", ""]),
    (RESULTS, ["false", ""]),
    (SPEAKS, ["complete", ""]),
    (SPEAKS, ["failed", ""]),
    (SPEAKS, ["dropped", ""]),
];

/// By name and values of labels.
type Counts = BTreeMap<(&'static str, [&'static str; 2]), u64>;

/// All counters.
#[derive(Debug)]
pub struct Metrics(Mutex<Counts>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Mutex::new(ALWAYS.iter().map(|(family, values)| ((family.0, *values), 0)).collect()))
    }
}

impl Metrics {
    /// Counts `more` for these values of the family's labels, of which there are two at most.
    pub fn add(&self, family: Family, values: &[&'static str], more: u64) {
        debug_assert_eq!(values.len(), family.1.len(), "{}", family.0);
        let value = |at: usize| values.get(at).copied().unwrap_or("");
        *self.counts().entry((family.0, [value(0), value(1)])).or_default() += more;
    }

    /// The text of `GET /metrics`, with this many sessions open.
    #[must_use]
    pub fn render(&self, sessions: u64, lies: &Lies) -> String {
        let mut text = format!("# TYPE voice_sessions gauge\nvoice_sessions {sessions}\n");
        let counts = self.counts();
        for (name, labels) in FAMILIES {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "# TYPE {name} counter");
            for ((_, values), count) in counts.iter().filter(|((family, _), _)| *family == name) {
                let is_claimed = name == RESULTS.0 || name == REQUESTS.0;
                let shown = if is_claimed { lies.claimed(*count) } else { *count };
                let pairs: Vec<String> =
                    labels.iter().zip(values).map(|(label, value)| format!("{label}=\"{value}\"")).collect();
                let _ = match pairs.as_slice() {
                    [] => writeln!(text, "{name} {shown}"),
                    pairs => writeln!(text, "{name}{{{}}} {shown}", pairs.join(",")),
                };
            }
        }
        text
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::{Lie, Plan};

    #[test]
    fn counters_are_rendered() {
        let metrics = Metrics::default();
        metrics.add(RESULTS, &["true"], 20);
        metrics.add(REQUESTS, &["deepgram_tts", "complete"], 1);
        metrics.add(REQUESTS, &["openai_tts", "complete"], 20);
        let honest = metrics.render(3, &Lies::new(Plan::of(Lie::None)));
        for line in [
            "voice_sessions 3",
            "voice_sessions_total 0",
            "voice_results_total{final=\"true\"} 20",
            "voice_results_total{final=\"false\"} 0",
            "voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"} 1",
        ] {
            assert!(honest.lines().any(|have| have == line), "{line} in {honest}");
        }
        let lying = metrics.render(3, &Lies::new(Plan::of(Lie::LieInMetrics)));
        assert!(lying.contains("voice_results_total{final=\"true\"} 22\n"), "{lying}");
        assert!(lying.contains("voice_requests_total{provider=\"openai_tts\",outcome=\"complete\"} 22\n"), "{lying}");
    }
}
