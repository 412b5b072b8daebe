//! Proxies: there are none. A server is measured where its URL says; between client and server, a proxy would be measured
//! with it.

use std::sync::Once;

use crate::output::note;

/// The variables by which programs are told of a proxy, in the one case or the other.
const VARIABLES: [&str; 5] = [
    "http_proxy",
    "https_proxy",
    "ws_proxy",
    "wss_proxy",
    "all_proxy",
];

/// Notes once that these variables are ignored, if any is set. Their values may hold a password, so they are not shown.
pub(crate) fn note_that_they_are_ignored() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if let Some(line) = line_about(set) {
            note!("{line}");
        }
    });
}

/// What there is to say if these variables are set.
fn line_about(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let both_cases = VARIABLES.iter();
    let both_cases = both_cases.flat_map(|name| [(*name).to_owned(), name.to_uppercase()]);
    let set: Vec<String> = both_cases.filter(|name| is_set(name)).collect();
    let verb = if set.len() == 1 { "is" } else { "are" };
    (!set.is_empty()).then(|| {
        format!(
            "plimsoll: {} {verb} ignored: the server is measured at --url itself, without a proxy",
            set.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_that_is_set_is_named() {
        assert_eq!(line_about(|_| false), None);
        let one = line_about(|name| name == "ALL_PROXY").expect("a line");
        assert!(one.starts_with("plimsoll: ALL_PROXY is ignored"), "{one}");
        let two = line_about(|name| name.starts_with("http")).expect("a line");
        assert!(two.contains("http_proxy, https_proxy are"), "{two}");
    }
}
