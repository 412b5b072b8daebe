//! Faults on demand: each session has at most one, drawn from the seed. None unless asked for.

use plimsoll_core::schedule::mix;
use serde::Serialize;

/// What can be wrong with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Every fourth word is missing.
    LostWord,
    /// The first second of each utterance is in no result.
    LostSecond,
    /// Each final comes twice.
    DoubledFinal,
    /// Each final ends 10 s after the audio.
    BeyondAudio,
    /// Utterances have the text of another session.
    Crosstalk,
    /// Not a word.
    Silent,
    /// Every second word is another one while many sessions are open ([`crate::config::Config::loaded_sessions`]).
    WrongWords,
    /// Results come ever later: a tenth of the audio's time.
    GrowingLag,
    /// After 5 s of audio nothing is said any more.
    Stall,
    /// After 5 s of audio the session is closed, as after an internal error.
    Close,
    /// Refused as a wrong key is.
    #[serde(rename = "401")]
    Unauthorized,
    /// Refused as by a limit of requests.
    #[serde(rename = "429")]
    RateLimited,
    /// Refused because the server is full.
    Capacity,
    /// After each final a message that is no JSON.
    BadJson,
    /// After the first final a message of 2 MiB.
    HugeMessage,
    /// The end that was asked for never comes.
    NoEnd,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::LostWord,
        Self::LostSecond,
        Self::DoubledFinal,
        Self::BeyondAudio,
        Self::Crosstalk,
        Self::Silent,
        Self::WrongWords,
        Self::GrowingLag,
        Self::Stall,
        Self::Close,
        Self::Unauthorized,
        Self::RateLimited,
        Self::Capacity,
        Self::BadJson,
        Self::HugeMessage,
        Self::NoEnd,
    ];

    /// Its name in settings and statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LostWord => "lost-word",
            Self::LostSecond => "lost-second",
            Self::DoubledFinal => "doubled-final",
            Self::BeyondAudio => "beyond-audio",
            Self::Crosstalk => "crosstalk",
            Self::Silent => "silent",
            Self::WrongWords => "wrong-words",
            Self::GrowingLag => "growing-lag",
            Self::Stall => "stall",
            Self::Close => "close",
            Self::Unauthorized => "401",
            Self::RateLimited => "429",
            Self::Capacity => "capacity",
            Self::BadJson => "bad-json",
            Self::HugeMessage => "huge-message",
            Self::NoEnd => "no-end",
        }
    }
}

/// What [`Faults::parse`] takes.
pub const EXPECTED: &str = "names of faults, separated by commas, each with its share of sessions or for all: stall or stall:0.1,close:0.2 (lost-word, \
    lost-second, doubled-final, beyond-audio, crosstalk, silent, wrong-words, growing-lag, stall, close, 401, 429, capacity, bad-json, \
    huge-message, no-end)";

/// The faults of a server: each with the share of sessions that have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Faults(Vec<(Fault, f64)>);

impl Faults {
    /// Reads the value of the setting; `None` if it is not what [`EXPECTED`] says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::default());
        }
        let mut faults = Vec::new();
        for part in text.split(',') {
            let (name, share) = match part.split_once(':') {
                Some((name, share)) => (name, share.parse().ok()?),
                None => (part, 1.0),
            };
            let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name)?;
            let again = faults.iter().any(|(known, _)| *known == fault);
            if again || !(0.0..=1.0).contains(&share) {
                return None;
            }
            faults.push((fault, share));
        }
        let sum: f64 = faults.iter().map(|(_, share)| share).sum();
        (sum <= 1.0 + 1e-9).then_some(Self(faults))
    }

    /// What is wrong with a session; they are numbered from 0 as they come.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits of a draw")]
    pub fn of(&self, session: u64, seed: u64) -> Option<Fault> {
        let mut point = (mix(seed ^ mix(session)) >> 11) as f64 / (1_u64 << 53) as f64;
        for (fault, share) in &self.0 {
            if point < *share {
                return Some(*fault);
            }
            point -= share;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_have_the_faults_that_were_asked_for() {
        let faults = Faults::parse("stall:0.1,401:0.3").expect("two faults");
        let drawn: Vec<Option<Fault>> = (0..10_000).map(|session| faults.of(session, 7)).collect();
        for (fault, share) in [
            (Some(Fault::Stall), 0.1),
            (Some(Fault::Unauthorized), 0.3),
            (None, 0.6),
        ] {
            let count = drawn.iter().filter(|drawn| **drawn == fault).count();
            let seen = f64::from(u32::try_from(count).expect("few")) / 10_000.0;
            assert!((seen - share).abs() < 0.02, "{fault:?}: {seen} of {share}");
        }
        let all = Faults::parse("no-end").expect("a fault");
        assert!((0..1_000).all(|session| all.of(session, 7) == Some(Fault::NoEnd)));
        assert!((0..1_000).all(|session| Faults::default().of(session, 7).is_none()));
    }

    #[test]
    fn each_fault_has_its_name() {
        for fault in Fault::ALL {
            assert_eq!(
                Faults::parse(fault.name()),
                Some(Faults(vec![(fault, 1.0)]))
            );
            assert_eq!(serde_json::json!(fault), fault.name());
            assert!(EXPECTED.contains(fault.name()));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "slow",
            "stall:2",
            "stall:-1",
            "stall:x",
            "stall,close",
            "stall:0.1,stall:0.1",
        ] {
            assert_eq!(Faults::parse(text), None, "{text}");
        }
        assert_eq!(Faults::parse("none"), Some(Faults::default()));
    }
}
