//! The gateway's own count of its requests, beside the mocks'.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::record::SanityCheck;
use plimsoll_host::http::Series;

use crate::outcome::{Counts, real};

/// What the gateway counts: each try, and of speech recognition each connection.
pub(crate) const REQUESTS: &str = "voice_requests_total";

/// Compares both, provider by provider; nothing if the gateway reports none. All sessions are over, so every request has
/// ended and is counted. One that was cancelled may not have reached its provider. While providers fail, the same goes for one
/// that failed: it may have been written to a connection that was just reset.
pub(crate) fn compared(
    series: &BTreeMap<Series, f64>,
    providers: &BTreeMap<String, Counts>,
    they_fail: bool,
) -> Vec<SanityCheck> {
    if series.is_empty() {
        return Vec::new();
    }
    let label = |series: &Series, name: &str| series.labels.get(name).cloned().unwrap_or_default();
    let told = series.iter().filter(|(_, count)| **count > 0.0);
    let told = told.map(|(series, _)| label(series, "provider"));
    let all: BTreeSet<String> = told.chain(providers.keys().cloned()).collect();
    let check = |provider: String| {
        let counted = |outcome: Option<&str>| -> f64 {
            let of = series.iter().filter(|(series, _)| {
                let is_asked = |asked| label(series, "outcome") == asked;
                label(series, "provider") == provider && outcome.is_none_or(is_asked)
            });
            of.map(|(_, count)| *count).sum()
        };
        let counts = providers.get(&provider).copied().unwrap_or_default();
        let came = if provider.ends_with("_stt") {
            counts.sessions + counts.sessions_refused
        } else {
            counts.requests
        };
        let mut unseen = counted(Some("cancelled"));
        if they_fail {
            unseen += counted(Some("failed"));
        }
        let name = format!("gateway_requests_{provider}");
        SanityCheck::of(&name, real(came), real(came) + unseen, counted(None))
    };
    all.into_iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(counts: &[(&str, &str, f64)]) -> BTreeMap<Series, f64> {
        let of = |(provider, outcome, count): &(&str, &str, f64)| {
            let labels = [("provider", *provider), ("outcome", *outcome)];
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let series = Series {
                name: REQUESTS.to_owned(),
                labels: labels.into(),
            };
            (series, *count)
        };
        counts.iter().map(of).collect()
    }

    fn broken(counts: &[(&str, &str, f64)], they_fail: bool) -> Vec<String> {
        let stt = Counts {
            sessions: 12,
            sessions_refused: 1,
            requests: 40,
            ..Counts::default()
        };
        let tts = Counts {
            requests: 40,
            ..Counts::default()
        };
        let providers = [
            ("deepgram_stt".to_owned(), stt),
            ("deepgram_tts".to_owned(), tts),
        ];
        let checks = compared(&series(counts), &providers.into(), they_fail);
        let broken = checks.into_iter().filter(|check| !check.holds);
        broken.map(|check| check.name).collect()
    }

    #[test]
    fn the_gateways_count_is_the_mocks() {
        let stt = [
            ("deepgram_stt", "complete", 12.0),
            ("deepgram_stt", "failed", 1.0),
        ];
        let with = |tts: &[(&'static str, &'static str, f64)], they_fail| {
            broken(&[&stt[..], tts].concat(), they_fail)
        };
        let of = |outcome, count| ("deepgram_tts", outcome, count);
        assert_eq!(with(&[of("complete", 40.0)], false), [""; 0]);
        // One that was cancelled may have reached the provider or not.
        for complete in [38.0, 40.0] {
            let tts = [of("complete", complete), of("cancelled", 2.0)];
            assert_eq!(with(&tts, false), [""; 0]);
        }
        let more = ["gateway_requests_deepgram_tts"];
        assert_eq!(with(&[of("complete", 41.0)], false), more);
        assert_eq!(with(&[of("complete", 39.0)], false), more);
        let tts = [of("complete", 40.0), of("failed", 1.0)];
        assert_eq!(with(&tts, false), more);
        assert_eq!(with(&tts, true), [""; 0]);
        // Requests to a provider whom nobody asked.
        let another = ("openai_tts", "complete", 1.0);
        let told = with(&[of("complete", 40.0), another], false);
        assert_eq!(told, ["gateway_requests_openai_tts"]);
        assert_eq!(broken(&[], false), [""; 0], "it reports nothing");
    }
}
