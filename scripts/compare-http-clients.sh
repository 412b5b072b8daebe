#!/bin/sh
# Compares load generators for HTTP on one server: wrk, h2load, oha, k6 and plimsoll.
#
#   sh scripts/compare-http-clients.sh FOLDER [rates] [truth] [ceiling]     without a word: all three
#   sh scripts/compare-http-clients.sh --install      only installs the tools
#
# rates     a rate asked for against the rate achieved, and the CPU time of a request for client and server
# truth     percentiles of a server that answers 300 µs late, and of one that stops for 200 ms every 2 s; beside them
#           what they must be, by arithmetic
# ceiling   the most that each carries on its core: the next request when an answer has come
#
# Client and server have a core each. FOLDER gets record.json, table.md and the output of each tool.
#
# CLIENT_CORE (the last), SERVER_CORE (the one before), CONNECTIONS (100), SECONDS_EACH (10), RATES ("5000 20000 50000"),
# TRUTH_RATE (1000), TARGET (rust-hyper) and LIAR (lying-http), TOOLS ("wrk h2load oha k6 plimsoll")
#
# oha and k6 are built from their sources into build/http-clients, which takes minutes the first time.
set -eu
cd "$(dirname "$0")/.."

oha=1.16.0
k6=1.8.1
tools=build/http-clients/bin

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

have() { command -v "$1" >/dev/null 2>&1; }
missing=
have wrk || missing="$missing wrk"
have h2load || missing="$missing nghttp2-client"
have taskset || missing="$missing util-linux"
have python3 || missing="$missing python3"
# shellcheck disable=SC2086  # a list of packages
[ -z "$missing" ] || sh scripts/apt-install.sh compare-http-clients $missing

if ! "$tools/oha" --version 2>/dev/null | grep -qx "oha $oha"; then
    have cargo || { echo "compare-http-clients: oha needs cargo; run scripts/install-tools.sh first" >&2; exit 1; }
    sh scripts/may-install.sh compare-http-clients "oha $oha by cargo, in build/http-clients"
    cargo install --quiet --locked --root build/http-clients "oha@$oha"
fi
if ! "$tools/k6" version 2>/dev/null | grep -q "^k6 v$k6 "; then
    have go || { echo "compare-http-clients: k6 needs Go; install Go 1.25 or newer and run again" >&2; exit 1; }
    sh scripts/may-install.sh compare-http-clients "k6 $k6 by go, in build/http-clients"
    GOBIN="$PWD/$tools" go install "go.k6.io/k6@v$k6"
fi
[ "$1" != --install ] || exit 0

PATH=$PWD/$tools:$PATH
export PATH
# Users of these tools are counted by one of them, which a measurement need not be.
export K6_NO_USAGE_REPORT=true K6_AUTO_EXTENSION_RESOLUTION=false
exec python3 scripts/http_clients/compare.py "$@"
