//! The path of packets between the client and a target that Plimsoll started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network between the client and a target that Plimsoll started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// The kind of network.
    pub mode: NetworkMode,
    /// Why the loopback was used; `null` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The largest packet of the virtual cards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// The client's card, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<NetworkEnd>,
    /// The target's card, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NetworkEnd>,
}

/// Which CPUs do the work of receiving.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// The target has its own network namespace behind a pair of virtual cards. Each side's CPUs receive the packets
    /// for that side.
    Own,
    /// Both are on the loopback: the sender's CPU does the receiver's work.
    #[default]
    Loopback,
}

impl NetworkMode {
    /// Its name in flags and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Loopback => "loopback",
        }
    }
}

/// How a card's packets reach its owner's CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkReceive {
    /// The sender interrupts one of these CPUs for packets that it does not know of yet (`rps_cpus`).
    #[default]
    Steering,
    /// A kernel thread on these CPUs collects the packets that have gathered (threaded NAPI), as behind a card that
    /// delays its interrupts.
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
    /// The CPUs that process the packets for this end.
    pub receive_cpus: Vec<u32>,
    /// How they receive.
    #[serde(default, skip_serializing_if = "NetworkReceive::is_steering")]
    pub receive: NetworkReceive,
    /// How long a receiving thread waits before it looks again while packets arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_delay_us: Option<u32>,
    /// What the card does instead of the network stack, as the kernel reports it: names of `ethtool -k`.
    pub offloads: Vec<String>,
}
