#!/bin/sh
# Formatter, linter (a warning is an error), dependencies between modules, tests.
set -eu
cd "$(dirname "$0")"
export MIX_ENV=test LC_ALL=C.UTF-8
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ "${STT_DEPS:-}" = hex ]; then
    mix local.hex --force --if-missing
    mix deps.get
else
    export ERL_LIBS="$PWD/vendor/lib"
fi

mix format --check-formatted
# The compiler finds unknown functions, unused variables and behaviours that are not kept to.
mix compile --warnings-as-errors --all-warnings
# Modules that need each other in a circle.
mix xref graph --format cycles --label compile-connected --fail-above 0

status=0
mix test --no-start --warnings-as-errors >"$log" 2>&1 || status=$?
cat "$log"
# ExUnit: "231 tests, 2 failures", also with "3 properties" before or "1 excluded" behind.
summary=$(grep -E '^[0-9]+ tests?, [0-9]+ failures?' "$log" | tail -n 1)
total=$(echo "$summary" | sed -E 's/^([0-9]+) tests?,.*/\1/')
failed=$(echo "$summary" | sed -E 's/.*, ([0-9]+) failures?.*/\1/')
# ExUnit counts what it skipped or excluded among the tests.
skipped=$(echo "$summary" | grep -oE '[0-9]+ (skipped|excluded)' | awk '{ sum += $1 } END { print sum + 0 }')
[ -n "$summary" ] || { status=1 total=0 failed=0; }
echo "elixir-otp: $((total - failed - skipped)) passed, $failed failed, $skipped skipped"
exit "$status"
