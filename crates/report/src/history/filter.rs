//! Selects results.

use std::time::SystemTime;

use super::Kind;

/// Which results to select: those that match every given field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Of this target. A comparison or a ranking matches each of its targets.
    pub target: Option<String>,
    /// Of this workload.
    pub workload: Option<String>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Begun at this time or later.
    pub since: Option<SystemTime>,
    /// With this many vCPU for the target.
    pub vcpu: Option<f64>,
    /// At most this many, the newest.
    pub limit: Option<u32>,
}

/// Parses a time in one of the forms that people use: a date (`2026-01-31`), a time (`2026-01-31T12:00:00Z`, in UTC),
/// or how long ago (`7d`, `12h`, `2 weeks`). `None` for anything else.
#[must_use]
pub fn since(text: &str, now: SystemTime) -> Option<SystemTime> {
    let text = text.trim();
    let at = if text.len() == "2026-01-31".len() {
        humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok()
    } else {
        humantime::parse_rfc3339_weak(text).ok()
    };
    at.or_else(|| {
        let ago = humantime::parse_duration(text).ok()?;
        now.checked_sub(ago)
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn dates_times_and_durations_are_understood() {
        let now = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        let at = |s| Some(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(since("2026-01-01", now), at(1_767_225_600));
        assert_eq!(since("2026-01-02T03:04:05Z", now), at(1_767_323_045));
        assert_eq!(since("7d", now), at(1_767_323_045 - 7 * 86_400));
        assert_eq!(since(" 12h ", now), at(1_767_323_045 - 12 * 3_600));
        for odd in [
            "",
            "yesterday",
            "2026-13-01",
            "-7d",
            "0x7d",
            "99999999999999999999y",
        ] {
            assert_eq!(since(odd, now), None, "{odd}");
        }
    }
}
