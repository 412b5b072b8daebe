//! The chart: the same objects as the command writes, with expressions of the chart's values.

mod places;
mod values;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalogue::{COMPANION_PORT, Catalogue, PORT, Target};
use crate::node::{Node, Object, sorted};
use crate::objects;
use crate::settings::{VERSION, target_image};
use crate::yaml::{Output, text};

/// Its folder.
const FOLDER: &str = "deploy/chart/plimsoll";

/// The page of its values.
const PAGE: &str = "docs/reference/chart.md";

const HELPERS: &str = r#"{{/* What all names begin with. With the rest they have 63 characters at most. */}}
{{- define "plimsoll.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The secret with the token. */}}
{{- define "plimsoll.tokenSecret" -}}
{{ .Values.tokenSecret | default (printf "%s-token-%d" (include "plimsoll.name" .) .Release.Revision) }}
{{- end }}

{{/* What targets.yaml says of the target; nothing for a URL. */}}
{{- define "plimsoll.target" -}}
{{- if .Values.target.name -}}
{{ index (.Files.Get "targets.yaml" | fromYaml) .Values.target.name | toYaml }}
{{- else -}}
{}
{{- end }}
{{- end }}
"#;

const NOTES: &str = r#"{{- $job := printf "%s-coordinator-%d" (include "plimsoll.name" .) .Release.Revision -}}
{{- $ns := .Release.Namespace -}}
{{- if .Values.suspended -}}
Nothing runs yet. Choose what to measure and upgrade:

  helm upgrade {{ .Release.Name }} CHART --namespace {{ $ns }} --set suspended=false --set target.name=rust-axum
{{- else -}}
{{ .Values.agents.count }} agents measure {{ .Values.target.name | default .Values.target.url }}. Follow it:

  kubectl logs --namespace {{ $ns }} --follow job/{{ $job }}

Copy the result within {{ .Values.coordinator.keepSeconds }} seconds of the verdict. The pod then ends:

  kubectl cp --namespace {{ $ns }} $(kubectl get pods --namespace {{ $ns }} --selector job-name={{ $job }} --output jsonpath='{.items[0].metadata.name}'):/results/run-{{ .Release.Revision }} ./run-{{ .Release.Revision }}

The verdict is the exit code: 0 pass or found, 1 fail, 3 invalid.

  kubectl get pods --namespace {{ $ns }} --selector job-name={{ $job }} --output jsonpath='{.items[0].status.containerStatuses[0].state.terminated.exitCode}'
{{- end }}
"#;

/// All of its files, and the page of its values, by path from the root of the repository.
pub(crate) fn files(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut add = |path: &str, text: String| {
        files.insert(format!("{FOLDER}/{path}"), text);
    };
    add("Chart.yaml", about());
    add("values.yaml", values::defaults(catalogue));
    add("values.schema.json", values::schema(catalogue));
    add("targets.yaml", targets(&catalogue.targets));
    add("templates/_helpers.tpl", HELPERS.to_owned());
    add("templates/NOTES.txt", NOTES.to_owned());
    for object in objects::all() {
        add(
            &format!("templates/{}.yaml", object.file),
            template(&object),
        );
    }
    for (name, text) in places::all() {
        add(&format!("values/{name}.yaml"), text);
    }
    files.insert(PAGE.to_owned(), page(catalogue));
    files
}

fn about() -> String {
    let about = json!({
        "apiVersion": "v2",
        "name": "plimsoll",
        "description": "Finds the load line of a server with agents on several machines.",
        "type": "application",
        "version": VERSION,
        "appVersion": VERSION,
        // The first in which a Job counts failures for each index.
        "kubeVersion": ">=1.29.0-0",
    });
    text(&Node::from(&sorted(about)), Output::Helm)
}

fn template(object: &Object) -> String {
    let node = text(&object.node, Output::Helm);
    let target = "{{- $target := include \"plimsoll.target\" . | fromYaml }}\n";
    let head = if node.contains("$target")
        || object
            .when
            .is_some_and(|when| when.helm.contains("$target"))
    {
        target
    } else {
        ""
    };
    match object.when {
        Some(when) => format!("{head}{{{{- if {} }}}}\n{node}{{{{- end }}}}\n", when.helm),
        None => format!("{head}{node}"),
    }
}

/// What the templates know of the targets.
fn targets(targets: &[Target]) -> String {
    let known = |target: &Target| {
        let mut known = json!({
            "name": target.name,
            "workload": target.workload,
            "image": target_image(&target.name),
            "scheme": target.scheme,
            "port": PORT,
            "startSeconds": target.start_timeout_s,
            "threadsPerVcpu": target.threads_per_vcpu,
            "env": target.environment(),
        });
        if let Some(path) = &target.health_path {
            known["healthPath"] = json!(path);
            known["healthPort"] = json!(target.health_port);
        }
        if target.has_data {
            known["data"] = json!(true);
        }
        if let Some(companion) = &target.companion {
            known["companion"] = json!({
                "program": companion.program,
                "port": COMPANION_PORT,
                "urlVariable": companion.url_variable,
                "env": companion.settings,
            });
        }
        (target.name.clone(), known)
    };
    let all: Value = targets
        .iter()
        .map(known)
        .collect::<serde_json::Map<_, _>>()
        .into();
    let text = text(&Node::from(&sorted(all)), Output::Helm);
    format!(
        "# What the templates know of each target. Made from the manifests: targets/WORKLOAD/NAME/target.toml.\n{text}"
    )
}

fn page(catalogue: &Catalogue) -> String {
    format!(
        "# The chart's values\n\n<!-- Written by a test: PLIMSOLL_UPDATE=1 cargo test -p plimsoll --test deploy. Do not edit: change crates/deploy/src/chart/values.rs instead. -->\n\nThe chart is `deploy/chart/plimsoll`. [How to run on your cluster](../how-to/run-on-your-cluster.md) goes through the steps.\nIts schema refuses an unknown value and an impossible one.\n\n{}",
        values::table(catalogue)
    )
}
