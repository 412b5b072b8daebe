# Sourced by scripts/test.sh. Runs steps one after another, whatever the result of those before. At the end it shows how
# long each took, what failed and what was skipped.
# $logs is a scratch folder. Each step's output is shown, and kept in $logs/all for the totals.
# shellcheck shell=sh disable=SC2154  # logs is the caller's

began=$(date +%s)
number=0
free_mib() { df -Pm . | awk 'NR == 2 { print $4 }'; }

# begin NAME: prints the line with which a step starts.
begin() {
    number=$((number + 1))
    name=$1
    step_began=$(date +%s)
    printf '\n== %s  (after %s s; %s MiB of disk free)\n' "$name" "$((step_began - began))" "$(free_mib)"
}

# end ok|FAILED|…: stores the result and the seconds of the step that begin named.
end() { printf '%s\t%s\t%s\n' "$(($(date +%s) - step_began))" "$1" "$name" >>"$logs/steps"; }

# step NAME COMMAND…: runs the command. $result is then `ok` or `FAILED`.
step() {
    begin "$1"
    shift
    # A process that a step leaves running keeps the output pipe open and tee waiting, so the status goes through a
    # file.
    echo 1 >"$logs/status"
    { "$@" 2>&1 </dev/null && echo 0 >"$logs/status"; } | tee "$logs/step-$number" | tee -a "$logs/all"
    if [ "$(cat "$logs/status")" = 0 ]; then result=ok; else
        result=FAILED
        echo "FAILED: $name"
        cat "$logs/step-$number" >>"$logs/failed"
    fi
    end "$result"
}

# not_run NAME REASON: records a step that an earlier failure makes impossible, or that has nothing to do.
not_run() {
    begin "$1"
    echo "not run: $2"
    end "not run: $2"
}

# Each test program and page that cargo ran, slowest first: `SECONDS PROGRAM`.
slowest_programs() {
    awk '
        /^ *Running (unittests |tests\/|benches\/)/ { program = $0; sub(/^ *Running /, "", program); sub(/ \(.*\/debug\/deps\//, " (", program); sub(/-[0-9a-f]*\)$/, ")", program) }
        /^test result: .* finished in / && program != "" { seconds = $0; sub(/.*finished in /, "", seconds); sub(/s$/, "", seconds); printf "%8.1f s  %s\n", seconds, program; program = "" }
    ' "$logs/all" | sort -rn | head -n 12
}

# What runners themselves skipped, one per line: cargo ("ignored"), go, TAP of node, pytest with -rs, googletest. The
# other skips are in $PLIMSOLL_SKIPPED_LOG.
skips_of_runners() {
    sed -n '
        s/^test \(.*\) \.\.\. ignored\(, \)\{0,1\}\(.*\)$/\1: ignored \3/p
        s/^ *--- SKIP: \([^ ]*\).*/\1: skipped/p
        s/^ *ok [0-9]* - \(.*\) # SKIP *\(.*\)$/\1: skipped \2/p
        s/^SKIPPED \[[0-9]*\] \(.*\)$/\1/p
        s/^\[  SKIPPED \] \([^ ,]*\)$/\1: skipped/p
    ' "$logs/all"
}

# The total over all runners. Those of cargo print `test result: …`, all others
# `NAME: N passed, N failed[, N skipped][, N disturbed]…`. A Rust test that skips itself counts as passed with its
# runner, so its line in the log of skips is subtracted from the passed. A target's line (targets/…) has not been
# counted anywhere.
sums() {
    sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed; \([0-9]*\) failed; \([0-9]*\) ignored;.*/\1 passed, \2 failed, \3 skipped/p
s/^[a-z][a-z0-9-]*: \([0-9]* passed, [0-9]* failed\)\(\(, [0-9]* [a-z. ]*\)*\)$/\1\2/p' "$logs/all" |
        awk -v rust="$(grep -vc '^targets/' "$logs/skipped" || true)" -v targets="$(grep -c '^targets/' "$logs/skipped" || true)" '
            { count = split($0, part, ", "); for (i = 1; i <= count; i++) { word = part[i]; sub(/^[0-9]* /, "", word); sum[word] += part[i] } }
            END {
                if (sum["disturbed"] + sum["inconclusive"] > 0) printf "disturbed or inconclusive: %d (neither passed nor failed)\n", sum["disturbed"] + sum["inconclusive"]
                printf "\ntotal: %d passed, %d failed, %d skipped\n", sum["passed"] - rust, sum["failed"], sum["skipped"] + rust + targets
            }'
}

# What failed, by name: tests of cargo and of node, the targets' own tests, and of `plimsoll check` the cases, their targets
# and what could not be built.
failed_by_name() {
    grep -hE '^(FAILED: |test .* \.\.\. FAILED$|not ok [0-9]+ |FAILED   [a-z]|[a-z][a-z0-9-]*: [0-9]+ passed, [1-9][0-9]* failed|plimsoll: )' "$logs/failed" || true
    # What cargo's tests said when they failed: the lines after `thread '…' panicked at`, twelve at most.
    awk '
        /^thread .* panicked at / { left = 12 }
        /^note: run with|^stack backtrace:|^----|^failures:|^$/ { left = 0 }
        left > 0 { print "  " substr($0, 1, 400); left-- }
    ' "$logs/failed"
}

# finish: prints the tables, with the total as the last line. Fails if a step failed.
finish() {
    printf '\n== steps, in %s s\n' "$(($(date +%s) - began))"
    awk -F '\t' '{ printf "%6d s  %-8s %s\n", $1, ($2 ~ /^not run/ ? "not run" : $2), $3 ($2 ~ /^not run: / ? " (" substr($2, 10) ")" : "") }' "$logs/steps"
    slow=$(slowest_programs)
    [ -z "$slow" ] || printf '\n== the slowest test programs\n%s\n' "$slow"
    if [ -s "$logs/left-out" ]; then
        printf '\n== left out, because nothing that they depend on has changed (make test-all runs them)\n'
        cat "$logs/left-out"
    fi
    skips=$(cat "$logs/skipped"; skips_of_runners)
    [ -z "$skips" ] || printf '\n== skipped\n%s\n' "$skips"
    disturbed=$(grep -hE '(^| )(disturbed|inconclusive): ' "$logs/all" || true)
    [ -z "$disturbed" ] || printf '\n== disturbed or inconclusive\n%s\n' "$disturbed"
    failures=$(awk -F '\t' '$2 == "FAILED" { print $3 }' "$logs/steps")
    [ -z "$failures" ] || { printf '\n== FAILED\n%s\n' "$failures"; failed_by_name; }
    sums
    [ -z "$failures" ]
}
