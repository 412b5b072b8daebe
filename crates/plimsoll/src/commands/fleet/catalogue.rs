//! What can be deployed: of each manifest what a pod must know, asked from its workload.

use std::path::Path;

use plimsoll_deploy::catalogue::{Catalogue, Companion, FURTHER_PORTS, PORT, Target};
use plimsoll_lab::manifest::{self, METRICS_PORT, Manifest, Tier};
use plimsoll_workload::{Values, Workload};

use super::images;
use crate::failure::Failure;
use crate::workloads;

/// Stands for the URL of a companion while a workload says which variable gets it.
const URL: &str = "http://companion";

/// The targets below a root.
#[derive(Debug, Default)]
pub(super) struct Deployable {
    /// All but those that test Plimsoll itself.
    pub(super) catalogue: Catalogue,
    /// The names of those that do not take the usual parameters of their workload, each with the reason.
    pub(super) left_out: Vec<(String, String)>,
}

/// Asks all manifests and workloads.
///
/// # Errors
/// A manifest cannot be used, or two targets have one name.
pub(super) fn of_root(root: &Path) -> Result<Deployable, Failure> {
    of(manifests(root)?.as_slice())
}

/// The same with the versions of compilers and runtimes, which only the files of images name.
///
/// # Errors
/// As [`of_root`], and a file that says a version is missing.
pub(super) fn with_versions(root: &Path) -> Result<Deployable, Failure> {
    let manifests = manifests(root)?;
    let mut known = of(&manifests)?;
    known.catalogue.versions = images::versions(root, &manifests)?;
    Ok(known)
}

fn manifests(root: &Path) -> Result<Vec<Manifest>, Failure> {
    let found = manifest::discover(root, workloads::manifest_keys)?;
    if let Some(broken) = found.broken.into_iter().next() {
        return Err(broken.into());
    }
    Ok(found.targets)
}

fn of(manifests: &[Manifest]) -> Result<Deployable, Failure> {
    let mut targets = Vec::new();
    let mut left_out = Vec::new();
    for manifest in manifests {
        let workload = workloads::ALL
            .iter()
            .find(|workload| workload.about().name == manifest.workload);
        let Some(workload) = workload.filter(|_| manifest.tier != Tier::Test) else {
            continue;
        };
        match target(*workload, manifest) {
            Ok(target) => targets.push(target),
            Err(why) => left_out.push((manifest.name.clone(), why.to_string())),
        }
    }
    targets.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = targets.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Failure::Usage(format!(
            "two targets are called {}, and images and the chart know targets by name; rename one",
            pair[0].name
        )));
    }
    let workloads = workloads::ALL.iter().map(|workload| workload.about().name);
    Ok(Deployable {
        catalogue: Catalogue {
            targets,
            workloads: workloads.map(str::to_owned).collect(),
            ..Catalogue::default()
        },
        left_out,
    })
}

/// What a pod of this target must know. Its load has the usual parameters.
fn target(workload: &'static dyn Workload, manifest: &Manifest) -> Result<Target, Failure> {
    let values = Values::default().settled(workload, workloads::ALL, Some(manifest))?;
    let plan = workload.plan_for(values, manifest)?;
    let told = plan.told();
    // What the manifest fixes is in the image, and takes precedence.
    let fixed = |name: &String| manifest.run.env.contains_key(name);
    let variables = told.variables.into_iter().filter(|(name, _)| !fixed(name));
    let speaks_http = !told.health_path.is_empty();
    let apart = manifest.ports.first() == Some(&METRICS_PORT);
    Ok(Target {
        name: manifest.name.clone(),
        workload: manifest.workload.clone(),
        threads_per_vcpu: manifest.threads_per_vcpu,
        scheme: if speaks_http { "http" } else { "tcp" },
        health_path: speaks_http.then(|| told.health_path.to_owned()),
        health_port: if apart { FURTHER_PORTS } else { PORT },
        further_ports: manifest
            .ports
            .iter()
            .map(|port| (*port).to_owned())
            .collect(),
        start_timeout_s: manifest.start_timeout_s,
        has_data: told.data.is_some(),
        variables: variables.collect(),
        companion: companion(workload, manifest)?,
        image: images::of(manifest),
    })
}

fn companion(
    workload: &'static dyn Workload,
    manifest: &Manifest,
) -> Result<Option<Companion>, Failure> {
    let asked = workload.companions();
    let Some(companions) = asked.filter(|companions| companions.is_asked_by(manifest)) else {
        return Ok(None);
    };
    let told = companions.told(URL);
    let [(variable, value)] = told.as_slice() else {
        return Err(Failure::Usage(format!(
            "{workload:?} tells a target more than a URL"
        )));
    };
    if value != URL {
        return Err(Failure::Usage(format!(
            "{workload:?} tells a target {value}, which is no plain URL"
        )));
    }
    let deployed = companions.deployed();
    Ok(Some(Companion {
        program: deployed.program.to_owned(),
        settings: deployed.settings.into_iter().collect(),
        url_variable: variable.clone(),
    }))
}
