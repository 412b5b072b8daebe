#!/bin/sh
# Installs what building and testing this gateway needs, on Debian bookworm. Says and does nothing when all is
# there. `install.sh --check` installs nothing and prints the versions of the libraries.
set -eu

# What each package brings, to see without the package manager whether it is there.
missing() {
    while read -r package file; do
        [ -e "$file" ] || printf '%s ' "$package"
    done <<'LIST'
clang-19 /usr/bin/clang++-19
clang-format-19 /usr/bin/clang-format-19
clang-tidy-19 /usr/bin/clang-tidy-19
libclang-rt-19-dev /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.asan-x86_64.a
cmake /usr/bin/cmake
ninja-build /usr/bin/ninja
libboost1.81-dev /usr/include/boost/beast/websocket.hpp
libnghttp2-dev /usr/include/nghttp2/nghttp2.h
libgtest-dev /usr/include/gtest/gtest.h
LIST
}

if [ "${1:-}" = --check ]; then
    absent=$(missing)
    [ -z "$absent" ] || { echo "cpp-beast-plain: missing packages: $absent" >&2; exit 1; }
    sed -n 's/^#define BOOST_LIB_VERSION "\(.*\)"$/Boost \1/p' /usr/include/boost/version.hpp
    sed -n 's/^#define NGHTTP2_VERSION "\(.*\)"$/nghttp2 \1/p' /usr/include/nghttp2/nghttp2ver.h
    exit 0
fi

packages=$(missing)
[ -n "$packages" ] || exit 0
fail() {
    echo "cpp-beast-plain: $1" >&2
    exit 1
}
# shellcheck disable=SC2086  # a list of words
sh "$(dirname "$0")/../../../scripts/apt-install.sh" cpp-beast-plain $packages
absent=$(missing)
[ -z "$absent" ] || fail "still missing after the installation (Debian bookworm has them): $absent"
