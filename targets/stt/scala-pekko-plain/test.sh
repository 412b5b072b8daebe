#!/bin/sh
# Format, linter (scalac's own; a warning is an error) and unit tests.
set -eu
cd "$(dirname "$0")"
sh install.sh
. ./jdk.sh

# Maven does not have scalafmt's core for us (see README), so this holds to what needs no parser.
if grep -rnP '\t| +$|.{121,}' src pom.xml --include='*.scala' --include='pom.xml' --include='*.conf'; then
    echo "scala-pekko-plain: tabs, blanks at line ends, or lines over 120 characters (above)" >&2
    exit 1
fi

mkdir -p target
log=target/test.log
failed=0
MAVEN_OPTS="$jdk_flags ${MAVEN_OPTS:-}" mvn -B -ntp test >"$log" 2>&1 || failed=1
# Surefire's last summary line: Tests run: N, Failures: N, Errors: N, Skipped: N
totals=$(sed -n 's/.*Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\)$/\1 \2 \3 \4/p' "$log" | tail -n 1)
if [ "$failed" = 1 ] || [ -z "$totals" ]; then
    grep -E 'ERROR|WARN|FAIL' "$log" | head -n 60 >&2
fi
# shellcheck disable=SC2086 # words on purpose
set -- ${totals:-0 1 0 0}
failures=$(($2 + $3))
[ "$failed" = 0 ] || [ "$failures" -gt 0 ] || failures=1
echo "scala-pekko-plain: $(($1 - $2 - $3 - $4)) passed, $failures failed, $4 skipped"
[ "$failures" = 0 ]
