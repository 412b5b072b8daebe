#!/bin/sh
# Everything that must hold: formatters and linters (warnings are errors), unit and property tests, the targets' own tests and their conformance, the end-to-end
# tests through the real binary, and last its pages in a real browser. A step that fails does not keep the others from running; the end lists what failed.
#
#   sh scripts/test.sh            of the targets and the pages those whose content is not what targets/tested.txt records (scripts/tested.sh)
#   sh scripts/test.sh all        all targets, the long tests, and the release; records each that passed
#   sh scripts/test.sh targets    only targets and pages, those that changed; records each that passed
set -eu
cd "$(dirname "$0")/.."
what=${1:-code and changed targets}
case $what in 'code and changed targets' | all | targets) ;; *) echo "test: give \`all\`, \`targets\` or nothing, not $what" >&2; exit 2 ;; esac
code_step() { [ "$what" = targets ] || step "$@"; }
records() { [ "$what" = all ] || [ "$what" = targets ]; }

if [ "$(nproc)" -lt 2 ]; then
    echo "test: this shell may use one CPU only (taskset -pc \$\$ shows it), and a trial needs one for the client and one for the target" >&2
    exit 2
fi

quick=--quick
! records || quick=

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
touch "$logs/all" "$logs/steps" "$logs/skipped" "$logs/left-out"
# Tests and targets' scripts that find that they can test nothing here append a line: `NAME: reason`.
export PLIMSOLL_SKIPPED_LOG="$logs/skipped"
# shellcheck source=scripts/steps.sh
. scripts/steps.sh

# A full disk shows as a linker's bus error, which names nothing. What is built already needs no more room: so a warning, not a refusal.
needed_mib=6000
if [ "$(free_mib)" -lt $needed_mib ]; then
    echo "warning: $(free_mib) MiB of disk are free here, and a first run writes about $needed_mib: if a compiler or linker fails, free some" >&2
fi

# Targets whose conformance is always tested, because the checker itself must run: those with few dependencies, since most of this
# step is their build. Workload `voice` has none of these.
always="stt/rust-epoll ws/rust-epoll-echo http/rust-epoll-http"

# Targets that the end-to-end tests start besides these, all in Rust. A test that finds one unbuilt builds it, and others wait.
started_by_tests="voice/lying-voice stt/lying-server http/lying-http broker/lying-broker"

# What is tested of the targets: `WORKLOAD/NAME`, a line each.
sh scripts/tested.sh keys >"$logs/keys"
if [ "$what" = all ]; then
    find targets -mindepth 3 -maxdepth 3 -name target.toml | sed 's|^targets/||; s|/target.toml$||' | sort >"$logs/own"
    cp "$logs/own" "$logs/conformance"
    echo pages >"$logs/pages"
else
    # A target that no complete run has tested yet waits for one: it takes too long to come with every change.
    sed -n 's/^\([^# ]*\) .*/\1/p' targets/tested.txt >"$logs/known"
    sed 's/ .*//' "$logs/keys" | grep -vxF -f "$logs/known" >"$logs/new" || true
    if [ "$what" = targets ]; then
        : >"$logs/new"
        always=
    fi
    sh scripts/tested.sh changed own "$logs/keys" >"$logs/changed"
    grep / "$logs/changed" | grep -vxF -f "$logs/new" >"$logs/own" || true
    grep -x pages "$logs/changed" >"$logs/pages" || true
    # shellcheck disable=SC2086  # names without blanks
    { sh scripts/tested.sh changed conformance "$logs/keys" | grep / | grep -vxF -f "$logs/new" || true; [ -z "$always" ] || printf '%s\n' $always; } | sort -u >"$logs/conformance"
    sed 's/$/: all of its tests, because no run of make test-all has recorded it yet/' "$logs/new" >>"$logs/left-out"
    sh scripts/tested.sh unchanged own "$logs/keys" | sed 's/\([^ ]*\) \(.*\)/\1: own tests, unchanged since \2/' >>"$logs/left-out"
    # shellcheck disable=SC2086  # names without blanks
    sh scripts/tested.sh unchanged conformance "$logs/keys" | grep -vE "^(pages$(printf '|%s' $always)) " |
        sed 's/\([^ ]*\) \(.*\)/\1: conformance, it and the checker unchanged since \2/' >>"$logs/left-out" || true
fi

own_tests() {
    # Each makes what it prints one block, so that two do not mix their lines.
    sed 's|^|targets/|; s|$|/test.sh|' "$logs/own" | while read -r script; do [ ! -f "$script" ] || echo "$script"; done |
        xargs -r -n 1 -P 2 sh scripts/test-target.sh
}

# The targets that said why they cannot run here.
absent() { sed -n 's|^targets/\([^:]*\):.*|\1|p' "$logs/skipped"; }

toolchains() {
    # $started_by_tests need none beyond the workspace's own.
    # shellcheck disable=SC2046  # names without blanks
    sh scripts/install-targets.sh $(cat "$logs/own" "$logs/conformance" | sort -u | sed 's|.*/||')
}

# Whether the target WORKLOAD/NAME tests Plimsoll.
is_of_tests() { grep -q '^tier = "test"' "targets/$1/target.toml"; }

# Of one workload, those that changed. Targets of tier "test" are no part of `--all`, so they need no `--except`. Cases that
# wait for a minute are left to a run of all targets. 3: the machine disturbed a case at each attempt. That is no failure,
# and the end lists it.
conformance_of() {
    # shellcheck disable=SC2046,SC2086  # names without blanks
    target/debug/plimsoll check --all --workload "$1" $quick --jobs 3 --out "$logs/check-$1" $(
        for manifest in targets/"$1"/*/target.toml; do
            name=$(basename "$(dirname "$manifest")")
            is_of_tests "$1/$name" || grep -qx "$1/$name" "$logs/conformance" || printf -- '--except %s ' "$name"
        done
    ) || [ $? = 3 ]
}

targets_of_tests() {
    # shellcheck disable=SC2086  # names without blanks
    printf 'targets/%s/Cargo.toml\n' $started_by_tests |
        xargs -n 1 -P 2 nice -n 19 cargo build --quiet --release --locked --manifest-path
}

# Cases mostly wait. So workloads of which one target is checked, as usual, go beside one another.
conformance() {
    failed=0
    running=
    for workload in http stt voice ws; do
        case $(grep "^$workload/" "$logs/conformance" | while read -r target; do
            is_of_tests "$target" || echo "$target"
        done | wc -l) in
        0) ;;
        1)
            conformance_of $workload >"$logs/conformance-$workload" 2>&1 &
            running="$running $workload:$!"
            ;;
        *) conformance_of $workload || failed=1 ;;
        esac
    done
    for workload in $running; do
        wait "${workload#*:}" || failed=1
        cat "$logs/conformance-${workload%:*}"
    done
    return $failed
}

shell_scripts() { git ls-files -z -- '*.sh' .ci/run | xargs -0 shellcheck --external-sources --source-path=SCRIPTDIR; }

# A test that hangs must not take the time of the later steps: each run of cargo's tests may take 45 minutes.
tests() {
    status=0
    timeout --kill-after=10 2700 cargo test --workspace --locked --no-fail-fast "$@" || status=$?
    [ $status != 124 ] || echo "FAILED: cargo's tests: ended after 45 minutes, so some tests have no result"
    return $status
}

# Runs a command and keeps its output and status for `said`.
aside() {
    name=$1
    shift
    status=0
    "$@" >"$logs/$name" 2>&1 || status=$?
    echo $status >"$logs/$name.status"
}

# What a command said aside, and how it ended.
said() {
    until [ -s "$logs/$1.status" ]; do sleep 0.2; done
    cat "$logs/$1"
    return "$(cat "$logs/$1.status")"
}

checks() {
    for check in scripts/check-*; do
        [ ! -x "$check" ] || aside "${check#scripts/}" nice -n 19 "$check"
    done
}

clippy() { nice -n 19 cargo clippy --workspace --all-targets --locked -- -D warnings; }

# It waits until tests run: before, they would wait for the lock that it holds.
clippy_beside_tests() {
    until grep -q 'Running unittests' "$logs/all" || [ -e "$logs/unit.ended" ]; do sleep 1; done
    aside clippy clippy
}

# Many of these tests wait, so what only computes runs beside them, and gives way to them.
unit() {
    checks >/dev/null &
    clippy_beside_tests >/dev/null &
    status=0
    tests --lib --bins -- --test-threads 4 || status=$?
    touch "$logs/unit.ended"
    return $status
}

# More tests at once than cores: a small trial mostly waits, and so does a test for its turn (crates/plimsoll/tests/support/turns.rs).
end_to_end() { tests --test "*" -- --test-threads 24; }

# Those that take half a minute or more.
long_end_to_end() { tests --test trials -- --ignored --test-threads 24; }

browser() {
    sh scripts/install-browser.sh && sh tests/browser/test.sh
}

code_step "formatter" cargo fmt --all --check
code_step "shell scripts" shell_scripts
# Tests and the programs that end-to-end tests start, all at once: the runs below then compile nothing. Clippy reads the benches.
step "build" cargo build --workspace --lib --bins --tests --examples --locked
built=$result
code_step "tests of scripts" sh scripts/tests/steps.sh

if [ "$built" = ok ]; then
    code_step "unit and property tests" unit
    code_step "clippy" said clippy
    for check in scripts/check-*; do
        [ ! -x "$check" ] || code_step "$check" said "${check#scripts/}"
    done
else
    not_run "unit and property tests" "the build failed"
    code_step "clippy" clippy
fi

if [ -s "$logs/own" ] || [ -s "$logs/conformance" ]; then
    step "the targets' toolchains" toolchains
fi
if [ -s "$logs/own" ]; then
    step "the targets' own tests, two at a time" own_tests
else
    not_run "the targets' own tests" "no target has changed"
fi
# One that has just said why it cannot run here cannot be checked either.
absent | grep -vxF -f - "$logs/conformance" >"$logs/present" || true
mv "$logs/present" "$logs/conformance"

if [ "$built" = ok ]; then
    # They give way to the conformance cases, which mostly wait.
    [ "$what" = targets ] || aside targets-of-tests targets_of_tests &
    step "conformance of targets, several at a time" conformance
    code_step "targets that tests start" said targets-of-tests
    code_step "end-to-end tests" end_to_end
    [ "$what" != all ] || step "long end-to-end tests" long_end_to_end
    code_step "tests in the documentation of code" tests --doc
    if [ -s "$logs/pages" ]; then
        step "the pages in a browser" browser
    else
        not_run "the pages in a browser" "neither they nor their tests have changed"
    fi
    [ "$what" != all ] || step "the release" sh scripts/tests/release.sh
else
    for name in "conformance of targets" "end-to-end tests" "the pages in a browser"; do
        not_run "$name" "the build failed"
    done
fi

# The targets among those of $logs/keys that this run did not test, or whose tests it did not pass: they are not recorded. One whose
# own tests have not changed has passed them before, and so has one whose conformance has not.
not_passed() {
    sed 's/ .*//' "$logs/keys" | while read -r target; do
        tested=no
        if [ "$target" = pages ]; then
            ! grep -q '^ok.*the pages in a browser$' "$logs/steps-ok" || tested=yes
        fi
        if grep -qx "$target" "$logs/own"; then
            tested=yes
            [ ! -f "targets/$target/test.sh" ] || grep -q "^== targets/$target/test.sh: .*, exit code 0\$" "$logs/all" || tested=no
        fi
        case $target in broker/* | stt-real/* | pages) checked=no ;; *) checked=yes ;; esac
        [ $checked = no ] || ! is_of_tests "$target" || checked=no
        if grep -qx "$target" "$logs/conformance"; then
            if [ $checked = no ] || grep -q "^${target#*/}: [0-9]* passed, 0 failed, 0 disturbed" "$logs/all"; then
                grep -qx "$target" "$logs/own" || tested=yes
            else
                tested=no
            fi
        fi
        [ $tested = yes ] || echo "$target"
    done
}

passed=yes
finish >"$logs/end" || passed=no
if records; then
    awk -F '\t' '{ print $2, $3 }' "$logs/steps" >"$logs/steps-ok"
    # shellcheck disable=SC2046  # names without blanks
    sh scripts/tested.sh record "$logs/keys" $(absent) $(not_passed)
    echo "what passed is recorded in targets/tested.txt; commit it"
fi
cat "$logs/end"
[ $passed = yes ]
