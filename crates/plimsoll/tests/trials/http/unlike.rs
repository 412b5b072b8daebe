//! Results that do not compare.

use serde_json::{Value, json};

use super::{PHASES, expect_flawless, lying};
use crate::compare::{compare_folders, copy};
use crate::support::conclusive;
use plimsoll_testing::measures;

/// Other routes, protocols and pacings are other measurements. Each time, one condition of a real trial is changed.
#[test]
#[measures]
fn unlike_routes_protocols_and_pacings_are_not_compared() {
    let ended = conclusive!(lying("none", &format!("{PHASES} --connections 10")));
    let trial = expect_flawless(&ended);
    let folder = ended.folder();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for (section, name, usual, other, words) in [
        (
            "parameters",
            "test",
            json!("rate"),
            json!("json"),
            "test (rate against json)",
        ),
        (
            "parameters",
            "protocol",
            json!("h1"),
            json!("h2c"),
            "protocol (h1 against h2c)",
        ),
        (
            "parameters",
            "body_bytes",
            json!(2),
            json!(1024),
            "body bytes (2 against 1024)",
        ),
        (
            "parameters",
            "dispatch",
            json!("pool"),
            json!("fixed"),
            "dispatch (pool against fixed)",
        ),
        (
            "parameters",
            "connections",
            json!(10),
            json!(100),
            "connections (10 against 100)",
        ),
        (
            "environment",
            "engine_tick_us",
            json!(0),
            json!(1000),
            "tick in µs (0 against 1000)",
        ),
    ] {
        let recorded = trial.at(section).get(name);
        assert_eq!(recorded.unwrap_or(&Value::Null), &usual, "{section}.{name}");
        let changed = copy(&folder, &scratch.path().join(name), |record| {
            record[section][name] = other.clone();
        });
        let refused = compare_folders(&folder, &changed, "");
        refused.expect_code(2);
        assert_eq!(refused.stdout, "", "{name}");
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        for expected in [words, "measure one of them again"] {
            assert!(
                refused.stderr.contains(expected),
                "no {expected:?}: {}",
                refused.stderr
            );
        }
    }
    // Nothing else stands between them.
    let same = copy(&folder, &scratch.path().join("same"), |_| {});
    let compared = compare_folders(&folder, &same, "");
    assert!(
        !compared.stderr.contains("same conditions"),
        "{}",
        compared.stderr
    );
    assert_ne!(compared.code(), Some(2), "{}", compared.stderr);
}
