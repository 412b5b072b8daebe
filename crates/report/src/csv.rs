//! One row per second of a trial, for spreadsheets and scripts.

use std::fmt::Write;

use plimsoll_core::record::Second;

/// The file's text: a header of field names, then one row per second. What is unknown is an empty cell; numbers are plain.
#[must_use]
pub fn of(seconds: &[Second]) -> String {
    let names: Vec<_> = cells(&Second::default())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let mut text = names.join(",");
    text.push('\n');
    for second in seconds {
        let row: Vec<_> = cells(second).into_iter().map(|(_, value)| value).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", row.join(","));
    }
    text
}

/// Every field with its name. The pattern has no `..` on purpose: a field added to [`Second`] is added here, or this does not compile.
fn cells(second: &Second) -> Vec<(&'static str, String)> {
    macro_rules! cells_of {
        ($($name:ident: $kind:ident,)+) => {{
            let Second { $($name),+ } = second;
            vec![$((stringify!($name), $kind(*$name))),+]
        }};
    }
    cells_of! {
        at_s: whole,
        phase: word,
        sessions_open: whole,
        frames_sent: whole,
        partials: whole,
        errors: whole,
        protocol_faults: whole,
        sessions_lost: whole,
        newest_p50_ms: maybe_real,
        newest_p95_ms: maybe_real,
        newest_max_ms: maybe_real,
        oldest_p50_ms: maybe_real,
        oldest_p95_ms: maybe_real,
        send_lag_p99_us: maybe_real,
        send_wait_p99_us: maybe_real,
        client_cpu_share: real,
        target_cpu_cores: maybe_real,
        target_rss_bytes: maybe_whole,
        target_throttled_share: maybe_real,
        target_run_queue_wait_share: maybe_real,
        target_fds: maybe_whole,
        inference_cpu_cores: maybe_real,
    }
}

fn whole(value: u64) -> String {
    value.to_string()
}

/// A phase is one of four words, none with a comma or a quote.
fn word(value: &str) -> String {
    value.to_owned()
}

/// Plain decimal; what is not a number is not known.
fn real(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

fn maybe_real(value: Option<f64>) -> String {
    value.map(real).unwrap_or_default()
}

fn maybe_whole(value: Option<u64>) -> String {
    value.map(whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_empty_and_numbers_are_plain() {
        let seconds = [
            Second {
                at_s: 7,
                phase: "measured",
                sessions_open: 1_650,
                frames_sent: 82_500,
                newest_p95_ms: Some(212.5),
                client_cpu_share: 0.000_001,
                target_rss_bytes: Some(90_000_000_000),
                ..Second::default()
            },
            Second {
                at_s: 8,
                phase: "grace",
                target_cpu_cores: Some(f64::NAN),
                ..Second::default()
            },
        ];
        let text = of(&seconds);
        let mut lines = text.lines();
        let header: Vec<_> = lines.next().unwrap().split(',').collect();
        assert_eq!(header[..3], ["at_s", "phase", "sessions_open"]);
        let row: Vec<_> = lines.next().unwrap().split(',').collect();
        assert_eq!(row.len(), header.len());
        let cell = |name: &str| row[header.iter().position(|n| *n == name).unwrap()];
        assert_eq!(cell("frames_sent"), "82500");
        assert_eq!(cell("newest_p95_ms"), "212.5");
        assert_eq!(cell("newest_p50_ms"), "");
        assert_eq!(cell("client_cpu_share"), "0.000001");
        assert_eq!(cell("target_rss_bytes"), "90000000000");
        let grace: Vec<_> = lines.next().unwrap().split(',').collect();
        let cores = header
            .iter()
            .position(|n| *n == "target_cpu_cores")
            .unwrap();
        assert_eq!(grace[cores], "");
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_trial_without_seconds_has_its_header() {
        assert_eq!(of(&[]).lines().count(), 1);
    }
}
