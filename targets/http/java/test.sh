#!/bin/sh
# Formatter, compiler and linter (a warning is an error) of one module and what it needs, unit tests, and the end-to-end tests against one target.
#
#   sh test.sh TARGET MODULE
set -eu
target=$1
module=$2
cd "$(dirname "$0")"
sh build.sh "$module"
. ./java-home.sh
find_java_home
export MAVEN_OPTS="--sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# A build by another script would change jars under the tests' feet.
exec 9>target/.lock
flock 9
mvn -B -ntp -pl ":$module,:tests" -am spotless:check package "-Dplimsoll.target=$target" >"$log" 2>&1 9>&- || status=$?

# Surefire's closing line of each module: the one without a class name and a time.
counts=$(sed -n 's/.*Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\)$/\1 \2 \3 \4/p' "$log" |
    awk '{ run += $1; failed += $2 + $3; skipped += $4 } END { print run + 0, failed + 0, skipped + 0 }')
# shellcheck disable=SC2086  # three numbers
set -- $counts
run=$1 failed=$2 skipped=$3
if [ "$status" != 0 ] || [ "$run" = 0 ]; then
    grep -v '^\[INFO\] *$' "$log" | tail -n 80
    [ "$failed" != 0 ] || failed=1
    [ "$run" -ge $((failed + skipped)) ] || run=$((failed + skipped))
fi
echo "$target: $((run - failed - skipped)) passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
