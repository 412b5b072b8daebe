#!/bin/sh
# Builds CPython 3.13 from the source package of a newer Debian. Nothing outside FOLDER changes, except that what it is
# compiled with is installed where it is missing. Three minutes on two cores; with --enable-optimizations a quarter of an hour.
#
#   [JOBS=2] sh scripts/build-cpython.sh WHO FOLDER OPTION…
#
# WHO names the caller in messages, FOLDER becomes the prefix, the OPTIONs are those of CPython's configure.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
who=$1
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
shift 2

suite=trixie
package=python3.13
work=$prefix-source

fail() {
    echo "$who: $*" >&2
    exit 1
}

# Only asks the package manager where something is absent.
missing=
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v xz >/dev/null 2>&1 || missing="$missing xz-utils"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
[ -f /usr/include/openssl/ssl.h ] || missing="$missing libssl-dev"
[ -f /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
ls /usr/include/ffi.h /usr/include/*/ffi.h >/dev/null 2>&1 || missing="$missing libffi-dev"
# shellcheck disable=SC2086  # names without blanks
[ -z "$missing" ] || sh "$scripts/apt-install.sh" "$who" $missing

# The tarball alone: Debian's patches are about its own layout of files.
mkdir -p "$work"
cd "$work"
ls "$package"_*.orig.tar.* >/dev/null 2>&1 ||
    sh "$scripts/apt-of-suite.sh" $suite "$work/apt" source --download-only --tar-only $package ||
    fail "the source package $package could not be fetched"
rm -rf tree
mkdir tree
# shellcheck disable=SC2010  # names of Debian's packages have no blanks
tar -xf "$(ls "$package"_*.orig.tar.* | grep -v '\.asc$' | tail -n 1)" -C tree --strip-components=1
cd tree
{ ./configure --quiet --prefix="$prefix" --without-static-libpython --disable-test-modules --with-ensurepip=install CFLAGS=-O3 "$@" &&
    # The profile of an optimised build is that of CPython's own tests. A few of them fail here, which is nothing to a profile.
    nice make -s -j "${JOBS:-2}" PROFILE_TASK='-m test --pgo --timeout=1200 || true' && make -s install; } >"$work/build.log" 2>&1 ||
    fail "the build of CPython failed; the end of $work/build.log: $(tail -n 3 "$work/build.log")"
rm -rf "$work/tree"
