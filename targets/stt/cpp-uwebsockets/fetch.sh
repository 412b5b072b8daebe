#!/bin/sh
# Puts the sources of uWebSockets and uSockets, with their licences, into build/sources. Does nothing when they are there.
#
# Cargo fetches them, and checks them against the lock file: a crate carries them. Nothing of that crate is compiled.
set -eu
cd "$(dirname "$0")"
made=build/sources/.made
lock=$(cksum <sources/Cargo.lock)
if [ "$lock" != "$(cat $made 2>/dev/null)" ]; then
    rm -rf build/sources
    (cd sources && cargo vendor --locked --quiet --versioned-dirs ../build/sources >/dev/null)
    echo "$lock" >$made
fi
