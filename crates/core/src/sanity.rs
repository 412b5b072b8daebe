//! Sanity checks: accounts that are kept twice, by two parties or in two ways, compared with each other. Pure.
//!
//! Each gives a [`SanityCheck`]: the value observed, and the range that the other account allows. If counts are
//! compared, the range is exact. Only Little's law, which compares times, has a tolerance.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::record::SanityCheck;

/// How far the two sides of Little's law may differ, beyond the tick. Both are kept to the nanosecond of a turn of the
/// loop, and differed by 0.01 % in the trial on which this choice is based (`docs/explanation/verdict.md`). An account
/// that loses one frame in fifty, or whose clock runs 2 % fast, is detected.
const LITTLE_TOLERANCE: f64 = 0.02;

/// An account that is kept twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Average number of unanswered frames, against rate and latency.
    LittlesLaw,
    /// Frames counted by the target.
    MetricsFrames,
    /// Sessions counted by the target.
    MetricsSessions,
    /// Partials counted by the target.
    MetricsPartials,
    /// Bytes that the kernel took from the client.
    KernelBytesSent,
    /// Bytes that the kernel gave to the client.
    KernelBytesReceived,
    /// The back end received fewer bytes than the answered frames hold.
    BackEndTooLittle,
    /// The back end received more bytes than the client sent.
    BackEndTooMuch,
}

const LITTLES_LAW: &str = "littles_law";
const METRICS_FRAMES: &str = "metrics_frames";
const METRICS_SESSIONS: &str = "metrics_sessions";
const METRICS_PARTIALS: &str = "metrics_partials";
const KERNEL_BYTES_SENT: &str = "kernel_bytes_sent";
const KERNEL_BYTES_RECEIVED: &str = "kernel_bytes_received";
const BACK_END_BYTES: &str = "back_end_bytes";

impl Account {
    /// The account that a check is about; `None` for a name that this version does not know.
    #[must_use]
    pub fn of(check: &SanityCheck) -> Option<Self> {
        Some(match check.name.as_str() {
            LITTLES_LAW => Self::LittlesLaw,
            METRICS_FRAMES => Self::MetricsFrames,
            METRICS_SESSIONS => Self::MetricsSessions,
            METRICS_PARTIALS => Self::MetricsPartials,
            KERNEL_BYTES_SENT => Self::KernelBytesSent,
            KERNEL_BYTES_RECEIVED => Self::KernelBytesReceived,
            BACK_END_BYTES if check.observed < check.low => Self::BackEndTooLittle,
            BACK_END_BYTES => Self::BackEndTooMuch,
            _ => return None,
        })
    }

    /// The caveat that it raises if it does not hold.
    #[must_use]
    pub fn caveat_id(self) -> &'static str {
        match self {
            Self::LittlesLaw => "littles-law",
            Self::MetricsFrames | Self::MetricsSessions | Self::MetricsPartials => {
                "metrics-disagree"
            }
            Self::KernelBytesSent | Self::KernelBytesReceived | Self::BackEndTooMuch => {
                "bytes-disagree"
            }
            Self::BackEndTooLittle => "back-end-bypassed",
        }
    }

    /// The target's metric that it is about, and what the client did with such things, in words. Both are empty for
    /// accounts without a metric.
    #[must_use]
    pub fn metric(self, names: &MetricNames) -> (&'static str, &'static str) {
        match self {
            Self::MetricsFrames => (names.frames, "sent and got answered"),
            Self::MetricsSessions => (names.sessions, "opened"),
            Self::MetricsPartials => (names.partials, "received and sent"),
            _ => ("", ""),
        }
    }
}

/// The names of the counters that a target must have by its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricNames {
    /// Counter of the frames it received.
    pub frames: &'static str,
    /// Counter of the partials it sent.
    pub partials: &'static str,
    /// Counter of the sessions it opened.
    pub sessions: &'static str,
}

impl Default for MetricNames {
    /// Words in place of names, where no workload gives names.
    fn default() -> Self {
        Self {
            frames: "count of frames",
            partials: "count of answers",
            sessions: "count of sessions",
        }
    }
}

/// What the engine saw of the measured frames, counted in two ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residence {
    /// Number of frames written and not yet named, integrated over time, in frame-nanoseconds.
    pub unanswered_frame_ns: u128,
    /// Sum of the latencies from the write of the frames that were named, in frame-nanoseconds.
    pub latency_frame_ns: u128,
    /// Number of frames that were named.
    pub frames: u64,
}

impl Residence {
    /// Adds the values of another engine thread.
    pub fn merge(&mut self, other: &Self) {
        self.unanswered_frame_ns += other.unanswered_frame_ns;
        self.latency_frame_ns += other.latency_frame_ns;
        self.frames += other.frames;
    }
}

/// Little's law, L = λW (J. D. C. Little, "A proof for the queuing formula: L = λW", Operations Research 9(3), 1961),
/// over the measured frames: the mean number of unanswered frames is their rate times their mean latency from the
/// write. The period lasts from the first frame's write to the last one's answer. So nothing is cut off at the ends,
/// and the law also holds for a server that gets slower.
///
/// `None` if no frame was named, or if frames were lost, because those have no latency. The check allows one tick per
/// frame, because writes are counted once per turn of the loop.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a mean, compared with a tolerance"
)]
pub fn littles_law(
    residence: &Residence,
    lost: u64,
    window_ns: u64,
    tick_ns: u64,
) -> Option<SanityCheck> {
    if residence.frames == 0 || lost > 0 || window_ns == 0 {
        return None;
    }
    let mean = |frame_ns: f64| frame_ns / window_ns as f64;
    let rate_times_latency = mean(residence.latency_frame_ns as f64);
    let slack =
        rate_times_latency * LITTLE_TOLERANCE + mean(residence.frames as f64 * tick_ns as f64);
    Some(SanityCheck::of(
        LITTLES_LAW,
        (rate_times_latency - slack).max(0.0),
        rate_times_latency + slack,
        mean(residence.unanswered_frame_ns as f64),
    ))
}

/// What the client counted over the whole trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Frames written.
    pub frames_sent: u64,
    /// Frames written that a partial covered.
    pub frames_answered: u64,
    /// Partials received.
    pub partials: u64,
    /// Sessions opened.
    pub sessions: u64,
}

/// What a target may have counted, if it is honest and nothing else loads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possible {
    /// Possible number of frames.
    pub frames: RangeInclusive<u64>,
    /// Possible number of partials.
    pub partials: RangeInclusive<u64>,
    /// Possible number of sessions.
    pub sessions: RangeInclusive<u64>,
}

impl From<&ClientCounts> for Possible {
    fn from(client: &ClientCounts) -> Self {
        Self {
            frames: client.frames_answered..=client.frames_sent,
            // A partial covers at least one frame, so there cannot be more partials than frames.
            partials: client.partials..=client.frames_sent,
            sessions: client.sessions..=client.sessions,
        }
    }
}

/// What the target counted according to its `/metrics`; `None` for a metric that it does not have or is not required to
/// have.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TargetCounts {
    /// Value of [`MetricNames::frames`].
    pub frames: Option<f64>,
    /// Value of [`MetricNames::partials`].
    pub partials: Option<f64>,
    /// Value of [`MetricNames::sessions`].
    pub sessions: Option<f64>,
}

impl TargetCounts {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |now: Option<f64>, then: Option<f64>| Some(now? - then?);
        Self {
            frames: grown(self.frames, earlier.frames),
            partials: grown(self.partials, earlier.partials),
            sessions: grown(self.sessions, earlier.sessions),
        }
    }
}

/// Compares the client's ledger with what the target counted in the trial. If sessions failed, the target may or may
/// not have counted them: give no sessions then.
#[must_use]
pub fn metrics(target: &TargetCounts, client: &ClientCounts) -> Vec<SanityCheck> {
    metrics_within(target, &Possible::from(client))
}

/// Compares what the target counted in the trial with what it may have counted.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a trial are far below 2^53"
)]
pub fn metrics_within(target: &TargetCounts, possible: &Possible) -> Vec<SanityCheck> {
    let accounts = [
        (METRICS_FRAMES, &possible.frames, target.frames),
        (METRICS_PARTIALS, &possible.partials, target.partials),
        (METRICS_SESSIONS, &possible.sessions, target.sessions),
    ];
    accounts
        .into_iter()
        .filter_map(|(name, range, observed)| {
            let (low, high) = (*range.start() as f64, *range.end() as f64);
            Some(SanityCheck::of(name, low, high, observed?))
        })
        .collect()
}

/// Bytes as the kernel counts them on the client's sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBytes {
    /// Bytes that programs gave to the sockets: acknowledged by the peer, or still in the send queue.
    pub sent: u64,
    /// Bytes that programs took from the sockets: received, less those still in the receive queue.
    pub received: u64,
}

impl KernelBytes {
    /// Adds the bytes of other sockets.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// Bytes that may be in transit while the kernel is queried, as a share of all bytes: closing frames and the ends of
/// connections, a dozen bytes per session.
const FAREWELL_SHARE: f64 = 0.005;

/// Compares the client's account of its bytes with the kernel's, for trials in which every session lived to the end.
/// They must be equal, except for the bytes that close connections while the kernel is queried.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a trial are far below 2^53"
)]
pub fn kernel_bytes(kernel: &KernelBytes, sent: u64, received: u64) -> [SanityCheck; 2] {
    let equal = |name, ours: u64, theirs: u64| {
        let farewells = ours as f64 * FAREWELL_SHARE;
        SanityCheck::of(
            name,
            ours as f64 - farewells,
            ours as f64 + farewells,
            theirs as f64,
        )
    };
    [
        equal(KERNEL_BYTES_SENT, sent, kernel.sent),
        equal(KERNEL_BYTES_RECEIVED, received, kernel.received),
    ]
}

/// Compares the bytes that the back end received with the frames that were answered and those that were sent, of which
/// each adds `frame_bytes`. A target that answers without asking its back end has sent it less.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a trial are far below 2^53"
)]
pub fn back_end_bytes(request_bytes: u64, frame_bytes: u64, client: &ClientCounts) -> SanityCheck {
    let bytes = |frames: u64| (frames * frame_bytes) as f64;
    SanityCheck::of(
        BACK_END_BYTES,
        bytes(client.frames_answered),
        bytes(client.frames_sent),
        request_bytes as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u128 = 1_000_000;

    const COUNTS: ClientCounts = ClientCounts {
        frames_sent: 1_000,
        frames_answered: 950,
        partials: 20,
        sessions: 2,
    };

    fn ids(checks: &[SanityCheck]) -> Vec<&'static str> {
        let broken = checks.iter().filter(|check| !check.holds);
        broken
            .map(|check| Account::of(check).expect("known").caveat_id())
            .collect()
    }

    #[test]
    fn littles_law_holds_for_a_server_and_not_for_a_wrong_account() {
        // 1,000 frames in 10 s, each 600 ms unanswered: 60 at a time.
        let residence = Residence {
            unanswered_frame_ns: 1_000 * 600 * MS,
            latency_frame_ns: 1_000 * 600 * MS,
            frames: 1_000,
        };
        let law = |residence| littles_law(&residence, 0, 10_000_000_000, 500_000).expect("a check");
        let sound = law(residence);
        assert!(
            sound.holds && (sound.observed - 60.0).abs() < 1e-9,
            "{sound:?}"
        );
        for percent in [97, 103] {
            let wrong = law(Residence {
                latency_frame_ns: 1_000 * 6 * percent * MS,
                ..residence
            });
            assert_eq!(ids(&[wrong]), ["littles-law"]);
        }
        assert_eq!(littles_law(&residence, 1, 10_000_000_000, 500_000), None);
        assert_eq!(littles_law(&Residence::default(), 0, 1, 1), None);
    }

    proptest! {
        /// For any times of writes and answers, the integral of the gauge is the sum of the latencies.
        #[test]
        fn littles_law_holds_for_any_answers(frames in prop::collection::vec((0_u64..10_000, 1_u64..5_000), 1..100)) {
            let mut moves: Vec<(u64, i128)> = frames
                .iter()
                .flat_map(|(at, latency)| [(*at, 1), (at + latency, -1)])
                .collect();
            moves.sort_unstable();
            let (mut area, mut open, mut last) = (0_i128, 0_i128, 0);
            for (at, by) in moves {
                area += open * i128::from(at - last);
                (open, last) = (open + by, at);
            }
            let residence = Residence {
                unanswered_frame_ns: u128::try_from(area).unwrap(),
                latency_frame_ns: frames.iter().map(|(_, latency)| u128::from(*latency)).sum(),
                frames: frames.len() as u64,
            };
            prop_assert!(littles_law(&residence, 0, 10_000, 0).unwrap().holds);
        }
    }

    #[test]
    fn an_honest_target_counts_between_what_was_answered_and_what_was_sent() {
        let counts = |frames, partials, sessions| TargetCounts {
            frames: Some(frames),
            partials: Some(partials),
            sessions: Some(sessions),
        };
        for frames in [950.0, 975.0, 1_000.0] {
            let checks = metrics(&counts(frames, 21.0, 2.0), &COUNTS);
            assert_eq!(checks.len(), 3);
            assert_eq!(ids(&checks), [""; 0]);
        }
        for lie in [
            counts(1_100.0, 20.0, 2.0),
            counts(949.0, 20.0, 2.0),
            counts(1_000.0, 19.0, 2.0),
            counts(1_000.0, 20.0, 12.0),
            counts(1_000.0, 20.0, 1.0),
            counts(-5.0, 20.0, 2.0),
            counts(f64::NAN, 20.0, 2.0),
        ] {
            assert_eq!(
                ids(&metrics(&lie, &COUNTS)),
                ["metrics-disagree"],
                "{lie:?}"
            );
        }
    }

    #[test]
    fn a_target_without_these_metrics_is_not_held_to_them() {
        assert_eq!(metrics(&TargetCounts::default(), &COUNTS), []);
        let before = TargetCounts {
            frames: Some(10.0),
            ..TargetCounts::default()
        };
        let after = TargetCounts {
            frames: Some(1_010.0),
            partials: Some(3.0),
            sessions: None,
        };
        let grown = after.since(&before);
        assert_eq!((grown.frames, grown.partials), (Some(1_000.0), None));
        assert_eq!(ids(&metrics(&grown, &COUNTS)), [""; 0]);
    }

    #[test]
    fn a_caller_can_say_what_is_possible() {
        let possible = Possible {
            frames: 0..=1_002,
            partials: 950..=u64::MAX,
            sessions: 2..=9,
        };
        let counts = |frames, partials, sessions| TargetCounts {
            frames: Some(frames),
            partials: Some(partials),
            sessions: Some(sessions),
        };
        for honest in [counts(0.0, 950.0, 2.0), counts(1_002.0, 1e9, 9.0)] {
            assert_eq!(ids(&metrics_within(&honest, &possible)), [""; 0]);
        }
        let lies = metrics_within(&counts(1_003.0, 949.0, 1.0), &possible);
        assert_eq!(ids(&lies), ["metrics-disagree"; 3]);
        let account = Account::of(&lies[0]).expect("known");
        let names = MetricNames {
            frames: "frames_total",
            ..MetricNames::default()
        };
        assert_eq!(account.metric(&names).0, "frames_total");
        assert_eq!(account.metric(&MetricNames::default()).0, "count of frames");
    }

    #[test]
    fn the_kernels_bytes_must_be_ours() {
        let kernel = KernelBytes {
            sent: 648_000,
            received: 5_000,
        };
        assert_eq!(ids(&kernel_bytes(&kernel, 648_000, 5_000)), [""; 0]);
        assert_eq!(
            ids(&kernel_bytes(&kernel, 640_000, 5_100)),
            ["bytes-disagree", "bytes-disagree"]
        );
    }

    #[test]
    fn a_gateway_that_does_not_ask_its_back_end_is_caught() {
        let asked = |frames: u64| ids(&[back_end_bytes(frames * 640, 640, &COUNTS)]);
        assert_eq!(asked(950), [""; 0]);
        assert_eq!(asked(1_000), [""; 0]);
        assert_eq!(asked(0), ["back-end-bypassed"]);
        assert_eq!(asked(949), ["back-end-bypassed"]);
        assert_eq!(asked(1_001), ["bytes-disagree"]);
    }
}
