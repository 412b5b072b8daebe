//! What all pods have in common.

use super::{COMPONENT, labels};
use crate::node::{Entry, Item, Node, Setting, fields, list, map};
use crate::settings::{
    APART, APART_IF_POSSIBLE, IMAGE, NAME, PULL_POLICY, PULL_SECRETS, RUN, TOKEN_SECRET, USER,
    given,
};

/// The folder of the token's file.
const TOKEN_FOLDER: &str = "/token";

/// The token's file.
pub(super) const TOKEN_FILE: &str = "/token/token";

/// The template of a pod: its role, what its containers are, and what else it says.
pub(super) struct Pod {
    pub(super) component: &'static str,
    /// The values of the chart for this component, such as `.Values.agents`.
    pub(super) selector: &'static str,
    pub(super) tolerations: &'static str,
    /// Whether its node must not be the target's.
    pub(super) avoids_target: bool,
    pub(super) containers: Vec<Item>,
    pub(super) volumes: Vec<Item>,
    pub(super) more: Vec<Entry>,
}

impl Pod {
    pub(super) fn template(self) -> Node {
        let mut spec = fields! {
            // No container asks the API, and no variable of another Service may change what a program does.
            "automountServiceAccountToken" => false,
            "enableServiceLinks" => false,
            "securityContext" => map! {
                "runAsNonRoot" => true,
                "runAsUser" => USER,
                "runAsGroup" => USER,
                "fsGroup" => USER,
                "seccompProfile" => map! { "type" => "RuntimeDefault" },
            },
        };
        spec.push(Entry::When(
            PULL_SECRETS,
            fields! { "imagePullSecrets" => Node::Given(".Values.image.pullSecrets") },
        ));
        spec.push(Entry::When(
            given(self.selector),
            fields! { "nodeSelector" => Node::Given(self.selector) },
        ));
        spec.push(Entry::When(
            given(self.tolerations),
            fields! { "tolerations" => Node::Given(self.tolerations) },
        ));
        spec.push(Entry::Field(
            "affinity".to_owned(),
            affinity(self.component, self.avoids_target),
        ));
        spec.extend(self.more);
        spec.extend(fields! { "containers" => Node::List(self.containers) });
        if !self.volumes.is_empty() {
            spec.extend(fields! { "volumes" => Node::List(self.volumes) });
        }
        map! {
            "metadata" => map! { "labels" => labels(self.component) },
            "spec" => Node::Map(spec),
        }
    }
}

/// A node with the label `plimsoll/role` and this component's name is preferred. The target's node is avoided, if that is
/// possible or whatever it takes.
fn affinity(component: &'static str, avoids_target: bool) -> Node {
    let mut entries = fields! {
        "nodeAffinity" => map! {
            "preferredDuringSchedulingIgnoredDuringExecution" => list![map! {
                "weight" => 50,
                "preference" => map! {
                    "matchExpressions" => list![map! {
                        "key" => "plimsoll/role",
                        "operator" => "In",
                        "values" => list![component],
                    }],
                },
            }],
        },
    };
    if avoids_target {
        let target = || {
            map! {
                "labelSelector" => map! { "matchLabels" => target_labels() },
                "topologyKey" => "kubernetes.io/hostname",
            }
        };
        let preferred = fields! {
            "podAntiAffinity" => map! {
                "preferredDuringSchedulingIgnoredDuringExecution" => list![map! {
                    "weight" => 100,
                    "podAffinityTerm" => target(),
                }],
            },
        };
        let required = fields! {
            "podAntiAffinity" => map! { "requiredDuringSchedulingIgnoredDuringExecution" => list![target()] },
        };
        entries.push(Entry::When(APART_IF_POSSIBLE, preferred));
        entries.push(Entry::When(APART, required));
    }
    Node::Map(entries)
}

fn target_labels() -> Node {
    let mut entries = fields! { "app.kubernetes.io/instance" => NAME };
    entries.push(Entry::Field(COMPONENT.to_owned(), "target".into()));
    entries.extend(fields! { "plimsoll/run" => RUN });
    Node::Map(entries)
}

/// A container of the command's image. It writes nowhere but to its volumes.
pub(super) fn of_command(
    name: &'static str,
    args: Vec<Item>,
    cpu: Node,
    memory: Node,
    mounts: Vec<Item>,
) -> Vec<Entry> {
    let mut entries = fields! {
        "name" => name,
        "image" => IMAGE,
        "imagePullPolicy" => PULL_POLICY,
    };
    if !args.is_empty() {
        entries.extend(fields! { "args" => Node::List(args) });
    }
    entries.extend(fields! {
        "resources" => resources(&cpu, &memory),
        "securityContext" => security(true),
    });
    if !mounts.is_empty() {
        entries.extend(fields! { "volumeMounts" => Node::List(mounts) });
    }
    entries
}

/// Requests that are the limits: the pod then has the quality of service `Guaranteed`, and a static CPU manager gives whole
/// CPUs to it alone.
pub(super) fn resources(cpu: &Node, memory: &Node) -> Node {
    let both = || map! { "cpu" => cpu.clone(), "memory" => memory.clone() };
    map! { "requests" => both(), "limits" => both() }
}

pub(super) fn security(read_only: bool) -> Node {
    let mut entries = fields! {
        "allowPrivilegeEscalation" => false,
        "capabilities" => map! { "drop" => list!["ALL"] },
    };
    if read_only {
        entries.extend(fields! { "readOnlyRootFilesystem" => true });
    }
    Node::Map(entries)
}

/// A folder that lives as long as the pod, and where it is mounted.
pub(super) fn empty(name: &'static str) -> Node {
    map! { "name" => name, "emptyDir" => Node::Map(Vec::new()) }
}

pub(super) fn mount(name: &'static str, path: &'static str) -> Node {
    map! { "name" => name, "mountPath" => path }
}

pub(super) fn token_volume() -> Node {
    map! {
        "name" => "token",
        "secret" => map! { "secretName" => TOKEN_SECRET, "defaultMode" => 0o440 },
    }
}

pub(super) fn token_mount() -> Node {
    map! { "name" => "token", "mountPath" => TOKEN_FOLDER, "readOnly" => true }
}

/// A variable of the environment.
pub(super) fn variable(name: Node, value: Node) -> Node {
    map! { "name" => name, "value" => value }
}

pub(super) fn bare(setting: Setting) -> Node {
    Node::Bare(setting)
}
