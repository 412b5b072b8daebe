#!/bin/sh
# Runs the formatter and linter, the compiler, and the tests of the pages in a real browser. The last line has the
# runner's own numbers.
# With names, runs only those: test.sh report keyboard. PLIMSOLL names the command to test, CHROMIUM the browser.
set -eu
PLIMSOLL=$(realpath "${PLIMSOLL:-$(dirname "$0")/../../target/debug/plimsoll}")
if [ ! -x "$PLIMSOLL" ]; then
    echo "browser: $PLIMSOLL is not there; build it (cargo build -p plimsoll), or name the command in PLIMSOLL" >&2
    exit 1
fi
cd "$(dirname "$0")"
sh install.sh
CHROMIUM=$(command -v "${CHROMIUM:-chromium}")
export PLIMSOLL CHROMIUM
node_modules/.bin/biome check --error-on-warnings
rm -rf dist
node_modules/.bin/tsc
if [ $# -gt 0 ]; then
    files=
    for name in "$@"; do files="$files dist/$name.test.js"; done
else
    files=$(echo dist/*.test.js)
fi
status=0
# One file after another: trials need the machine to themselves, and one browser at a time is enough for it.
# shellcheck disable=SC2086  # a list of files, whose names are ours
output=$(node --test --test-concurrency=1 --test-reporter=tap $files 2>&1) || status=$?
printf '%s\n' "$output"
passed=$(printf '%s\n' "$output" | sed -n 's/^# pass //p')
failed=$(printf '%s\n' "$output" | sed -n 's/^# fail //p')
skipped=$(printf '%s\n' "$output" | sed -n 's/^# skipped //p')
echo "browser: ${passed:-0} passed, ${failed:-1} failed, ${skipped:-0} skipped"
exit "$status"
