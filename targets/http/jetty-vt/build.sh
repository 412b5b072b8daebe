#!/bin/sh
# Builds the jar, which is that of jetty-pool; does nothing when nothing has changed.
set -eu
cd "$(dirname "$0")"
exec sh ../java/build.sh jetty-pool
