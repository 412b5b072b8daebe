#!/bin/sh
# Formatter, linter (a warning is an error), and all tests under AddressSanitizer and UndefinedBehaviorSanitizer.
# The last line is `cpp-beast: N passed, M failed`.
set -eu
cd "$(dirname "$0")"
build=build/tests
sh install.sh --check >/dev/null

clang-format-19 --dry-run --Werror src/*.hpp src/*.cpp tests/*.hpp tests/*.cpp

if [ ! -f $build/build.ninja ]; then
    cmake -S . -B $build -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_BUILD_TYPE=Debug \
        '-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1' -DSANITIZE=ON -DBUILD_TESTS=ON >/dev/null
fi
ninja -C $build -j 2 --quiet

# A file that was found clean is looked at again only when it, a header or the list of checks has changed.
mkdir -p $build/tidy
headers=$(cat .clang-tidy tests/.clang-tidy CMakeLists.txt src/*.hpp tests/*.hpp | sha256sum)
for file in src/*.cpp tests/*.cpp; do
    [ "$file" = src/asio_beast.cpp ] && continue # not ours
    state=$({ echo "$headers"; cat "$file"; } | sha256sum)
    clean=$build/tidy/$(echo "$file" | tr / -)
    [ "$state" = "$(cat "$clean" 2>/dev/null)" ] || printf '%s\n%s\n%s\n' "$file" "$clean" "$state"
done >$build/tidy-list
# shellcheck disable=SC2016  # expanded by the inner shell
xargs -d '\n' -r -n 3 -P 2 sh -c '
    clang-tidy-19 --quiet -p "$0" "$1" 2>"$2.log" || { cat "$2.log" >&2; exit 1; }
    echo "$3" >"$2"' $build <$build/tidy-list

passed=0
failed=0
skipped=0
for suite in core_tests rim_tests; do
    log=$build/$suite.log
    status=0
    $build/tests/$suite --gtest_brief=1 >"$log" 2>&1 || status=$?
    ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\.$/\1/p' "$log")
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed below:$/\1/p' "$log")
    # A suite that died has said neither; a sanitizer ends the process.
    [ "$status" = 0 ] || { cat "$log" >&2; [ -n "$bad" ] || bad=1; }
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-0}))
    left=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}, listed below:$/\1/p' "$log")
    skipped=$((skipped + ${left:-0}))
done
echo "cpp-beast: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
