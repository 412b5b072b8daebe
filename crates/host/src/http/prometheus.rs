//! The Prometheus text exposition format, version 0.0.4: `name{label="value"} 1.5 [timestamp]`, comments, and `# TYPE`
//! lines. Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;

/// A metric's name with its labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// The metric's name.
    pub name: String,
    /// The labels: values by name.
    pub labels: BTreeMap<String, String>,
}

/// All samples of one scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    samples: BTreeMap<Series, f64>,
    types: BTreeMap<String, String>,
}

impl Metrics {
    /// Parses a scrape strictly: a parsing mistake would be a measuring mistake.
    ///
    /// # Errors
    /// The error names the first line that is not in the format, or that repeats a series.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut metrics = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let refuse = |why: &str| format!("metrics line {}: {why}: {line}", index + 1);
            if let Some(comment) = line.strip_prefix('#') {
                let mut words = comment.split_whitespace();
                if let (Some("TYPE"), Some(name), Some(kind)) =
                    (words.next(), words.next(), words.next())
                {
                    metrics.types.insert(name.into(), kind.into());
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let (series, value) = parse_sample(line).map_err(refuse)?;
            if metrics.samples.insert(series, value).is_some() {
                return Err(refuse("duplicate series"));
            }
        }
        Ok(metrics)
    }

    /// The value of exactly this series.
    #[must_use]
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let name = name.to_owned();
        self.samples.get(&Series { name, labels }).copied()
    }

    /// The sum over all series of this name; `None` if there are none.
    #[must_use]
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.of(name).map(|(_, value)| value).reduce(|a, b| a + b)
    }

    /// All series of this name.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Series, f64)> {
        self.iter().filter(move |(series, _)| series.name == name)
    }

    /// All series.
    pub fn iter(&self) -> impl Iterator<Item = (&Series, f64)> {
        self.samples.iter().map(|(series, value)| (series, *value))
    }

    /// The declared type of a metric: `counter`, `gauge`, `histogram`, …
    #[must_use]
    pub fn type_of(&self, name: &str) -> Option<&str> {
        self.types.get(name).map(String::as_str)
    }
}

fn parse_sample(line: &str) -> Result<(Series, f64), &'static str> {
    let name_end = line
        .find(|c: char| c == '{' || c.is_whitespace())
        .ok_or("no value")?;
    let (name, rest) = line.split_at(name_end);
    if !is_name(name) {
        return Err("not a metric name");
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => parse_labels(inside)?,
        None => (BTreeMap::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value = words.next().and_then(parse_value).ok_or("no value")?;
    let timestamp_is_fine = words.next().is_none_or(|word| word.parse::<i64>().is_ok());
    if !timestamp_is_fine || words.next().is_some() {
        return Err("unexpected text after the value");
    }
    let name = name.to_owned();
    Ok((Series { name, labels }, value))
}

/// Parses from just after `{` to just after `}`. Returns the labels and the rest of the line.
fn parse_labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), &'static str> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((labels, behind));
        }
        let (name, behind) = rest.split_once('=').ok_or("a label without a value")?;
        let name = name.trim();
        if !is_name(name) {
            return Err("not a label name");
        }
        let quoted = behind
            .trim_start()
            .strip_prefix('"')
            .ok_or("a label value without quotes")?;
        let (value, behind) = parse_quoted(quoted)?;
        if labels.insert(name.to_owned(), value).is_some() {
            return Err("duplicate label");
        }
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with('}') => {}
            None => return Err("no comma between labels"),
        }
    }
}

/// Parses from just after the opening quote to just after the closing one. The escapes are `\\`, `\"` and `\n`.
fn parse_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                _ => return Err("an unknown escape"),
            },
            other => value.push(other),
        }
    }
    Err("unterminated quote")
}

/// Rust accepts "inf" and "NaN" in any letter case, and signs, as the format (which is Go's) does.
fn parse_value(word: &str) -> Option<f64> {
    word.parse().ok()
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.chars().next().is_some_and(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCRAPE: &str = r#"
# HELP app_sessions Open sessions.
# TYPE app_sessions gauge
app_sessions 3
# TYPE app_errors_total counter
app_errors_total{stage="upstream_request",kind="timeout"} 2
app_errors_total{kind = "overflow" , stage="input_buffer",} 5 1700000000000
app_flush_lateness_seconds_bucket{le="+Inf"} 7e1
odd{path="C:\\a\n\"b\""} NaN
high +Inf
"#;

    #[test]
    fn a_scrape_is_read() {
        let metrics = Metrics::parse(SCRAPE).expect("valid");
        assert_eq!(metrics.get("app_sessions", &[]), Some(3.0));
        let timeout = [("kind", "timeout"), ("stage", "upstream_request")];
        assert_eq!(metrics.get("app_errors_total", &timeout), Some(2.0));
        assert_eq!(metrics.sum("app_errors_total"), Some(7.0));
        assert_eq!(metrics.sum("absent"), None);
        assert_eq!(
            metrics.get("app_flush_lateness_seconds_bucket", &[("le", "+Inf")]),
            Some(70.0)
        );
        assert_eq!(metrics.type_of("app_sessions"), Some("gauge"));
        assert!(
            metrics
                .get("odd", &[("path", "C:\\a\n\"b\"")])
                .expect("there")
                .is_nan()
        );
        assert_eq!(metrics.get("high", &[]), Some(f64::INFINITY));
        assert_eq!(metrics.of("app_errors_total").count(), 2);
    }

    #[test]
    fn broken_lines_are_named() {
        let cases = [
            ("a", "no value"),
            ("a x", "no value"),
            ("1a 1", "not a metric name"),
            ("a 1 2 3", "unexpected text after"),
            ("a 1 x", "unexpected text after"),
            ("a{b} 1", "without a value"),
            ("a{b=c} 1", "without quotes"),
            ("a{b=\"c} 1", "unterminated quote"),
            ("a{b=\"\\x\"} 1", "unknown escape"),
            ("a{b=\"c\"d=\"e\"} 1", "no comma"),
            ("a{b=\"c\",b=\"e\"} 1", "duplicate label"),
            ("a 1\na 2", "duplicate series"),
        ];
        for (text, expected) in cases {
            let error = Metrics::parse(text).expect_err(text);
            assert!(
                error.starts_with("metrics line ") && error.contains(expected),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([a-z]{0,3}[{}="\\,# 0-9\nλ]{0,4}){0,12}"#) {
            let _ = Metrics::parse(&text);
        }

        #[test]
        fn any_label_value_survives_escaping(value in any::<String>()) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // The format is line-based and cannot express other line ends.
            prop_assume!(!value.contains('\r'));
            let metrics = Metrics::parse(&format!("a{{b=\"{escaped}\"}} 1")).expect("valid");
            prop_assert_eq!(metrics.get("a", &[("b", &value)]), Some(1.0));
        }
    }
}
