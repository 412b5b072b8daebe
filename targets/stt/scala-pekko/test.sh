#!/bin/sh
# Format, lints (scalac's own; a warning is an error) and unit tests.
set -eu
cd "$(dirname "$0")"
sh install.sh
. ./jdk.sh

# scalafmt's core is not to be had by Maven here (see README), so this holds to what needs no parser.
if grep -rnP '\t| +$|.{121,}' src pom.xml --include='*.scala' --include='pom.xml' --include='*.conf'; then
    echo "scala-pekko: tabs, blanks at line ends, or lines over 120 characters (above)" >&2
    exit 1
fi

mkdir -p target
log=target/test.log
if mvn -B -ntp test >"$log" 2>&1; then failed=0; else failed=1; fi
# Surefire's last summary line: Tests run: N, Failures: N, Errors: N, Skipped: N
totals=$(sed -n 's/.*Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\)$/\1 \2 \3 \4/p' "$log" | tail -n 1)
if [ "$failed" = 1 ] || [ -z "$totals" ]; then
    grep -E 'ERROR|WARN|FAIL' "$log" | head -n 60 >&2
    [ -n "$totals" ] || totals="0 1 0 0"
fi
# shellcheck disable=SC2086 # words on purpose
set -- $totals
failures=$(($2 + $3))
[ "$failed" = 0 ] || [ "$failures" -gt 0 ] || failures=1
echo "scala-pekko: $(($1 - $2 - $3 - $4)) passed, $failures failed, $4 skipped"
[ "$failures" = 0 ]
