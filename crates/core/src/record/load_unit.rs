//! What a load counts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::profile::Profile;

/// What a load counts: the unit of the field `sessions` in every record. It is a noun in the plural, with an underscore
/// between words; a rate ends with `_per_second`. Everything else that a page says of it follows from that name, so a
/// result of an unknown workload has its words too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadUnit(&'static str);

/// The end of the name of a rate.
const PER_SECOND: &str = "_per_second";
/// The longest name in a record.
const NAME_BYTES_MAX: usize = 40;
/// How many names that are not constants a process keeps.
const NAMES_MAX: usize = 100;

impl LoadUnit {
    /// Open sessions.
    pub const SESSIONS: Self = Self("sessions");
    /// Open connections.
    pub const CONNECTIONS: Self = Self("connections");
    /// Connections that arrive each second.
    pub const CONNECTIONS_PER_SECOND: Self = Self("connections_per_second");
    /// Messages sent each second, over all connections.
    pub const MESSAGES_PER_SECOND: Self = Self("messages_per_second");
    /// Connections that receive what one of them publishes.
    pub const RECEIVERS: Self = Self("receivers");

    /// A workload's own unit, by its name in records.
    #[must_use]
    pub const fn of(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name in records.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.0
    }

    /// Whether it is a rate. A load then costs CPU time per event, not per session-second.
    #[must_use]
    pub fn is_rate(self) -> bool {
        self.0.ends_with(PER_SECOND)
    }

    /// Whether it is the default, which records need not name.
    #[must_use]
    pub fn is_sessions(&self) -> bool {
        *self == Self::SESSIONS
    }

    /// Whether the load is connections that arrive.
    #[must_use]
    pub fn is_arrivals(self) -> bool {
        self == Self::CONNECTIONS_PER_SECOND
    }

    /// What the client opens to make the load, in the plural: sessions, or connections that share it.
    #[must_use]
    pub fn opened(self) -> &'static str {
        if self.is_sessions() {
            "sessions"
        } else {
            "connections"
        }
    }

    /// Adapts a profile to this kind of load: if the load is connections that arrive, there is no ramp.
    pub fn shape(self, profile: &mut Profile) {
        if self.is_arrivals() {
            profile.ramp_s = 0.0;
        }
    }

    /// Its name in the plural, for tables and axes: `messages per second`.
    #[must_use]
    pub fn name(self) -> String {
        self.0.replace('_', " ")
    }

    /// What there is one of in a load of one, without the time: `message`.
    #[must_use]
    pub fn noun(self) -> String {
        let plural = self.0.strip_suffix(PER_SECOND).unwrap_or(self.0);
        let words = plural.replace('_', " ");
        words.strip_suffix('s').unwrap_or(&words).to_owned()
    }

    /// A unit by its name in records.
    ///
    /// # Errors
    /// When it cannot be such a name.
    pub fn named(name: &str) -> Result<Self, String> {
        let letters = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !letters || !(2..=NAME_BYTES_MAX).contains(&name.len()) {
            return Err(format!(
                "a unit is a noun of at most {NAME_BYTES_MAX} lower-case letters and underscores"
            ));
        }
        interned(name).map(Self)
    }
}

/// The same text for as long as the process lives. There are few units, so few texts are kept.
fn interned(name: &str) -> Result<&'static str, String> {
    static NAMES: LazyLock<Mutex<BTreeSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() >= NAMES_MAX {
        return Err(format!("more than {NAMES_MAX} different units"));
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    Ok(kept)
}

impl Default for LoadUnit {
    fn default() -> Self {
        Self::SESSIONS
    }
}

impl Serialize for LoadUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for LoadUnit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Self::named(&name).map_err(de::Error::custom)
    }
}

impl JsonSchema for LoadUnit {
    fn schema_name() -> Cow<'static, str> {
        "LoadUnit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What a load counts: a noun in the plural; a rate ends with `_per_second`.",
            "type": "string",
            "pattern": "^[a-z_]{2,40}$",
            "examples": [
                Self::SESSIONS.0,
                Self::CONNECTIONS.0,
                Self::CONNECTIONS_PER_SECOND.0,
                Self::MESSAGES_PER_SECOND.0,
                Self::RECEIVERS.0
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_unit_has_its_words_and_comes_back() {
        let unit: LoadUnit = serde_json::from_str("\"requests_per_second\"").unwrap();
        assert!(unit.is_rate() && !unit.is_sessions());
        assert_eq!(unit.name(), "requests per second");
        assert_eq!(unit.noun(), "request");
        assert_eq!(
            serde_json::to_string(&unit).unwrap(),
            "\"requests_per_second\""
        );
        assert_eq!(LoadUnit::named("requests_per_second"), Ok(unit));
    }

    #[test]
    fn what_cannot_be_a_unit_is_refused() {
        for name in ["", "s", "Sessions", "sessions\n", "<b>", &"s".repeat(41)] {
            assert!(LoadUnit::named(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_constant_and_its_name_are_the_same() {
        assert_eq!(LoadUnit::named("sessions"), Ok(LoadUnit::SESSIONS));
        assert_eq!(LoadUnit::RECEIVERS.noun(), "receiver");
        assert_eq!(LoadUnit::CONNECTIONS_PER_SECOND.noun(), "connection");
    }
}
