//! `Date`, formatted once a second.

use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a date.
pub const DATE_BYTES: usize = 29;

/// The date of the second in which it was last looked at.
#[derive(Debug, Clone)]
pub struct Date {
    second: u64,
    text: [u8; DATE_BYTES],
}

impl Default for Date {
    fn default() -> Self {
        Self { second: 0, text: format(0) }
    }
}

impl Date {
    /// Brings it up to date.
    pub fn refresh(&mut self, now: SystemTime) {
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second != self.second {
            *self = Self { second, text: format(second) };
        }
    }

    /// The text, as in RFC 9110, section 5.6.7.
    pub fn text(&self) -> &[u8; DATE_BYTES] {
        &self.text
    }
}

fn format(second: u64) -> [u8; DATE_BYTES] {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, time) = (second / 86_400, second % 86_400);
    let weekday = DAYS[(days % 7) as usize];
    let (mut year, mut day) = (1970, days);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let month = MONTHS[month];
    let text = format!("{weekday}, {:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT", day + 1);
    text.as_bytes().try_into().expect("a date of 29 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            // The example of RFC 9110.
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            let mut date = Date::default();
            date.refresh(UNIX_EPOCH + Duration::from_secs(second));
            assert_eq!(std::str::from_utf8(date.text()), Ok(text));
        }
    }
}
