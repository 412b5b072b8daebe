//! The objects of Kubernetes, described once for the command and for the chart.

mod agents;
mod companion;
mod coordinator;
mod pod;
mod target;
mod token;

use crate::node::{Entry, Node, Object, fields, map, text};
use crate::settings::{HAS_NAMESPACE, NAME, NAMESPACE, RUN, SUSPENDED};
use pod::{Pod, bare};

/// All of them, in the order in which they are of use.
pub(crate) fn all() -> Vec<Object> {
    vec![
        token::secret(),
        companion::service(),
        companion::each(),
        companion::deployment(),
        target::service(),
        target::deployment(),
        coordinator::service(),
        coordinator::job(),
        agents::job(),
    ]
}

/// What an object is a part of.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The name of an object in this run.
fn name_of(name: &'static str) -> Node {
    text!(NAME, "-", name, "-", RUN)
}

fn metadata(component: &'static str) -> Node {
    named(component, component)
}

/// The metadata of an object that is not the only one of its kind for this component.
fn named(name: &'static str, component: &'static str) -> Node {
    let mut entries = fields! { "name" => name_of(name) };
    let namespace = fields! { "namespace" => NAMESPACE };
    entries.push(Entry::When(HAS_NAMESPACE, namespace));
    entries.push(Entry::Field("labels".to_owned(), labels(component)));
    Node::Map(entries)
}

/// What finds the pods of this component in this run, and no others.
fn labels(component: &'static str) -> Node {
    let mut entries = fields! {
        "app.kubernetes.io/name" => "plimsoll",
        "app.kubernetes.io/instance" => NAME,
    };
    entries.push(Entry::Field(COMPONENT.to_owned(), component.into()));
    entries.extend(fields! { "plimsoll/run" => RUN });
    Node::Map(entries)
}

/// A Job that does not begin while the run is suspended.
fn job(component: &'static str, mut more: Vec<Entry>, pod: Pod) -> Object {
    let mut spec = fields! { "suspend" => bare(SUSPENDED) };
    spec.append(&mut more);
    spec.extend(fields! { "template" => pod.template() });
    let node = map! {
        "apiVersion" => "batch/v1",
        "kind" => "Job",
        "metadata" => metadata(component),
        "spec" => Node::Map(spec),
    };
    Object {
        file: component,
        when: None,
        node,
    }
}

/// A Service whose name leads to the pods themselves. What goes through an address of its own, a node translates: that
/// would be a part of what is measured.
fn headless(
    name: &'static str,
    component: &'static str,
    mut more: Vec<Entry>,
    ports: Node,
) -> Node {
    let mut spec = fields! { "clusterIP" => "None" };
    spec.append(&mut more);
    spec.extend(fields! { "selector" => labels(component), "ports" => ports });
    map! {
        "apiVersion" => "v1",
        "kind" => "Service",
        "metadata" => named(name, component),
        "spec" => Node::Map(spec),
    }
}
