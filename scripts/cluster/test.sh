#!/bin/sh
# The chart on a cluster of this machine: three agents and a coordinator search the load line of a target pod. One agent's
# pod is deleted in the middle of it and comes back with the same index. Then the verdict and the copied result are read.
# A second release of the chart runs one trial with an observer in the target's pod. Needs root. The first time takes half
# an hour, because Kubernetes and the static programs are built.
#
#   sh scripts/cluster/test.sh
#
# PROGRAMS (a folder with static plimsoll, plimsoll-inference and plimsoll-providers: nothing of ours is built then)
set -eu
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "test-cluster: namespaces and containers need root" >&2; exit 1; }
static=$(uname -m)-unknown-linux-musl
target=rust-axum
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

tools=$(sh scripts/cluster/install.sh | tee /dev/stderr | tail -n 1)
command -v musl-gcc >/dev/null 2>&1 || sh scripts/apt-install.sh test-cluster musl-tools
rustup target list --installed | grep -qx "$static" || {
    sh scripts/may-install.sh test-cluster "the Rust target $static by rustup"
    rustup target add "$static"
}
cc=CC_$(echo "$static" | tr - _)
export "$cc=musl-gcc"
build=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --locked -p plimsoll
if [ -z "${PROGRAMS:-}" ]; then
    cargo build --release --locked --target "$static" -p plimsoll -p plimsoll-inference -p plimsoll-providers
    PROGRAMS=$build/$static/release
fi
(cd targets/stt/$target && CARGO_TARGET_DIR=$build/cluster-target cargo build --release --locked --target "$static")

state=$(mktemp -d)
cluster() { sh scripts/cluster/cluster.sh "$@"; }
inside() { cluster run "$state" "$@"; }
trap 'cluster down "$state"' EXIT
trap 'exit 130' INT TERM

mkdir -p "$state/images" "$state/programs"
musl-gcc -static -Os -s -o "$state/programs/pause" scripts/cluster/pause.c
for program in plimsoll plimsoll-inference plimsoll-providers; do cp "$PROGRAMS/$program" "$state/programs/"; done
cp "$build/cluster-target/$static/release/$target" "$state/programs/"
image() { # NAME PROGRAM…
    file=$state/images/$(basename "${1%:*}").tar
    name=$1
    shift
    for program in "$@"; do shift; set -- "$@" "$state/programs/$program"; done
    "$build/debug/plimsoll" generate image --out "$file" --name "$name" "$@"
}
image localhost/pause:1 pause
image "localhost/plimsoll:$version" plimsoll plimsoll-inference plimsoll-providers
image "localhost/plimsoll-$target:$version" $target

passed=0
failed=0
holds() { # WHAT COMMAND…
    what=$1
    shift
    if "$@" >"$state/output" 2>&1; then passed=$((passed + 1)); echo "  ok: $what"; else
        failed=$((failed + 1))
        echo "test-cluster: $what does not hold: $*"
        tail -n 5 "$state/output"
    fi
}
# Waits up to SECONDS for a command to succeed.
await() {
    seconds=$1
    shift
    until=$(($(date +%s) + seconds))
    while [ "$(date +%s)" -lt $until ]; do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 1
    done
    return 1
}

cluster up "$state" "$tools"
# All of it has two cores, so shares of them are small, and so are the loads.
inside helm install trial deploy/chart/plimsoll --namespace load --create-namespace --values deploy/chart/plimsoll/values/one-node.yaml \
    --set target.name=$target,target.vcpu=0.1,target.memory=256Mi \
    --set agents.count=3,agents.cpu=0.2,agents.memory=128Mi \
    --set coordinator.cpu=0.3,coordinator.memory=512Mi,coordinator.keepSeconds=120 \
    --set companion.cpu=0.3,companion.memory=128Mi \
    --set 'coordinator.arguments={--start,40,--max,240,--time-budget,2,--ramp,1,--warm-up,1,--measured,5,--grace,3}' >/dev/null

kubectl() { inside kubectl --namespace load "$@"; }
revision=1
coordinator() { kubectl get pods --selector job-name=trial-coordinator-$revision --output "jsonpath={.items[0]$1}"; }
agent() { kubectl get pods --selector job-name=trial-agents-1,batch.kubernetes.io/job-completion-index=1 --field-selector status.phase=Running --output 'jsonpath={.items[0].metadata.name}'; }
log() { kubectl logs job/trial-coordinator-$revision; }
says() { log | grep -q "$1"; }
code() { coordinator '.status.containerStatuses[0].state.terminated.exitCode' | grep .; }

holds "all three agents run" await 120 sh -c "sh scripts/cluster/cluster.sh run '$state' kubectl --namespace load get pods --selector job-name=trial-agents-1 --field-selector status.phase=Running --output name | wc -l | grep -qx 3"
holds "the first trial begins" await 120 says '^trial 1:'
first=$(agent)
kubectl delete pod "$first" --wait=false >/dev/null
replaced() { second=$(agent) && [ -n "$second" ] && [ "$second" != "$first" ]; }
holds "the agent with index 1 comes back" await 90 replaced
holds "a verdict comes" await 420 says 'the result waits'
pod=$(coordinator .metadata.name)
holds "kubectl cp copies the result" kubectl cp "$pod:/results/run-1" "$state/run"
holds "the pod ends once it is copied" await 60 code
verdict=$(code || echo none)
holds "the exit code is a verdict" sh -c "case '$verdict' in 0 | 1 | 3) ;; *) exit 1 ;; esac"
holds "the result can be read" "$build/debug/plimsoll" report "$state/run"
holds "a record has all three agents" sh -c "grep -l '\"agents\"' '$state'/run/trial-*.json"
holds "the termination message is the summary" sh -c "[ -n '$(coordinator '.status.containerStatuses[0].state.terminated.message' | head -c 20 | tr -d "'")' ]"
log >"$state/log" || true
tail -n 25 "$state/log"

revision=2
inside helm upgrade trial deploy/chart/plimsoll --namespace load --reuse-values --set target.observer=true,coordinator.sessions=40 \
    --set 'coordinator.arguments={--ramp,1,--warm-up,1,--measured,5,--grace,3}' >/dev/null
holds "a trial with an observer ends" await 240 says 'the result waits'
pod=$(coordinator .metadata.name)
holds "kubectl cp copies its record" kubectl cp "$pod:/results/run-2" "$state/observed"
# Agents share the target's CPUs here, so the trial is invalid. What the observer read is in its record all the same.
holds "the observer measured the target, and the simulator said what it saw" python3 -c '
import json, sys
trial = json.load(open(sys.argv[1]))
used = trial["target_resources"]
print([caveat["id"] for caveat in trial["caveats"]], used, trial["environment"]["observer"])
assert used["cpu_us_per_session_second"] > 0 and used["memory"]["loaded"]["rss_bytes"] > 0
assert trial["environment"]["observer"]["lost"] is None
print(trial["inference"])
assert trial["inference"]["requests"] > 0
' "$state/observed/trial-001.json"
cat "$state/output"
log | tail -n 12
[ $failed = 0 ] || {
    kubectl get pods --output wide || true
    for component in agents target; do kubectl logs --selector "app.kubernetes.io/component=$component" --all-containers --prefix --tail=5 || true; done
}
echo "test-cluster: verdict $verdict; $passed passed, $failed failed"
[ $failed = 0 ]
