//! What the command writes in the place of the chart's values, and each setting in both.

use std::collections::BTreeMap;

use crate::catalogue::{COMPANION_PORT, PORT, Target, worker_threads};
use crate::node::{Condition, Lines, Pairs, Setting};

/// The version of these manifests, of the chart, and of the images.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The port on which agents find the coordinator.
pub const COORDINATOR_PORT: u16 = 7979;

/// The user of all containers: nobody that a machine has.
pub(crate) const USER: i64 = 65532;

/// What is measured.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A target that is deployed with the rest.
    Target(Box<Target>),
    /// A server that runs already.
    Url {
        /// Where it is.
        url: String,
        /// What the sessions do.
        workload: String,
    },
}

/// What the command is told to write.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What all objects' names begin with.
    pub name: String,
    /// Their namespace; `None` leaves it to `kubectl`.
    pub namespace: Option<String>,
    /// The command's image.
    pub image: String,
    /// The target's image; `None` is the one that its Containerfile makes.
    pub target_image: Option<String>,
    /// How many agents.
    pub agents: u32,
    /// What is measured.
    pub subject: Subject,
    /// The load of a trial; `None` searches.
    pub sessions: Option<u32>,
    /// Further arguments of the coordinator.
    pub arguments: Vec<String>,
    /// The target's vCPUs.
    pub vcpu: f64,
    /// Whether an agent beside the target observes it.
    pub observer: bool,
    /// The token that agents and coordinator prove to each other.
    pub token: Token,
}

/// Where the token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// In a secret that is written with the rest: 64 hexadecimal digits.
    Made(String),
    /// In a secret of this name, which exists, as the key `token`.
    In(String),
}

/// Three agents that search the load line of a server.
impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "plimsoll".to_owned(),
            namespace: None,
            image: image("plimsoll"),
            target_image: None,
            agents: 3,
            subject: Subject::Url {
                url: "http://server:3000".to_owned(),
                workload: "echo".to_owned(),
            },
            sessions: None,
            arguments: Vec::new(),
            vcpu: 1.0,
            observer: false,
            token: Token::In("token".to_owned()),
        }
    }
}

/// The name of an image that is made here. It is in no registry, so it says that it is on the node.
#[must_use]
pub fn image(name: &str) -> String {
    format!("localhost/{name}:{VERSION}")
}

/// The name of a target's image.
#[must_use]
pub fn target_image(target: &str) -> String {
    image(&format!("plimsoll-{target}"))
}

impl Settings {
    fn target(&self) -> Option<&Target> {
        match &self.subject {
            Subject::Target(target) => Some(target),
            Subject::Url { .. } => None,
        }
    }

    fn of_target(&self, of: impl Fn(&Target) -> String) -> String {
        self.target().map(of).unwrap_or_default()
    }

    fn has_companion(&self) -> bool {
        self.target()
            .is_some_and(|target| target.companion.is_some())
    }
}

/// The name of the release. Names of Services have 63 characters at most.
pub(crate) const NAME: Setting = Setting {
    helm: "include \"plimsoll.name\" .",
    literal: |settings| settings.name.clone(),
};

/// Which run this is. The template of a Job cannot be changed, so each upgrade of a release makes new ones.
pub(crate) const RUN: Setting = Setting {
    helm: ".Release.Revision",
    literal: |_| "1".to_owned(),
};

pub(crate) const NAMESPACE: Setting = Setting {
    helm: ".Release.Namespace",
    literal: |settings| settings.namespace.clone().unwrap_or_default(),
};

/// A manifest without a namespace goes where `kubectl` points. Helm always has one.
pub(crate) const HAS_NAMESPACE: Condition = Condition {
    helm: ".Release.Namespace",
    holds: |settings| settings.namespace.is_some(),
};

pub(crate) const IMAGE: Setting = Setting {
    helm: ".Values.image.name",
    literal: |settings| settings.image.clone(),
};

pub(crate) const PULL_POLICY: Setting = Setting {
    helm: ".Values.image.pullPolicy",
    literal: |_| "IfNotPresent".to_owned(),
};

pub(crate) const PULL_SECRETS: Condition = given(".Values.image.pullSecrets");

pub(crate) const SUSPENDED: Setting = Setting {
    helm: ".Values.suspended",
    literal: |_| "false".to_owned(),
};

/// The target's replicas.
pub(crate) const TARGET_REPLICAS: Setting = Setting {
    helm: "ternary 0 1 .Values.suspended",
    literal: |_| "1".to_owned(),
};

pub(crate) const AGENTS: Setting = Setting {
    helm: "int64 .Values.agents.count",
    literal: |settings| settings.agents.to_string(),
};

pub(crate) const AGENT_IDLE_S: Setting = Setting {
    helm: "int64 .Values.agents.idleSeconds",
    literal: |_| "600".to_owned(),
};

pub(crate) const AGENT_CPU: Setting = Setting {
    helm: ".Values.agents.cpu",
    literal: |_| "1".to_owned(),
};

pub(crate) const AGENT_MEMORY: Setting = Setting {
    helm: ".Values.agents.memory",
    literal: |_| "1Gi".to_owned(),
};

pub(crate) const COORDINATOR_CPU: Setting = Setting {
    helm: ".Values.coordinator.cpu",
    literal: |_| "1".to_owned(),
};

pub(crate) const COORDINATOR_MEMORY: Setting = Setting {
    helm: ".Values.coordinator.memory",
    literal: |_| "1Gi".to_owned(),
};

pub(crate) const KEEP_S: Setting = Setting {
    helm: "int64 .Values.coordinator.keepSeconds",
    literal: |_| "600".to_owned(),
};

pub(crate) const HAS_CLAIM: Condition = given(".Values.coordinator.claim");

pub(crate) const NO_CLAIM: Condition = Condition {
    helm: "not .Values.coordinator.claim",
    holds: |_| true,
};

pub(crate) const CLAIM: Setting = Setting {
    helm: ".Values.coordinator.claim",
    literal: |_| String::new(),
};

pub(crate) const HAS_SESSIONS: Condition = Condition {
    helm: ".Values.coordinator.sessions",
    holds: |settings| settings.sessions.is_some(),
};

pub(crate) const NO_SESSIONS: Condition = Condition {
    helm: "not .Values.coordinator.sessions",
    holds: |settings| settings.sessions.is_none(),
};

pub(crate) const SESSIONS: Setting = Setting {
    helm: "int64 .Values.coordinator.sessions",
    literal: |settings| settings.sessions.unwrap_or_default().to_string(),
};

pub(crate) const ARGUMENTS: Lines = Lines {
    helm: ".Values.coordinator.arguments",
    literal: |settings| settings.arguments.clone(),
};

/// The target is one of the catalogue.
pub(crate) const IS_TARGET: Condition = Condition {
    helm: "$target.name",
    holds: |settings| settings.target().is_some(),
};

/// The target is a server that runs already.
pub(crate) const IS_URL: Condition = Condition {
    helm: "not $target.name",
    holds: |settings| settings.target().is_none(),
};

pub(crate) const URL: Setting = Setting {
    helm: ".Values.target.url",
    literal: |settings| match &settings.subject {
        Subject::Url { url, .. } => url.clone(),
        Subject::Target(_) => String::new(),
    },
};

pub(crate) const WORKLOAD: Setting = Setting {
    helm: "$target.workload | default .Values.target.workload",
    literal: |settings| match &settings.subject {
        Subject::Url { workload, .. } => workload.clone(),
        Subject::Target(target) => target.workload.clone(),
    },
};

pub(crate) const TARGET_IMAGE: Setting = Setting {
    helm: ".Values.target.image | default $target.image",
    literal: |settings| match &settings.target_image {
        Some(image) => image.clone(),
        None => settings.of_target(|target| target_image(&target.name)),
    },
};

pub(crate) const SCHEME: Setting = Setting {
    helm: "$target.scheme",
    literal: |settings| settings.of_target(|target| target.scheme.to_owned()),
};

pub(crate) const TARGET_PORT: Setting = Setting {
    helm: "$target.port",
    literal: |_| PORT.to_string(),
};

pub(crate) const VCPU: Setting = Setting {
    helm: ".Values.target.vcpu",
    literal: |settings| settings.vcpu.to_string(),
};

pub(crate) const TARGET_MEMORY: Setting = Setting {
    helm: ".Values.target.memory",
    literal: |_| "2Gi".to_owned(),
};

pub(crate) const WORKER_THREADS: Setting = Setting {
    helm: "mul $target.threadsPerVcpu (ceil .Values.target.vcpu)",
    literal: |settings| {
        settings
            .of_target(|target| worker_threads(target.threads_per_vcpu, settings.vcpu).to_string())
    },
};

pub(crate) const TARGET_ENVIRONMENT: Pairs = Pairs {
    helm: "merge (dict) .Values.target.env $target.env",
    literal: |settings| {
        let environment = settings.target().map(Target::environment);
        pairs(environment.as_ref())
    },
};

pub(crate) const HAS_HEALTH_PATH: Condition = Condition {
    helm: "$target.healthPath",
    holds: |settings| {
        settings
            .target()
            .is_some_and(|target| target.health_path.is_some())
    },
};

pub(crate) const NO_HEALTH_PATH: Condition = Condition {
    helm: "not $target.healthPath",
    holds: |settings| {
        settings
            .target()
            .is_some_and(|target| target.health_path.is_none())
    },
};

pub(crate) const HEALTH_PATH: Setting = Setting {
    helm: "$target.healthPath",
    literal: |settings| settings.of_target(|target| target.health_path.clone().unwrap_or_default()),
};

pub(crate) const HEALTH_PORT: Setting = Setting {
    helm: "$target.healthPort",
    literal: |settings| settings.of_target(|target| target.health_port.to_string()),
};

pub(crate) const START_TRIES: Setting = Setting {
    helm: "$target.startSeconds",
    literal: |settings| settings.of_target(|target| target.start_tries().to_string()),
};

pub(crate) const HAS_DATA: Condition = Condition {
    helm: "$target.data",
    holds: |settings| settings.target().is_some_and(|target| target.has_data),
};

pub(crate) const HAS_COMPANION: Condition = Condition {
    helm: "$target.companion",
    holds: Settings::has_companion,
};

pub(crate) const COMPANION_REPLICAS: Setting = Setting {
    helm: "ternary 0 (int64 .Values.companion.replicas) .Values.suspended",
    literal: |_| "1".to_owned(),
};

pub(crate) const COMPANION_CPU: Setting = Setting {
    helm: ".Values.companion.cpu",
    literal: |_| "1".to_owned(),
};

pub(crate) const COMPANION_MEMORY: Setting = Setting {
    helm: ".Values.companion.memory",
    literal: |_| "512Mi".to_owned(),
};

pub(crate) const COMPANION_PROGRAM: Setting = Setting {
    helm: "$target.companion.program",
    literal: |settings| {
        let program = |target: &Target| target.companion.as_ref().map(|it| it.program.clone());
        settings.of_target(|target| program(target).unwrap_or_default())
    },
};

pub(crate) const COMPANION_VARIABLE: Setting = Setting {
    helm: "$target.companion.urlVariable",
    literal: |settings| {
        let variable = |target: &Target| Some(target.companion.as_ref()?.url_variable.clone());
        settings.of_target(|target| variable(target).unwrap_or_default())
    },
};

pub(crate) const COMPANION_ENVIRONMENT: Pairs = Pairs {
    helm: "$target.companion.env",
    literal: |settings| {
        let companion = settings
            .target()
            .and_then(|target| target.companion.as_ref());
        pairs(companion.map(|companion| &companion.settings))
    },
};

/// The port in texts.
pub(crate) const COMPANION_PORT_TEXT: Setting = Setting {
    helm: "$target.companion.port",
    literal: |_| COMPANION_PORT.to_string(),
};

pub(crate) const OBSERVED: Condition = Condition {
    helm: ".Values.target.observer",
    holds: |settings| settings.observer,
};

pub(crate) const MAKES_TOKEN: Condition = Condition {
    helm: "not .Values.tokenSecret",
    holds: |settings| matches!(settings.token, Token::Made(_)),
};

pub(crate) const TOKEN_SECRET: Setting = Setting {
    helm: "include \"plimsoll.tokenSecret\" .",
    literal: |settings| match &settings.token {
        Token::Made(_) => format!("{}-token-1", settings.name),
        Token::In(secret) => secret.clone(),
    },
};

/// Random characters have more than the 256 bits of the token that is made of them.
pub(crate) const TOKEN: Setting = Setting {
    helm: "randAlphaNum 64 | sha256sum",
    literal: |settings| match &settings.token {
        Token::Made(token) => token.clone(),
        Token::In(_) => String::new(),
    },
};

pub(crate) const APART_IF_POSSIBLE: Condition = Condition {
    helm: "eq .Values.apart \"preferred\"",
    holds: |_| true,
};

pub(crate) const APART: Condition = Condition {
    helm: "eq .Values.apart \"required\"",
    holds: |_| false,
};

/// What only the values of the chart can have.
pub(crate) const fn given(helm: &'static str) -> Condition {
    Condition {
        helm,
        holds: |_| false,
    }
}

fn pairs(of: Option<&BTreeMap<String, String>>) -> Vec<(String, String)> {
    let pairs = of.into_iter().flatten();
    pairs
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
