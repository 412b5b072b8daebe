#!/bin/sh
# Everything that must hold: formatters and linters (warnings are errors), unit and property tests, each target's own tests, the conformance of every target, the
# end-to-end tests through the real binary, and last its pages in a real browser.
set -eu
cd "$(dirname "$0")/.."

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
log=$logs/all

began=$(date +%s)
free_mib() { df -Pm . | awk 'NR == 2 { print $4 }'; }
step() { printf '\n== %s  (after %s s; %s MiB of disk free)\n' "$*" "$(($(date +%s) - began))" "$(free_mib)"; }

# A full disk shows as a linker's bus error, which names nothing. What is built already needs no more room: so a warning, not a refusal.
needed_mib=6000
if [ "$(free_mib)" -lt $needed_mib ]; then
    echo "warning: $(free_mib) MiB of disk are free here, and a first run writes about $needed_mib: if a compiler or linker fails, free some" >&2
fi

# Runs a test command, shows its output, keeps it for the sum at the end, and stops at the first failure.
tests() {
    step "$*"
    status=$logs/status
    { "$@" 2>&1 && echo 0 >"$status" || echo 1 >"$status"; } | tee -a "$log"
    [ "$(cat "$status")" = 0 ] || { echo "FAILED: $*" >&2; exit 1; }
}

step cargo fmt --check
cargo fmt --all --check
step cargo clippy
cargo clippy --workspace --all-targets --locked -- -D warnings

# The programs that end-to-end tests start.
step cargo build
cargo build --workspace --locked

tests cargo test --workspace --exclude plimsoll --locked

step "the targets' toolchains"
sh scripts/install-targets.sh

step "the targets' own tests, two at a time"
# Each makes what it prints one block, so that two do not mix their lines.
find targets -mindepth 3 -maxdepth 3 -name test.sh | sort |
    xargs -n 1 -P 2 sh scripts/test-target.sh >"$logs/targets" 2>&1 || failed=1
cat "$logs/targets"
cat "$logs/targets" >>"$log"
[ -z "${failed:-}" ] || { echo "FAILED: the tests of a target, see above" >&2; exit 1; }

tests target/debug/plimsoll check --all --jobs 2 --out "$logs/check"

tests cargo test -p plimsoll --locked

step "the browser"
sh scripts/install-browser.sh
tests sh tests/browser/test.sh

# The runners above printed their own sums, targets and conformance as `NAME: N passed, N failed`; this is the sum of those.
step "done"
sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p
s/^[a-z][a-z0-9-]*: \([0-9]*\) passed, \([0-9]*\) failed\(, .*\)\{0,1\}$/\1 \2/p' "$log" |
    awk '{ passed += $1; failed += $2 } END { printf "\ntotal: %d passed, %d failed\n", passed, failed }'
