//! The faults: their names, their parameters, and the three places where they act.

pub mod incoming;
pub mod outgoing;
pub mod process;

use std::fmt;

/// One fault. The README says what a sound tool must report for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Honest.
    None,
    /// Everything stops once.
    StallOnce,
    /// Everything stops now and then, by chance.
    StallRarely,
    /// No answer for a long time, then all of them.
    LateAfterWindow,
    /// Some answers are swallowed.
    SkipFlush,
    /// Some answers come twice.
    AnswerTwice,
    /// Some answers change places with the next one.
    OutOfOrder,
    /// Some checksums are off by one.
    WrongContent,
    /// Some answers have the content of another session's.
    OthersContent,
    /// From some time on a session is not read.
    StopReading,
    /// From some time on a session is read slower than it speaks.
    ReadSlowly,
    /// The server's half of the connection is shut.
    HalfClose,
    /// An answer stops half way and the connection is reset.
    ResetMidFrame,
    /// An upgrade is accepted by the kernel and never answered.
    NeverUpgrade,
    /// Connections are accepted one by one, with a pause after each.
    SlowAccept,
    /// Some sessions get no answer at all.
    NeverAnswerSome,
    /// The process exits.
    Die,
    /// All connections are dropped, and after a while the server listens again.
    Restart,
    /// Memory grows with every answer.
    LeakMemory,
    /// Each answer takes longer than the one before.
    GrowLatency,
    /// A thread spins beside the work.
    BurnCore,
    /// `stt_frames_total` is too high.
    LieInMetrics,
    /// Somebody else has sessions here too.
    ForeignLoad,
    /// Some answers are preceded by a text that is no JSON.
    Garbage,
    /// Some answers are preceded by a very large frame.
    Oversize,
    /// An answer is repeated without end.
    Flood,
    /// Some answers have a field that the contract does not know.
    ExtraField,
    /// Some answers name frames that were never sent.
    WrongSeq,
}

/// What a lie's environment variables set. `None`: the lie has no use for it, and setting it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Parameters {
    /// `LIE_AFTER_MS`: when it begins, since the first session started (lies of the process) or since the session did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// `LIE_MS`: a duration; which one depends on the lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// `LIE_EVERY`: which of a session's answers it strikes: every one whose number, from 1, is a multiple.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// `LIE_SHARE`: the share of sessions that it strikes, or a probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `LIE_BYTES`: a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `LIE_SESSIONS`: a number of sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
}

impl Parameters {
    const NONE: Self = Self {
        after_ms: None,
        ms: None,
        every: None,
        share: None,
        bytes: None,
        sessions: None,
    };
    /// Every tenth answer of every session.
    const TENTH_ANSWER: Self = Self::NONE.with_every(10).with_share(1.0);
    /// Every session, eight seconds after its start: within the measured window of a `quick` trial.
    const IN_THE_WINDOW: Self = Self::NONE.with_after_ms(8000).with_share(1.0);

    const fn with_after_ms(self, after_ms: u64) -> Self {
        Self {
            after_ms: Some(after_ms),
            ..self
        }
    }

    const fn with_ms(self, ms: u64) -> Self {
        Self {
            ms: Some(ms),
            ..self
        }
    }

    const fn with_every(self, every: u64) -> Self {
        Self {
            every: Some(every),
            ..self
        }
    }

    const fn with_share(self, share: f64) -> Self {
        Self {
            share: Some(share),
            ..self
        }
    }

    const fn with_bytes(self, bytes: u64) -> Self {
        Self {
            bytes: Some(bytes),
            ..self
        }
    }

    const fn with_sessions(self, sessions: u64) -> Self {
        Self {
            sessions: Some(sessions),
            ..self
        }
    }

    /// `after_ms` in microseconds; 0 where a lie has no such parameter.
    #[must_use]
    pub fn after_us(&self) -> u64 {
        self.after_ms.unwrap_or(0).saturating_mul(1000)
    }

    /// `ms` in microseconds; 0 where a lie has no such parameter.
    #[must_use]
    pub fn duration_us(&self) -> u64 {
        self.ms.unwrap_or(0).saturating_mul(1000)
    }

    /// `every`; 1 where a lie has no such parameter.
    #[must_use]
    pub fn every(&self) -> u64 {
        self.every.unwrap_or(1)
    }

    /// Whether the thing (session, upgrade) with that number, from 0, is among the share struck. Evenly spread, so that any run of
    /// numbers holds the share as closely as whole numbers can.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of sessions, far below 2^53"
    )]
    pub fn strikes_number(&self, number: u64) -> bool {
        let share = self.share.unwrap_or(1.0);
        ((number + 1) as f64 * share).floor() > (number as f64 * share).floor()
    }
}

impl Lie {
    /// Every lie with its name in `LIE`, in the README's order.
    pub const ALL: [(Self, &'static str); 28] = [
        (Self::None, "none"),
        (Self::StallOnce, "stall_once"),
        (Self::StallRarely, "stall_rarely"),
        (Self::LateAfterWindow, "late_after_window"),
        (Self::SkipFlush, "skip_flush"),
        (Self::AnswerTwice, "answer_twice"),
        (Self::OutOfOrder, "out_of_order"),
        (Self::WrongContent, "wrong_content"),
        (Self::OthersContent, "others_content"),
        (Self::StopReading, "stop_reading"),
        (Self::ReadSlowly, "read_slowly"),
        (Self::HalfClose, "half_close"),
        (Self::ResetMidFrame, "reset_mid_frame"),
        (Self::NeverUpgrade, "never_upgrade"),
        (Self::SlowAccept, "slow_accept"),
        (Self::NeverAnswerSome, "never_answer_some"),
        (Self::Die, "die"),
        (Self::Restart, "restart"),
        (Self::LeakMemory, "leak_memory"),
        (Self::GrowLatency, "grow_latency"),
        (Self::BurnCore, "burn_core"),
        (Self::LieInMetrics, "lie_in_metrics"),
        (Self::ForeignLoad, "foreign_load"),
        (Self::Garbage, "garbage"),
        (Self::Oversize, "oversize"),
        (Self::Flood, "flood"),
        (Self::ExtraField, "extra_field"),
        (Self::WrongSeq, "wrong_seq"),
    ];

    /// The lie of that name; empty is none.
    ///
    /// # Errors
    /// One line that lists the known names.
    pub fn parse(name: &str) -> Result<Self, UnknownLie> {
        if name.is_empty() {
            return Ok(Self::None);
        }
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(lie, _)| *lie)
            .ok_or_else(|| UnknownLie(name.to_owned()))
    }

    /// Its name in `LIE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(lie, _)| *lie == self)
            .map_or("", |(_, name)| name)
    }

    /// Its parameters where the environment does not say.
    #[must_use]
    pub fn defaults(self) -> Parameters {
        let (none, tenth) = (Parameters::NONE, Parameters::TENTH_ANSWER);
        let in_the_window = Parameters::IN_THE_WINDOW;
        match self {
            Self::None => none,
            Self::StallOnce => none.with_after_ms(8000).with_ms(2000),
            Self::StallRarely => none.with_after_ms(10_000).with_ms(2000).with_share(0.3),
            // A `quick` trial starts sessions until 3 s, measures until 16 s, and waits for answers until 21 s: after the first, before
            // the last.
            Self::LateAfterWindow => none.with_ms(16_000).with_share(1.0),
            Self::SkipFlush
            | Self::AnswerTwice
            | Self::OutOfOrder
            | Self::WrongContent
            | Self::OthersContent
            | Self::Garbage
            | Self::ExtraField
            | Self::WrongSeq => tenth,
            Self::Oversize => tenth.with_bytes(2 << 20),
            Self::HalfClose | Self::ResetMidFrame => in_the_window,
            // By the kernel's own choice the buffers of a socket hold more than a session says in a whole trial.
            Self::StopReading => in_the_window.with_bytes(16 << 10),
            // A frame every 40 ms is half of what a session sends.
            Self::ReadSlowly => in_the_window.with_ms(40).with_bytes(16 << 10),
            Self::NeverUpgrade => none.with_share(1.0),
            // Ten a second: fewer than the sessions of any trial that starts them within a second or three.
            Self::SlowAccept => none.with_ms(100),
            Self::NeverAnswerSome => none.with_share(0.1),
            Self::Die => none.with_after_ms(8000),
            Self::Restart => none.with_after_ms(8000).with_ms(500),
            Self::LeakMemory => none.with_bytes(64 << 10),
            Self::GrowLatency => none.with_ms(50).with_share(1.0),
            Self::BurnCore => none.with_after_ms(0),
            Self::LieInMetrics => none.with_every(10),
            Self::ForeignLoad => none.with_after_ms(0).with_sessions(10),
            Self::Flood => in_the_window.with_ms(1).with_share(0.1),
        }
    }
}

/// `LIE` names nothing that is known.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownLie(String);

impl fmt::Display for UnknownLie {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Lie::ALL.iter().map(|(_, name)| *name).collect();
        write!(
            out,
            "LIE={:?} is no lie; known are: {}",
            self.0,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownLie {}

/// The lie of this process, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Which.
    pub lie: Lie,
    /// How much of it.
    pub parameters: Parameters,
}

impl Plan {
    /// A lie with its defaults.
    #[must_use]
    pub fn of(lie: Lie) -> Self {
        Self {
            lie,
            parameters: lie.defaults(),
        }
    }

    /// The receive buffer that sockets are to have; `None`: the kernel's own choice.
    #[must_use]
    pub fn receive_buffer_bytes(&self) -> Option<u64> {
        match self.lie {
            Lie::StopReading | Lie::ReadSlowly => self.parameters.bytes,
            _ => None,
        }
    }

    /// The lie that the session with this number tells: this one, or none if the session is not among its share.
    #[must_use]
    pub fn for_session(self, number: u64) -> Self {
        if self.parameters.strikes_number(number) {
            self
        } else {
            Self::of(Lie::None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_has_its_own_name() {
        for (index, (lie, name)) in Lie::ALL.iter().enumerate() {
            assert_eq!(Lie::parse(name), Ok(*lie));
            assert_eq!(lie.name(), *name);
            assert!(Lie::ALL[..index].iter().all(|(other, _)| other != lie));
        }
        assert_eq!(Lie::parse(""), Ok(Lie::None));
    }

    #[test]
    fn a_bad_name_is_answered_with_one_line_of_all_names() {
        let error = Lie::parse("stall").unwrap_err().to_string();
        assert!(!error.contains('\n'));
        assert!(Lie::ALL.iter().all(|(_, name)| error.contains(name)));
    }

    #[test]
    fn a_share_strikes_exactly_its_share() {
        let with = |share| Parameters {
            share: Some(share),
            ..Parameters::default()
        };
        for (share, expected) in [(0.0, 0), (0.1, 20), (0.5, 100), (1.0, 200)] {
            let struck = (0..200).filter(|n| with(share).strikes_number(*n)).count();
            assert_eq!(struck, expected, "{share}");
        }
        assert!(Parameters::default().strikes_number(3));
    }
}
