//! Faults on demand: shares of requests that go wrong, or a time in which a provider is out. Off unless someone asks
//! (`PUT /faults`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::profile::{Of, Provider, What};

/// The latest moment of a timeline: a day.
const TIMELINE_MAX_S: f64 = 86_400.0;

/// What can go wrong with a request. It goes wrong where the answer would have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Status 500; over the WebSocket, an `Error` and a close.
    Fail,
    /// Nothing for 30 s.
    Timeout,
    /// A TCP reset; half of them in the middle of the answer.
    Drop,
    /// Status 429 with `Retry-After: 60`. Utterances never meet it: a provider limits sessions when they open.
    RateLimit,
    /// Two to five times as slow.
    Slow,
    /// Nothing after the first block; of an utterance, no final result.
    Stall,
}

impl Fault {
    /// Every fault, in the order of the fields of [`Shares`].
    pub const ALL: [Self; 6] = [
        Self::Fail,
        Self::Timeout,
        Self::Drop,
        Self::RateLimit,
        Self::Slow,
        Self::Stall,
    ];
}

/// The share (0 to 1) of requests that meet each fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fault of the same name")]
pub struct Shares {
    pub fail: f64,
    pub timeout: f64,
    pub drop: f64,
    pub rate_limit: f64,
    pub slow: f64,
    pub stall: f64,
}

impl Shares {
    /// What a provider shows on a usual day.
    pub const PRODUCTION: Self = Self {
        fail: 0.001,
        timeout: 0.002,
        drop: 0.000_5,
        rate_limit: 0.001,
        slow: 0.01,
        stall: 0.0,
    };

    /// A bad day.
    pub const STRESS: Self = Self {
        fail: 0.05,
        timeout: 0.03,
        drop: 0.02,
        rate_limit: 0.05,
        slow: 0.1,
        stall: 0.01,
    };

    fn all(&self) -> [f64; 6] {
        [
            self.fail,
            self.timeout,
            self.drop,
            self.rate_limit,
            self.slow,
            self.stall,
        ]
    }
}

/// How a provider is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// Status 503 at once; sessions and replies that are under way are reset.
    Refuse,
    /// Nothing is read and nothing is said until it is over, or a gateway leaves.
    Hang,
    /// Five times as long until a result or the first block.
    Slow,
}

/// A time in which a provider is out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// Which provider.
    pub provider: Provider,
    /// How.
    pub outage: Outage,
    /// From so many seconds after the `PUT`.
    pub from_s: f64,
    /// Until so many seconds after it.
    pub to_s: f64,
}

/// The body of `PUT /faults`. `{}` turns all faults off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// A named set of shares, in place of `shares`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Shares of all providers.
    pub shares: Shares,
    /// Times in which a provider is out.
    pub timeline: Vec<Period>,
}

/// A named set of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// [`Shares::PRODUCTION`].
    Production,
    /// [`Shares::STRESS`].
    Stress,
}

/// Why faults cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadFaults {
    /// Not the JSON object that is asked for.
    #[error(
        "faults: {0}; give a JSON object such as {{\"shares\": {{\"fail\": 0.1}}}} or {{\"preset\": \"stress\"}}"
    )]
    NotJson(String),
    /// A share that is none, or more than every request.
    #[error("faults: a share is below 0, or the shares add up to more than 1: {0:?}")]
    Shares(Shares),
    /// A period that ends before it begins, or too late.
    #[error("faults: a period from {0} s to {1} s; let it end after it begins, and within a day")]
    Period(f64, f64),
}

impl Faults {
    /// Reads and checks the body of `PUT /faults`.
    ///
    /// # Errors
    /// [`BadFaults`], in one line.
    pub fn from_json(body: &[u8]) -> Result<Self, BadFaults> {
        // A list would be taken for the fields in their order.
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(BadFaults::NotJson("not a JSON object".to_owned()));
        }
        let faults: Self =
            serde_json::from_slice(body).map_err(|error| BadFaults::NotJson(error.to_string()))?;
        let shares = faults.shares.all();
        let right =
            shares.iter().all(|share| *share >= 0.0) && shares.iter().sum::<f64>() <= 1.0 + 1e-9;
        if !right {
            return Err(BadFaults::Shares(faults.shares));
        }
        let backwards = faults.timeline.iter().find(|Period { from_s, to_s, .. }| {
            !(0.0 <= *from_s && from_s < to_s && *to_s <= TIMELINE_MAX_S)
        });
        match backwards {
            Some(period) => Err(BadFaults::Period(period.from_s, period.to_s)),
            None => Ok(faults),
        }
    }

    /// What goes wrong with a request.
    #[must_use]
    pub fn of(&self, request: &Of, seed: u64) -> Option<Fault> {
        let shares = match self.preset {
            Some(Preset::Production) => Shares::PRODUCTION,
            Some(Preset::Stress) => Shares::STRESS,
            None => self.shares,
        };
        let mut point = request.draw(seed, What::Fault);
        for (fault, share) in Fault::ALL.into_iter().zip(shares.all()) {
            if point < share {
                return Some(fault);
            }
            point -= share;
        }
        None
    }

    /// When an outage begins or ends, in order, from the `PUT` on.
    #[must_use]
    pub fn moments(&self) -> Vec<Duration> {
        let periods = self.timeline.iter();
        let mut all: Vec<Duration> = periods
            .flat_map(|period| [period.from_s, period.to_s])
            .map(Duration::from_secs_f64)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// How a provider is out, so long after the `PUT`.
    #[must_use]
    pub fn outage(&self, provider: Provider, since: Duration) -> Option<Outage> {
        let since_s = since.as_secs_f64();
        let mut periods = self.timeline.iter();
        let now = periods.find(|period| {
            period.provider == provider && (period.from_s..period.to_s).contains(&since_s)
        });
        now.map(|period| period.outage)
    }
}

/// How much slower the fault `slow` makes a request: two to five times.
#[must_use]
pub fn slowness(request: &Of, seed: u64) -> f64 {
    2.0 + 3.0 * request.draw(seed, What::Slowness)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(turn: u32) -> Of {
        Of {
            provider: Provider::DeepgramTts,
            vu: 3,
            turn,
            attempt: 1,
        }
    }

    #[test]
    fn shares_are_those_that_were_asked_for() {
        let faults = Faults::from_json(br#"{"preset": "stress"}"#).expect("a preset");
        let drawn: Vec<Option<Fault>> = (0..20_000)
            .map(|turn| faults.of(&request(turn), 7))
            .collect();
        for (fault, share) in Fault::ALL.into_iter().zip(Shares::STRESS.all()) {
            let count = drawn.iter().filter(|drawn| **drawn == Some(fault)).count();
            let seen = f64::from(u32::try_from(count).expect("few")) / 20_000.0;
            assert!((seen - share).abs() < 0.012, "{fault:?}: {seen} of {share}");
        }
        let again: Vec<Option<Fault>> = (0..20_000)
            .map(|turn| faults.of(&request(turn), 7))
            .collect();
        assert_eq!(drawn, again);
    }

    #[test]
    fn nothing_goes_wrong_unless_asked_for() {
        let faults = Faults::from_json(b"{}").expect("an empty object");
        assert_eq!(faults, Faults::default());
        assert!((0..1_000).all(|turn| faults.of(&request(turn), 7).is_none()));
    }

    #[test]
    fn an_outage_has_its_time() {
        let body = br#"{"timeline": [{"provider": "deepgram_tts", "outage": "hang", "from_s": 1, "to_s": 2}]}"#;
        let faults = Faults::from_json(body).expect("a timeline");
        let at = |provider, ms| faults.outage(provider, Duration::from_millis(ms));
        assert_eq!(at(Provider::DeepgramTts, 999), None);
        assert_eq!(at(Provider::DeepgramTts, 1_000), Some(Outage::Hang));
        assert_eq!(at(Provider::DeepgramStt, 1_000), None);
        assert_eq!(at(Provider::DeepgramTts, 2_000), None);
        assert_eq!(faults.moments(), [1, 2].map(Duration::from_secs));
    }

    #[test]
    fn bad_bodies_are_refused_in_one_line() {
        for body in [
            "",
            "[]",
            r#"{"fail": 0.1}"#,
            r#"{"shares": {"fail": -0.1}}"#,
            r#"{"shares": {"fail": 0.6, "drop": 0.6}}"#,
            r#"{"preset": "quiet"}"#,
            r#"{"timeline": [{"provider": "deepgram_tts", "outage": "hang", "from_s": 2, "to_s": 2}]}"#,
            r#"{"timeline": [{"provider": "deepgram_tts", "outage": "hang", "from_s": 2, "to_s": 1e30}]}"#,
            r#"{"timeline": [{"provider": "whisper", "outage": "hang", "from_s": 1, "to_s": 2}]}"#,
        ] {
            let told = Faults::from_json(body.as_bytes())
                .expect_err(body)
                .to_string();
            assert!(
                told.starts_with("faults: ") && !told.contains('\n'),
                "{told}"
            );
        }
    }
}
