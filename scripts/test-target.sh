#!/bin/sh
# Runs the test.sh of one target. When it has ended, shows its output as one block, with the seconds that it took.
set -eu
script=$1
folder=$(dirname "$script")
name=$(basename "$folder")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One build folder for what the targets in Rust have in common, in the profile of their tests. What is measured is built
# in each target's own folder.
[ ! -f "$folder/Cargo.toml" ] || export CARGO_TARGET_DIR="$PWD/build/rust-targets"
began=$(date +%s)
code=0
(cd "$folder" && sh test.sh) >"$log" 2>&1 </dev/null || code=$?
printf '\n== %s: %s s, exit code %s\n' "$script" "$(($(date +%s) - began))" "$code"
# A target that sums up its runners itself is counted by its own line. Their lines would be counted twice.
if grep -Eq "^$name: [0-9]+ passed, [0-9]+ failed" "$log"; then
    sed 's/^test result:/  test result:/' "$log"
else
    cat "$log"
fi
[ "$code" = 0 ] || echo "FAILED: $script"
exit "$code"
