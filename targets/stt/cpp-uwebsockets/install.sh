#!/bin/sh
# Installs what building and testing this gateway needs, on Debian bookworm. Says and does nothing when all is
# there. `install.sh --check` installs nothing and prints the versions of the libraries. Cargo, which fetches the sources
# of uWebSockets, it only looks for.
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
nlohmann-json3-dev /usr/include/nlohmann/json.hpp
libnghttp2-dev /usr/include/nghttp2/nghttp2.h
libgtest-dev /usr/include/gtest/gtest.h
LIST
}

fail() {
    echo "cpp-uwebsockets: $1" >&2
    exit 1
}

if [ "${1:-}" = --check ]; then
    absent=$(missing)
    [ -z "$absent" ] || fail "missing packages: $absent"
    sed -n 's/^#define NGHTTP2_VERSION "\(.*\)"$/nghttp2 \1/p' /usr/include/nghttp2/nghttp2ver.h
    numbers=$(sed -n 's/^#define NLOHMANN_JSON_VERSION_[A-Z]* \([0-9]*\) .*/\1/p' /usr/include/nlohmann/detail/abi_macros.hpp)
    echo "nlohmann/json $(echo "$numbers" | paste -s -d .)"
    exit 0
fi

# 1.78 is the first that reads the lock file.
minor=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
[ "${minor:-0}" -ge 78 ] || fail "needs Rust 1.78 or newer; install it with rustup (https://rustup.rs) and run this again"

packages=$(missing)
[ -n "$packages" ] || exit 0
# shellcheck disable=SC2086  # a list of words
sh "$(dirname "$0")/../../../scripts/apt-install.sh" cpp-uwebsockets $packages
absent=$(missing)
[ -z "$absent" ] || fail "still missing after the installation (Debian bookworm has them): $absent"
