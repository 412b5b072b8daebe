//! The time of day, as written in records. Measurements use the monotonic clock instead.

/// The current time in UTC, in RFC 3339 format, to the second.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// The time of these seconds since 1970, in the same format. Beyond the year 9999 it is that year's end.
#[must_use]
pub fn of_epoch(seconds: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let since = std::time::Duration::from_secs(seconds.min(LAST));
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_since_1970_are_a_time() {
        assert_eq!(of_epoch(1_000_000_000), "2001-09-09T01:46:40Z");
        assert_eq!(of_epoch(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
