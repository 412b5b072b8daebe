#!/bin/sh
# Runs a program of tests in the folder of its crate, as cargo does. When it has ended, shows its output as one block.
#
#   sh scripts/test-program.sh THREADS FOLDER SOURCE PROGRAM
set -eu
threads=$1 folder=$2 source=$3 program=$4
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
# A test that hangs must not take the time of the later steps.
(cd "$folder" && timeout --kill-after=10 900 "$program" --test-threads "$threads") >"$log" 2>&1 </dev/null || code=$?
printf '\n     Running %s (%s)\n' "${source#"$folder/"}" "$program"
cat "$log"
case $code in
0) ;;
124) echo "FAILED: $program: ended after 15 minutes, so some tests have no result" ;;
*) echo "FAILED: $program: exit code $code" ;;
esac
exit "$code"
