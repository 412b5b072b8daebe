//! What must not be written down: values of headers, tokens, passwords. Only this module defines what counts as a
//! secret and how it is left out.
//!
//! - [`Secret`] holds such a value; anything that prints or stores it gets [`REDACTED`] instead;
//! - [`redacted_url`], [`redacted_field`] and [`redacted_command`] remove the secrets from what a user typed, and leave
//!   the rest unchanged;
//! - [`Secrets`] are the values that a call knows; [`Secrets::scrub`] removes them from text that others wrote, such as
//!   a server's log.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// A query field or an environment variable counts as a secret if its name contains one of these. Names are compared in
/// lower case, letters and digits only.
const SECRET_PARTS: [&str; 15] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "accesskey",
    "privatekey",
    "auth",
    "signature",
    "credential",
    "session",
    "jwt",
    "bearer",
];

/// Short names that count only as a whole, because they are too common as parts of other names.
const SECRET_NAMES: [&str; 6] = ["key", "sig", "pass", "pw", "sid", "code"];

/// The whole value of a flag is a secret if its name has one of these words. What is given in a file is in a flag that
/// ends with `-file`.
const SECRET_WORDS: [&str; 7] = [
    "token",
    "secret",
    "password",
    "passphrase",
    "key",
    "credential",
    "credentials",
];

/// The flag whose value is a name, a colon and a secret.
const HEADER_FLAG: &str = "--header";

/// The flag whose value is a field: a name, an equals sign and a value that may be a secret, as in a URL's query.
const FIELD_FLAG: &str = "--param";

/// Values shorter than this are not looked for in other text: `1` or `gzip` is there for other reasons.
const SCRUBBED_MIN_BYTES: usize = 6;

/// A value that is used and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, only for the socket or the process that it is meant for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// The secrets that a call knows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Adds a value and its words, because a server may log `Bearer X` or `X` alone.
    pub fn add(&mut self, value: &str) {
        let words = value.split(|c: char| c.is_whitespace() || ";,".contains(c));
        let behind_names = words
            .clone()
            .filter_map(|word| Some(word.split_once('=')?.1));
        for part in words.chain(behind_names).chain([value.trim()]) {
            if part.len() >= SCRUBBED_MIN_BYTES && !self.0.iter().any(|known| known == part) {
                self.0.push(part.to_owned());
            }
        }
        // The whole is replaced before its parts, so that nothing of it is left.
        self.0.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }

    /// Adds what [`redacted_url`] would remove.
    pub fn add_of_url(&mut self, url: &str) {
        for_each_secret_of(url, |secret| self.add(secret));
    }

    /// Adds what [`redacted_field`] would remove.
    pub fn add_of_field(&mut self, name: &str, value: &str) {
        if is_secret_field(name, value) {
            self.add(value);
        } else {
            self.add_of_url(value);
        }
    }

    /// Adds the values of environment variables whose names mark them as secrets.
    pub fn add_of_environment<'a>(
        &mut self,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        for (name, value) in variables {
            if is_secret_name(name) {
                self.add(value);
            }
            self.add_of_url(value);
        }
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without the secrets.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), REDACTED));
            }
        }
        text
    }

    /// The same for bytes that may not be text; `None` if there is nothing to remove.
    #[must_use]
    pub fn scrubbed_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut scrubbed: Option<Vec<u8>> = None;
        for secret in &self.0 {
            let found = without(scrubbed.as_deref().unwrap_or(bytes), secret.as_bytes());
            scrubbed = found.or(scrubbed);
        }
        scrubbed
    }
}

/// The bytes with every occurrence of `secret` redacted; `None` if there is none.
fn without(bytes: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut at, mut kept) = (0, 0);
    while at + secret.len() <= bytes.len() {
        if bytes[at] == secret[0] && bytes[at..].starts_with(secret) {
            out.extend_from_slice(&bytes[kept..at]);
            out.extend_from_slice(REDACTED.as_bytes());
            at += secret.len();
            kept = at;
        } else {
            at += 1;
        }
    }
    (kept > 0).then(|| {
        out.extend_from_slice(&bytes[kept..]);
        out
    })
}

/// Whether the value of a query field or an environment variable with this name counts as a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = percent_decoded(name)
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    SECRET_NAMES.contains(&plain.as_str()) || SECRET_PARTS.iter().any(|part| plain.contains(part))
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[2..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// Whether this is a JSON Web Token, whatever its name.
fn is_token(value: &str) -> bool {
    value.starts_with("eyJ") && value.matches('.').count() == 2
}

/// Whether the value of this field is a secret, by its name or because it looks like a token.
fn is_secret_field(name: &str, value: &str) -> bool {
    !value.is_empty() && (is_secret_name(name) || is_token(value))
}

/// The value of a field without its secrets: that of `auth_id` as a whole, that of `callback` as [`redacted_url`] has it.
#[must_use]
pub fn redacted_field(name: &str, value: &str) -> String {
    if is_secret_field(name, value) {
        REDACTED.to_owned()
    } else {
        redacted_url(value)
    }
}

/// A URL, or a path with a query, without its user, its password, and the values of query fields that are secrets by
/// name or look like a token.
#[must_use]
pub fn redacted_url(url: &str) -> String {
    rebuilt(url, |_| REDACTED)
}

fn for_each_secret_of(url: &str, mut see: impl FnMut(&str)) {
    rebuilt(url, |secret| {
        see(secret);
        REDACTED
    });
}

/// The URL, with each secret replaced by what `replace` returns.
fn rebuilt<'a>(url: &'a str, mut replace: impl FnMut(&'a str) -> &'a str) -> String {
    let mut out = String::with_capacity(url.len());
    let mut rest = url;
    if let Some((scheme, behind)) = url.split_once("://") {
        out.push_str(scheme);
        out.push_str("://");
        rest = behind;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if let Some((user, _)) = rest[..end].rsplit_once('@') {
            // A password may come without a user, and a token may be the user.
            for part in user.split(':').filter(|part| !part.is_empty()) {
                replace(part);
            }
            out.push_str(REDACTED);
            rest = &rest[user.len()..];
        }
    }
    let Some((path, query)) = rest.split_once('?') else {
        out.push_str(rest);
        return out;
    };
    out.push_str(path);
    for (number, field) in query.split('&').enumerate() {
        out.push(if number == 0 { '?' } else { '&' });
        match field.split_once('=') {
            Some((name, value)) if is_secret_field(name, value) => {
                out.push_str(name);
                out.push('=');
                out.push_str(replace(value));
            }
            _ => out.push_str(field),
        }
    }
    out
}

/// `Name: value` reduced to the name. Text without a colon is redacted as a whole, because no part of it is known to be
/// the value.
#[must_use]
pub fn redacted_header(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) => format!("{}: {REDACTED}", name.trim()),
        None => REDACTED.to_owned(),
    }
}

/// The words of a command line without its secrets: headers and fields keep their names, URLs and fields keep everything
/// that is not secret.
#[must_use]
pub fn redacted_command<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut flag = None;
    let words = words.iter().map(AsRef::as_ref);
    let redacted = words.map(|word: &str| {
        if let Some(flag) = flag.take() {
            return redacted_value(flag, word);
        }
        if let Some((name, value)) = word.split_once('=')
            && has_secret_value(name)
        {
            return format!("{name}={}", redacted_value(name, value));
        }
        flag = has_secret_value(word).then_some(word);
        redacted_url(word)
    });
    redacted.collect()
}

/// Whether this is a flag whose value is a secret, or ends with one.
fn has_secret_value(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return false;
    };
    let mut words = name.split('-');
    let names_a_secret = words.any(|word| SECRET_WORDS.contains(&word));
    word == HEADER_FLAG || word == FIELD_FLAG || (names_a_secret && !name.ends_with("-file"))
}

fn redacted_value(flag: &str, value: &str) -> String {
    match flag {
        HEADER_FLAG => redacted_header(value),
        FIELD_FLAG => match value.split_once('=') {
            Some((name, value)) => format!("{name}={}", redacted_field(name, value)),
            // It is refused; no part of it is known to be the name.
            None => REDACTED.to_owned(),
        },
        _ => REDACTED.to_owned(),
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
