# Sourced by run.sh after environment.sh: prints the start line that build.sh prepared.
# shellcheck shell=sh disable=SC2154
[ -f build/start-line ] || { echo "run build.sh first: build/start-line is missing" >&2; exit 1; }
printf '%s, "port": %s, "worker_threads": %s}\n' "$(cat build/start-line)" "$PORT" "$WORKER_THREADS"
