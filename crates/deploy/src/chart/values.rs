//! The values of the chart: one table for the file of defaults, the schema and the reference page.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::catalogue::Catalogue;
use crate::node::{Node, sorted};
use crate::settings::image;
use crate::yaml::{Output, text};

/// A value.
struct Row {
    /// Its place: `agents.count`.
    key: &'static str,
    default: Value,
    /// What the schema says of it.
    schema: Value,
    /// What it is, in one line.
    meaning: &'static str,
}

fn row(key: &'static str, default: Value, schema: Value, meaning: &'static str) -> Row {
    Row {
        key,
        default,
        schema,
        meaning,
    }
}

fn whole(least: u32, most: u32) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

/// A fraction that is given by `--set` comes as a text.
fn cpu() -> Value {
    json!({"type": ["number", "string"], "minimum": 0.05, "maximum": 1024, "pattern": "^[0-9]*[.]?[0-9]*[1-9][0-9]*$"})
}

fn memory() -> Value {
    json!({"type": "string", "pattern": "^[1-9][0-9]*(Mi|Gi)$"})
}

fn any_text() -> Value {
    json!({"type": "string"})
}

/// The arguments that the chart sets itself.
const OWN_ARGUMENTS: &str = "^--(agents|listen|token-file|out|url|workload|sessions|load)(=.*)?$";

fn rows(catalogue: &Catalogue) -> Vec<Row> {
    let mut rows = general();
    rows.extend(coordinator());
    rows.extend(target(catalogue));
    rows.extend(places());
    rows
}

fn general() -> Vec<Row> {
    vec![
        row(
            "suspended",
            json!(true),
            json!({"type": "boolean"}),
            "Nothing runs while this is true: Jobs are suspended, and Deployments have no replicas",
        ),
        row(
            "image.name",
            json!(image("plimsoll")),
            json!({"type": "string", "minLength": 1}),
            "The command's image: agents, coordinator, observer and companion",
        ),
        row(
            "image.pullPolicy",
            json!("IfNotPresent"),
            json!({"enum": ["Always", "IfNotPresent", "Never"]}),
            "When a node pulls images",
        ),
        row(
            "image.pullSecrets",
            json!([]),
            json!({"type": "array", "items": {"type": "object"}}),
            "Secrets for a private registry: `[{name: SECRET}]`",
        ),
        row(
            "apart",
            json!("preferred"),
            json!({"enum": ["required", "preferred", "no"]}),
            "Whether agents, coordinator and companion keep off the target's node. `no` is for a single node",
        ),
        row(
            "tokenSecret",
            json!(""),
            any_text(),
            "A Secret with the key `token`: 64 hexadecimal digits. Empty: each upgrade makes a random one",
        ),
        row(
            "agents.count",
            json!(3),
            whole(0, 10_000),
            "How many agents",
        ),
        row(
            "agents.idleSeconds",
            json!(600),
            whole(1, 86_400),
            "How long an agent waits for the coordinator before it ends",
        ),
    ]
}

fn coordinator() -> Vec<Row> {
    let argument = json!({
        "type": ["string", "number"],
        "not": {"type": "string", "pattern": OWN_ARGUMENTS},
    });
    vec![
        row(
            "coordinator.sessions",
            json!(0),
            whole(0, 1_000_000),
            "The load of one trial (`run`); 0 searches the load line (`find`)",
        ),
        row(
            "coordinator.arguments",
            json!([]),
            json!({"type": "array", "items": argument}),
            "Further arguments of `run` or `find`, such as `[--profile, standard]`",
        ),
        row(
            "coordinator.keepSeconds",
            json!(600),
            whole(0, 604_800),
            "How long the pod waits after the verdict, so that you can copy the result. It ends as soon as you did",
        ),
        row(
            "coordinator.claim",
            json!(""),
            any_text(),
            "A PersistentVolumeClaim for the result. Empty: the result is gone with the pod",
        ),
    ]
}

fn target(catalogue: &Catalogue) -> Vec<Row> {
    let names = catalogue.targets.iter().map(|target| target.name.as_str());
    let names: Vec<&str> = std::iter::once("").chain(names).collect();
    let workloads = catalogue.workloads.iter().map(String::as_str);
    let workloads: Vec<&str> = std::iter::once("").chain(workloads).collect();
    vec![
        row(
            "target.name",
            json!(""),
            json!({"enum": names}),
            "A target of this repository",
        ),
        row(
            "target.url",
            json!(""),
            json!({"type": "string", "pattern": "^$|^(ws|wss|http|https|tcp)://"}),
            "Instead: a server that runs already",
        ),
        row(
            "target.workload",
            json!(""),
            json!({"enum": workloads}),
            "With `target.url`: what the sessions do",
        ),
        row(
            "target.image",
            json!(""),
            any_text(),
            "The target's image. Empty: the one that its Containerfile makes",
        ),
        row(
            "target.vcpu",
            json!(1),
            cpu(),
            "vCPUs of the target: request and limit. Without whole numbers and a static CPU manager it is a share of time, not a core",
        ),
        row(
            "target.env",
            json!({}),
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
            "More environment variables of the target",
        ),
        row(
            "target.observer",
            json!(false),
            json!({"type": "boolean"}),
            "An agent beside the target that measures its CPU time, memory and sockets (`plimsoll agent --observe`). Where it shares CPUs with agents, trials are invalid (`shared-cores`)",
        ),
        row(
            "companion.replicas",
            json!(1),
            whole(1, 1000),
            "How many simulators or mock providers, where the target asks some",
        ),
    ]
}

/// Size and place of each component.
fn places() -> Vec<Row> {
    let mut rows = Vec::new();
    for (component, cpus, size) in [
        ("agents", json!(1), "1Gi"),
        ("coordinator", json!(1), "1Gi"),
        ("target", Value::Null, "2Gi"),
        ("companion", json!(1), "512Mi"),
    ] {
        let keys = place_keys(component);
        if !cpus.is_null() {
            rows.push(row(keys[0], cpus, cpu(), "CPUs of each: request and limit"));
        }
        rows.push(row(
            keys[1],
            json!(size),
            memory(),
            "Memory of each: request and limit",
        ));
        rows.push(row(
            keys[2],
            json!({}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "Labels that the node must have",
        ));
        rows.push(row(
            keys[3],
            json!([]),
            json!({"type": "array", "items": {"type": "object"}}),
            "Taints of nodes that are no obstacle",
        ));
    }
    rows
}

fn place_keys(component: &str) -> [&'static str; 4] {
    match component {
        "agents" => [
            "agents.cpu",
            "agents.memory",
            "agents.nodeSelector",
            "agents.tolerations",
        ],
        "coordinator" => [
            "coordinator.cpu",
            "coordinator.memory",
            "coordinator.nodeSelector",
            "coordinator.tolerations",
        ],
        "target" => [
            "",
            "target.memory",
            "target.nodeSelector",
            "target.tolerations",
        ],
        _ => [
            "companion.cpu",
            "companion.memory",
            "companion.nodeSelector",
            "companion.tolerations",
        ],
    }
}

/// Rows in groups: those without a group, then the groups in the order in which they first appear.
fn groups(rows: Vec<Row>) -> Vec<(&'static str, Vec<Row>)> {
    let mut groups: Vec<(&'static str, Vec<Row>)> = vec![("", Vec::new())];
    for row in rows {
        let group = row.key.split_once('.').map_or("", |(group, _)| group);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// `values.yaml`: the defaults, each with what it is.
pub(super) fn defaults(catalogue: &Catalogue) -> String {
    let mut page = String::from("# The defaults. As they are, nothing runs.\n");
    for (group, rows) in groups(rows(catalogue)) {
        let indent = if group.is_empty() { "" } else { "  " };
        if !group.is_empty() {
            let _ = write!(page, "\n{group}:\n");
        }
        for row in rows {
            let value = text(&Node::from(&row.default), Output::Helm);
            let value = match &row.default {
                Value::Array(_) => "[]",
                Value::Object(_) => "{}",
                _ => value.trim_end(),
            };
            let _ = writeln!(
                page,
                "{indent}# {}.\n{indent}{}: {value}",
                row.meaning,
                last(row.key)
            );
        }
    }
    page
}

/// The table of the reference page.
pub(super) fn table(catalogue: &Catalogue) -> String {
    let mut table = String::from("| value | default | meaning |\n|---|---|---|\n");
    for (_, rows) in groups(rows(catalogue)) {
        for row in rows {
            let _ = writeln!(
                table,
                "| `{}` | `{}` | {} |",
                row.key, row.default, row.meaning
            );
        }
    }
    table
}

/// `values.schema.json`. An unknown value is refused, because a misspelt one would silently change what is measured.
pub(super) fn schema(catalogue: &Catalogue) -> String {
    let object = |properties: Map<String, Value>| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let mut top = Map::new();
    for (group, rows) in groups(rows(catalogue)) {
        let of = |row: Row| {
            let mut schema = row.schema;
            schema["description"] = json!(row.meaning);
            (last(row.key).to_owned(), schema)
        };
        let properties: Map<String, Value> = rows.into_iter().map(of).collect();
        if group.is_empty() {
            top.extend(properties);
        } else {
            top.insert(group.to_owned(), object(properties));
        }
    }
    // Helm merges the values of a parent chart into these.
    top.insert("global".to_owned(), json!({"type": "object"}));
    let mut schema = object(top);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Values of the chart plimsoll");
    let said = |key: &str| json!({"properties": {key: {"minLength": 1}}, "required": [key]});
    let target = |of: Value| json!({"properties": {"target": of}, "required": ["target"]});
    schema["allOf"] = json!([
        {
            "$comment": "What runs needs agents, and a target or a URL.",
            "if": {"properties": {"suspended": {"const": false}}, "required": ["suspended"]},
            "then": {
                "properties": {
                    "agents": {"properties": {"count": {"minimum": 1}}},
                    "target": {"anyOf": [said("name"), said("url")]},
                },
            },
        },
        {
            "$comment": "A URL needs its workload, and leaves no room for a target.",
            "if": target(said("url")),
            "then": target(json!({"properties": {"name": {"const": ""}, "workload": {"minLength": 1}}})),
        },
    ]);
    format!("{:#}\n", sorted(schema))
}
