//! The time of day, as written in records. Measurements use the monotonic clock instead.

/// The current time in UTC, in RFC 3339 format, to the second.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}
