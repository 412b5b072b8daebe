//! Environment variables, read and checked.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;

/// Ten days; no duration here is sensibly longer, and sums of such durations stay far from overflow.
const MILLISECONDS_MAX: u64 = 10 * 24 * 3600 * 1000;

/// A variable whose value cannot be used; one line that names it.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl ConfigError {
    /// The value of `name` cannot be used because of `problem`.
    pub fn new(name: &str, value: &str, problem: &(impl Display + ?Sized)) -> Self {
        // `{:?}` keeps the line one line, whatever the value is.
        Self(format!("{name}={value:?}: {problem}"))
    }
}

impl Display for ConfigError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// How variables are looked up, and what they are read as.
#[derive(Debug)]
pub struct Variables<F>(pub F);

impl<F: Fn(&str) -> Option<OsString>> Variables<F> {
    /// A text.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self, name: &str, default: &str) -> Result<String, ConfigError> {
        match self.0(name) {
            None => Ok(default.to_owned()),
            Some(value) => {
                value.into_string().map_err(|value| ConfigError::new(name, &value.to_string_lossy(), "not UTF-8"))
            }
        }
    }

    /// A text that means something.
    ///
    /// # Errors
    /// When it does not mean it.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str, default: &str) -> Result<T, ConfigError> {
        let text = self.text(name, default)?;
        text.parse().map_err(|error| ConfigError::new(name, &text, &error))
    }

    /// A whole number in a range.
    ///
    /// # Errors
    /// When it is none, or not in the range.
    pub fn number<T: FromStr + Copy + Display + PartialOrd>(
        &self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, ConfigError> {
        let text = self.text(name, &default.to_string())?;
        let wanted = || format!("give a whole number from {} to {}", range.start(), range.end());
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|value| digits_only && range.contains(value));
        value.ok_or_else(|| ConfigError::new(name, &text, &wanted()))
    }

    /// A time in milliseconds, of at least `min`.
    ///
    /// # Errors
    /// When it is none.
    pub fn milliseconds(&self, name: &str, default: u64, min: u64) -> Result<Duration, ConfigError> {
        self.number(name, default, min..=MILLISECONDS_MAX).map(Duration::from_millis)
    }

    /// A token; none when it is empty.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn token(&self, name: &str) -> Result<Option<String>, ConfigError> {
        Ok(Some(self.text(name, "")?).filter(|token| !token.is_empty()))
    }

    /// How many workers: one per core, unless given.
    ///
    /// # Errors
    /// When the number cannot be used.
    pub fn worker_threads(&self) -> Result<usize, ConfigError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.number("WORKER_THREADS", cores, 1..=1024)
    }
}

/// Where an HTTP server is: `http://host[:port][/path]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// Host name or address.
    pub host: String,
    /// 80 unless given.
    pub port: u16,
    /// The URL without a slash at its end: the beginning of the URLs of requests.
    pub base: String,
}

impl HttpUrl {
    /// The URL of a path that begins with a slash.
    ///
    /// # Errors
    /// When the two do not make one.
    pub fn join(&self, path: &str) -> Result<Uri, String> {
        format!("{}{path}", self.base).parse().map_err(|error| format!("{error}"))
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let base: Uri = text.parse().map_err(|error| format!("{error}"))?;
        if base.scheme_str() != Some("http") || base.query().is_some() {
            return Err("not of the form http://host:port".to_owned());
        }
        let host = base.host().filter(|host| !host.is_empty()).ok_or("the host is missing")?;
        Ok(Self {
            // An IPv6 address has brackets in a URL and none in a socket address.
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: base.port_u16().unwrap_or(80),
            base: text.trim_end_matches('/').to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url: HttpUrl = "http://[::1]:81/base/".parse().expect("a good URL");
        assert_eq!((url.host.as_str(), url.port), ("::1", 81));
        assert_eq!(url.join("/infer").expect("a URL"), "http://[::1]:81/base/infer");
        assert_eq!("http://example.org".parse::<HttpUrl>().expect("a good URL").port, 80);
        for bad in ["", "127.0.0.1:9000", "https://example.org", "http://", "http://host/?query"] {
            assert!(bad.parse::<HttpUrl>().is_err(), "{bad}");
        }
    }
}
