//! A compose file for one machine: a target, what it asks, and a client, each with CPUs of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::catalogue::{COMPANION_PORT, Catalogue, PORT, Target, worker_threads};
use crate::images::health;
use crate::node::{Node, sorted};
use crate::settings::{image, target_image};
use crate::yaml::{Output, text};

const FILE: &str = "deploy/compose.yaml";

const HEAD: &str = "# One target, what it asks, and a client, each on CPUs of its own. A profile for each target:
#
#   TARGET_CPUS=3 CLIENT_CPUS=0-1 COMPANION_CPUS=2 docker compose -f deploy/compose.yaml --profile rust-axum up --abort-on-container-exit
#   docker compose -f deploy/compose.yaml --profile rust-axum cp client-WORKLOAD:/results/run ./run
#
# The images are those of deploy/images. Made from the manifests; do not edit.
";

/// The file, by its path from the root of the repository.
pub(crate) fn files(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let mut services = Map::new();
    let with_image = || {
        catalogue
            .targets
            .iter()
            .filter(|target| target.image.is_some())
    };
    for target in with_image() {
        services.insert(target.name.clone(), of_target(target));
    }
    let companions: BTreeSet<&str> = with_image()
        .filter_map(|target| Some(target.companion.as_ref()?.program.as_str()))
        .collect();
    for program in companions {
        let asks = |target: &&Target| {
            let companion = target.companion.as_ref();
            companion.is_some_and(|companion| companion.program == program)
        };
        let targets: Vec<&Target> = with_image().filter(asks).collect();
        services.insert(program.to_owned(), of_companion(program, &targets));
    }
    for workload in &catalogue.workloads {
        let own = |target: &&Target| target.workload == *workload;
        let targets: Vec<&Target> = with_image().filter(own).collect();
        if !targets.is_empty() {
            services.insert(format!("client-{workload}"), of_client(workload, &targets));
        }
    }
    let all = sorted(json!({"name": "plimsoll", "services": services}));
    let body = text(&Node::from(&all), Output::Helm);
    BTreeMap::from([(FILE.to_owned(), format!("{HEAD}{body}"))])
}

fn names(targets: &[&Target]) -> Vec<String> {
    targets.iter().map(|target| target.name.clone()).collect()
}

fn of_target(target: &Target) -> Value {
    let family = target.image.as_ref().map(|image| image.family.word());
    let mut environment = target.environment();
    environment.insert(
        "WORKER_THREADS".to_owned(),
        format!(
            "${{WORKER_THREADS:-{}}}",
            worker_threads(target.threads_per_vcpu, 1.0)
        ),
    );
    let mut service = json!({
        "image": target_image(&target.name),
        "build": {
            "context": "..",
            "dockerfile": format!("deploy/images/{}.Containerfile", family.unwrap_or_default()),
            "target": target.name,
        },
        "profiles": [target.name],
        "cpuset": "${TARGET_CPUS:-1}",
        "mem_limit": "2g",
        "healthcheck": {
            "test": ["CMD", "bash", "-c", health(target).replace('$', "$$")],
            "interval": "5s",
            "timeout": "5s",
            "start_period": format!("{}s", target.start_timeout_s),
        },
        // Whatever the target is, its client finds it under one name.
        "networks": {"default": {"aliases": ["target"]}},
    });
    if let Some(companion) = &target.companion {
        let url = format!("http://{}:{COMPANION_PORT}", companion.program);
        environment.insert(companion.url_variable.clone(), url);
        service["depends_on"] = json!([companion.program]);
    }
    if target.has_data {
        service["tmpfs"] = json!(["/data:mode=1777"]);
    }
    service["environment"] = json!(environment);
    service
}

fn of_companion(program: &str, targets: &[&Target]) -> Value {
    let settings = targets.iter().find_map(|target| target.companion.as_ref());
    let mut environment = settings
        .map(|companion| companion.settings.clone())
        .unwrap_or_default();
    environment.insert("BIND".to_owned(), "0.0.0.0".to_owned());
    environment.insert("PORT".to_owned(), COMPANION_PORT.to_string());
    json!({
        "image": image("plimsoll"),
        "entrypoint": [format!("/{program}")],
        "profiles": names(targets),
        "cpuset": "${COMPANION_CPUS:-0}",
        "environment": environment,
    })
}

/// The client waits for the target by itself: which one it is depends on the profile.
fn of_client(workload: &str, targets: &[&Target]) -> Value {
    let scheme = targets.first().map_or("http", |target| target.scheme);
    let awaited = format!("target:{PORT}");
    let url = format!("{scheme}://target:{PORT}");
    json!({
        "image": image("plimsoll"),
        "build": {"context": "..", "dockerfile": "deploy/images/command.Containerfile"},
        "profiles": names(targets),
        "cpuset": "${CLIENT_CPUS:-0}",
        "working_dir": "/results",
        "command": [
            "fleet", "pod", "--await", awaited, "--",
            "find", "--url", url, "--workload", workload, "--out", "/results/run",
        ],
    })
}
