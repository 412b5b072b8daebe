//! The files of values for three kinds of places.

use serde_json::{Value, json};

use crate::node::{Node, sorted};
use crate::yaml::{Output, text};

/// The name of each file, and its text.
pub(super) fn all() -> [(&'static str, String); 3] {
    [
        (
            "one-node",
            file(
                "Everything on one node of at least four CPUs, to try the chart: client and target share caches and memory.",
                &json!({
                    "suspended": false,
                    "apart": "no",
                    "agents": {"count": 1, "cpu": 1},
                    "coordinator": {"cpu": 0.5},
                    "target": {"vcpu": 1},
                    "companion": {"cpu": 1},
                }),
            ),
        ),
        (
            "homelab",
            file(
                "A few machines: simulators of six CPUs, a gateway of one CPU (or two), a client of four. Give nodes the label\n# plimsoll/role, with the value agents, target or companion: pods go there if they can.",
                &json!({
                    "suspended": false,
                    "apart": "required",
                    "agents": {"count": 1, "cpu": 4, "memory": "4Gi"},
                    "target": {"vcpu": 1, "memory": "2Gi", "observer": true},
                    "companion": {"replicas": 4, "cpu": 6, "memory": "1Gi"},
                }),
            ),
        ),
        (
            "cloud",
            file(
                "Node pools for client and target. Give the nodes of each the label plimsoll/pool, and a taint of the same key and\n# value with the effect NoSchedule. Whole CPUs need a kubelet with the static CPU manager.",
                &json!({
                    "suspended": false,
                    "apart": "required",
                    "agents": in_pool("client", json!({"count": 8, "cpu": 4, "memory": "4Gi"})),
                    "coordinator": in_pool("client", json!({"cpu": 2, "memory": "2Gi"})),
                    "target": in_pool("target", json!({"vcpu": 2, "memory": "4Gi", "observer": true})),
                    "companion": in_pool("client", json!({"replicas": 2, "cpu": 4})),
                }),
            ),
        ),
    ]
}

fn in_pool(pool: &str, mut values: Value) -> Value {
    values["nodeSelector"] = json!({"plimsoll/pool": pool});
    values["tolerations"] = json!([{
        "key": "plimsoll/pool", "operator": "Equal", "value": pool, "effect": "NoSchedule",
    }]);
    values
}

fn file(about: &str, values: &Value) -> String {
    let values = text(&Node::from(&sorted(values.clone())), Output::Helm);
    format!("# {about}\n# Give the target too: --set target.name=NAME\n{values}")
}
