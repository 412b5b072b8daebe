//! The workloads that this program knows: one line each.

use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_document::{Tell, Tellers};
use plimsoll_workload::{Key, Parameter, Workload};

/// All of them. The first is the usual one.
pub(crate) static ALL: &[&dyn Workload] = &[
    #[cfg(feature = "stt")]
    &plimsoll_workload_stt::Stt,
    #[cfg(feature = "echo")]
    &plimsoll_workload_echo::Echo,
    #[cfg(feature = "ws")]
    &plimsoll_workload_ws::Ws,
];

/// Those that tell more of their trials than every trial has.
pub(crate) fn tellers() -> Tellers {
    static TELLERS: LazyLock<Vec<&'static dyn Tell>> = LazyLock::new(|| {
        let tellers = ALL.iter().filter_map(|workload| workload.teller());
        tellers.collect()
    });
    Tellers::new(&TELLERS)
}

/// The name of the usual one.
pub(crate) fn usual() -> &'static str {
    ALL.first().map_or("", |workload| workload.about().name)
}

/// The keys that only the manifests of that workload have.
pub(crate) fn manifest_keys(workload: &str) -> Option<&'static [Key]> {
    let named = ALL.iter().find(|known| known.about().name == workload);
    named.map(|workload| workload.manifest_keys())
}

/// Reads the name of one of them.
pub(crate) fn parser() -> impl TypedValueParser<Value = &'static dyn Workload> {
    let names = ALL.iter().map(|workload| {
        let about = workload.about();
        PossibleValue::new(about.name).help(about.line)
    });
    PossibleValuesParser::new(names).map(|name| {
        let named = ALL.iter().find(|workload| workload.about().name == name);
        *named.unwrap_or_else(|| unreachable!("only these names are taken"))
    })
}

/// The parameters of all of them by name, each with the workloads that have it, in the order in which they appear.
pub(crate) fn parameters() -> Vec<(&'static str, Vec<Owned>)> {
    let mut found: Vec<(&'static str, Vec<Owned>)> = Vec::new();
    for workload in ALL {
        for row in workload.parameters() {
            let owned = Owned {
                workload: workload.about().name,
                row,
            };
            match found.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, owners)) => owners.push(owned),
                None => found.push((row.name, vec![owned])),
            }
        }
    }
    found
}

/// A parameter of one workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    pub(crate) workload: &'static str,
    pub(crate) row: &'static Parameter,
}
