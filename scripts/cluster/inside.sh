#!/bin/sh
# The first process of a cluster's namespaces: network, containerd, control plane, kubelet, Services and names. Started by
# cluster.sh. Pods have 198.18.0.0/16, Services 198.19.0.0/16: addresses that are set aside for tests of networks.
set -eu
state=$1
# shellcheck source=/dev/null
. "$state/environment"
logs=$state/logs
keys=$state/keys

# What programs write to their usual places goes into the state's folder.
mount --make-rprivate /
mount -t proc proc /proc
for folder in var run; do
    mkdir -p "$state/upper-$folder" "$state/work-$folder"
    mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$state/upper-$folder,workdir=$state/work-$folder" "/$folder"
done
mount --make-rshared /
mkdir -p /run/netns /var/lib/kubelet /var/log/containers /var/log/pods /var/lib/cni

ip link set lo up
ip link add cni0 type bridge
ip address add 198.18.0.1/16 dev cni0
# A bridge without a port has no carrier.
ip link add none0 type veth peer name none1
ip link set none0 master cni0 up
ip link set none1 up
ip link set cni0 up
ip route add default dev cni0
ip address add 198.19.0.10/32 dev lo
echo 1 >/proc/sys/net/ipv4/ip_forward
mkdir -p "$state/cni"
cat >"$state/cni/10-bridge.conflist" <<'END'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.0.0/16", "rangeStart": "198.18.1.1"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/var/lib/cni"}
}]}
END

# Starts a program that lives as long as the cluster.
start() {
    name=$1
    shift
    "$@" >"$logs/$name.log" 2>&1 </dev/null &
}
# Waits up to two minutes for a command to succeed.
await() {
    for _ in $(seq 600); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.2
    done
    echo "no success in two minutes: $*" >&2
    return 1
}

cat >"$state/containerd.toml" <<END
version = 2
root = "$state/containerd"
state = "$state/containerd-run"
oom_score = 0
[grpc]
  address = "$CONTAINERD_ADDRESS"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$TOOLS/root/usr/lib/cni"
    conf_dir = "$state/cni"
END
start containerd containerd -c "$state/containerd.toml"
await ctr version
for image in "$state"/images/*.tar; do
    ctr -n k8s.io images import "$image"
done

start etcd etcd --data-dir "$state/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync
start apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range=198.19.0.0/16 --secure-port=6443 \
    --advertise-address=198.18.0.1 --tls-cert-file="$keys/api.crt" --tls-private-key-file="$keys/api.key" --client-ca-file="$keys/ca.crt" \
    --token-auth-file="$keys/tokens" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --anonymous-auth=false \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$keys/accounts.key" \
    --service-account-signing-key-file="$keys/accounts.key" --kubelet-preferred-address-types=InternalIP
await kubectl get --raw /readyz
start controllers kube-controller-manager --kubeconfig="$keys/controllers.conf" --service-account-private-key-file="$keys/accounts.key" \
    --root-ca-file="$keys/ca.crt" --use-service-account-credentials=true --leader-elect=false
start scheduler kube-scheduler --kubeconfig="$keys/scheduler.conf" --leader-elect=false \
    --authentication-kubeconfig="$keys/scheduler.conf" --authorization-kubeconfig="$keys/scheduler.conf"
cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /plimsoll-cluster
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$CONTAINERD_ADDRESS
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: 198.18.0.1
oomScoreAdj: 0
makeIPTablesUtilChains: false
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
clusterDomain: cluster.local
clusterDNS: [198.19.0.10]
END
for group in /sys/fs/cgroup/*/; do
    [ ! -e "$group/cgroup.procs" ] || mkdir -p "$group/plimsoll-cluster"
done
# A new group of CPUs has none, where control groups are of version 1.
if [ -d /sys/fs/cgroup/cpuset/plimsoll-cluster ]; then
    for file in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/plimsoll-cluster/$file"; done
fi
start kubelet kubelet --config="$state/kubelet.yaml" --kubeconfig="$keys/kubelet.conf" --hostname-override=node1 --node-ip=198.18.0.1
cat >"$state/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 198.18.0.0/16
clientConnection: {kubeconfig: $keys/admin.conf}
hostnameOverride: node1
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 0s}
END
start proxy kube-proxy --config="$state/proxy.yaml"
# Other names are no names here: in a block of their own, because this plug-in would hide the cluster's.
cat >"$state/Corefile" <<END
cluster.local:53 {
  bind 198.19.0.10
  errors
  ready 198.19.0.10:8181
  kubernetes cluster.local {
    kubeconfig $keys/admin.conf
    ttl 1
  }
}
.:53 {
  bind 198.19.0.10
  template ANY ANY {
    rcode NXDOMAIN
  }
}
END
start coredns coredns -conf "$state/Corefile"
await sh -c 'kubectl get node node1 -o jsonpath="{.status.conditions[?(@.type==\"Ready\")].status}" | grep -q True'
touch "$state/ready"
while :; do sleep 3600 & wait $!; done
