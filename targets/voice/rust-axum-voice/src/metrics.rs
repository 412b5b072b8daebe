//! Prometheus metrics.

use rust_axum::exposition::{Counter, plain, put};

use crate::admission::Refusal;
use crate::problem::Kind;
use crate::providers::TtsProvider;

/// How a request to a provider ended. For speech-to-text, a request is a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Complete,
    /// It was refused, or broke off, or took too long.
    Failed,
    /// Nobody wanted its answer any more.
    Cancelled,
}

/// How a text to be spoken ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// All of it was written to the caller, but for what a slow reader lost.
    Complete,
    /// With an error.
    Failed,
    /// Interrupted, or the caller left.
    Dropped,
}

const OUTCOMES: [&str; 3] = ["complete", "failed", "cancelled"];
const SPOKEN: [&str; 3] = ["complete", "failed", "dropped"];

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Sessions opened.
    pub sessions: Counter,
    /// Bytes of audio that callers sent.
    pub audio_in: Counter,
    /// Bytes of replies that were written to callers.
    pub audio_out: Counter,
    refused: [Counter; Refusal::ALL.len()],
    /// Not final, final.
    results: [Counter; 2],
    speaks: [Counter; SPOKEN.len()],
    errors: [Counter; Kind::ALL.len()],
    stt: [Counter; OUTCOMES.len()],
    tts: [[Counter; OUTCOMES.len()]; TtsProvider::ALL.len()],
}

impl Metrics {
    /// A client was refused.
    pub fn refused(&self, refusal: Refusal) {
        self.refused[refusal as usize].add(1);
    }

    /// A result was handed to a caller.
    pub fn result(&self, is_final: bool) {
        self.results[usize::from(is_final)].add(1);
    }

    /// Texts to be spoken ended.
    pub fn spoke(&self, spoken: Spoken, count: u64) {
        self.speaks[spoken as usize].add(count);
    }

    /// A client was told of a problem.
    pub fn error(&self, kind: Kind) {
        self.errors[kind as usize].add(1);
    }

    /// A connection for speech-to-text ended.
    pub fn stt(&self, outcome: Outcome) {
        self.stt[outcome as usize].add(1);
    }

    /// A request for speech ended.
    pub fn tts(&self, provider: TtsProvider, outcome: Outcome) {
        self.tts[provider as usize][outcome as usize].add(1);
    }

    /// The text.
    pub fn render(&self, sessions_open: usize) -> String {
        let mut text = String::with_capacity(4 * 1024);
        plain(&mut text, "voice_sessions", "gauge", sessions_open as u64);
        plain(&mut text, "voice_sessions_total", "counter", self.sessions.get());
        let refused = Refusal::ALL.iter().map(|refusal| refusal.cause()).zip(&self.refused);
        labelled(&mut text, "voice_refused_total", "cause", refused);
        let directions = [("in", &self.audio_in), ("out", &self.audio_out)];
        labelled(&mut text, "voice_audio_bytes_total", "direction", directions);
        labelled(&mut text, "voice_results_total", "final", ["false", "true"].into_iter().zip(&self.results));
        labelled(&mut text, "voice_speaks_total", "outcome", SPOKEN.into_iter().zip(&self.speaks));
        labelled(&mut text, "voice_errors_total", "kind", Kind::ALL.iter().map(|kind| kind.name()).zip(&self.errors));
        put(&mut text, format_args!("# TYPE voice_requests_total counter\n"));
        let tts = TtsProvider::ALL.iter().zip(&self.tts).map(|(provider, counts)| (provider.name(), "tts", counts));
        for (provider, what, counts) in std::iter::once(("deepgram", "stt", &self.stt)).chain(tts) {
            for (outcome, count) in OUTCOMES.iter().zip(counts) {
                let count = count.get();
                put(
                    &mut text,
                    format_args!(
                        "voice_requests_total{{provider=\"{provider}_{what}\",outcome=\"{outcome}\"}} {count}\n"
                    ),
                );
            }
        }
        text
    }
}

fn labelled<'a>(
    text: &mut String,
    name: &str,
    label: &str,
    values: impl IntoIterator<Item = (&'static str, &'a Counter)>,
) {
    put(text, format_args!("# TYPE {name} counter\n"));
    for (value, count) in values {
        put(text, format_args!("{name}{{{label}=\"{value}\"}} {}\n", count.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_what_was_counted() {
        let metrics = Metrics::default();
        metrics.refused(Refusal::PerAddress);
        metrics.result(true);
        metrics.spoke(Spoken::Dropped, 2);
        metrics.error(Kind::TtsRateLimited);
        metrics.stt(Outcome::Failed);
        metrics.tts(TtsProvider::Cartesia, Outcome::Cancelled);
        metrics.audio_in.add(640);
        let text = metrics.render(3);
        for line in [
            "voice_sessions 3",
            "voice_sessions_total 0",
            "voice_refused_total{cause=\"per_address\"} 1",
            "voice_audio_bytes_total{direction=\"in\"} 640",
            "voice_audio_bytes_total{direction=\"out\"} 0",
            "voice_results_total{final=\"true\"} 1",
            "voice_speaks_total{outcome=\"dropped\"} 2",
            "voice_errors_total{kind=\"tts_rate_limited\"} 1",
            "voice_requests_total{provider=\"deepgram_stt\",outcome=\"failed\"} 1",
            "voice_requests_total{provider=\"cartesia_tts\",outcome=\"cancelled\"} 1",
            "voice_requests_total{provider=\"deepgram_tts\",outcome=\"complete\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
