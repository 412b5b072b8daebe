//! A verdict that cannot be fooled. Each test runs the real command over real sockets against one of the faults that
//! `targets/stt/lying-server` can have. It compares the record with what [`table`] says must be reported: the verdict,
//! all failed gates, the caveats, the counters with numbers derived by hand, and nothing else. [`starved`] tests the
//! opposite: an honest target with a starved client.
//!
//! `cargo test -p plimsoll --test lies skip_flush` runs one lie. With `PLIMSOLL_UPDATE=1` each test also writes its row
//! of `docs/explanation/lying-servers.md`.

mod document;
mod entry;
mod searches;
mod starved;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod told;

use std::collections::BTreeSet;
use std::process::Command;

/// Makes a separate test for each lie, so that a failure has a name.
macro_rules! a_test_for_each {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                told::told(stringify!($name));
            }
        )*
    };
}

a_test_for_each! {
    none stall_once stall_rarely late_after_window late_for_ever
    grow_latency grow_latency_slowly grow_latency_slowly_in_a_soak
    skip_flush never_answer_some answer_twice out_of_order wrong_content others_content others_content_of_two
    garbage extra_field wrong_seq oversize flood
    stop_reading read_slowly half_close reset_mid_frame never_upgrade never_upgrade_some slow_accept
    die restart leak_memory leak_memory_in_a_soak honest_soak burn_core burn_core_of_the_client
    lie_in_metrics foreign_load bypass
}

#[test]
fn every_row_of_the_table_has_a_test() {
    let rows: Vec<&str> = table::all().map(|lie| lie.name).collect();
    assert_eq!(rows, TESTED);
}

/// The server's own list is complete; a lie that no test uses is a gap.
#[test]
fn every_lie_of_the_server_has_a_row() {
    let program = support::built("stt/lying-server");
    let listed = Command::new(program).arg("--lies").output();
    let listed = listed.expect("the lying server runs");
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).expect("names");
    let listed: BTreeSet<&str> = listed.lines().collect();
    let told: BTreeSet<&str> = table::all().map(|lie| lie.lie).collect();
    assert_eq!(listed, told);
}

/// With `PLIMSOLL_UPDATE=1` rows arrive one by one, so then this only writes the document.
#[test]
fn the_document_has_every_row_as_the_table_has_it() {
    if std::env::var_os("PLIMSOLL_UPDATE").is_some() {
        return document::update(None);
    }
    let missing = document::missing();
    assert!(
        missing.is_empty(),
        "docs/explanation/lying-servers.md is behind: PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test lies; {missing:?}"
    );
    let text = document::text();
    let behind = "docs/explanation/lying-servers.md is behind: PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test lies the_document";
    assert_eq!(document::made_of(&text, None), text, "{behind}");
}

/// What README and documentation say about the table.
#[test]
fn the_lies_are_caught_as_they_are_said_to_be() {
    use document::{Caught, Sum};
    let sum = Sum {
        lies: 27,
        by_verdict: 26,
        in_a_soak_only: 1,
        as_cost: 1,
    };
    assert_eq!(Sum::of_the_table(), sum);
    let of = |name: &str| Caught::of(table::named(name));
    for (name, caught) in [
        ("none", Caught::NothingToCatch),
        ("honest_soak", Caught::NothingToCatch),
        ("stall_once", Caught::ByVerdict),
        ("bypass", Caught::ByVerdict),
        ("leak_memory", Caught::InASoakOnly),
        ("grow_latency_slowly", Caught::InASoakOnly),
        ("grow_latency_slowly_in_a_soak", Caught::ByVerdict),
        ("burn_core", Caught::AsCost),
        ("burn_core_of_the_client", Caught::ByPlacement),
    ] {
        assert_eq!(of(name), caught, "{name}");
    }
    let uncaught = table::all().find(|lie| Caught::of(lie) == Caught::Not);
    assert!(uncaught.is_none(), "{uncaught:?}");
}
