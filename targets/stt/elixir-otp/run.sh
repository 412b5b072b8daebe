#!/bin/sh
# Starts the gateway: the VM directly and not by way of a release's script, which takes longer to start.
set -eu
cd "$(dirname "$0")"

# A value that is no number of schedulers would make the VM print its usage; the gateway itself refuses it in one line.
schedulers=
case "${WORKER_THREADS:-}" in
'' | *[!0-9]* | ?????*) ;;
*) [ "$WORKER_THREADS" -ge 1 ] && [ "$WORKER_THREADS" -le 1024 ] &&
    schedulers="+S $WORKER_THREADS:$WORKER_THREADS +SDcpu $WORKER_THREADS:$WORKER_THREADS" ;;
esac

# +sbwt none: a scheduler without work sleeps at once. By default it spins for a while first, which is CPU time that
#     others on a small quota do not get.
# +SDio, +A: threads for files, of which the gateway has none.
# +Q: sockets. +fnu: file names are UTF-8 whatever the locale says, else Elixir prints a warning.
# shellcheck disable=SC2086
exec erl $schedulers +SDio 1 +A 1 +sbwt none +sbwtdcpu none +sbwtdio none +Q 65536 +fnu \
    -noinput -boot start_clean -env ERL_CRASH_DUMP /dev/null ${STT_ERL_FLAGS:-} \
    -pa _build/prod/lib/*/ebin vendor/lib/*/ebin "$(cat _build/prod/elixir-path)/ebin" \
    -s Elixir.Gateway.Boot main
