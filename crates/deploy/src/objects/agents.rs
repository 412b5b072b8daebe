//! The agents: a Job whose pods have an index each. A pod that is gone comes back with the same index.

use super::pod::{Pod, TOKEN_FILE, bare, empty, mount, of_command, token_mount, token_volume};
use crate::node::{Item, Node, Object, fields, text};
use crate::settings::{AGENT_CPU, AGENT_IDLE_S, AGENT_MEMORY, AGENTS, NAME, RUN};

const NAMED: &str = "agents";

pub(super) fn job() -> Object {
    let mounts = vec![
        Item::One(token_mount()),
        Item::One(mount("scratch", "/tmp")),
    ];
    let container = of_command(
        "agent",
        arguments(None),
        AGENT_CPU.into(),
        AGENT_MEMORY.into(),
        mounts,
    );
    let pod = Pod {
        component: NAMED,
        selector: ".Values.agents.nodeSelector",
        tolerations: ".Values.agents.tolerations",
        avoids_target: true,
        containers: vec![Item::One(Node::Map(container))],
        volumes: vec![Item::One(token_volume()), Item::One(empty("scratch"))],
        more: fields! {
            "restartPolicy" => "Never",
            // An agent ends its sessions before it goes.
            "terminationGracePeriodSeconds" => 30,
        },
    };
    let indexed = fields! {
        "completionMode" => "Indexed",
        "completions" => bare(AGENTS),
        "parallelism" => bare(AGENTS),
        // An agent that fails comes back, so that a search goes on. One that keeps failing does not.
        "backoffLimitPerIndex" => 5,
    };
    super::job(NAMED, indexed, pod)
}

/// `plimsoll agent`, perhaps with a duty other than to drive.
pub(super) fn arguments(duty: Option<&'static str>) -> Vec<Item> {
    let words = ["agent"].into_iter().chain(duty).map(Node::from);
    let coordinator = text!(NAME, "-coordinator-", RUN, ":7979");
    let told = [
        "--join".into(),
        coordinator,
        "--token-file".into(),
        TOKEN_FILE.into(),
        "--idle".into(),
        AGENT_IDLE_S.into(),
    ];
    words.chain(told).map(Item::One).collect()
}
