//! What no record may leave out, and what no manifest may.

use serde_json::Value;

use super::{PHASES, call, expect_flawless, lying};
use crate::support::built;
use crate::support::conclusive;
use crate::support::manifests::Root;
use crate::support::records;
use plimsoll_testing::measures;

/// Fault of the report: p99.9 and maximum were dropped, memory was read before the load only, and the size of an image
/// counted the JVM. A record without any of these is no record.
#[test]
#[measures]
fn a_record_has_the_whole_tail_and_memory_and_its_files_apart_from_the_runtimes() {
    let ended = conclusive!(lying("none", &format!("{PHASES} --connections 10")));
    let trial = expect_flawless(&ended);
    let is_known = [
        "latency/newest/from_schedule/p999_ms",
        "latency/newest/from_schedule/max_ms",
        "latency/newest/from_write/p999_ms",
        "latency/newest/from_write/max_ms",
        "latency/worst_second_p99_ms",
        "target_resources/rss_peak_bytes",
        "target_resources/rss_bytes_per_session",
        "target/ships_bytes",
    ];
    for path in is_known {
        let value = trial.0.pointer(&format!("/{path}"));
        assert!(value.is_some_and(Value::is_number), "{path}: {value:?}");
    }
    let program = std::fs::metadata(built("http/lying-http")).expect("it is built");
    assert_eq!(trial.at("target.ships_bytes"), program.len());
    // It has no runtime besides itself.
    assert!(trial.at("target.runtime_bytes").is_null());

    for path in is_known.iter().chain(&["target/runtime_bytes"]) {
        let mut without = trial.0.clone();
        let (parent, name) = path.rsplit_once('/').expect("a path");
        let parent = without.pointer_mut(&format!("/{parent}"));
        let fields = parent.and_then(Value::as_object_mut).expect(path);
        assert!(fields.remove(name).is_some(), "{path}");
        assert!(!records::is_valid(&without, "trial.json"), "{path}");
    }
}

/// Fault of the report: a tuned nginx stood beside a Vert.x as installed, and nobody said what had been tuned.
#[test]
#[measures]
fn a_tuned_target_that_does_not_name_its_settings_is_refused() {
    let manifest = |settings: &str| {
        format!(
            r#"name = "fast"
workload = "http"
tier = "infrastructure"
language = "C"
description = "made up for a test"
protocols = ["h1"]
variant = "tuned"
{settings}
[run]
command = ["false"]
"#
        )
    };
    let refused = |settings: &str| {
        let root = Root::new().with("http", "fast", &manifest(settings));
        let root = root.path().display();
        // A test that is given h2c, which this target does not have: nothing is started, whatever is refused.
        let line = format!("run fast --root {root} --sessions 5 --protocol h2c");
        let ended = call(&line).run();
        ended.expect_code(2);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.stderr.clone()
    };
    let without = refused("");
    assert!(without.contains("needs `settings`"), "{without}");
    let with = refused(r#"settings = ["reuseport"]"#);
    assert!(!with.contains("settings"), "{with}");
    assert!(with.contains("h2c"), "{with}");
}
