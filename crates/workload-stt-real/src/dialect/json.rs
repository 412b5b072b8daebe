//! Fields of JSON messages, read one by one, so that what is wrong has a name.
//!
//! A message is first read as a set of raw fields, borrowed; a field is read when the type of the message needs it. So a
//! field that nobody needs may have any type, as servers differ in those.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::NS_PER_US;
use super::event::Fault;

/// The longest audio time that is believed: thirty days. No session is as long.
pub(super) const AUDIO_MAX_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

/// A field that may be there; `null` counts as missing.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// A text that borrows from the message unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a message as a set of raw fields.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    // An array of as many values would pass for an object.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Fault::Json);
    }
    serde_json::from_str(text).map_err(|_| Fault::Json)
}

/// A field that must be there.
pub(super) fn need<'a>(raw: Raw<'a>, name: &'static str) -> Result<&'a RawValue, Fault> {
    raw.ok_or(Fault::Missing(name))
}

/// A needed object or array, as a type of raw fields.
pub(super) fn part<'a, T: Deserialize<'a>>(raw: Raw<'a>, name: &'static str) -> Result<T, Fault> {
    serde_json::from_str(need(raw, name)?.get()).map_err(|_| Fault::Mistyped(name))
}

/// A needed text.
pub(super) fn text<'a>(raw: Raw<'a>, name: &'static str) -> Result<Cow<'a, str>, Fault> {
    part::<Text<'a>>(raw, name).map(|text| text.0)
}

/// A text that may be missing.
pub(super) fn text_or_empty<'a>(raw: Raw<'a>, name: &'static str) -> Result<Cow<'a, str>, Fault> {
    raw.map_or(Ok(Cow::Borrowed("")), |_| text(raw, name))
}

/// A truth that is false if it is missing.
pub(super) fn flag(raw: Raw<'_>, name: &'static str) -> Result<bool, Fault> {
    raw.map_or(Ok(false), |_| part(raw, name))
}

/// A needed whole number.
pub(super) fn whole(raw: Raw<'_>, name: &'static str) -> Result<u64, Fault> {
    part(raw, name)
}

/// A needed audio time in seconds, as nanoseconds.
pub(super) fn seconds(raw: Raw<'_>, name: &'static str) -> Result<u64, Fault> {
    ns_of_seconds(part(raw, name)?, name)
}

/// A needed audio time in milliseconds, as nanoseconds.
pub(super) fn milliseconds(raw: Raw<'_>, name: &'static str) -> Result<u64, Fault> {
    ns_of_seconds(part::<f64>(raw, name)? / 1000.0, name)
}

/// The same where the number may be written as a text.
pub(super) fn seconds_or_text(raw: Raw<'_>, name: &'static str) -> Result<u64, Fault> {
    match text(raw, name) {
        Ok(text) => ns_of_seconds(
            text.trim().parse().map_err(|_| Fault::Mistyped(name))?,
            name,
        ),
        Err(Fault::Mistyped(_)) => seconds(raw, name),
        Err(fault) => Err(fault),
    }
}

/// Seconds as nanoseconds, rounded to whole microseconds.
pub(super) fn ns_of_seconds(seconds: f64, name: &'static str) -> Result<u64, Fault> {
    let us = (seconds * 1e6).round();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a bound; it has far fewer than 53 bits in microseconds"
    )]
    let most_us = (AUDIO_MAX_NS / NS_PER_US) as f64;
    if !(0.0..=most_us).contains(&us) {
        return Err(Fault::Time(name));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and within the bounds just tested"
    )]
    let us = us as u64;
    Ok(us * NS_PER_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn seconds_are_whole_microseconds_and_never_a_strange_time() {
        for (text, time) in [
            ("1.2", Ok(1_200_000_000)),
            ("1.2000000476837158", Ok(1_200_000_000)),
            ("7", Ok(7_000_000_000)),
            ("0", Ok(0)),
            ("-0.0", Ok(0)),
            ("-0.1", Err(Fault::Time("at"))),
            ("1e12", Err(Fault::Time("at"))),
            ("1e999", Err(Fault::Mistyped("at"))),
            ("\"1.2\"", Err(Fault::Mistyped("at"))),
        ] {
            assert_eq!(seconds(Some(&raw(text)), "at"), time, "{text}");
        }
        assert_eq!(seconds(None, "at"), Err(Fault::Missing("at")));
        assert_eq!(ns_of_seconds(f64::NAN, "at"), Err(Fault::Time("at")));
        assert_eq!(milliseconds(Some(&raw("250")), "at"), Ok(250_000_000));
        for (text, time) in [
            ("\"2.340\"", Ok(2_340_000_000)),
            ("2.34", Ok(2_340_000_000)),
            ("\"NaN\"", Err(Fault::Time("at"))),
            ("\"-1\"", Err(Fault::Time("at"))),
            ("\"soon\"", Err(Fault::Mistyped("at"))),
            ("[2]", Err(Fault::Mistyped("at"))),
        ] {
            assert_eq!(seconds_or_text(Some(&raw(text)), "at"), time, "{text}");
        }
    }

    #[test]
    fn a_text_borrows_unless_it_has_escapes() {
        let (plain, escaped) = (raw(r#""né""#), raw(r#""n\u00e9""#));
        assert!(matches!(text(Some(&plain), "t"), Ok(Cow::Borrowed("né"))));
        assert!(matches!(text(Some(&escaped), "t"), Ok(Cow::Owned(owned)) if owned == "né"));
        assert_eq!(text(Some(&raw("3")), "t"), Err(Fault::Mistyped("t")));
    }
}
