#!/bin/sh
# Tests of scripts/steps.sh, scripts/tested.sh and scripts/may-install.sh. The last line is `scripts: N passed, N failed`.
set -eu
scripts=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset TESTED PLIMSOLL_INSTALL
passed=0
failed=0

# expect WHAT FILE PATTERN: the file has a line that matches.
expect() {
    if grep -Eq -- "$3" "$2"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "scripts: $1: no line matches $3 in:"
        cat "$2"
    fi
}
# equal WHAT GOT WANTED
equal() {
    if [ "$2" = "$3" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        printf 'scripts: %s\n  got:    %s\n  wanted: %s\n' "$1" "$2" "$3"
    fi
}

# A run in which the first step fails, the second passes and skips, and the third is impossible.
cat >"$scratch/run.sh" <<'RUN'
set -eu
logs=$1
. "$2/steps.sh"
touch "$logs/all" "$logs/steps" "$logs/skipped" "$logs/left-out"
one() {
    echo "test a::b ... FAILED"
    echo "FAILED: cargo's tests: ended after 40 minutes"
    printf '%s\n' "thread 'a::b' (7) panicked at tests/a.rs:3:5:" "three is not four" "note: run with \`RUST_BACKTRACE=1\`" "hidden"
    echo "FAILED   limits-bodies: It answers (attempt 2)"
    echo "third-target: 2 passed, 1 failed, 0 disturbed, 0 not run, 1 deviations by its target.toml"
    echo "plimsoll: fourth-target: its build failed"
    echo "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s"
    return 101
}
two() {
    echo "     Running tests/slow.rs (target/debug/deps/slow-0123456789abcdef)"
    echo "test c::d ... ignored, too slow here"
    echo "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 12.25s"
    echo "ok 2 - a page # SKIP no browser"
    echo "some-target: 7 passed, 0 failed, 2 skipped"
    echo "other-target: 4 passed, 0 failed, 3 disturbed, 1 not run"
    echo "  disturbed: deferred-keeps-schedule"
    echo "slow::starved: no control group" >>"$logs/skipped"
    echo "targets/stt/absent: no interpreter" >>"$logs/skipped"
    echo "targets/stt/known: own tests, unchanged since abc 2026-01-01" >>"$logs/left-out"
}
step first one
[ "$result" = FAILED ]
step second two
[ "$result" = ok ]
not_run third "the first failed"
finish
RUN
mkdir "$scratch/logs"
status=0
sh "$scratch/run.sh" "$scratch/logs" "$scripts" >"$scratch/out" 2>&1 || status=$?
equal "a failed step fails the whole" "$status" 1
expect "the step after a failed one runs" "$scratch/out" '^ +[0-9]+ s  ok +second$'
expect "the table has the failed step" "$scratch/out" '^ +[0-9]+ s  FAILED +first$'
expect "the table has the step that did not run, and why" "$scratch/out" '^ +[0-9]+ s  not run +third \(the first failed\)$'
expect "the failed test is listed" "$scratch/out" '^test a::b \.\.\. FAILED$'
expect "a step that took too long is listed" "$scratch/out" "^FAILED: cargo's tests: ended after 40 minutes\$"
expect "what the failed test said is listed" "$scratch/out" '^  three is not four$'
expect "the failed case is listed" "$scratch/out" '^FAILED   limits-bodies: It answers \(attempt 2\)$'
expect "the target of the failed case is listed" "$scratch/out" '^third-target: 2 passed, 1 failed, '
expect "the target that could not be built is listed" "$scratch/out" '^plimsoll: fourth-target: '
expect "cargo's skip is listed" "$scratch/out" '^c::d: ignored too slow here$'
expect "node's skip is listed" "$scratch/out" '^a page: skipped no browser$'
expect "a logged skip is listed" "$scratch/out" '^slow::starved: no control group$'
expect "disturbed cases are counted" "$scratch/out" '^disturbed or inconclusive: 3 '
expect "disturbed cases are listed" "$scratch/out" '^ *disturbed: deferred-keeps-schedule$'
expect "what was left out is listed" "$scratch/out" 'unchanged since abc'
expect "the slowest program" "$scratch/out" '^ +12\.2 s  tests/slow\.rs \(slow\)$|^ +12\.3 s  tests/slow\.rs \(slow\)$'
# 3 + 5 + 7 + 4 + 2 less the logged one; 2 failed; 1 of cargo, 2 of some-target, 2 logged.
equal "the sum is the last line" "$(tail -n 1 "$scratch/out")" "total: 20 passed, 2 failed, 5 skipped"

# A repository with two targets, of which one builds the other.
mkdir -p "$scratch/repo/scripts" "$scratch/repo/docs/stt" "$scratch/repo/targets/stt/vectors" "$scratch/repo/targets/stt/base" "$scratch/repo/targets/stt/user" \
    "$scratch/repo/crates/conformance/src" "$scratch/repo/crates/inference/src" "$scratch/repo/crates/workload-stt/src" "$scratch/repo/crates/workload-ws/src/check"
cd "$scratch/repo"
cp "$scripts/tested.sh" scripts/
for file in docs/stt/contract.md targets/stt/vectors/start.json crates/conformance/src/lib.rs crates/inference/src/main.rs crates/workload-stt/src/synthetic.rs \
    targets/stt/base/target.toml targets/stt/base/main.c; do echo one >"$file"; done
echo 'command = ["../base/run"]' >targets/stt/user/target.toml
echo true >targets/stt/base/test.sh
echo true >targets/stt/user/test.sh
git init -q .
git add .
git -c user.name=test -c user.email=test@localhost commit -qm one
changed() { sh scripts/tested.sh changed "$1" | tr '\n' ' '; }
record() { sh scripts/tested.sh keys >"$scratch/keys"; sh scripts/tested.sh record "$scratch/keys" "$@"; }
equal "nothing is recorded yet" "$(changed own)" "stt/base stt/user "
record
equal "recorded is unchanged" "$(changed own)$(changed conformance)" ""
echo two >targets/stt/user/main.c
equal "a file that is not committed counts" "$(changed own)" "stt/user "
rm targets/stt/user/main.c
equal "and is gone with its removal" "$(changed own)" ""
echo two >targets/stt/user/README.md
equal "a README is no code" "$(changed own)" ""
echo two >targets/stt/base/main.c
equal "who builds a target changes with it" "$(changed own)" "stt/base stt/user "
record stt/base
equal "what could not be tested is not recorded" "$(changed own)" "stt/base "
record
sh scripts/tested.sh keys >"$scratch/keys"
echo three >targets/stt/base/main.c
sh scripts/tested.sh record "$scratch/keys"
equal "what changed during the run is not recorded" "$(changed own)" "stt/base stt/user "
record
echo two >docs/stt/contract.md
equal "the contract is everybody's" "$(changed own)" "stt/base stt/user "
record
echo two >crates/conformance/src/lib.rs
equal "the checker is nothing to a target's own tests" "$(changed own)" ""
equal "but all to its conformance" "$(changed conformance)" "stt/base stt/user "
record
mkdir -p targets/ws/echo docs/ws
for file in targets/ws/echo/target.toml targets/ws/echo/test.sh docs/ws/contract.md crates/workload-ws/src/check/mod.rs; do echo one >"$file"; done
record
mkdir -p crates/workload-stt/src/check
echo one >crates/workload-stt/src/check/mod.rs
equal "a workload's cases are its own targets' only" "$(changed conformance)" "stt/base stt/user "
record
echo two >crates/workload-ws/src/check/mod.rs
equal "another workload's cases are that one's" "$(changed conformance)" "ws/echo "
record
echo three >crates/conformance/src/lib.rs
equal "what runs the cases is everybody's" "$(changed conformance)" "stt/base stt/user ws/echo "
mkdir -p tests/browser crates/report
echo one >tests/browser/test.sh
equal "pages that were never tested are to be" "$(changed own)" "pages "
record
equal "and are not again" "$(changed own)" ""
echo two >crates/report/page.rs
equal "until what writes them changes" "$(changed own)" "pages "
rm -rf .git
equal "without git everything is tested" "$(changed own)" "stt/base stt/user ws/echo pages "

status=0
PLIMSOLL_INSTALL=no sh "$scripts/may-install.sh" somebody "a compiler" 2>"$scratch/refusal" || status=$?
equal "installing can be forbidden" "$status $(cat "$scratch/refusal")" "1 somebody: missing, and PLIMSOLL_INSTALL=no forbids installing it: a compiler"

echo "scripts: $passed passed, $failed failed"
[ "$failed" = 0 ]
