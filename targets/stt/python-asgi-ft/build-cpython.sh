#!/bin/sh
# Builds free-threaded CPython 3.13 from Debian's own source package into build/python, with profile-guided optimisation. Optional, and never
# run by `make test`: about a quarter of an hour on two cores. Idempotent; silent when it is there.
#
#   JOBS=2        compilers at a time
#   GIL=1         the same version, built in the same way with the GIL, into build/python-gil: to compare the two
set -eu
cd "$(dirname "$0")"

suite=trixie
package=python3.13
here=$(pwd)
scripts=$here/../../../scripts
if [ "${GIL:-0}" = 0 ]; then kind='' option=--disable-gil suffix=t; else kind=-gil option=--enable-gil suffix=''; fi
prefix=$here/build/python$kind
work=$here/build/source$kind
python=$prefix/bin/python3.13$suffix

fail() {
    echo "build-cpython: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo "$@"; else
        fail "needs root for: $*"
    fi
}

# What the interpreter is compiled with. Only asks the package manager where a header is absent.
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
    as_root apt-get -o DPkg::Lock::Timeout=600 -qq update
    # shellcheck disable=SC2086  # a list of packages
    as_root apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $missing >/dev/null
}

# The source package of the newer suite. The tarball alone: Debian's patches are about its own layout of files.
fetch() {
    (cd "$work" && sh "$scripts/apt-of-suite.sh" $suite "$work/apt" source --download-only --tar-only $package) ||
        fail "the source package $package could not be fetched"
}

compile() {
    mkdir -p "$work"
    ls "$work"/"$package"_*.orig.tar.* >/dev/null 2>&1 || fetch
    rm -rf "$work/tree"
    mkdir "$work/tree"
    # shellcheck disable=SC2010  # names of Debian's packages have no blanks
    tar -xf "$(ls "$work"/"$package"_*.orig.tar.* | grep -v '\.asc$' | tail -n 1)" -C "$work/tree" --strip-components=1
    cd "$work/tree"
    { ./configure --quiet --prefix="$prefix" $option --enable-optimizations --without-static-libpython --disable-test-modules \
        --with-ensurepip=install CFLAGS="-O3" &&
        # The profile is that of CPython's own tests. A few of them fail here, which is nothing to a profile.
        nice make -s -j "${JOBS:-2}" PROFILE_TASK='-m test --pgo --timeout=1200 || true' && make -s install; } >"$work/build.log" 2>&1 ||
        fail "the build failed; the end of build/source$kind/build.log: $(tail -n 3 "$work/build.log")"
    cd "$here"
    rm -rf "$work/tree"
}

if [ ! -x "$python" ]; then
    install_headers
    compile
fi
[ -n "$kind" ] || "$python" -c 'import sys; sys.exit(sys._is_gil_enabled())' || fail "$python was built, but its GIL is on"
