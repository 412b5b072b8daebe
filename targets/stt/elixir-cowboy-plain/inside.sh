#!/bin/sh
# Runs a command in this folder, with the Debian of build/root as its system.
#
#   sh inside.sh COMMAND…
#
# The process keeps its number, its environment, its CPUs and its control group. What is mounted is seen by it alone.
set -eu
cd "$(dirname "$0")"
root=$PWD/build/root
[ -d "$root/usr" ] || { echo "elixir-cowboy-plain: no build/root; run: sh targets/stt/elixir-cowboy-plain/install.sh" >&2; exit 1; }

# Root may mount; anyone else may in a user namespace of their own, where the system allows one.
user="--user --map-root-user"
[ "$(id -u)" != 0 ] || user=
# shellcheck disable=SC2016,SC2086  # the inner shell's variables; a list of options
exec unshare --mount $user -- sh -c '
    set -e
    root=$1 targets=$2 folder=$3
    shift 3
    mount --rbind /dev "$root/dev"
    mount --rbind /proc "$root/proc"
    mount --bind "$targets" "$root/mnt"
    exec chroot "$root" /usr/bin/env PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 \
        sh -c "cd \"/mnt/\$0\" && exec \"\$@\"" "$folder" "$@"
' sh "$root" "$(dirname "$PWD")" "$(basename "$PWD")" "$@"
