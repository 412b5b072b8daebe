//! Numbers and their units in words, so that every result says them in the same way.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{GateResult, Target, Trial};

/// Shown where a value was not observed.
pub const UNKNOWN: &str = "–";

/// A whole number with commas: `1,650`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with as many decimals as make sense for its size: `1,650.4`, `85.2`, `0.31`, `1e-5`.
#[must_use]
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        UNKNOWN.to_owned()
    } else if magnitude == 0.0 {
        "0".to_owned()
    } else if magnitude < 0.001 {
        short_exponent(value)
    } else if magnitude < 1.0 {
        decimals(value, 3)
    } else if magnitude < 10.0 {
        decimals(value, 2)
    } else {
        decimals(value, 1)
    }
}

fn short_exponent(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
            format!("{mantissa}e{exponent}")
        }
        _ => text,
    }
}

/// Rounded, with commas, without trailing zeros.
fn decimals(value: f64, places: usize) -> String {
    let text = format!("{:.places$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 { "-" } else { "" };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// The observed value, with enough decimals that it does not look equal to a threshold from which it differs.
#[must_use]
pub fn observed(gate: &GateResult) -> String {
    let Some(value) = gate.observed else {
        return "not observed".to_owned();
    };
    let threshold = number(gate.threshold);
    let short = number(value);
    if short != threshold || value.to_bits() == gate.threshold.to_bits() {
        return short;
    }
    if short.contains('e') {
        return format!("{value:e}");
    }
    // With fewer places than that, it would look like less than it is.
    let places = short.split_once('.').map_or(0, |(_, places)| places.len());
    (places + 1..=9)
        .map(|places| decimals(value, places))
        .find(|text| *text != threshold)
        .unwrap_or(short)
}

/// Milliseconds: `1,402 ms`, `85.2 ms`, `1.27 ms`, `0.085 ms`.
#[must_use]
pub fn ms(value: f64) -> String {
    format!("{} ms", ms_digits(value))
}

/// The same without the unit, for columns that name it. Below 10 ms there are three significant digits, down to the
/// microsecond, because an answer can take less than one millisecond.
#[must_use]
pub fn ms_digits(value: f64) -> String {
    let places = match value.abs() {
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    decimals(value, places)
}

/// Microseconds, or milliseconds from a thousand on: `310 µs`, `1.2 ms`.
#[must_use]
pub fn us(value: f64) -> String {
    if value >= 1_000.0 {
        format!("{} ms", number(value / 1_000.0))
    } else {
        format!("{} µs", decimals(value, if value < 10.0 { 1 } else { 0 }))
    }
}

/// A share as percent: `41 %`, `0.4 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    format!(
        "{} %",
        decimals(percent, if percent < 10.0 { 1 } else { 0 })
    )
}

/// Bytes in binary units: `81.3 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    bytes_as(value, |scaled| decimals(scaled, 1))
}

/// Bytes in binary units, with more digits for small values, to compare them: `1.08 GiB`.
#[must_use]
pub fn bytes_finely(value: f64) -> String {
    bytes_as(value, number)
}

fn bytes_as(value: f64, digits: impl Fn(f64) -> String) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(scaled), UNITS[unit])
}

/// The same for a whole number of bytes.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with four digits at most")]
pub fn whole_bytes(value: u64) -> String {
    bytes(value as f64)
}

/// A value that may be unknown.
#[must_use]
pub fn maybe(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), format)
}

/// Things, counted: `1 trial`, `1,650 trials`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number))
}

/// Text from outside on one line. Characters that could move a terminal's cursor, break a table or change the reading
/// direction become spaces.
#[must_use]
pub fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    text.chars()
        .map(|c| if c.is_control() || turns(c) { ' ' } else { c })
        .collect()
}

/// A target by its name, with its variant where it has one: `nginx (tuned)`.
#[must_use]
pub fn target(target: &Target) -> String {
    with_variant(&target.name, target.variant.as_deref())
}

/// A name, with the variant where there is one.
#[must_use]
pub fn with_variant(name: &str, variant: Option<&str>) -> String {
    match variant {
        Some(variant) => plain(&format!("{name} ({variant})")),
        None => plain(name),
    }
}

/// The text with its first letter capitalised.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// A share near one, with enough decimals to tell it from 99.9 %.
#[must_use]
pub fn near_whole(share: Option<f64>) -> String {
    maybe(share, |share| {
        format!("{} %", number_of_places(share * 100.0))
    })
}

/// Three decimals, rounded down, because 99.9996 % is not everything.
fn number_of_places(percent: f64) -> String {
    let down = (percent * 1e3).floor() / 1e3;
    let text = format!("{down:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The length of a trial in one word; empty for a full trial.
#[must_use]
pub fn length(length: Length) -> &'static str {
    match length {
        Length::Full => "",
        Length::Short => "short ",
    }
}

/// The verdict in a cell of a table: `pass`, `short fail`.
#[must_use]
pub fn verdict(trial: &Trial) -> String {
    format!("{}{}", length(trial.length), trial.verdict.word())
}

/// What stands against a trial, in a cell of a table: the failed gates, then the caveats, by name.
#[must_use]
pub fn against(trial: &Trial) -> String {
    let gates = trial.gates.iter().filter(|gate| !gate.pass);
    let gates = gates.map(|gate| plain(&gate.name));
    let caveats = trial.caveats.iter().map(|caveat| plain(&caveat.id));
    gates.chain(caveats).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gate(threshold: f64, observed: f64) -> GateResult {
        GateResult {
            name: "oldest_p95_ms".to_owned(),
            threshold,
            observed: Some(observed),
            pass: observed <= threshold,
        }
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(number(1650.0), "1,650");
        assert_eq!(number(1650.44), "1,650.4");
        assert_eq!(number(0.00001), "1e-5");
        assert_eq!(number(0.000_123_4), "1.23e-4");
        assert_eq!(number(-0.25), "-0.25");
        assert_eq!(number(f64::NAN), UNKNOWN);
        assert_eq!(ms(1402.4), "1,402 ms");
        assert_eq!(ms(85.24), "85.2 ms");
        assert_eq!(ms(9.864), "9.86 ms");
        assert_eq!(ms(1.2), "1.2 ms");
        assert_eq!(ms(0.085), "0.085 ms");
        assert_eq!(ms(0.0), "0 ms");
        assert_eq!(us(310.2), "310 µs");
        assert_eq!(us(1_240.0), "1.24 ms");
        assert_eq!(us(2.13), "2.1 µs");
        assert_eq!(percent(0.412), "41 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(bytes(85_247_180.0), "81.3 MiB");
    }

    #[test]
    fn what_misses_a_threshold_never_looks_equal_to_it() {
        assert_eq!(observed(&gate(1650.0, 1650.04)), "1,650.04");
        assert_eq!(observed(&gate(1650.0, 1650.0)), "1,650");
        assert_eq!(observed(&gate(1650.0, 1702.3)), "1,702.3");
        assert_eq!(observed(&gate(0.001, 0.001_25)), "0.0013");
        assert_eq!(observed(&gate(0.001, 0.001_000_2)), "0.0010002");
        assert_eq!(observed(&gate(1e-5, 1.000_1e-5)), "1.0001e-5");
    }

    #[test]
    fn text_from_outside_moves_no_cursor() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a [2Jb c");
    }

    #[test]
    fn a_share_near_one_is_never_rounded_up_to_it() {
        assert_eq!(near_whole(Some(1.0)), "100 %");
        assert_eq!(near_whole(Some(0.999_999_9)), "99.999 %");
        assert_eq!(near_whole(Some(0.998)), "99.8 %");
        assert_eq!(near_whole(None), "–");
    }

    proptest! {
        #[test]
        fn commas_change_no_digit(value: u64) {
            let text = count(value);
            prop_assert_eq!(text.replace(',', "").parse::<u64>().unwrap(), value);
            for group in text.split(',').skip(1) {
                prop_assert_eq!(group.len(), 3);
            }
        }
    }
}
