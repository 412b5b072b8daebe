#!/bin/sh
# Installs Elixir and Erlang/OTP from Debian, and the libraries that this gateway is built from. As root.
#
# cowboy, cowlib, ranch and gun have no Debian packages of their own. They come, compiled, out of the package
# rabbitmq-server, which is unpacked here and NOT installed: it would start a message broker. With STT_DEPS=hex they are
# left to Hex (see mix.exs).
set -eu
cd "$(dirname "$0")"

# What the gateway was tested with. Another version is refused, for a target is measured with known libraries.
libraries="cowboy-2.8.0 cowlib-2.9.1 ranch-2.1.0 gun-1.3.3"
# erlang-jiffy brings erlang-proper, which the tests use.
packages="elixir erlang-base erlang-crypto erlang-jiffy erlang-proper erlang-tools"

fail() {
    echo "elixir-otp: $1" >&2
    exit 1
}

have_packages() {
    # shellcheck disable=SC2086
    test "$(dpkg-query -W -f '${Status}\n' $packages 2>/dev/null | grep -c '^install ok installed')" = \
        "$(echo "$packages" | wc -w)"
}

have_libraries() {
    for library in $libraries; do
        test -d "vendor/lib/$library/ebin" || return 1
    done
}

if [ "${STT_DEPS:-}" = hex ]; then
    command -v mix >/dev/null && exit 0
    fail "install Elixir 1.14 or newer with Erlang/OTP 25 or newer"
fi

if have_packages && have_libraries; then
    exit 0
fi
command -v apt-get >/dev/null || fail "needs Debian's apt-get; elsewhere install Elixir and set STT_DEPS=hex"
log=$(mktemp)
trap 'rm -rf "$log"' EXIT
quietly() {
    "$@" >"$log" 2>&1
}
apt() {
    quietly apt-get -o DPkg::Lock::Timeout=600 -o APT::Sandbox::User=root "$@"
}

if ! have_packages; then
    # shellcheck disable=SC2086
    sh ../../../scripts/apt-install.sh elixir-otp $packages
fi

# The libraries stay within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
if ! have_libraries; then
    rm -rf vendor
    mkdir -p vendor/package vendor/lib
    cd vendor
    apt download rabbitmq-server || { apt update && apt download rabbitmq-server; } ||
        fail "apt-get download rabbitmq-server: $(tail -n 1 "$log")"
    quietly dpkg-deb -x rabbitmq-server_*.deb package || fail "dpkg-deb -x: $(tail -n 1 "$log")"
    for library in $libraries; do
        name=${library%-*}
        found=$(find package -type d -path "*/plugins/$name-[0-9]*" -prune)
        [ "$(basename "${found:-none}")" = "$library" ] ||
            fail "rabbitmq-server has ${found:-no $name}; this gateway is pinned to $library"
        mv "$found" lib/
    done
    rm -rf package rabbitmq-server_*.deb
fi
