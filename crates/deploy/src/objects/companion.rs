//! What the target asks, where it asks something: a program of ours that stands for its back end.

use super::pod::{Pod, bare, of_command, variable};
use super::{headless, labels, metadata};
use crate::node::{Item, Node, Object, fields, list, map, text};
use crate::settings::{
    COMPANION_CPU, COMPANION_ENVIRONMENT, COMPANION_MEMORY, COMPANION_PORT_TEXT, COMPANION_PROGRAM,
    COMPANION_REPLICAS, HAS_COMPANION, NAME, RUN,
};

const NAMED: &str = "companion";

/// Several replicas share the connections of the target, so this one has an address of its own.
pub(super) fn service() -> Object {
    let node = map! {
        "apiVersion" => "v1",
        "kind" => "Service",
        "metadata" => metadata(NAMED),
        "spec" => map! {
            "selector" => labels(NAMED),
            "ports" => list![map! { "name" => "http", "port" => bare(COMPANION_PORT_TEXT) }],
        },
    };
    Object {
        file: "companion-service",
        when: Some(HAS_COMPANION),
        node,
    }
}

const EACH: &str = "companion-each";

/// The name that leads to each of them, for the coordinator asks all of them what they saw.
pub(super) fn each() -> Object {
    let ports = list![map! { "name" => "http", "port" => bare(COMPANION_PORT_TEXT) }];
    Object {
        file: "companion-each-service",
        when: Some(HAS_COMPANION),
        node: headless(EACH, NAMED, Vec::new(), ports),
    }
}

/// Host and port of [`each`].
pub(super) fn each_at() -> Node {
    text!(NAME, "-", EACH, "-", RUN, ":", COMPANION_PORT_TEXT)
}

/// The URL of [`each`].
pub(super) fn each_url() -> Node {
    url_of(EACH)
}

/// The URL of [`service`], where the target asks.
pub(super) fn url() -> Node {
    url_of(NAMED)
}

fn url_of(service: &'static str) -> Node {
    let port = COMPANION_PORT_TEXT;
    text!("http://", NAME, "-", service, "-", RUN, ":", port)
}

pub(super) fn deployment() -> Object {
    let mut container = of_command(
        NAMED,
        Vec::new(),
        COMPANION_CPU.into(),
        COMPANION_MEMORY.into(),
        Vec::new(),
    );
    container.extend(fields! {
        "command" => list![text!("/", COMPANION_PROGRAM)],
        "env" => Node::List(vec![
            Item::Variables(COMPANION_ENVIRONMENT),
            Item::One(variable("BIND".into(), "0.0.0.0".into())),
            Item::One(variable("PORT".into(), COMPANION_PORT_TEXT.into())),
        ]),
        "ports" => list![map! { "name" => "http", "containerPort" => bare(COMPANION_PORT_TEXT) }],
        "readinessProbe" => map! {
            "httpGet" => map! { "path" => "/health", "port" => bare(COMPANION_PORT_TEXT) },
            // Under load it answers late, and is ready all the same.
            "timeoutSeconds" => 5,
            "failureThreshold" => 12,
        },
    });
    let pod = Pod {
        component: NAMED,
        selector: ".Values.companion.nodeSelector",
        tolerations: ".Values.companion.tolerations",
        avoids_target: true,
        containers: vec![Item::One(Node::Map(container))],
        volumes: Vec::new(),
        more: Vec::new(),
    };
    let node = map! {
        "apiVersion" => "apps/v1",
        "kind" => "Deployment",
        "metadata" => metadata(NAMED),
        "spec" => map! {
            "replicas" => bare(COMPANION_REPLICAS),
            "selector" => map! { "matchLabels" => labels(NAMED) },
            "template" => pod.template(),
        },
    };
    Object {
        file: NAMED,
        when: Some(HAS_COMPANION),
        node,
    }
}
