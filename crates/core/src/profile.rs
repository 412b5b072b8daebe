//! How long a trial takes: ramp, warm-up, measured window, grace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const NS_PER_US: u64 = 1_000;

/// How much of its profile a trial runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// The whole profile.
    #[default]
    Full,
    /// A shorter form: enough to judge a load far from the edge.
    Short,
}

/// The phases of a trial, in seconds. Ramp and warm-up are not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// `quick`, `standard`, `speech`, `soak`, or `custom` if a phase was changed by hand.
    pub name: String,
    /// Sessions connect evenly over this time.
    pub ramp_s: f64,
    /// All sessions run, nothing is measured yet.
    pub warm_up_s: f64,
    /// The measured window: frames due in it are accounted for.
    pub measured_s: f64,
    /// How long the client waits after the window for answers to measured frames.
    pub grace_s: f64,
    /// Each session's first frame is due at most this long after its connection. First frames are spread evenly, so
    /// that frames do not come in bursts.
    pub session_start_spread_ms: f64,
    /// Whether drift and leaks are gated as well ([`crate::drift`]). Changing the phases of a soak by hand does not
    /// turn this off.
    #[serde(default)]
    pub soak: bool,
}

impl Profile {
    /// For development, and for the README's command.
    #[must_use]
    pub fn quick() -> Self {
        Self::named("quick", 3.0, 3.0, 10.0)
    }

    /// For numbers that are published.
    #[must_use]
    pub fn standard() -> Self {
        Self::named("standard", 30.0, 10.0, 45.0)
    }

    /// For speech recognisers: each carries few streams, and a stream gives one answer for each utterance.
    #[must_use]
    pub fn speech() -> Self {
        Self {
            grace_s: 20.0,
            ..Self::named("speech", 10.0, 15.0, 120.0)
        }
    }

    /// For leaks and drift.
    #[must_use]
    pub fn soak() -> Self {
        Self {
            soak: true,
            ..Self::named("soak", 30.0, 10.0, 1800.0)
        }
    }

    /// The profile of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "quick" => Some(Self::quick()),
            "standard" => Some(Self::standard()),
            "speech" => Some(Self::speech()),
            "soak" => Some(Self::soak()),
            _ => None,
        }
    }

    /// The profile itself, or its short form, for loads far from the edge.
    ///
    /// The short form has a third of the ramp, half of the warm-up and a quarter of the measured window, in whole
    /// seconds, rounded up. But no phase is shorter than the minimum below, nor longer than in the profile. Name, grace
    /// and start spread stay. So `quick` becomes 2 + 2 + 4 s, `standard` 10 + 5 + 12 s and
    /// `speech` 4 + 8 + 30 s.
    ///
    /// - The ramp takes at least 2 s: if the same sessions connect in less time, that is a storm, and a storm is not
    ///   what we measure.
    /// - The warm-up takes at least 2 s. In this time the last sessions begin (start spread, 1 s) and get a first
    ///   answer (a gateway gathers up to 1 s of audio), so that the window sees the steady state and not the beginning.
    /// - The window takes at least 4 s: several answers per session.
    #[must_use]
    pub fn of_length(&self, length: Length) -> Self {
        let shorter = |phase_s: f64, parts: f64, least_s: f64| {
            (phase_s / parts).ceil().max(least_s).min(phase_s)
        };
        match length {
            Length::Full => self.clone(),
            Length::Short => Self {
                ramp_s: shorter(self.ramp_s, 3.0, 2.0),
                warm_up_s: shorter(self.warm_up_s, 2.0, 2.0),
                measured_s: shorter(self.measured_s, 4.0, 4.0),
                // Only a whole soak shows a leak.
                soak: false,
                ..self.clone()
            },
        }
    }

    /// The same with other phases. They may be too short for a leak to show, so it is no soak.
    #[must_use]
    pub fn with_phases(&self, phases: Phases) -> Self {
        let Phases {
            ramp_s,
            warm_up_s,
            measured_s,
        } = phases;
        Self {
            name: "custom".to_owned(),
            ramp_s,
            warm_up_s,
            measured_s,
            soak: false,
            ..self.clone()
        }
    }

    /// From the trial's beginning to the end of the measured window, in seconds.
    #[must_use]
    pub fn lasts_s(&self) -> f64 {
        self.ramp_s + self.warm_up_s + self.measured_s
    }

    /// The time of a short trial as a share of a full one's, up to the end of the measured window.
    #[must_use]
    pub fn short_share(&self) -> f64 {
        let full_s = self.lasts_s();
        if full_s > 0.0 {
            self.of_length(Length::Short).lasts_s() / full_s
        } else {
            1.0
        }
    }

    fn named(name: &str, ramp_s: f64, warm_up_s: f64, measured_s: f64) -> Self {
        Self {
            name: name.to_owned(),
            ramp_s,
            warm_up_s,
            measured_s,
            grace_s: 5.0,
            session_start_spread_ms: 1000.0,
            soak: false,
        }
    }

    /// When the ramp ends, in nanoseconds since the trial began.
    #[must_use]
    pub fn ramp_end_ns(&self) -> u64 {
        seconds_to_ns(self.ramp_s)
    }

    /// The measured window in nanoseconds since the trial began.
    #[must_use]
    pub fn window(&self) -> Window {
        let start_ns = seconds_to_ns(self.ramp_s + self.warm_up_s);
        let end_ns = start_ns + seconds_to_ns(self.measured_s);
        Window {
            start_ns,
            end_ns,
            grace_end_ns: end_ns + seconds_to_ns(self.grace_s),
        }
    }
}

/// The phases of a trial that has its own, whatever the profile says, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    /// As [`Profile::ramp_s`].
    pub ramp_s: f64,
    /// As [`Profile::warm_up_s`].
    pub warm_up_s: f64,
    /// As [`Profile::measured_s`].
    pub measured_s: f64,
}

/// The measured window of a trial, in nanoseconds since the trial began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Frames due from this time on are measured.
    pub start_ns: u64,
    /// Frames due from this time on are not measured.
    pub end_ns: u64,
    /// The client waits for answers to measured frames until this time.
    pub grace_end_ns: u64,
}

impl Window {
    /// Whether a frame due at that time is measured.
    #[must_use]
    pub fn contains(&self, due_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&due_ns)
    }

    /// What so many in the measured window are per second.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a profile lasts hours, and counts stay far below 2^53"
    )]
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / ((self.end_ns - self.start_ns) as f64 / NS_PER_S as f64)
    }
}

/// Converts seconds to whole nanoseconds; negative and non-finite values become zero.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded and clamped: a profile lasts hours, not centuries"
)]
pub fn seconds_to_ns(seconds: f64) -> u64 {
    if seconds.is_finite() && seconds > 0.0 {
        (seconds * 1e9).round() as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_window_follows_ramp_and_warm_up() {
        let window = Profile::quick().window();
        assert_eq!(window.start_ns, 6 * NS_PER_S);
        assert_eq!(window.end_ns, 16 * NS_PER_S);
        assert_eq!(window.grace_end_ns, 21 * NS_PER_S);
        assert!(window.contains(window.start_ns));
        assert!(!window.contains(window.end_ns));
    }

    #[test]
    fn speech_waits_long_for_what_was_said_last() {
        let window = Profile::speech().window();
        assert_eq!(window.start_ns, 25 * NS_PER_S);
        assert_eq!(window.end_ns, 145 * NS_PER_S);
        assert_eq!(window.grace_end_ns, 165 * NS_PER_S);
        assert!(!Profile::speech().soak);
    }

    #[test]
    fn unknown_profile_is_none() {
        assert!(Profile::by_name("fast").is_none());
        for name in ["quick", "standard", "speech", "soak"] {
            assert_eq!(Profile::by_name(name).unwrap().name, name);
        }
    }

    #[test]
    fn short_trials_are_shorter_but_not_too_short() {
        let phases = |profile: &Profile| {
            let short = profile.of_length(Length::Short);
            assert_eq!(short.name, profile.name);
            assert_eq!(short.grace_s.to_bits(), profile.grace_s.to_bits());
            [short.ramp_s, short.warm_up_s, short.measured_s].map(seconds_to_ns)
        };
        let seconds = |phases: [u64; 3]| phases.map(|phase| phase * NS_PER_S);
        assert_eq!(phases(&Profile::quick()), seconds([2, 2, 4]));
        assert_eq!(phases(&Profile::standard()), seconds([10, 5, 12]));
        assert_eq!(phases(&Profile::speech()), seconds([4, 8, 30]));
        // A profile that is short already stays as it is.
        let tiny = Profile::named("custom", 1.0, 0.0, 2.0);
        assert_eq!(phases(&tiny), seconds([1, 0, 2]));
        assert_eq!(Profile::quick().of_length(Length::Full), Profile::quick());
    }

    #[test]
    fn a_trial_with_phases_of_its_own_keeps_the_rest() {
        let phases = Phases {
            ramp_s: 0.5,
            warm_up_s: 3.0,
            measured_s: 15.0,
        };
        let own = Profile::soak().with_phases(phases);
        assert_eq!((own.name.as_str(), own.soak), ("custom", false));
        assert_eq!(own.window().start_ns, 3_500 * NS_PER_MS);
        assert_eq!(own.window().end_ns, 18_500 * NS_PER_MS);
        assert_eq!(own.window().grace_end_ns, 23_500 * NS_PER_MS);
    }

    #[test]
    fn the_share_of_a_short_trial() {
        assert!((Profile::quick().short_share() - 0.5).abs() < 1e-9);
        assert!((Profile::standard().short_share() - 27.0 / 85.0).abs() < 1e-9);
        let nothing = Profile::named("custom", 0.0, 0.0, 0.0);
        assert!((nothing.short_share() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn odd_seconds_are_zero() {
        assert_eq!(seconds_to_ns(f64::NAN), 0);
        assert_eq!(seconds_to_ns(-1.0), 0);
        assert_eq!(seconds_to_ns(0.02), 20_000_000);
    }
}
