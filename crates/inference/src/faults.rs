//! Faults on demand: shares of requests that are answered badly, or not at all, so that a gateway's handling of
//! them can be tested. Off unless someone asks (`PUT /faults`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::SplitMix64;

/// What can go wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Status 429.
    Http429,
    /// Status 503.
    Http503,
    /// Status 404.
    Http404,
    /// Status 200 with a body that is not JSON.
    Garbage,
    /// Status 200, the right answer and one field more.
    UnknownField,
    /// Status 200, the right answer without its `checksum`.
    MissingField,
    /// The stream is reset (HTTP/2), the connection aborted (HTTP/1.1).
    Reset,
    /// No answer, for as long as the client waits.
    Never,
}

impl Fault {
    /// Every fault, in the order of the fields of [`FaultShares`].
    pub const ALL: [Self; 8] = [
        Self::Http429,
        Self::Http503,
        Self::Http404,
        Self::Garbage,
        Self::UnknownField,
        Self::MissingField,
        Self::Reset,
        Self::Never,
    ];

    /// The name in JSON and in the metrics' `kind` label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http429 => "http_429",
            Self::Http503 => "http_503",
            Self::Http404 => "http_404",
            Self::Garbage => "garbage",
            Self::UnknownField => "unknown_field",
            Self::MissingField => "missing_field",
            Self::Reset => "reset",
            Self::Never => "never",
        }
    }
}

/// The body of `PUT /faults`: the share (0 to 1) of requests that meet each fault. Fields left out are 0, so `{}`
/// turns all faults off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultShares {
    /// See [`Fault::Http429`].
    pub http_429: f64,
    /// See [`Fault::Http503`].
    pub http_503: f64,
    /// See [`Fault::Http404`].
    pub http_404: f64,
    /// See [`Fault::Garbage`].
    pub garbage: f64,
    /// See [`Fault::UnknownField`].
    pub unknown_field: f64,
    /// See [`Fault::MissingField`].
    pub missing_field: f64,
    /// See [`Fault::Reset`].
    pub reset: f64,
    /// See [`Fault::Never`].
    pub never: f64,
    /// Not a fault: added to the drawn latency of every request, in milliseconds.
    pub delay_ms: f64,
}

/// Why shares cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadFaults {
    /// Not the JSON object that is asked for.
    #[error("faults: {0}; give a JSON object such as {{\"http_503\": 0.1, \"delay_ms\": 20}}")]
    NotJson(String),
    /// A share that is no share.
    #[error("faults: {name} is {share}: give a share from 0 to 1")]
    NoShare {
        /// The field.
        name: &'static str,
        /// Its value.
        share: f64,
    },
    /// More than every request.
    #[error("faults: the shares add up to {0}: keep the sum at 1 or below")]
    SumOverOne(f64),
    /// A delay out of range.
    #[error("faults: delay_ms is {0}: give milliseconds from 0 to 3600000")]
    BadDelay(f64),
}

impl FaultShares {
    /// Reads and checks the body of `PUT /faults`.
    ///
    /// # Errors
    /// [`BadFaults`], in one line.
    pub fn from_json(body: &[u8]) -> Result<Self, BadFaults> {
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(BadFaults::NotJson("not a JSON object".to_owned()));
        }
        let shares: Self =
            serde_json::from_slice(body).map_err(|error| BadFaults::NotJson(error.to_string()))?;
        for fault in Fault::ALL {
            let share = shares.share(fault);
            if !(0.0..=1.0).contains(&share) {
                return Err(BadFaults::NoShare {
                    name: fault.name(),
                    share,
                });
            }
        }
        let sum: f64 = Fault::ALL.iter().map(|&fault| shares.share(fault)).sum();
        // Ten shares of 0.1 add up to a hair more than 1.
        if sum > 1.0 + 1e-9 {
            return Err(BadFaults::SumOverOne(sum));
        }
        if !(0.0..=3_600_000.0).contains(&shares.delay_ms) {
            return Err(BadFaults::BadDelay(shares.delay_ms));
        }
        Ok(shares)
    }

    /// The share of one fault.
    #[must_use]
    pub const fn share(&self, fault: Fault) -> f64 {
        match fault {
            Fault::Http429 => self.http_429,
            Fault::Http503 => self.http_503,
            Fault::Http404 => self.http_404,
            Fault::Garbage => self.garbage,
            Fault::UnknownField => self.unknown_field,
            Fault::MissingField => self.missing_field,
            Fault::Reset => self.reset,
            Fault::Never => self.never,
        }
    }

    /// What is added to every latency.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay_ms / 1e3)
    }

    /// The fate of the next request: one draw, whatever the shares.
    pub fn draw(&self, rng: &mut SplitMix64) -> Option<Fault> {
        let mut point = rng.unit();
        for fault in Fault::ALL {
            let share = self.share(fault);
            if point < share {
                return Some(fault);
            }
            point -= share;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_the_fields() {
        for fault in Fault::ALL {
            let body = format!("{{\"{}\": 1}}", fault.name());
            let shares = FaultShares::from_json(body.as_bytes()).expect("a share of 1");
            assert_eq!(shares.draw(&mut SplitMix64::new(0, 0)), Some(fault));
        }
    }

    #[test]
    fn nothing_is_asked_for_by_default() {
        let shares = FaultShares::from_json(b"{}").expect("an empty object");
        assert_eq!(shares, FaultShares::default());
        let mut rng = SplitMix64::new(3, 0);
        assert!((0..1000).all(|_| shares.draw(&mut rng).is_none()));
    }

    #[test]
    fn bad_bodies_are_refused_in_one_line() {
        let bad = [
            "",
            "[]",
            "[0,0,0,0,0,0,0,0,0]",
            "1",
            "{",
            "{}x",
            r#"{"http_500": 0.1}"#,
            r#"{"reset": -0.1}"#,
            r#"{"reset": 1.1}"#,
            r#"{"reset": "all"}"#,
            r#"{"reset": null}"#,
            r#"{"reset": 0.6, "never": 0.6}"#,
            r#"{"delay_ms": -1}"#,
            r#"{"delay_ms": 1e9}"#,
        ];
        for body in bad {
            let error = FaultShares::from_json(body.as_bytes())
                .expect_err(body)
                .to_string();
            assert!(
                error.starts_with("faults: ") && !error.contains('\n'),
                "{body}: {error}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn draws_follow_the_shares(weights in prop::array::uniform9(0.0_f64..1.0), seed: u64) {
            let sum: f64 = weights.iter().sum::<f64>().max(1e-9);
            let [http_429, http_503, http_404, garbage, unknown_field, missing_field, reset, never, _] =
                weights.map(|weight| weight / sum);
            let shares = FaultShares {
                http_429, http_503, http_404, garbage, unknown_field, missing_field, reset, never, delay_ms: 0.0,
            };
            let mut rng = SplitMix64::new(seed, 0);
            let draws: Vec<_> = (0..20_000).map(|_| shares.draw(&mut rng)).collect();
            for fault in Fault::ALL {
                let count = draws.iter().filter(|&&drawn| drawn == Some(fault)).count();
                let seen = f64::from(u32::try_from(count).expect("few")) / 20_000.0;
                // Six standard deviations of a share near 1/2.
                prop_assert!((seen - shares.share(fault)).abs() < 0.022, "{fault:?}: {seen} of {}", shares.share(fault));
            }
        }
    }
}
