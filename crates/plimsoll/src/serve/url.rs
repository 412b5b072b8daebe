//! Addresses within the site.

use std::fmt::Write;

/// Text from outside as part of an address. Everything except letters, digits and `-._~/` is escaped, so that it is
/// neither a query, nor a fragment, nor a host.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The address of a folder's report. It ends with the file's name, so that relative links in the report resolve as on
/// disk.
pub(super) fn result(folder: &str) -> String {
    format!("/result/{}/report.html", escaped(folder))
}

/// The address of the live page of a folder's running command.
pub(super) fn live(folder: &str) -> String {
    format!("/live/{}", escaped(folder))
}

/// The address of that command's events.
pub(super) fn events(folder: &str) -> String {
    format!("/events/{}", escaped(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_has_a_meaning_in_an_address() {
        assert_eq!(
            result("20260102T030405Z-find-rust-axum"),
            "/result/20260102T030405Z-find-rust-axum/report.html"
        );
        assert_eq!(
            live("a b/ü?x=1&y#z%2e"),
            "/live/a%20b/%C3%BC%3Fx%3D1%26y%23z%252e"
        );
        assert_eq!(events("\"><b>\\"), "/events/%22%3E%3Cb%3E%5C");
    }
}
