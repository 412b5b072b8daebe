#!/bin/sh
# Builds the jar, which is that of netty-nio; does nothing when nothing has changed.
set -eu
cd "$(dirname "$0")"
exec sh ../java/build.sh netty-nio
