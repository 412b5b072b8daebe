#!/bin/sh
# Tests a target that is a finished program, in its folder. The last line holds the runner's own numbers.
#
#   sh test.sh TARGET
set -eu
PATH=$PATH:/usr/sbin
here=$(dirname "$0")
# Caddy has a formatter of its own. Its answer is the file as it should be.
[ ! -f Caddyfile ] || caddy fmt Caddyfile | diff Caddyfile -

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
python3 -W error "$here/contract_test.py" "$1" >"$log" 2>&1 || status=$?
cat "$log"
count() { sed -n "s/.*$1=\([0-9]*\).*/\1/p" "$log" | tail -n 1; }
ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' "$log")
failures=$(count failures)
errors=$(count errors)
skipped=$(count skipped)
failed=$((${failures:-0} + ${errors:-0}))
echo "$1: $((${ran:-0} - failed - ${skipped:-0})) passed, $failed failed, ${skipped:-0} skipped"
[ "$status" -eq 0 ] && [ "${ran:-0}" -gt 0 ]
