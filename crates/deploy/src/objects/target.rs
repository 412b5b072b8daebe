//! The target, where it is ours: with its vCPUs, and an observer beside it.

use super::agents::arguments;
use super::pod::{
    Pod, bare, empty, mount, of_command, resources, security, token_mount, token_volume, variable,
};
use super::{companion, headless, labels, metadata};
use crate::node::{Entry, Item, Node, Object, fields, list, map};
use crate::settings::{
    COMPANION_VARIABLE, HAS_COMPANION, HAS_DATA, HAS_HEALTH_PATH, HEALTH_PATH, HEALTH_PORT,
    IS_TARGET, NO_HEALTH_PATH, OBSERVED, PULL_POLICY, START_TRIES, TARGET_ENVIRONMENT,
    TARGET_IMAGE, TARGET_MEMORY, TARGET_PORT, TARGET_REPLICAS, VCPU, WORKER_THREADS,
};

const NAMED: &str = "target";

pub(super) fn service() -> Object {
    Object {
        file: "target-service",
        when: Some(IS_TARGET),
        node: headless(
            NAMED,
            NAMED,
            Vec::new(),
            list![map! { "name" => "load", "port" => bare(TARGET_PORT) }],
        ),
    }
}

pub(super) fn deployment() -> Object {
    let pod = Pod {
        component: NAMED,
        selector: ".Values.target.nodeSelector",
        tolerations: ".Values.target.tolerations",
        avoids_target: false,
        containers: vec![
            Item::One(container()),
            Item::When(OBSERVED, vec![Item::One(observer())]),
        ],
        volumes: vec![
            Item::When(OBSERVED, vec![Item::One(token_volume())]),
            Item::When(HAS_DATA, vec![Item::One(empty("data"))]),
            Item::One(empty("scratch")),
        ],
        // The observer reads the target's processes.
        more: vec![Entry::When(
            OBSERVED,
            fields! { "shareProcessNamespace" => true },
        )],
    };
    let node = map! {
        "apiVersion" => "apps/v1",
        "kind" => "Deployment",
        "metadata" => metadata(NAMED),
        "spec" => map! {
            "replicas" => bare(TARGET_REPLICAS),
            // Two targets at a time would share a node's CPUs.
            "strategy" => map! { "type" => "Recreate" },
            "selector" => map! { "matchLabels" => labels(NAMED) },
            "template" => pod.template(),
        },
    };
    Object {
        file: NAMED,
        when: Some(IS_TARGET),
        node,
    }
}

/// The target itself. It may write to its own folder: some make their configuration when they start.
fn container() -> Node {
    let environment = vec![
        Item::Variables(TARGET_ENVIRONMENT),
        Item::One(variable("WORKER_THREADS".into(), WORKER_THREADS.into())),
        Item::When(
            HAS_COMPANION,
            vec![Item::One(variable(
                COMPANION_VARIABLE.into(),
                companion::url(),
            ))],
        ),
    ];
    let probe = |of: Vec<Entry>, tries: Node| {
        let mut entries = of;
        entries.extend(
            fields! { "periodSeconds" => 1, "timeoutSeconds" => 5, "failureThreshold" => tries },
        );
        Node::Map(entries)
    };
    let get = || {
        fields! { "httpGet" => map! { "path" => HEALTH_PATH, "port" => bare(HEALTH_PORT) } }
    };
    let connect = || fields! { "tcpSocket" => map! { "port" => bare(TARGET_PORT) } };
    let mut entries = fields! {
        "name" => NAMED,
        "image" => TARGET_IMAGE,
        "imagePullPolicy" => PULL_POLICY,
        "env" => Node::List(environment),
        "ports" => list![map! { "name" => "load", "containerPort" => bare(TARGET_PORT) }],
    };
    // Asked for until it is ready, and never again: under load an answer is late, and a restart would end the trial.
    entries.push(Entry::When(
        HAS_HEALTH_PATH,
        fields! { "startupProbe" => probe(get(), bare(START_TRIES)) },
    ));
    entries.push(Entry::When(
        NO_HEALTH_PATH,
        fields! { "startupProbe" => probe(connect(), bare(START_TRIES)) },
    ));
    entries.extend(fields! {
        "resources" => resources(&VCPU.into(), &TARGET_MEMORY.into()),
        "securityContext" => security(false),
        "volumeMounts" => Node::List(vec![
            Item::When(HAS_DATA, vec![Item::One(mount("data", "/data"))]),
            Item::One(mount("scratch", "/tmp")),
        ]),
    });
    Node::Map(entries)
}

/// Pods share their network, so it finds the target by its port. It has the target's user, so it may look at it.
fn observer() -> Node {
    Node::Map(of_command(
        "observer",
        arguments(Some("--observe")),
        "100m".into(),
        "64Mi".into(),
        vec![Item::One(token_mount())],
    ))
}
