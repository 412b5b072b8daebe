#!/bin/sh
# Builds the jar, which is that of vertx-default; does nothing when nothing has changed.
set -eu
cd "$(dirname "$0")"
exec sh ../java/build.sh vertx-default
