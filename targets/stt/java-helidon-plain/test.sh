#!/bin/sh
# Formatter, compiler and linter (a warning is an error), and the tests.
set -eu
cd "$(dirname "$0")"
. ./java-home.sh
find_java_home
export MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
mvn -B -ntp spotless:check test >"$log" 2>&1 || status=$?

# Surefire's closing line, the last of its kind.
counts=$(sed -n 's/.*Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\)$/\1 \2 \3 \4/p' "$log" | tail -n 1)
if [ "$status" != 0 ] || [ -z "$counts" ]; then
    grep -v '^\[INFO\] *$' "$log" | tail -n 60
fi
# shellcheck disable=SC2086  # four numbers
set -- ${counts:-0 0 1 0}
failed=$(($2 + $3))
[ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
echo "java-helidon-plain: $(($1 - $2 - $3 - $4)) passed, $failed failed, $4 skipped"
[ "$failed" = 0 ]
