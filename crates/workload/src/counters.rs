//! What a target counts itself, and what that may show.

use plimsoll_core::sanity::{ClientCounts, MetricNames, Possible, TargetCounts};

/// Which of the target's counters have a meaning for a load, and what they may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// What they are called.
    pub names: MetricNames,
    /// What of the load they count.
    pub counted: Counted,
}

/// What of the load a target counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Frames, answers and sessions.
    Answers,
    /// Every frame of the load is a message for the target's application. If `comes_back`, an answered frame cannot have
    /// gone unseen by the application. Otherwise it is only proven that the server read the frame. Whether the
    /// application was handed it is a finding, not a fault in anybody's account.
    Messages {
        /// Whether the application sends each message back.
        comes_back: bool,
    },
    /// Every frame is a request that the target counts. It also counts each look at its counters, which is a request on a
    /// connection of its own.
    Requests,
    /// The application does not count frames one by one, so only sessions are compared. If they `arrive`, one may be
    /// accepted and not yet open when the trial ends.
    Sessions {
        /// Whether the load is sessions that arrive.
        arrive: bool,
    },
}

impl Counters {
    /// What they may show. `asides` are messages for the application that are not frames of the load, `looks` is how
    /// often the counters were read meanwhile.
    #[must_use]
    pub fn possible(self, client: &ClientCounts, asides: u64, looks: u64) -> Possible {
        let mut possible = Possible::from(client);
        match self.counted {
            Counted::Answers => {}
            Counted::Messages { comes_back } => {
                let least = if comes_back {
                    client.frames_answered
                } else {
                    0
                };
                possible.frames = least..=client.frames_sent + asides;
            }
            Counted::Requests => {
                possible.frames = client.frames_answered..=client.frames_sent + looks;
                possible.sessions = client.sessions..=client.sessions + looks;
            }
            Counted::Sessions { arrive } => {
                let most = if arrive { client.frames_sent } else { 0 };
                possible.sessions = client.sessions..=client.sessions.max(most);
            }
        }
        possible
    }

    /// The counters that have a meaning, among all that a target reports; `sum` is the sum of a metric over its labels.
    #[must_use]
    pub fn read(self, sum: impl Fn(&str) -> Option<f64>) -> TargetCounts {
        let has_frames = !matches!(self.counted, Counted::Sessions { .. });
        let has_answers = self.counted == Counted::Answers;
        let of = |name: &str, has: bool| if has { sum(name) } else { None };
        TargetCounts {
            frames: of(self.names.frames, has_frames),
            partials: of(self.names.partials, has_answers),
            sessions: sum(self.names.sessions),
        }
    }

    /// Whether the count of frames is the number of messages that the application was handed.
    #[must_use]
    pub fn counts_messages(self) -> bool {
        matches!(self.counted, Counted::Messages { .. })
    }
}
