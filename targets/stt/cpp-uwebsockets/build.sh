#!/bin/sh
# Builds build/release/gateway. When nothing has changed it takes a fraction of a second: ninja looks at the times of files.
set -eu
cd "$(dirname "$0")"
sh fetch.sh
if [ ! -f build/release/build.ninja ]; then
    cmake -S . -B build/release -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
        -DCMAKE_BUILD_TYPE=Release >/dev/null
fi
exec ninja -C build/release -j 2 --quiet gateway
