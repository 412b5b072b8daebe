//! What a load counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::Profile;

/// What a load counts: the field of the name `sessions` in every record is a number of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    /// Sessions that are open.
    #[default]
    Sessions,
    /// Connections that are open.
    Connections,
    /// Connections that arrive each second.
    ConnectionsPerSecond,
    /// Messages that are sent each second, over all connections.
    MessagesPerSecond,
    /// Connections that receive what one of them publishes.
    Receivers,
}

impl LoadUnit {
    /// Whether it is a rate: then a load costs CPU time per event, not per session and second.
    #[must_use]
    pub fn is_rate(self) -> bool {
        matches!(self, Self::ConnectionsPerSecond | Self::MessagesPerSecond)
    }

    /// Whether it is the usual one, which records need not name.
    #[must_use]
    pub fn is_sessions(&self) -> bool {
        *self == Self::Sessions
    }

    /// Makes a profile what it is for such a load: where the load is connections that arrive, no time passes before they do.
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
