//! What a load counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Profile;

/// What a load counts: the unit of the field `sessions` in every record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    /// Open sessions.
    #[default]
    Sessions,
    /// Open connections.
    Connections,
    /// Connections that arrive each second.
    ConnectionsPerSecond,
    /// Messages sent each second, over all connections.
    MessagesPerSecond,
    /// Connections that receive what one of them publishes.
    Receivers,
}

impl LoadUnit {
    /// Whether it is a rate. A load then costs CPU time per event, not per session-second.
    #[must_use]
    pub fn is_rate(self) -> bool {
        matches!(self, Self::ConnectionsPerSecond | Self::MessagesPerSecond)
    }

    /// Whether it is the default, which records need not name.
    #[must_use]
    pub fn is_sessions(&self) -> bool {
        *self == Self::Sessions
    }

    /// Adapts a profile to this kind of load: if the load is connections that arrive, there is no ramp.
    pub fn shape(self, profile: &mut Profile) {
        if self == Self::ConnectionsPerSecond {
            profile.ramp_s = 0.0;
        }
    }

    /// Its name in the plural, for tables and axes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Connections => "connections",
            Self::ConnectionsPerSecond => "connections per second",
            Self::MessagesPerSecond => "messages per second",
            Self::Receivers => "receivers",
        }
    }
}
