//! Dates as RFC 9110 writes them.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

pub(super) const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`; `None` if it is written otherwise, or the day of the week
/// is another.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (day_name, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else {
        return None;
    };
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    let possible = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let days = days_since_1970(year, month, day).filter(|_| possible)?;
    let named = DAYS.iter().position(|name| *name == day_name)? as u64;
    (days % 7 == named).then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|letter| letter.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// A year begins in March here, so that the day that is not in every year is its last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month < 3 {
        (year.checked_sub(1)?, month + 9)
    } else {
        (year, month - 3)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // From March, months have 31, 30, 31, 30, 31 days, again and again.
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Mon, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 8:49:37 GMT", None),
            ("1994-11-06T08:49:37Z", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
