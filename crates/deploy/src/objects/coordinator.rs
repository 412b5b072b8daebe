//! The coordinator: a Job that measures, and the name by which agents find it. Its exit code is the verdict, so it runs
//! once.

use super::pod::{Pod, TOKEN_FILE, empty, mount, of_command, token_mount, token_volume};
use super::{companion, headless};
use crate::node::{Item, Node, Object, fields, list, map, text};
use crate::settings::{
    AGENTS, ARGUMENTS, CLAIM, COORDINATOR_CPU, COORDINATOR_MEMORY, COORDINATOR_PORT, HAS_CLAIM,
    HAS_COMPANION, HAS_SESSIONS, IS_TARGET, IS_URL, KEEP_S, NAME, NO_CLAIM, NO_SESSIONS, OBSERVED,
    RUN, SCHEME, SESSIONS, TARGET_PORT, URL, WORKLOAD,
};

const NAMED: &str = "coordinator";

pub(super) fn service() -> Object {
    let node = headless(
        NAMED,
        NAMED,
        // Agents may come as soon as the pod has an address.
        fields! { "publishNotReadyAddresses" => true },
        list![map! { "name" => "agents", "port" => i64::from(COORDINATOR_PORT) }],
    );
    Object {
        file: "coordinator-service",
        when: None,
        node,
    }
}

pub(super) fn job() -> Object {
    let mounts = vec![
        Item::One(token_mount()),
        Item::One(mount("results", "/results")),
        Item::One(mount("scratch", "/tmp")),
    ];
    let mut container = of_command(
        NAMED,
        arguments(),
        COORDINATOR_CPU.into(),
        COORDINATOR_MEMORY.into(),
        mounts,
    );
    container.extend(fields! {
        "workingDir" => "/results",
        "ports" => list![map! { "name" => "agents", "containerPort" => i64::from(COORDINATOR_PORT) }],
    });
    let claim = map! {
        "name" => "results",
        "persistentVolumeClaim" => map! { "claimName" => CLAIM },
    };
    let pod = Pod {
        component: NAMED,
        selector: ".Values.coordinator.nodeSelector",
        tolerations: ".Values.coordinator.tolerations",
        avoids_target: true,
        containers: vec![Item::One(Node::Map(container))],
        volumes: vec![
            Item::One(token_volume()),
            Item::When(HAS_CLAIM, vec![Item::One(claim)]),
            Item::When(NO_CLAIM, vec![Item::One(empty("results"))]),
            Item::One(empty("scratch")),
        ],
        more: fields! { "restartPolicy" => "Never", "terminationGracePeriodSeconds" => 60 },
    };
    super::job(NAMED, fields! { "backoffLimit" => 0 }, pod)
}

/// `fleet pod` waits for the target, runs what stands behind `--`, and keeps the result until it is copied.
fn arguments() -> Vec<Item> {
    let one = |node: Node| Item::One(node);
    let url = text!(SCHEME, "://", NAME, "-target-", RUN, ":", TARGET_PORT);
    let mut items: Vec<Item> = ["fleet", "pod", "--keep"]
        .map(|word| one(word.into()))
        .into();
    items.push(one(KEEP_S.into()));
    items.push(Item::When(
        IS_TARGET,
        vec![
            one("--await".into()),
            one(text!(NAME, "-target-", RUN, ":", TARGET_PORT)),
        ],
    ));
    items.push(Item::When(
        HAS_COMPANION,
        vec![one("--await".into()), one(companion::each_at())],
    ));
    items.push(one("--".into()));
    items.push(Item::When(NO_SESSIONS, vec![one("find".into())]));
    items.push(Item::When(
        HAS_SESSIONS,
        vec![
            one("run".into()),
            one("--sessions".into()),
            one(SESSIONS.into()),
        ],
    ));
    items.push(one("--url".into()));
    let observed = Item::When(OBSERVED, vec![one("--observer".into())]);
    items.push(Item::When(IS_TARGET, vec![one(url), observed]));
    items.push(Item::When(IS_URL, vec![one(URL.into())]));
    items.push(Item::When(
        HAS_COMPANION,
        vec![one("--inference".into()), one(companion::each_url())],
    ));
    items.push(one("--workload".into()));
    items.push(one(WORKLOAD.into()));
    items.push(one("--agents".into()));
    items.push(one(AGENTS.into()));
    let fixed = [
        "--listen",
        "0.0.0.0:7979",
        "--token-file",
        TOKEN_FILE,
        "--out",
    ];
    items.extend(fixed.map(|word| one(word.into())));
    // A volume that outlives the pod has the results of earlier runs too.
    items.push(one(text!("/results/run-", RUN)));
    items.push(Item::Each(ARGUMENTS));
    items
}
