#!/bin/sh
# Shows what a new user sees. Creates a fresh Debian below FOLDER with an empty home, without Rust and without a
# compiler. Makes a clean clone of HEAD there, and runs `make bench` in it.
#
#   sh scripts/clean-root.sh FOLDER [COMMAND…]      as root; COMMAND instead of `make bench`, for example: make test
#
# The root gets git and make, because without them nobody has a clone to run make in. The repository's own scripts
# install everything else. The transcript is FOLDER.log.
# MIRROR and SUITE name the Debian to use. The defaults are the mirror in this machine's own package sources, and
# bookworm.
# RUST_FROM=HOME copies .cargo and .rustup from that home into the root, for a machine that cannot reach
# https://sh.rustup.rs. The transcript then says so.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "clean-root: debootstrap and chroot need root" >&2; exit 1; }
command -v debootstrap >/dev/null || sh scripts/apt-install.sh clean-root debootstrap
root=$(realpath -m "$1")
shift
[ $# -gt 0 ] || set -- make bench
suite=${SUITE:-bookworm}
mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n 's/^URIs: *\(.*\/debian\)\/\{0,1\}$/\1/p; s/^deb \(\[.*\] \)\{0,1\}\([^ ]*\/debian\)\/\{0,1\} .*/\2/p' | head -n 1)}
[ -n "$mirror" ] || { echo "clean-root: no Debian mirror in this machine's package sources; name one in MIRROR" >&2; exit 1; }
log=$root.log

# shellcheck disable=SC2317  # by trap
unmount() {
    for place in dev/pts dev/shm dev sys/fs/cgroup sys proc; do
        ! mountpoint -q "$root/$place" || umount -R "$root/$place" 2>/dev/null || umount -l "$root/$place"
    done
}
trap unmount EXIT
trap 'exit 130' INT TERM

[ ! -e "$root" ] || { echo "clean-root: $root already exists; name a new folder" >&2; exit 2; }
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$log.debootstrap"
mkdir -p "$root/root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Settings that this machine's package manager needs to reach its mirror, such as a proxy.
for settings in /etc/apt/apt.conf.d/*proxy*; do [ ! -f "$settings" ] || cp "$settings" "$root/etc/apt/apt.conf.d/"; done
# Certificates added on this machine, without which the names in its network cannot be verified.
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    echo "clean-root: copied the certificates that this machine added (/usr/local/share/ca-certificates): downloads from inside go the same way"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --make-rslave "$root/sys"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
inside() { chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 "$@"; }
# shellcheck disable=SC2016  # dpkg's own variable
packages() { inside dpkg-query -W -f '${Package}\n' | LC_ALL=C sort; }

inside apt-get -qq update
inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git make >"$log.apt" 2>&1
[ ! -x "$root/usr/sbin/update-ca-certificates" ] || inside update-ca-certificates >/dev/null 2>&1
packages >"$root/packages-before"
git clone -q --no-local "$(pwd)" "$root/root/plimsoll"

{
    echo "== a root of $suite with git and make; a clean clone of $(git rev-parse --short HEAD); $(date -u +%FT%TZ)"
    echo "== before: cargo $(inside sh -c 'command -v cargo || echo absent'), cc $(inside sh -c 'command -v cc || echo absent'), home: $(find "$root/root" -mindepth 1 -maxdepth 1 -printf '%f ')"
    if [ -n "${RUST_FROM:-}" ]; then
        echo "== https://sh.rustup.rs is replaced: .cargo and .rustup are copies of those of this machine (RUST_FROM)"
        # The registry's cache is not copied: the root fetches its crates itself.
        mkdir -p "$root/root/.cargo" "$root/root/.rustup"
        cp -a "$RUST_FROM/.cargo/bin" "$root/root/.cargo/"
        [ ! -f "$RUST_FROM/.cargo/config.toml" ] || cp "$RUST_FROM/.cargo/config.toml" "$root/root/.cargo/"
        cp -a "$RUST_FROM/.rustup/." "$root/root/.rustup/"
        # A toolchain may be a link with an absolute path.
        find "$root/root/.rustup/toolchains" -maxdepth 1 -type l | while read -r link; do
            ln -sfn "$(basename "$(readlink "$link")")" "$link"
        done
    fi
    echo "== $*"
} | tee "$log"
began=$(date +%s)
status=$log.status
{ inside sh -c 'cd ~/plimsoll && exec "$@"' sh "$@" 2>&1 && echo 0 >"$status" || echo $? >"$status"; } </dev/null | tee -a "$log"
{
    echo "== ended with $(cat "$status") after $(($(date +%s) - began)) s"
    echo "== packages that it installed:"
    packages | LC_ALL=C comm -13 "$root/packages-before" - | tr '\n' ' '
    echo
    echo "== its home now: $(find "$root/root" -mindepth 1 -maxdepth 1 -printf '%f ')"
} | tee -a "$log"
exit "$(cat "$status")"
