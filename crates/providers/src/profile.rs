//! How long a provider takes: drawn on straight lines through four quantiles.
//!
//! A draw belongs to the seed, the provider, the caller, the turn and the attempt, not to the order in which requests arrive.
//! So the same trial has the same provider times, whatever the gateway does.

use std::time::Duration;

use plimsoll_core::schedule::mix;
use serde::{Deserialize, Serialize};

/// A provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Recognises speech, like Deepgram.
    DeepgramStt,
    /// Speaks, like Deepgram.
    DeepgramTts,
    /// Speaks, like Cartesia.
    CartesiaTts,
    /// Speaks, like ElevenLabs.
    ElevenlabsTts,
    /// Speaks, like OpenAI.
    OpenaiTts,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::DeepgramStt,
        Self::DeepgramTts,
        Self::CartesiaTts,
        Self::ElevenlabsTts,
        Self::OpenaiTts,
    ];

    /// Its name in settings and statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeepgramStt => "deepgram_stt",
            Self::DeepgramTts => "deepgram_tts",
            Self::CartesiaTts => "cartesia_tts",
            Self::ElevenlabsTts => "elevenlabs_tts",
            Self::OpenaiTts => "openai_tts",
        }
    }
}

/// Quantiles of a latency, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    /// The least.
    pub min_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The greatest.
    pub max_ms: f64,
}

impl Quantiles {
    const fn of([min_ms, p50_ms, p99_ms, max_ms]: [f64; 4]) -> Self {
        Self {
            min_ms,
            p50_ms,
            p99_ms,
            max_ms,
        }
    }

    /// The latency below which this share of all draws lies.
    #[must_use]
    pub fn at(&self, share: f64) -> Duration {
        let line = |from: f64, to: f64, low_ms: f64, high_ms: f64| {
            low_ms + (high_ms - low_ms) * (share - from) / (to - from)
        };
        let ms = if share < 0.5 {
            line(0.0, 0.5, self.min_ms, self.p50_ms)
        } else if share < 0.99 {
            line(0.5, 0.99, self.p50_ms, self.p99_ms)
        } else {
            line(0.99, 1.0, self.p99_ms, self.max_ms)
        };
        Duration::from_secs_f64(ms.max(0.0) / 1e3)
    }
}

/// A set of quantiles for all providers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Close to what these providers take.
    #[default]
    Usual,
    /// They take no time.
    Zero,
    /// Five times the usual.
    Slow,
}

impl Profile {
    /// The profile with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "usual" => Some(Self::Usual),
            "zero" => Some(Self::Zero),
            "slow" => Some(Self::Slow),
            _ => None,
        }
    }

    /// The quantiles of a provider. Those of OpenAI are assumed.
    #[must_use]
    pub const fn quantiles(self, provider: Provider) -> Quantiles {
        let factor = match self {
            Self::Zero => 0.0,
            Self::Usual => 1.0,
            Self::Slow => 5.0,
        };
        let [least, median, p99, greatest] = match provider {
            Provider::DeepgramStt => [30.0, 50.0, 120.0, 150.0],
            Provider::DeepgramTts => [50.0, 80.0, 180.0, 200.0],
            Provider::CartesiaTts => [60.0, 100.0, 220.0, 250.0],
            Provider::ElevenlabsTts => [100.0, 180.0, 350.0, 400.0],
            Provider::OpenaiTts => [100.0, 200.0, 450.0, 500.0],
        };
        Quantiles::of([
            factor * least,
            factor * median,
            factor * p99,
            factor * greatest,
        ])
    }
}

/// What a draw belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Of {
    /// Who is asked.
    pub provider: Provider,
    /// The caller.
    pub vu: u32,
    /// The turn; of speech, the last block of the part that is answered.
    pub turn: u32,
    /// How often it was asked for this, this time included.
    pub attempt: u32,
}

/// What is drawn. Each has draws of its own.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// How long it takes.
    Latency,
    /// What goes wrong.
    Fault,
    /// How much slower the fault makes it.
    Slowness,
    /// Whether it breaks off at once or in the middle.
    Break,
}

impl Of {
    /// Uniform in [0, 1).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn draw(&self, seed: u64, what: What) -> f64 {
        let numbers = [
            self.provider as u64,
            u64::from(self.vu),
            u64::from(self.turn),
            u64::from(self.attempt),
            what as u64,
        ];
        let drawn = numbers
            .into_iter()
            .fold(mix(seed), |drawn, number| mix(drawn ^ mix(number + 1)));
        (drawn >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws_ms(seed: u64, provider: Provider) -> Vec<f64> {
        let quantiles = Profile::Usual.quantiles(provider);
        let mut all: Vec<f64> = (0..100_000)
            .map(|turn| {
                let of = Of {
                    provider,
                    vu: turn % 97,
                    turn,
                    attempt: 1,
                };
                quantiles.at(of.draw(seed, What::Latency)).as_secs_f64() * 1e3
            })
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Fault of other mocks: "p50 50" that is 58.
    #[test]
    fn draws_have_the_quantiles_that_they_name() {
        for provider in Provider::ALL {
            let all = draws_ms(7, provider);
            let named = Profile::Usual.quantiles(provider);
            for (rank, expected_ms) in [(50_000, named.p50_ms), (99_000, named.p99_ms)] {
                let seen_ms = all[rank];
                let error = (seen_ms - expected_ms).abs() / expected_ms;
                assert!(error < 0.02, "{provider:?}: {seen_ms} of {expected_ms}");
            }
            assert!(all[0] >= named.min_ms && all[99_999] <= named.max_ms);
        }
    }

    #[test]
    fn a_draw_belongs_to_its_request_alone() {
        assert_eq!(
            draws_ms(1, Provider::OpenaiTts),
            draws_ms(1, Provider::OpenaiTts)
        );
        assert_ne!(
            draws_ms(1, Provider::OpenaiTts),
            draws_ms(2, Provider::OpenaiTts)
        );
        let of = Of {
            provider: Provider::DeepgramTts,
            vu: 1,
            turn: 1,
            attempt: 1,
        };
        let first = of.draw(1, What::Latency);
        let others = [
            Of { vu: 2, ..of }.draw(1, What::Latency),
            Of { turn: 2, ..of }.draw(1, What::Latency),
            Of { attempt: 2, ..of }.draw(1, What::Latency),
            Of {
                provider: Provider::OpenaiTts,
                ..of
            }
            .draw(1, What::Latency),
            of.draw(1, What::Fault),
        ];
        assert!(others.iter().all(|other| (other - first).abs() > 1e-9));
    }

    #[test]
    fn zero_takes_no_time_and_slow_five_times_the_usual() {
        let at = |profile: Profile, share| profile.quantiles(Provider::OpenaiTts).at(share);
        assert_eq!(at(Profile::Zero, 0.999), Duration::ZERO);
        assert_eq!(at(Profile::Slow, 0.5), 5 * at(Profile::Usual, 0.5));
    }
}
