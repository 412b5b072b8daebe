#!/bin/sh
# Installs what scripts/check-deploy needs: Helm, built by Go, the schema of compose files, and a Python environment with
# validators. All stay in a cache outside of this folder, because Helm takes minutes to build: PLIMSOLL_CACHE, by default
# ~/.cache/plimsoll.
# Prints the cache's folder as its last line. Does nothing, and asks nothing, if everything is there.
set -eu
cd "$(dirname "$0")/.."
cache=${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}
helm=3.22.0
# The module of those who write the specification, with its schema.
compose=2.16.2
# kubernetes-validate has the schemas of Kubernetes, and brings jsonschema and PyYAML along.
validators="kubernetes-validate==1.37.0 dockerfile-parse==2.0.1"

have_helm() { "$cache/helm-$helm" version --short >/dev/null 2>&1; }
have_compose() { [ -s "$cache/compose-spec-$compose.json" ]; }
have_validators() { [ "$(cat "$cache/deploy-venv/installed" 2>/dev/null)" = "$validators" ]; }

if ! have_helm || ! have_compose; then
    command -v go >/dev/null 2>&1 || { echo "install-deploy: Helm $helm is built by Go, which is not installed here" >&2; exit 1; }
fi
if ! have_helm; then
    sh scripts/may-install.sh install-deploy "Helm $helm, built by Go in three minutes, in $cache"
    mkdir -p "$cache/build"
    GOBIN=$cache/build GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS='' go install -trimpath -ldflags=-s "helm.sh/helm/v3/cmd/helm@v$helm"
    mv "$cache/build/helm" "$cache/helm-$helm"
fi
if ! have_compose; then
    sh scripts/may-install.sh install-deploy "the schema of compose files, from Go's module proxy, in $cache"
    mkdir -p "$cache"
    folder=$(cd "$cache" && GOFLAGS='' go mod download -json "github.com/compose-spec/compose-go/v2@v$compose" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
    cp "$folder/schema/compose-spec.json" "$cache/compose-spec-$compose.json"
    chmod u+w "$cache/compose-spec-$compose.json"
fi
if ! have_validators; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || sh scripts/apt-install.sh install-deploy python3-venv
    sh scripts/may-install.sh install-deploy "$validators from the Python package index, in $cache"
    rm -rf "$cache/deploy-venv"
    mkdir -p "$cache"
    python3 -m venv "$cache/deploy-venv"
    # shellcheck disable=SC2086  # a list of packages
    "$cache/deploy-venv/bin/pip" install -q --disable-pip-version-check $validators
    echo "$validators" >"$cache/deploy-venv/installed"
fi
ln -sf "helm-$helm" "$cache/helm"
ln -sf "compose-spec-$compose.json" "$cache/compose-spec.json"
echo "$cache"
