#!/bin/sh
# Formatter, import order, linters (a warning is an error), then the tests under the race detector. The last line is a
# sum of what the test runner reported.
set -eu
cd "$(dirname "$0")"

unformatted=$(gofmt -l . && go tool goimports -local gonethttpplain -l .)
if [ -n "$unformatted" ]; then
    printf 'not formatted:\n%s\n' "$unformatted" >&2
    exit 1
fi
go mod verify >/dev/null
go vet -mod=readonly ./...
go tool staticcheck ./...

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go test -mod=readonly -count=1 -race -v ./... >"$log" 2>&1 || status=$?
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
echo "go-nethttp-plain: $passed passed, $failed failed, $skipped skipped"
exit "$status"
