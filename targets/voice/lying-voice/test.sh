#!/bin/sh
# Formatter, linter (a warning is an error) and tests. The last line counts them. With PLIMSOLL_PROVIDERS_BIN, the tests
# that need the built mock providers run too.
set -eu
cd "$(dirname "$0")"
cargo fmt --check
cargo clippy --all-targets --locked --quiet -- -D warnings
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --locked -- ${PLIMSOLL_PROVIDERS_BIN:+--include-ignored} >"$log" 2>&1 || status=$?
grep -v '^test .* \.\.\. ok$' "$log" || true
# Each test program ends with "test result: ok. N passed; M failed; …".
awk -v status="$status" '
    /^test result:/ { for (i = 2; i <= NF; i++) { if ($i == "passed;") passed += $(i - 1); if ($i == "failed;") failed += $(i - 1); if ($i == "ignored;") skipped += $(i - 1) } }
    END { printf "lying-voice: %d passed, %d failed, %d skipped\n", passed, failed, skipped; exit status != 0 || failed > 0 || passed == 0 }
' "$log"
