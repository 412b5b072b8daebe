#!/bin/sh
# Puts one process of a target under far more load than it carries, then under little. Does it survive, is its memory
# bounded, is every frame named, and does it recover?
#
#   sh scripts/overload.sh TARGET FOLDER [SESSIONS [LATER [QUOTA]]]
#
# Variables of the gateways' contract, such as MAX_SESSIONS, pass to the target.
# SESSIONS (1000) is about twice what QUOTA (1) of a core carries. LATER (50) sessions then go to the same process.
# Results: FOLDER/trial-001 under the overload, FOLDER/trial-002 afterwards. Both are trials of a running server (--url,
# --pid), so their verdicts carry the caveats of such trials. Here only the ledger and the memory count.
# Like a target that plimsoll starts, this one has a network of its own, and each side's CPUs receive what comes to it. That
# needs root, and so does a QUOTA below 1, which is that of a control group (v1: cpu, v2: cpu.max). Where one of them cannot
# be had, the script says so and goes on without it.
set -eu
cd "$(dirname "$0")/.."

target=$1
out=$2
sessions=${3:-1000}
later=${4:-50}
quota=${5:-1}
plimsoll=target/release/plimsoll
folder=targets/stt/$target
[ -f "$folder/target.toml" ] || { echo "overload: no target $target" >&2; exit 2; }

scratch=$(mktemp -d)
group=
space=
target_pid=
simulator_pid=
cleanup() {
    [ -z "$target_pid" ] || kill "$target_pid" 2>/dev/null || true
    [ -z "$simulator_pid" ] || kill "$simulator_pid" 2>/dev/null || true
    sleep 1
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
    # Its pair of cards goes with it.
    [ -z "$space" ] || ip netns delete "$space" || true
    rm -rf "$scratch"
}
trap cleanup EXIT INT TERM

# A check of one case builds the target, and shows whether it runs at all.
"$plimsoll" check "$target" --only health --out "$scratch/check" >"$scratch/check.log" 2>&1 || { cat "$scratch/check.log" >&2; exit 2; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
inference=$(free_port)
port=$(free_port)
cores=$(nproc)
last=$((cores - 1))
# The target gets the last core, and everything else the others.
others=0-$((cores > 1 ? cores - 2 : 0))

here=127.0.0.1
there=127.0.0.1
if [ "$cores" -gt 1 ] && ip netns add "overload-$$" 2>/dev/null; then
    space=overload-$$
    card=ovl$$
    here=198.18.255.1
    there=198.18.255.2
    ip link add "$card" type veth peer name eth0 netns "$space"
    ip address add $here/30 dev "$card"
    ip link set "$card" up
    ip -n "$space" address add $there/30 dev eth0
    ip -n "$space" link set eth0 up
    printf '%x' $(((1 << last) - 1)) >"/sys/class/net/$card/queues/rx-0/rps_cpus"
    ip netns exec "$space" sh -c "printf '%x' $((1 << last)) >/sys/class/net/eth0/queues/rx-0/rps_cpus"
else
    echo "overload: no network namespace can be made here, so $target is reached over the loopback" >&2
fi

taskset -c "$others" target/release/plimsoll-inference --bind $here --port "$inference" >"$scratch/simulator.log" 2>&1 &
simulator_pid=$!

# The run command and its variables, as in the manifest.
python3 - "$folder/target.toml" >"$scratch/start.sh" <<'PYTHON'
import shlex, sys, tomllib
with open(sys.argv[1], "rb") as file:
    run = tomllib.load(file)["run"]
for name, value in run.get("env", {}).items():
    print(f"export {name}={shlex.quote(value)}")
print("exec", " ".join(shlex.quote(word) for word in run["command"]))
PYTHON

tasks=/dev/null
quota_us=$(python3 -c "print(int(10000 * $quota))")
if [ "$quota_us" -ge 10000 ]; then
    : # The core that it is pinned to.
elif mkdir /sys/fs/cgroup/cpu/plimsoll-overload.$$ 2>/dev/null; then
    group=/sys/fs/cgroup/cpu/plimsoll-overload.$$
    echo 10000 >"$group/cpu.cfs_period_us"
    echo "$quota_us" >"$group/cpu.cfs_quota_us"
    tasks=$group/cgroup.procs
elif mkdir /sys/fs/cgroup/plimsoll-overload.$$ 2>/dev/null; then
    group=/sys/fs/cgroup/plimsoll-overload.$$
    echo "$quota_us 10000" >"$group/cpu.max"
    tasks=$group/cgroup.procs
else
    echo "overload: no control group can be made here, so $target gets a whole core" >&2
fi
(
    cd "$folder"
    sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$tasks" \
        ${space:+ip netns exec "$space"} env PORT="$port" WORKER_THREADS=1 INFERENCE_URL="http://$here:$inference" \
        taskset -c "$last" sh "$scratch/start.sh" >"$scratch/target.log" 2>&1 &
    echo $! >"$scratch/pid"
)
target_pid=$(cat "$scratch/pid")
tries=0
until python3 -c "import urllib.request; urllib.request.urlopen('http://$there:$port/health', timeout=1)" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 240 ] || { echo "overload: $target is not healthy after a minute" >&2; cat "$scratch/target.log" >&2; exit 2; }
    sleep 0.25
done

run() {
    code=0
    "$plimsoll" run --url "ws://$there:$port/ws/stt" --pid "$target_pid" --inference "http://$here:$inference" --client-cpus "$others" --sessions "$1" --profile quick --grace 15 --out "$out" >"$scratch/run.log" 2>&1 || code=$?
    [ "$code" != 2 ] || { cat "$scratch/run.log" >&2; exit 2; }
}
run "$sessions"
# Meanwhile the rest of the overload is processed, or times out.
sleep 10
alive=yes
kill -0 "$target_pid" 2>/dev/null || alive=no
[ $alive = no ] || run "$later"

python3 - "$target" "$alive" "$out" <<'PYTHON'
import json, pathlib, sys
name, alive, folder = sys.argv[1:]
trials = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("trial-*.json"))][-2:]
for what, trial in zip(("overload", "afterwards"), trials):
    ledger, resources = trial["ledger"], trial["target_resources"] or {}
    latency = trial["latency"]["newest"]["from_schedule"]
    print(
        f"{name} {what}: {trial['sessions']} sessions, {ledger['sessions_failed']} not let in, {ledger['sessions_died']} died; "
        f"{ledger['frames_due']} frames due, {ledger['frames_answered']} answered, {ledger['frames_errored']} named by errors, {ledger['frames_lost']} unnamed; "
        f"newest p50 {latency['p50_ms']} ms; RSS peak {resources.get('rss_peak_bytes', 0) / 2**20:.0f} MiB"
    )
print(f"{name}: alive afterwards: {alive}")
PYTHON
