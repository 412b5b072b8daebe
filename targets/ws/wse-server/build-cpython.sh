#!/bin/sh
# Builds CPython 3.13 from the source package of a newer Debian into build/python, for a machine without 3.12 or newer. Optional, never run by
# `make test`: three to ten minutes on two cores. Idempotent; silent when it is there.
set -eu
cd "$(dirname "$0")"

suite=trixie
package=python3.13
here=$(pwd)
work=$here/build/source
python=$here/build/python/bin/python3

fail() {
    echo "build-cpython: $*" >&2
    exit 1
}

# What the interpreter is compiled with. Asks the package manager only where something is absent.
install_headers() {
    missing=
    command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
    command -v make >/dev/null 2>&1 || missing="$missing make"
    command -v xz >/dev/null 2>&1 || missing="$missing xz-utils"
    command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
    [ -f /usr/include/openssl/ssl.h ] || missing="$missing libssl-dev"
    [ -f /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
    ls /usr/include/ffi.h /usr/include/*/ffi.h >/dev/null 2>&1 || missing="$missing libffi-dev"
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || fail "needs, as root: apt-get install$missing"
    apt-get -o DPkg::Lock::Timeout=600 -qq update
    # shellcheck disable=SC2086  # a list of packages
    apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $missing >/dev/null
}

# The mirror that this machine uses for its own release, so that no host need be written here.
mirror() {
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # shellcheck disable=SC2016  # apt's own variables
    apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
        awk -v release="$release" '$1 == release && $2 == "main" { print $3; exit }'
}

# By an apt configuration of its own: the system's lists and sources stay as they are. Apt verifies the tarball against the signed lists.
fetch() {
    command -v apt-get >/dev/null 2>&1 || fail "needs apt-get, to fetch Debian's source package $package"
    uri=$(mirror)
    [ -n "$uri" ] || fail "no Debian mirror among this machine's apt sources"
    apt=$work/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
    echo "deb-src $uri $suite main" >"$apt/sources.list"
    set -- -qq -o "Dir::Etc::SourceList=$apt/sources.list" -o "Dir::Etc::SourceParts=$apt/parts" \
        -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=
    apt-get "$@" update || fail "the package lists of $suite could not be fetched"
    (cd "$work" && apt-get "$@" source --download-only --tar-only "$package") || fail "$package could not be fetched"
}

[ ! -x "$python" ] || exit 0
install_headers
mkdir -p "$work"
ls "$work"/"$package"_*.orig.tar.* >/dev/null 2>&1 || fetch
rm -rf "$work/tree"
mkdir "$work/tree"
# shellcheck disable=SC2010  # names of Debian's packages have no blanks
tar -xf "$(ls "$work"/"$package"_*.orig.tar.* | grep -v '\.asc$' | tail -n 1)" -C "$work/tree" --strip-components=1
cd "$work/tree"
{ ./configure --quiet --prefix="$here/build/python" --without-static-libpython --disable-test-modules --with-ensurepip=install CFLAGS=-O3 &&
    nice make -s -j "${JOBS:-2}" && make -s install; } >"$work/build.log" 2>&1 ||
    fail "the end of build/source/build.log: $(tail -n 3 "$work/build.log")"
cd "$here"
rm -rf "$work/tree"
"$python" -c 'import ensurepip, ssl, venv, zlib' || fail "$python was built, but lacks a module"
