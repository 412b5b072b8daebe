#!/bin/sh
# Builds the jar, with the modules that it needs; does nothing when nothing has changed.
set -eu
cd "$(dirname "$0")"
exec sh ../java/build.sh helidon-se
