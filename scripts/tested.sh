#!/bin/sh
# Which targets need a test: those whose content differs from what a complete run tested. Also whether the pages
# need a test in a browser: they are the line `pages`.
#
#   sh scripts/tested.sh keys                    WORKLOAD/NAME OWN CONFORMANCE, a line for each target, and one for `pages`
#   sh scripts/tested.sh changed own|conformance [KEYS]     the targets whose key differs from the recorded one, a line each: WORKLOAD/NAME
#   sh scripts/tested.sh unchanged own|conformance [KEYS]   the others, a line each: WORKLOAD/NAME COMMIT DATE
#                                                KEYS: a file with what `keys` wrote, so that they are not computed again
#   sh scripts/tested.sh record FILE [WORKLOAD/NAME…]   records the keys in FILE, of all targets except the named ones and those that changed meanwhile;
#                                                only scripts/test.sh does this, with the keys from its start and the names of what did not pass
#
# OWN is a hash of what a target's own tests depend on: its folder but for its README.md, the folders next to it that its files
# name, its contract and the vectors. CONFORMANCE adds the checker and the workload's cases, and for stt the simulator. The key of
# the pages covers the tests in a browser and the code that writes and serves pages. Tests of the checker and of that code
# count for neither. All keys are of the files as they are in this folder, so an uncommitted edit counts, and a rebase does
# not.
# Without git there are no keys, and every target counts as changed. TESTED names a file other than targets/tested.txt.
set -eu
cd "$(dirname "$0")/.."
recorded=${TESTED:-targets/tested.txt}

# A hash of the names and contents of all files below these paths that git tracks or would track.
hash_of() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    git ls-files -z --cached --others --exclude-standard -- "$@" | LC_ALL=C sort -zu |
        xargs -0 sh -c 'for file do [ ! -f "$file" ] || printf "%s\0" "$file"; done' sh |
        xargs -0 sha256sum | sha256sum | cut -c 1-16
}

# The target's folder, and the folders of other targets that its manifest, scripts or packages name, because it builds from
# them or tests with them.
folders_of() {
    echo "$1"
    for file in "$1"/target.toml "$1"/*.sh "$1"/Cargo.toml "$1"/go.mod; do
        [ ! -f "$file" ] || cat "$file"
    done | grep -oE '(\.\./)+[a-z][a-z0-9-]*(/[a-z][a-z0-9-]*)?' | LC_ALL=C sort -u | while read -r beside; do
        case $beside in
            # No target: a script that installs or runs something.
            ../../../*) continue ;;
            # Of another workload.
            ../../*) folder=targets/${beside#../../} ;;
            *) beside=${beside#../} folder=$(dirname "$1")/${beside%%/*} ;;
        esac
        [ ! -d "$folder" ] || echo "$folder"
    done | LC_ALL=C sort -u
}

keys() {
    git rev-parse --is-inside-work-tree >/dev/null 2>&1 || return 0
    # What checks the checker and the pages' writers, but no target and no page.
    own_tests=":(exclude,glob)crates/**/*tests.rs :(exclude,glob)crates/*/src/**/tests/** :(exclude,glob)crates/*/src/**/*_tests/**"
    # What every workload's check uses, and what each workload's own does; the session machines are none of it.
    checker="$own_tests crates/conformance/src crates/protocol/src/websocket"
    # shellcheck disable=SC2086  # paths without blanks
    stt_checker=$(hash_of $checker crates/inference/src crates/inference/Cargo.toml crates/workload-stt/src/check \
        crates/workload-stt/src/reference crates/workload-stt/src/reference.rs crates/workload-stt/src/synthetic.rs crates/workload-stt/src/simulator.rs)
    # shellcheck disable=SC2086  # paths without blanks
    ws_checker=$(hash_of $checker crates/workload-ws/src/check crates/workload-ws/src/jwt.rs)
    # shellcheck disable=SC2086  # paths without blanks
    voice_checker=$(hash_of $checker crates/workload-voice/src/check)
    # shellcheck disable=SC2086  # paths without blanks
    http_checker=$(hash_of $checker crates/workload-http/src/check crates/workload-http/src/h2)
    for manifest in targets/*/*/target.toml; do
        folder=$(dirname "$manifest")
        workload=$(basename "$(dirname "$folder")")
        paths="$(folders_of "$folder") docs/$workload/contract.md targets/$workload/vectors"
        [ ! -f "$folder/Cargo.toml" ] || paths="$paths rust-toolchain.toml"
        case $workload in
            http) of_workload=$http_checker ;;
            ws) of_workload=$ws_checker ;;
            voice) of_workload=$voice_checker ;;
            broker | stt-real) of_workload=none ;;
            *) of_workload=$stt_checker ;;
        esac
        # shellcheck disable=SC2086  # paths without blanks
        own=$(hash_of ":(exclude,glob)targets/*/*/README.md" $paths)
        echo "$workload/${folder##*/} $own $(echo "$own $of_workload" | sha256sum | cut -c 1-16)"
    done
    if [ -d tests/browser ]; then
        # shellcheck disable=SC2086  # paths without blanks
        pages=$(hash_of $own_tests tests/browser crates/report crates/core/src/record crates/plimsoll/src docs/results)
        echo "pages $pages $pages"
    fi
}

# Joins the current keys with the recorded ones: TARGET same|other COMMIT DATE
state() {
    case ${1:-} in own) column=2 ;; conformance) column=3 ;; *) echo "tested: own or conformance, not ${1:-nothing}" >&2; exit 2 ;; esac
    now=$(if [ -n "${2:-}" ]; then cat "$2"; else keys; fi)
    [ -n "$now" ] || { { for manifest in targets/*/*/target.toml; do dirname "${manifest#targets/}"; done; [ ! -d tests/browser ] || echo pages; } | sed 's/$/ other/'; return; }
    echo "$now" | awk -v column="$column" -v recorded="$recorded" '
        BEGIN { while ((getline line < recorded) > 0) { split(line, field, " "); key[field[1]] = field[column]; when[field[1]] = field[4] " " field[5] } }
        { print $1, (key[$1] == $column ? "same " when[$1] : "other") }'
}

record() {
    commit=$(git rev-parse --short=12 HEAD)
    [ -z "$(git status --porcelain)" ] || commit=$commit+changes
    old=$(grep -v '^#' "$recorded" 2>/dev/null || true)
    now=$(keys)
    tested=$1
    shift
    {
        echo "# What complete tests of targets passed: target, key of its own tests, key of its conformance, commit, day."
        echo "# Only \`sh scripts/test.sh all\` and \`… targets\` write this file. \`make test\` leaves out what is unchanged since."
        while read -r target own conformance; do
            case " $* " in *" $target "*) left=yes ;; *) left=no ;; esac
            if [ $left = yes ] || ! echo "$now" | grep -qx "$target $own $conformance"; then
                # This run did not test its present state, so the result of an earlier run stays.
                echo "$old" | grep "^$target " || true
            else
                echo "$target $own $conformance $commit $(date -u +%Y-%m-%d)"
            fi
        done <"$tested"
    } >"$recorded.new"
    mv "$recorded.new" "$recorded"
}

case ${1:-} in
    keys) keys ;;
    changed) shift; state "$@" | sed -n 's/ other$//p' ;;
    unchanged) shift; state "$@" | sed -n 's/ same / /p' ;;
    record) shift; record "$@" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
