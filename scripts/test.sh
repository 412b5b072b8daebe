#!/bin/sh
# Everything that must hold: formatters and linters (warnings are errors), unit and property tests, each target's own tests, and last the
# end-to-end tests through the real binary.
set -eu
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

step() { printf '\n== %s\n' "$*"; }

# Runs a test command, shows its output, keeps it for the sum at the end, and stops at the first failure.
tests() {
    step "$*"
    status=$(mktemp)
    { "$@" 2>&1 && echo 0 >"$status" || echo 1 >"$status"; } | tee -a "$log"
    code=$(cat "$status")
    rm -f "$status"
    [ "$code" = 0 ] || { echo "FAILED: $*" >&2; exit 1; }
}

step cargo fmt --check
cargo fmt --all --check
step cargo clippy
cargo clippy --workspace --all-targets --locked -- -D warnings

# The programs that end-to-end tests start.
step cargo build
cargo build --workspace --locked

tests cargo test --workspace --exclude plimsoll --locked

for folder in targets/*/*/; do
    [ -f "$folder/test.sh" ] || continue
    tests sh -c "cd '$folder' && sh test.sh"
done

tests cargo test -p plimsoll --locked

# The runners above printed their own sums; this is the sum of those.
sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$log" |
    awk '{ passed += $1; failed += $2 } END { printf "\ntotal: %d passed, %d failed\n", passed, failed }'
