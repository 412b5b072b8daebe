//! Caveats: named reasons for doubt, each with its remedy.
//!
//! A blocking caveat makes the trial `invalid`: the measurement itself was the limit. The trial then says nothing about
//! the target, good or bad.
//!
//! - `evidence`: what a trial shows about its own soundness, the limits that apply, and the doubts that follow;
//! - `terms`: what a workload calls things;
//! - `text`: the text of each doubt, with its remedy;
//! - [`clock_jump`]: whether a clock was set or the machine slept.

pub mod clock_jump;
mod evidence;
mod terms;
mod text;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clock_jump::ClockJump;
pub use evidence::{Driver, Evidence, GateSamples, Limits, OtherProgram, Starved, Watcher, doubts};
pub use terms::{CompanionTerms, Terms};

use crate::record::{Moved, SanityCheck};
use crate::sanity::Account;

/// A reason for doubt, as recorded in a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Stable name, in kebab case.
    pub id: String,
    /// Whether it makes the trial `invalid`.
    pub blocking: bool,
    /// What was seen, and what to do about it.
    pub text: String,
}

/// Caveats for cases in which the client or the machine ran out before the target did.
const CLIENT_RAN_OUT: [&str; 9] = [
    "send-lag",
    "client-busy",
    "client-starved",
    "reader-behind",
    "achieved-load",
    "client-fault",
    "steal",
    "target-starved",
    "machine-bound",
];

/// Ends of the ids of a companion's caveats, after [`CompanionTerms::id`]. A record may be of a workload that this program
/// does not know, so a recorded caveat is recognised by its end. At these two ends the companion ran out before the
/// target did.
const SATURATED: &str = "-saturated";
const QUEUED: &str = "-queued";
const GONE: &str = "-gone";

/// Of the first, the ones where something that both parties share ran out, and not the client.
const MACHINE_RAN_OUT: [&str; 2] = ["target-starved", "machine-bound"];

/// Caveats that would be the same at every other load.
const HOPELESS: [&str; 4] = [
    "shared-cores",
    "back-end-bypassed",
    "interrupted",
    "recogniser-unfit",
];

impl Caveat {
    /// The caveat for a doubt, in the terms of a workload.
    #[must_use]
    pub fn of(doubt: &Doubt, terms: &Terms) -> Self {
        Self {
            id: doubt.id(terms).into_owned(),
            blocking: doubt.blocking(),
            text: text::of(doubt, terms),
        }
    }

    /// Whether the client or the machine ran out, so that no higher load can be tried here.
    #[must_use]
    pub fn client_ran_out(&self) -> bool {
        let of_companion = [SATURATED, QUEUED].iter().any(|end| self.id.ends_with(end));
        self.blocking && (of_companion || CLIENT_RAN_OUT.contains(&self.id.as_str()))
    }

    /// Whether it is about the program beside the target: late, out of places or gone.
    #[must_use]
    pub fn of_companion(&self) -> bool {
        [SATURATED, QUEUED, GONE]
            .iter()
            .any(|end| self.id.ends_with(end))
    }

    /// Whether the machine ran out, and not the client.
    #[must_use]
    pub fn machine_ran_out(&self) -> bool {
        self.blocking && MACHINE_RAN_OUT.contains(&self.id.as_str())
    }

    /// Whether no other load would fix it, so that a search need not continue.
    #[must_use]
    pub fn hopeless(&self) -> bool {
        self.blocking && HOPELESS.contains(&self.id.as_str())
    }
}

/// One side of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The load engine, and what runs beside the target.
    Client,
    /// The target.
    Target,
}

/// Every reason for doubt that Plimsoll knows, with what was observed.
#[derive(Debug, Clone, PartialEq)]
pub enum Doubt {
    /// The client wrote frames late, through its own fault.
    SendLag {
        /// 99.9th percentile of the send lag, in µs.
        p999_us: f64,
        /// The most that is allowed, in µs.
        limit_us: f64,
        /// Who else may have run on its CPUs.
        others: Vec<OtherProgram>,
    },
    /// An engine thread had no time left.
    ClientBusy {
        /// Share of its core that the busiest engine thread used.
        share: f64,
        /// The most that is allowed.
        limit: f64,
    },
    /// An engine thread, or the kernel thread that receives for it, was ready but did not get its core.
    ClientStarved {
        /// Share of the time that it waited for its core.
        share: f64,
        /// The time that this is a share of, in words.
        of: &'static str,
        /// The most that is allowed.
        limit: f64,
        /// Who else may have run on its CPUs.
        others: Vec<OtherProgram>,
    },
    /// An agent did not carry its part to the end.
    AgentLost {
        /// Why, as a clause.
        why: String,
    },
    /// An agent's clock may be far from the coordinator's, so its sessions may begin at another time than those of the
    /// other agents.
    ClockError {
        /// By so much at most, in ms.
        error_ms: f64,
        /// The most that goes unmentioned, in ms.
        limit_ms: f64,
        /// Whether it is so much that the ramp is not the one that was asked for.
        blocking: bool,
    },
    /// The observer of the target did not watch to the end.
    ObserverLost {
        /// The name of its machine.
        host: String,
        /// Why, as a clause.
        why: String,
    },
    /// The observer's clock may be far from the coordinator's, so its samples may be of another time than the load.
    ObserverClock {
        /// The name of its machine.
        host: String,
        /// By so much at most, in ms.
        error_ms: f64,
        /// The most that goes unmentioned, in ms.
        limit_ms: f64,
    },
    /// A doubt about one agent.
    AtAgent {
        /// Its number and its host.
        agent: String,
        /// What is doubtful there.
        doubt: Box<Doubt>,
    },
    /// The client did not write the requested load.
    AchievedLoad {
        /// Share of it that was written in time, or that the target did not take.
        share: f64,
        /// The least that is needed.
        limit: f64,
    },
    /// The companion answered late, through its own fault.
    CompanionSaturated {
        /// 99th percentile of an answer's lateness relative to its drawn latency, in ms.
        lateness_p99_ms: f64,
        /// The most that is allowed, in ms.
        limit_ms: f64,
    },
    /// The companion ended, or stopped answering, before the window ended.
    CompanionGone,
    /// Requests waited for a free place in the companion.
    CompanionQueued {
        /// 99th percentile of that wait, in ms.
        wait_p99_ms: f64,
        /// The most that is allowed, in ms.
        limit_ms: f64,
    },
    /// The client's own machine ran out of something.
    ClientFault {
        /// What failed: `EMFILE`, `EADDRNOTAVAIL`, …
        what: String,
        /// How often it failed.
        count: u64,
    },
    /// The hypervisor took CPU time from the client or the target.
    Steal {
        /// Whose CPU time it took.
        party: Party,
        /// Share of the time of that party's CPUs that the hypervisor took in the measured window.
        share: f64,
        /// The most that is allowed.
        limit: f64,
    },
    /// Other programs used the target's cores, and the target was late.
    TargetStarved {
        /// Of the CPU time that the target was given, the share that others used.
        taken_share: f64,
        /// Time that its threads, or the kernel thread that receives for it, waited for a core, as a share of the
        /// window.
        wait_share: f64,
        /// The most that is allowed for each of the two.
        limit: f64,
    },
    /// A clock was set, or the machine slept, during the trial.
    ClockJump(ClockJump),
    /// Two accounts of the same thing, kept by two parties or in two ways, disagree.
    AccountsDisagree {
        /// Which account.
        account: Account,
        /// What each says.
        check: SanityCheck,
    },
    /// The machine ran out of something that client and target share, or that one of them needed, before the target
    /// reached its own limit.
    MachineBound {
        /// What it ran out of: open files, ports, memory.
        what: String,
    },
    /// The target read messages that were never handed to its application.
    Unprocessed {
        /// Messages that the target is proven to have read.
        read: u64,
        /// Messages handed to its application, by the target's own count.
        processed: u64,
    },
    /// Nothing shows that the target decodes the format that it was sent.
    FormatOpaque {
        /// The format.
        format: String,
    },
    /// A target's latency is little more than that of the target that does the least.
    NearFloor {
        /// Its median latency from the write, in ms.
        p50_ms: f64,
        /// The target that does the least.
        floor: String,
        /// The median latency of that one.
        floor_ms: f64,
    },
    /// Target and client ran on the same cores.
    SharedCores,
    /// The target says that it never asks its back end, so this is not checked.
    BackEndUnchecked,
    /// The requested CPU quota could not be set.
    NoQuota {
        /// The quota asked for, in vCPU.
        vcpu: f64,
        /// Why it could not be set.
        why: String,
    },
    /// The same small work takes a different time than when the measurement began.
    MachineMoved(Moved),
    /// Target and client are on the loopback, where the sender's core does the receiver's work.
    ClientPaysReceive {
        /// Why they are on the loopback.
        why: String,
    },
    /// Plimsoll did not start the target, so its resources are unknown. It is also unknown whether the target shares
    /// the client's cores.
    NoResources,
    /// Ctrl-C or a signal ended the trial early.
    Interrupted,
    /// The measured window has too few samples for a gated percentile.
    TooFewSamples(GateSamples),
}

impl Doubt {
    /// The same, about this agent.
    #[must_use]
    pub fn at(self, agent: &str) -> Self {
        Self::AtAgent {
            agent: agent.to_owned(),
            doubt: Box::new(self),
        }
    }

    /// The doubt itself, whichever agent it is about.
    #[must_use]
    pub fn itself(&self) -> &Self {
        match self {
            Self::AtAgent { doubt, .. } => doubt.itself(),
            doubt => doubt,
        }
    }

    /// The doubt's name in results, in the terms of a workload.
    #[must_use]
    pub fn id(&self, terms: &Terms) -> Cow<'static, str> {
        let of_companion = |end: &str| Cow::Owned(format!("{}{end}", terms.companion.id));
        Cow::Borrowed(match self {
            Self::SendLag { .. } => "send-lag",
            Self::ClientBusy { .. } => "client-busy",
            Self::ClientStarved { .. } => "client-starved",
            Self::AgentLost { .. } => "agent-lost",
            Self::ObserverLost { .. } => "observer-lost",
            Self::ClockError { .. } | Self::ObserverClock { .. } => "clock-error",
            Self::AtAgent { doubt, .. } => return doubt.id(terms),
            Self::AchievedLoad { .. } => "achieved-load",
            Self::CompanionSaturated { .. } => return of_companion(SATURATED),
            Self::CompanionGone => return of_companion(GONE),
            Self::CompanionQueued { .. } => return of_companion(QUEUED),
            Self::ClientFault { .. } => "client-fault",
            Self::Steal { .. } => "steal",
            Self::TargetStarved { .. } => "target-starved",
            Self::ClockJump(_) => "clock-jump",
            Self::AccountsDisagree { account, .. } => account.caveat_id(),
            Self::MachineBound { .. } => "machine-bound",
            Self::Unprocessed { .. } => "unprocessed",
            Self::FormatOpaque { .. } => "format-opaque",
            Self::NearFloor { .. } => "near-floor",
            Self::SharedCores => "shared-cores",
            Self::BackEndUnchecked => "back-end-unchecked",
            Self::NoQuota { .. } => "no-quota",
            Self::MachineMoved(_) => "machine-moved",
            Self::ClientPaysReceive { .. } => "client-pays-receive",
            Self::NoResources => "no-resources",
            Self::Interrupted => "interrupted",
            Self::TooFewSamples(_) => "too-few-samples",
        })
    }

    /// Whether it makes the trial `invalid`.
    #[must_use]
    pub fn blocking(&self) -> bool {
        match self {
            Self::SendLag { .. }
            | Self::ClientBusy { .. }
            | Self::ClientStarved { .. }
            | Self::AgentLost { .. }
            | Self::ObserverLost { .. }
            | Self::AchievedLoad { .. }
            | Self::CompanionSaturated { .. }
            | Self::CompanionGone
            | Self::CompanionQueued { .. }
            | Self::ClientFault { .. }
            | Self::Steal { .. }
            | Self::TargetStarved { .. }
            | Self::ClockJump(_)
            | Self::AccountsDisagree { .. }
            | Self::MachineBound { .. }
            | Self::SharedCores
            | Self::Interrupted
            | Self::TooFewSamples(_) => true,
            Self::Unprocessed { .. }
            | Self::FormatOpaque { .. }
            | Self::NearFloor { .. }
            | Self::BackEndUnchecked
            | Self::NoQuota { .. }
            | Self::MachineMoved(_)
            | Self::ClientPaysReceive { .. }
            | Self::ObserverClock { .. }
            | Self::NoResources => false,
            Self::ClockError { blocking, .. } => *blocking,
            Self::AtAgent { doubt, .. } => doubt.blocking(),
        }
    }

    /// What was seen, and the remedy, in terms of no workload.
    #[must_use]
    pub fn text(&self) -> String {
        text::of(self, &Terms::default())
    }
}

impl From<&Doubt> for Caveat {
    fn from(doubt: &Doubt) -> Self {
        Self::of(doubt, &Terms::default())
    }
}

#[cfg(test)]
mod tests;
