#!/bin/sh
# A cluster of one node on this machine, in network, mount and process namespaces of its own: nothing of it is seen from
# outside, and all of it ends with the first process inside. Needs root.
#
#   sh scripts/cluster/cluster.sh up STATE TOOLS     starts it; TOOLS is the folder that scripts/cluster/install.sh prints
#   sh scripts/cluster/cluster.sh run STATE WORDS…   runs a command inside, such as kubectl, helm or ctr
#   sh scripts/cluster/cluster.sh down STATE         ends it and removes STATE
set -eu
verb=$1
state=$2
here=$(cd "$(dirname "$0")" && pwd)


# The keys of the control plane, and a token for each of its clients.
keys() {
    mkdir -p "$state/keys"
    cd "$state/keys"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -keyout api.key -out api.csr -subj /CN=kube-apiserver 2>/dev/null
    echo "subjectAltName=IP:127.0.0.1,IP:198.18.0.1,IP:198.19.0.1,DNS:kubernetes,DNS:kubernetes.default.svc" >names
    openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out api.crt 2>/dev/null
    openssl genrsa -out accounts.key 2048 2>/dev/null
    : >tokens
    client admin admin system:masters
    client controllers system:kube-controller-manager ""
    client scheduler system:kube-scheduler ""
    client kubelet system:node:node1 system:nodes
}

client() { # FILE USER GROUPS
    token=$(openssl rand -hex 16)
    echo "$token,$2,$1,\"$3\"" >>tokens
    cat >"$1.conf" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $state/keys/ca.crt}}]
users: [{name: u, user: {token: "$token"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
END
}

case $verb in
    up)
        tools=$3
        [ "$(id -u)" = 0 ] || { echo "cluster: namespaces and containers need root" >&2; exit 1; }
        mkdir -p "$state/logs"
        cat >"$state/environment" <<END
export STATE=$state TOOLS=$tools KUBECONFIG=$state/keys/admin.conf
export PATH=$tools/bin:$(dirname "$tools"):$tools/root/usr/bin:$tools/root/usr/sbin:$PATH
export LD_LIBRARY_PATH=$tools/root/usr/lib/x86_64-linux-gnu:$tools/root/usr/lib/aarch64-linux-gnu
export CONTAINERD_ADDRESS=$state/containerd.sock HELM_CACHE_HOME=$state/helm HELM_CONFIG_HOME=$state/helm HELM_DATA_HOME=$state/helm
END
        (keys)
        setsid unshare --net --mount --pid --fork sh "$here/inside.sh" "$state" >"$state/logs/inside.log" 2>&1 </dev/null &
        outer=$!
        for _ in $(seq 900); do
            [ ! -e "$state/ready" ] || break
            kill -0 $outer 2>/dev/null || break
            sleep 0.2
        done
        pgrep -P $outer >"$state/init.pid" || true
        [ -e "$state/ready" ] || {
            tail -n 20 "$state/logs/inside.log" >&2
            echo "cluster: it did not start; the logs are in $state/logs" >&2
            exit 1
        }
        ;;
    run)
        shift 2
        # shellcheck source=/dev/null
        . "$state/environment"
        exec nsenter --target "$(cat "$state/init.pid")" --net --mount --pid --wdns="$PWD" "$@"
        ;;
    down)
        # The end of the first process ends all others in its namespace.
        pid=$(cat "$state/init.pid" 2>/dev/null || true)
        if [ -n "$pid" ]; then
            kill -9 "$pid" 2>/dev/null || true
            for _ in $(seq 50); do
                [ -d "/proc/$pid" ] || break
                sleep 0.1
            done
        fi
        # What the kubelet made of control groups, and nothing else.
        for group in /sys/fs/cgroup/*/plimsoll-cluster /sys/fs/cgroup/plimsoll-cluster; do
            [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        done
        rm -rf "$state"
        ;;
    *) echo "cluster: up, run or down, not $verb" >&2; exit 2 ;;
esac
