//! The time of day as records carry it. Nothing is measured by it: that is the monotonic clock's.

/// Now, RFC 3339 in UTC, to the second.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}
