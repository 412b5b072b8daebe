#!/bin/sh
# Formatter, linter (a warning is an error), and the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer.
# The last line is `cpp-uwebsockets: N passed, N failed, N skipped`.
set -eu
cd "$(dirname "$0")"
build=build/tests
sh install.sh --check >/dev/null
sh fetch.sh

clang-format-19 --dry-run --Werror src/*.hpp src/*.cpp tests/*.cpp

if [ ! -f $build/build.ninja ]; then
    cmake -S . -B $build -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
        -DCMAKE_BUILD_TYPE=Debug \
        '-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1' -DSANITIZE=ON -DBUILD_TESTS=ON >/dev/null
fi
ninja -C $build -j 2 --quiet unit_tests

# A file that was found clean is looked at again only when it, a header or the list of checks has changed.
mkdir -p $build/tidy
headers=$(cat .clang-tidy CMakeLists.txt src/*.hpp | sha256sum)
for file in src/*.cpp tests/*.cpp; do
    state=$({ echo "$headers"; cat "$file"; } | sha256sum)
    clean=$build/tidy/$(echo "$file" | tr / -)
    [ "$state" = "$(cat "$clean" 2>/dev/null)" ] || printf '%s\n%s\n%s\n' "$file" "$clean" "$state"
done >$build/tidy-list
# shellcheck disable=SC2016  # expanded by the inner shell
xargs -d '\n' -r -n 3 -P 2 sh -c '
    clang-tidy-19 --quiet -p "$0" "$1" >"$2.log" 2>&1 || { cat "$2.log" >&2; exit 1; }
    echo "$3" >"$2"' $build <$build/tidy-list

log=$build/unit_tests.log
status=0
$build/unit_tests --gtest_brief=1 >"$log" 2>&1 || status=$?
passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\.$/\1/p' "$log")
failed=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed below:$/\1/p' "$log")
# Tests that died have said neither; a sanitizer ends the process.
[ "$status" = 0 ] || { cat "$log" >&2; [ -n "$failed" ] || failed=1; }
skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}, listed below:$/\1/p' "$log")
echo "cpp-uwebsockets: ${passed:-0} passed, ${failed:-0} failed, ${skipped:-0} skipped"
exit "$status"
