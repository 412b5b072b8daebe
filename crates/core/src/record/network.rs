//! How packets went between the client and a target that Plimsoll started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network between the client and a target that Plimsoll started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Which.
    pub mode: NetworkMode,
    /// Why it was the loopback; `null` when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The longest packet of the cards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// The client's card, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<NetworkEnd>,
    /// The target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NetworkEnd>,
}

/// Whose CPUs do the work of receiving.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// The target is in a network namespace of its own, behind a pair of virtual cards, and each side's CPUs receive what comes to it.
    Own,
    /// Both are on the loopback: the sender's CPU does the receiver's work.
    #[default]
    Loopback,
}

impl NetworkMode {
    /// As in flags and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Loopback => "loopback",
        }
    }
}

/// How a card's packets come to its owner's CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkReceive {
    /// The sender interrupts one of them for packets that it does not know of yet (`rps_cpus`).
    #[default]
    Steering,
    /// A kernel thread on them takes what has gathered (threaded NAPI), as behind a card that holds back its interrupts.
    Thread,
}

impl NetworkReceive {
    fn is_steering(&self) -> bool {
        *self == Self::Steering
    }
}

/// One end of a pair of virtual cards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkEnd {
    /// Its address.
    pub address: String,
    /// The CPUs that work on the packets that come to it.
    pub receive_cpus: Vec<u32>,
    /// How they do it.
    #[serde(default, skip_serializing_if = "NetworkReceive::is_steering")]
    pub receive: NetworkReceive,
    /// How long a thread that receives waits before it looks again, while packets come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_us: Option<u32>,
    /// What the card does in place of the stack, as the kernel has it: names of `ethtool -k`.
    pub offloads: Vec<String>,
}
