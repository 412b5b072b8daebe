#!/bin/sh
# Formatter, linter (a warning is an error) and tests. The last line has the counts of the test runner.
set -eu
cd "$(dirname "$0")"
sh install.sh
cargo fmt --check
cargo clippy --all-targets --locked -- -D warnings
status=0
output=$(cargo test --locked 2>&1) || status=$?
printf '%s\n' "$output"
printf '%s\n' "$output" | awk '
    /^test result:/ { passed += $4; failed += $6; skipped += $8 }
    END { printf "rust-axum-plain: %d passed, %d failed, %d skipped\n", passed, failed, skipped }'
exit "$status"
