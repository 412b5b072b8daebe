#!/bin/sh
# Makes build/root: a Debian with the current Erlang/OTP and Elixir, because the older one around it has OTP 25. As root, once.
# Nothing outside this folder changes, except that debootstrap is installed where it is missing.
#
# cowboy, cowlib, ranch and gun come out of Debian's package rabbitmq-server, which ships a set that fits together. It is
# unpacked and not installed: it would start a message broker.
set -eu
cd "$(dirname "$0")"

suite=forky
root=build/root
libraries="cowboy cowlib ranch gun"

[ ! -e "$root/.made" ] || exit 0

fail() {
    echo "elixir-cowboy-plain: $1" >&2
    exit 1
}

command -v debootstrap >/dev/null || sh ../../../scripts/apt-install.sh elixir-cowboy-plain debootstrap
# What follows stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
[ "$(id -u)" = 0 ] || fail "making a root needs root; run as root: sh targets/stt/elixir-cowboy-plain/install.sh"

# The mirror that this machine uses for its own release, so that no host need be written here.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016  # apt's own variables
mirror=$(apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
    awk -v release="$release" '$1 == release && $2 == "main" { print $3; exit }')
[ -n "$mirror" ] || fail "no Debian mirror among this machine's apt sources"

log=$PWD/build/install.log
rm -rf "$root"
mkdir -p build
# The last word is the script to follow: an older debootstrap does not know the suite's name.
debootstrap --variant=minbase "$suite" "$root" "$mirror" sid >"$log" 2>&1 || fail "debootstrap: $(tail -n 1 "$log")"

# What this machine needs to reach its mirror.
cp /etc/resolv.conf "$root/etc/resolv.conf"
for settings in /etc/apt/apt.conf.d/*proxy*; do [ ! -f "$settings" ] || cp "$settings" "$root/etc/apt/apt.conf.d/"; done
if [ -d /etc/ssl/certs ]; then mkdir -p "$root/etc/ssl" && cp -rL /etc/ssl/certs "$root/etc/ssl/"; fi

# erlang-ssl: cowboy and gun name it among what they need.
# shellcheck disable=SC2086  # names without blanks
sh inside.sh sh -c '
    set -eu
    export DEBIAN_FRONTEND=noninteractive
    # The lists of a suite that is not released expire within days; a mirror may be older. They are signed all the same.
    apt-get -o Acquire::Check-Valid-Until=false update
    apt-get install -y --no-install-recommends elixir erlang-ssl
    cd /tmp
    apt-get -o APT::Sandbox::User=root download rabbitmq-server
    dpkg-deb -x rabbitmq-server_*.deb rabbitmq-server
    for library; do
        found=$(find rabbitmq-server -type d -path "*/plugins/$library-[0-9]*" -prune)
        [ -n "$found" ] || { echo "rabbitmq-server has no $library"; exit 1; }
        mv "$found" /usr/lib/erlang/lib/
    done
    rm -rf rabbitmq-server*
    apt-get clean
' sh $libraries >>"$log" 2>&1 || fail "in the root: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
touch "$root/.made"
