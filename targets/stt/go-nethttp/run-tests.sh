#!/bin/sh
# Formatter, import order, linters (a warning is an error), then the tests under the race detector, of the module in this
# folder. The last line is a sum of what the test runner reported. The Go targets of stt and voice use it.
#   sh run-tests.sh TARGET MODULE [a flag for go test ...]
set -eu
target=$1
module=$2
shift 2

unformatted=$(gofmt -l . && go tool goimports -local "$module" -l .)
if [ -n "$unformatted" ]; then
    printf 'not formatted:\n%s\n' "$unformatted" >&2
    exit 1
fi
# A module from a folder beside has no hash, and only one whose name begins with a host is excused for that.
unverified=$(go mod verify 2>&1 | grep -v -e '^all modules verified' -e '^gonethttp v0.0.0: missing ziphash' || true)
if [ -n "$unverified" ]; then
    echo "$unverified" >&2
    exit 1
fi
go vet -mod=readonly ./...
go tool staticcheck ./...

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -mod=readonly -count=1 -race -v "$@" ./... >"$log" 2>&1 || status=$?
passed=$(grep -c '^ *--- PASS' "$log" || true)
failed=$(grep -c '^ *--- FAIL' "$log" || true)
skipped=$(grep -c '^ *--- SKIP' "$log" || true)
if [ "$status" != 0 ]; then
    cat "$log"
    # A package that does not build, or a race outside of a test, has no line of its own.
    [ "$failed" != 0 ] || failed=1
else
    grep -E '^(ok|---.*SKIP)' "$log" || true
fi
echo "$target: $passed passed, $failed failed, $skipped skipped"
exit "$status"
