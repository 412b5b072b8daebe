//! The faults: their names, their numbers, and how often they strike.

pub mod blocks;
pub mod fiction;
pub mod process;
pub mod reply;
pub mod result;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What is wrong with the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the README")]
pub enum Lie {
    None,
    AskNobody,
    ForgeMarks,
    OnlyUpgrade,
    OnlyReady,
    Silent,
    Refuse,
    Bare200,
    SlowAccept,
    EarlyReady,
    CloseSession,
    Die,
    Stall,
    Spin,
    SlowDown,
    LeakMemory,
    LateResults,
    SkipResult,
    DoubleResult,
    BareResult,
    LateReplies,
    Gap,
    CutReply,
    ReplyAtEnd,
    OthersReply,
    SharedWriter,
    FalseError,
    IgnoreClear,
    AskTwice,
    DropBlock,
    DoubleBlock,
    SwapBlocks,
    ChangeBlock,
    DropReplyBlock,
    DoubleReplyBlock,
    SwapReplyBlocks,
    ChangeReplyBlock,
    WrongProviderMs,
    LieInMetrics,
}

/// A lie's numbers. `None`: the lie has no use for it, and setting it is an error.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Parameters {
    /// `LIE_AFTER_MS`: when it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// `LIE_MS`: a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// `LIE_PERIOD_MS`: from one beginning to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ms: Option<u64>,
    /// `LIE_US`: a duration for each open session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us: Option<u64>,
    /// `LIE_EVERY`: it strikes number N, 2N, 3N, … of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// `LIE_SHARE`: the share that it strikes, evenly spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `LIE_BYTES`: a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `LIE_STATUS`: a status of HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
}

const NO: Parameters = Parameters {
    after_ms: None,
    ms: None,
    period_ms: None,
    us: None,
    every: None,
    share: None,
    bytes: None,
    status: None,
};
const BLOCKS: Parameters = Parameters { every: Some(500), ..NO };
const TENTH: Parameters = Parameters { every: Some(10), ..NO };

/// Every lie: its name, and the numbers that it reads, with their defaults. In the README's order.
pub const LIES: [(Lie, &str, Parameters); 39] = [
    (Lie::None, "none", NO),
    (Lie::AskNobody, "ask_nobody", NO),
    (Lie::ForgeMarks, "forge_marks", NO),
    (Lie::OnlyUpgrade, "only_upgrade", NO),
    (Lie::OnlyReady, "only_ready", NO),
    (Lie::Silent, "silent", NO),
    (Lie::Refuse, "refuse", Parameters { status: Some(503), share: Some(1.0), ..NO }),
    (Lie::Bare200, "bare_200", NO),
    (Lie::SlowAccept, "slow_accept", Parameters { ms: Some(100), ..NO }),
    (Lie::EarlyReady, "early_ready", Parameters { ms: Some(500), ..NO }),
    (Lie::CloseSession, "close_session", Parameters { after_ms: Some(8000), share: Some(0.1), ..NO }),
    (Lie::Die, "die", Parameters { after_ms: Some(8000), ..NO }),
    (Lie::Stall, "stall", Parameters { after_ms: Some(8000), ms: Some(3000), period_ms: Some(60_000), ..NO }),
    (Lie::Spin, "spin", Parameters { us: Some(10), ..NO }),
    (Lie::SlowDown, "slow_down", Parameters { us: Some(2000), ..NO }),
    (Lie::LeakMemory, "leak_memory", Parameters { bytes: Some(4096), ..NO }),
    (Lie::LateResults, "late_results", Parameters { ms: Some(500), ..NO }),
    (Lie::SkipResult, "skip_result", TENTH),
    (Lie::DoubleResult, "double_result", TENTH),
    (Lie::BareResult, "bare_result", TENTH),
    (Lie::LateReplies, "late_replies", Parameters { ms: Some(500), ..NO }),
    (Lie::Gap, "gap", Parameters { ms: Some(500), ..TENTH }),
    (Lie::CutReply, "cut_reply", TENTH),
    (Lie::ReplyAtEnd, "reply_at_end", NO),
    (Lie::OthersReply, "others_reply", TENTH),
    (Lie::SharedWriter, "shared_writer", Parameters { bytes: Some(16_384), ..NO }),
    (Lie::FalseError, "false_error", TENTH),
    (Lie::IgnoreClear, "ignore_clear", Parameters { ms: Some(500), ..NO }),
    (Lie::AskTwice, "ask_twice", TENTH),
    (Lie::DropBlock, "drop_block", BLOCKS),
    (Lie::DoubleBlock, "double_block", BLOCKS),
    (Lie::SwapBlocks, "swap_blocks", BLOCKS),
    (Lie::ChangeBlock, "change_block", BLOCKS),
    (Lie::DropReplyBlock, "drop_reply_block", BLOCKS),
    (Lie::DoubleReplyBlock, "double_reply_block", BLOCKS),
    (Lie::SwapReplyBlocks, "swap_reply_blocks", BLOCKS),
    (Lie::ChangeReplyBlock, "change_reply_block", BLOCKS),
    (Lie::WrongProviderMs, "wrong_provider_ms", Parameters { ms: Some(100), ..NO }),
    (Lie::LieInMetrics, "lie_in_metrics", TENTH),
];

impl Lie {
    /// The lie of that name; empty is none.
    ///
    /// # Errors
    /// One line with all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let name = if name.is_empty() { "none" } else { name };
        let found = LIES.iter().find(|(_, known, _)| *known == name);
        found.map(|(lie, ..)| *lie).ok_or_else(|| {
            let known: Vec<_> = LIES.iter().map(|(_, known, _)| *known).collect();
            format!("LIE={name:?}: give one of {}", known.join(", "))
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().map_or("", |(_, name, _)| name)
    }

    /// Its numbers, where the environment does not say.
    #[must_use]
    pub fn defaults(self) -> Parameters {
        self.entry().map_or(NO, |(.., parameters)| *parameters)
    }

    fn entry(self) -> Option<&'static (Self, &'static str, Parameters)> {
        LIES.iter().find(|(lie, ..)| *lie == self)
    }
}

/// A lie and its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Which.
    pub lie: Lie,
    /// How much of it.
    pub numbers: Parameters,
}

impl Plan {
    /// A lie with its defaults.
    #[must_use]
    pub fn of(lie: Lie) -> Self {
        Self { lie, numbers: lie.defaults() }
    }

    /// `LIE_MS`.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.numbers.ms.unwrap_or(0))
    }

    /// `LIE_AFTER_MS`.
    #[must_use]
    pub fn after(&self) -> Duration {
        Duration::from_millis(self.numbers.after_ms.unwrap_or(0))
    }
}

/// The lie of this process, and what it has struck so far.
#[derive(Debug)]
pub struct Lies {
    /// Which, and how much.
    pub plan: Plan,
    /// How many of what it strikes there were.
    seen: AtomicU64,
    first: AtomicBool,
}

impl Lies {
    /// Nothing struck yet.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, seen: AtomicU64::new(0), first: AtomicBool::new(true) }
    }

    /// Whether this is the lie.
    #[must_use]
    pub fn is(&self, lie: Lie) -> bool {
        self.plan.lie == lie
    }

    /// Whether this is the lie, and the next of what it strikes is struck: number N, 2N, 3N, …, or an even share.
    pub fn strikes(&self, lie: Lie) -> bool {
        if !self.is(lie) {
            return false;
        }
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        match self.plan.numbers.share {
            Some(share) => is_in_share(before, share),
            None => (before + 1).is_multiple_of(self.plan.numbers.every.unwrap_or(1)),
        }
    }

    /// True once.
    pub fn first(&self) -> bool {
        self.first.swap(false, Ordering::Relaxed)
    }

    /// How much later a result goes out than it came.
    #[must_use]
    pub fn result_delay(&self, sessions: u64) -> Duration {
        self.delay(Lie::LateResults, sessions)
    }

    /// How much later a reply's audio goes out than it came.
    #[must_use]
    pub fn reply_delay(&self, sessions: u64) -> Duration {
        self.delay(Lie::LateReplies, sessions)
    }

    fn delay(&self, late: Lie, sessions: u64) -> Duration {
        match self.plan.lie {
            Lie::SlowDown => self.of_sessions(sessions),
            lie if lie == late => self.plan.duration(),
            _ => Duration::ZERO,
        }
    }

    /// For how long a message makes the whole process spin.
    #[must_use]
    pub fn work(&self, sessions: u64) -> Duration {
        if self.is(Lie::Spin) { self.of_sessions(sessions) } else { Duration::ZERO }
    }

    fn of_sessions(&self, sessions: u64) -> Duration {
        Duration::from_micros(self.plan.numbers.us.unwrap_or(0).saturating_mul(sessions))
    }

    /// What the gateway says that the provider took.
    #[must_use]
    pub fn claimed_ms(&self, provider_ms: f64) -> f64 {
        let more = if self.is(Lie::WrongProviderMs) { self.plan.duration() } else { Duration::ZERO };
        provider_ms + more.as_secs_f64() * 1e3
    }

    /// How many results, or requests, the metrics show.
    #[must_use]
    pub fn claimed(&self, counted: u64) -> u64 {
        let every = self.plan.numbers.every.unwrap_or(1);
        if self.is(Lie::LieInMetrics) { counted + counted / every } else { counted }
    }
}

/// Whether number `before`, from 0, is of the share. Evenly spread: any run of numbers holds it as closely as whole numbers can.
#[expect(clippy::cast_precision_loss, reason = "numbers of sessions and requests, far below 2^53")]
fn is_in_share(before: u64, share: f64) -> bool {
    // Shares like 0.1 are not exact in binary; a tenth of ten tenths must not be missed for that.
    let reached = |count: u64| (count as f64 * share + 1e-9).floor();
    reached(before + 1) > reached(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_has_its_own_name() {
        for (index, (lie, name, _)) in LIES.iter().enumerate() {
            assert_eq!(Lie::named(name), Ok(*lie));
            assert_eq!(lie.name(), *name);
            assert!(LIES[..index].iter().all(|(other, ..)| other != lie));
        }
        assert_eq!(Lie::named(""), Ok(Lie::None));
        let error = Lie::named("fib").expect_err("no lie");
        assert!(error.starts_with("LIE=\"fib\"") && !error.contains('\n'));
        assert!(LIES.iter().all(|(_, name, _)| error.contains(name)));
    }

    #[test]
    fn every_tenth_and_every_share_is_exact() {
        let tenth = Lies::new(Plan::of(Lie::SkipResult));
        let struck: Vec<u64> = (1..=30).filter(|_| tenth.strikes(Lie::SkipResult)).collect();
        assert_eq!(struck, [10, 20, 30]);
        assert!(!tenth.strikes(Lie::DoubleResult), "another lie");
        for (share, expected) in [(0.0, 0), (0.1, 10), (0.29, 29), (1.0, 100)] {
            let mut plan = Plan::of(Lie::Refuse);
            plan.numbers.share = Some(share);
            let lies = Lies::new(plan);
            assert_eq!((0..100).filter(|_| lies.strikes(Lie::Refuse)).count(), expected, "{share}");
        }
    }

    #[test]
    fn delays_are_of_the_lie_alone() {
        let ms = Duration::from_millis;
        let of = |lie| Lies::new(Plan::of(lie));
        let delays = |lie| (of(lie).result_delay(10), of(lie).reply_delay(10), of(lie).work(10));
        assert_eq!(delays(Lie::None), (ms(0), ms(0), ms(0)));
        assert_eq!(delays(Lie::LateResults), (ms(500), ms(0), ms(0)));
        assert_eq!(delays(Lie::LateReplies), (ms(0), ms(500), ms(0)));
        assert_eq!(delays(Lie::SlowDown), (ms(20), ms(20), ms(0)));
        assert_eq!(delays(Lie::Spin), (ms(0), ms(0), Duration::from_micros(100)));
        assert_eq!(of(Lie::Gap).result_delay(1), ms(0), "its LIE_MS is another");
    }

    #[test]
    fn claims_are_true_but_for_the_lie() {
        let of = |lie| Lies::new(Plan::of(lie));
        assert!((of(Lie::None).claimed_ms(5.0) - 5.0).abs() < 1e-9);
        assert!((of(Lie::WrongProviderMs).claimed_ms(5.0) - 105.0).abs() < 1e-9);
        assert_eq!(of(Lie::None).claimed(1000), 1000);
        assert_eq!(of(Lie::LieInMetrics).claimed(1000), 1100);
    }
}
