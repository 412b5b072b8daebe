//! The workloads that this program knows: one line each.

use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_document::{Tell, Tellers};
use plimsoll_workload::{Keys, Parameter, Value, Workload};

/// All of them. The first is the usual one.
pub(crate) static ALL: &[&dyn Workload] = &[
    #[cfg(feature = "stt")]
    &plimsoll_workload_stt::Stt,
    #[cfg(feature = "echo")]
    &plimsoll_workload_echo::Echo,
    #[cfg(feature = "ws")]
    &plimsoll_workload_ws::Ws,
    #[cfg(feature = "http")]
    &plimsoll_workload_http::Http,
    #[cfg(feature = "broker")]
    &plimsoll_workload_broker::Broker,
    #[cfg(feature = "voice")]
    &plimsoll_workload_voice::Voice,
    #[cfg(feature = "stt-real")]
    &plimsoll_workload_stt_real::SttReal,
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

/// The parameter that implies a workload where none is named.
pub(crate) const IMPLYING: &str = "dialect";

/// The workload that this value of [`IMPLYING`] implies: the first that takes it.
pub(crate) fn implied_by(value: &Value) -> Option<&'static dyn Workload> {
    let takes = |row: &Parameter| row.name == IMPLYING && row.kind.takes(value).is_ok();
    let mut all = ALL.iter().copied();
    all.find(|workload| workload.parameters().iter().any(takes))
}

/// Whether this version has that workload.
pub(crate) fn has(workload: &str) -> bool {
    ALL.iter().any(|known| known.about().name == workload)
}

/// What that workload demands of the manifests of its targets.
pub(crate) fn manifest_keys(workload: &str) -> Option<Keys> {
    let named = ALL.iter().find(|known| known.about().name == workload);
    named.map(|workload| Keys {
        own: workload.manifest_keys(),
        rule: workload.manifest_rule(),
    })
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use plimsoll_core::profile::Profile;
    use plimsoll_workload::{Kind, Plan, Value, Values};

    use super::ALL;

    /// The plans of every workload that may have an SLO of their own: one for each of its tests, or the usual one.
    fn plans() -> Vec<Arc<dyn Plan>> {
        let mut plans = Vec::new();
        for workload in ALL {
            let plan = |values| workload.planned(values).expect("a plan");
            let test = workload.parameters().iter().find(|row| row.name == "test");
            match test.map(|row| row.kind) {
                Some(Kind::OneOf(tests)) => plans.extend(tests.iter().map(|test| {
                    let test = Value::Word(test.name.to_owned());
                    plan(Values::default().with("test", test))
                })),
                _ => plans.push(plan(Values::default())),
            }
        }
        plans
    }

    #[test]
    fn every_usual_profile_is_one() {
        for plan in plans() {
            let name = plan.usual_profile();
            assert!(Profile::by_name(name).is_some(), "{plan:?}: {name}");
        }
    }

    #[test]
    fn the_reference_page_has_the_gates_of_every_built_in_slo() {
        let page = include_str!("../../../docs/reference/slo.md");
        let (_, section) = page.split_once("\n## Built-in SLOs\n").expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let on_page: BTreeMap<String, String> = rows
            .map(|row| {
                let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
                (cells[0].trim_matches('`').to_owned(), cells[2].to_owned())
            })
            .collect();
        let slos = plans();
        let slos = slos
            .iter()
            .flat_map(|plan| std::iter::once(plan.slo()).chain(plan.further_slos()));
        let built_in: BTreeMap<String, String> = slos
            .map(|slo| {
                let gates = slo.gates.iter().filter(|gate| gate.threshold > 0.0);
                let gates: Vec<String> = gates
                    .map(|gate| format!("`{}` {}", gate.metric.name(), gate.threshold))
                    .collect();
                (slo.name, gates.join(", "))
            })
            .collect();
        assert_eq!(on_page, built_in);
    }
}
