#!/bin/sh
# Installs what building and testing this gateway needs, on Debian bookworm. Says and does nothing when all is
# there. `install.sh --check` installs nothing and prints the versions of the libraries.
#
# Boost is that of Debian forky, the coming one, because bookworm's is of 2022. Its headers are unpacked into build/boost; the
# system does not see them.
set -eu
cd "$(dirname "$0")"

boost=build/boost/usr/include/boost/version.hpp
boost_version=1.90
boost_package=libboost$boost_version-dev
suite=forky

# A checkout may have an older one.
boost_is_there() {
    # In the header it is 1_90.
    grep -q "BOOST_LIB_VERSION \"$(echo $boost_version | tr . _)\"" "$boost" 2>/dev/null
}

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
libnghttp2-dev /usr/include/nghttp2/nghttp2.h
libgtest-dev /usr/include/gtest/gtest.h
LIST
}

if [ "${1:-}" = --check ]; then
    absent=$(missing)
    boost_is_there || absent="$absent$boost_package"
    [ -z "$absent" ] || { echo "cpp-beast-plain: missing packages: $absent" >&2; exit 1; }
    sed -n 's/^#define BOOST_LIB_VERSION "\(.*\)"$/Boost \1/p' "$boost"
    sed -n 's/^#define NGHTTP2_VERSION "\(.*\)"$/nghttp2 \1/p' /usr/include/nghttp2/nghttp2ver.h
    exit 0
fi

fail() {
    echo "cpp-beast-plain: $1" >&2
    exit 1
}
packages=$(missing)
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086  # a list of words
    sh ../../../scripts/apt-install.sh cpp-beast-plain $packages
    absent=$(missing)
    [ -z "$absent" ] || fail "still missing after the installation (Debian bookworm has them): $absent"
fi
! boost_is_there || exit 0
# What follows stays within this folder.
[ "${PLIMSOLL_INSTALL:-}" != list ] || exit 0
echo "cpp-beast-plain: unpacks $suite's $boost_package into build/boost"

apt=$PWD/build/apt
log=$PWD/build/install.log
fetch=$PWD/../../../scripts/apt-of-suite.sh
rm -rf "$apt" build/boost
mkdir -p "$apt"
(cd "$apt" && sh "$fetch" $suite "$apt" download $boost_package) >"$log" 2>&1 || fail "$suite's $boost_package: $(tail -n 1 "$log")"
dpkg-deb -x "$apt"/$boost_package*.deb build/boost.part
rm -rf "$apt" build/boost.part/usr/share
mv build/boost.part build/boost
