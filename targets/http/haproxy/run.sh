#!/bin/sh
# Checks the environment, prints the start line and becomes HAProxy in the foreground.
set -eu
cd "$(dirname "$0")"
# shellcheck source=../infrastructure/environment.sh
. ../infrastructure/environment.sh
# shellcheck source=../infrastructure/start-line.sh
. ../infrastructure/start-line.sh
# HAProxy ends a second after its hard stop.
HARD_STOP_MS=$((DRAIN_CUT_MS > 1100 ? DRAIN_CUT_MS - 1000 : 100))
export HARD_STOP_MS
exec haproxy -f haproxy.cfg
