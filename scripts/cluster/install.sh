#!/bin/sh
# Builds or finds what a cluster on this machine needs, in the cache of scripts/install-deploy.sh (PLIMSOLL_CACHE):
# containerd, runc, etcd and the network plug-ins from Debian's packages, unpacked and not installed; Kubernetes and
# CoreDNS, built by Go. The first time takes about a quarter of an hour. Prints the cache's folder as its last line.
set -eu
cd "$(dirname "$0")/../.."
cache=$(sh scripts/install-deploy.sh | tee /dev/stderr | tail -n 1)
kubernetes=1.37.2
coredns=1.15.0
packages="containerd runc etcd-server containernetworking-plugins conntrack nftables libnftables1 libnetfilter-conntrack3 libnfnetlink0 libnftnl11 libjansson4"
place=$cache/cluster-$kubernetes
mkdir -p "$place/bin"
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=''

if ! [ -e "$place/root/.unpacked" ]; then
    sh scripts/may-install.sh cluster "Debian packages $packages, unpacked in $place"
    rm -rf "$place/debs" "$place/root"
    mkdir -p "$place/debs" "$place/root"
    # shellcheck disable=SC2086  # a list of packages
    (cd "$place/debs" && { apt-get -q -o APT::Sandbox::User=root download $packages >log 2>&1 || { apt-get -q update >>log 2>&1 && apt-get -q -o APT::Sandbox::User=root download $packages >>log 2>&1; }; }) ||
        { tail -n 3 "$place/debs/log" >&2; exit 1; }
    for package in "$place"/debs/*.deb; do dpkg-deb -x "$package" "$place/root"; done
    rm -rf "$place/debs"
    touch "$place/root/.unpacked"
fi

if ! [ -x "$place/bin/kubernetes" ]; then
    sh scripts/may-install.sh cluster "Kubernetes $kubernetes, built by Go in ten minutes, in $place"
    work=$place/build
    mkdir -p "$work"
    cp scripts/cluster/kubernetes.go "$work/main.go"
    (
        cd "$work"
        rm -f go.mod go.sum
        go mod init plimsoll/cluster 2>/dev/null
        source=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
        # The programs' own modules have no version there, but are published with one.
        sed -n 's/^go //p' "$source/go.mod" | head -n 1 | xargs -I{} go mod edit -go={}
        go mod edit -require="k8s.io/kubernetes@v$kubernetes"
        awk '$1 ~ /^k8s.io\// && $2 == "v0.0.0" { print $1 }' "$source/go.mod" | sort -u |
            while read -r module; do go mod edit -replace="$module=$module@v0.${kubernetes#1.}"; done
        go mod tidy -e >tidy.log 2>&1 || { tail -n 3 tidy.log >&2; exit 1; }
        flags="-s -w"
        minor=${kubernetes#1.}
        for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            flags="$flags -X $package.gitVersion=v$kubernetes -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
        done
        nice -n 10 go build -mod=mod -trimpath -buildvcs=false -ldflags "$flags" -o "$place/bin/kubernetes" .
    )
    rm -rf "$work"
fi
for program in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
    ln -sf kubernetes "$place/bin/$program"
done

if ! [ -x "$place/bin/coredns" ]; then
    sh scripts/may-install.sh cluster "CoreDNS $coredns, built by Go in four minutes, in $place"
    GOBIN=$place/bin nice -n 10 go install -trimpath -ldflags=-s "github.com/coredns/coredns@v$coredns"
fi
echo "$place"
